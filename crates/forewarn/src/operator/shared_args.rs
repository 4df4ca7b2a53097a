//! Arguments that several commands share: notices, approval policies, upgrade modes, new machines.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use forewarn_control::{
    ApproveWord, Eviction, MachineEntry, OrchestrationWord, PolicyChange, RollingEntry, UpgradeWord,
};
use forewarn_types::Span;

use super::Name;
use super::size_args::SizeArgs;

/// The default notice of a deletion: the shortest one.
const NOTICE: Span = Span(Duration::from_secs(300));

/// Defines enums of the command line, each with the enum of the operator API that it stands for.
macro_rules! words {
    ($($(#[doc = $about:literal])+ $name:ident = $meaning:ident { $($(#[doc = $what:literal])+ $word:ident),+ })+) => {
        $($(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub(crate) enum $name { $($(#[doc = $what])+ $word),+ }

        impl From<$name> for $meaning {
            fn from(word: $name) -> Self {
                match word { $($name::$word => Self::$word),+ }
            }
        })+
    };
}

words! {
    /// Effect of an eviction on a spot machine.
    EvictionArg = Eviction {
        /// Delete the machine
        Delete,
        /// Stop the machine and release its host; it can be started again
        Deallocate
    }
    /// Grouping of instances into tenants.
    OrchestrationArg = OrchestrationWord {
        /// Placement groups of at most 100 instances
        Uniform,
        /// One tenant for all instances
        Flexible
    }
    /// Approval of an event.
    ApprovalMode = ApproveWord {
        /// Approve automatically
        Automatic,
        /// Wait for the approval of a machine of the tenant, or for the end of the notice
        Asked
    }
}

/// The way in which a new model is applied to instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UpgradeMode {
    /// Only with `forewarn scaleset upgrade`
    Manual,
    /// To all instances at once
    Automatic,
    /// Batch by batch
    Rolling,
}

/// Upgrade mode with its pacing; omitted options keep their value.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct UpgradeArgs {
    /// Application of a new model to instances [default: manual]
    #[arg(long, value_enum, value_name = "MODE")]
    upgrade: Option<UpgradeMode>,
    /// Batch size, in percent of the instances [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    batch_percent: Option<u8>,
    /// Pause between two batches, at most 7d [default: 0s]
    #[arg(long, value_name = "DURATION")]
    batch_pause: Option<Span>,
}

impl UpgradeArgs {
    /// The new upgrade mode, given the current one. None if no option is set.
    pub(super) fn change(&self, now: UpgradeWord) -> Option<UpgradeWord> {
        let Self { upgrade, batch_percent, batch_pause } = *self;
        let is_paced = batch_percent.is_some() || batch_pause.is_some();
        let known = match (upgrade, now) {
            (None, _) if !is_paced => return None,
            (Some(UpgradeMode::Manual), _) if !is_paced => return Some(UpgradeWord::Manual),
            (Some(UpgradeMode::Automatic), _) if !is_paced => return Some(UpgradeWord::Automatic),
            (Some(UpgradeMode::Rolling) | None, UpgradeWord::Rolling(known)) => known,
            (Some(UpgradeMode::Rolling), UpgradeWord::Manual | UpgradeWord::Automatic) => {
                RollingEntry::default()
            }
            (Some(UpgradeMode::Manual | UpgradeMode::Automatic) | None, _) => {
                let message = "--batch-percent and --batch-pause need --upgrade rolling\n";
                clap::Error::raw(ErrorKind::ArgumentConflict, message).exit()
            }
        };
        Some(UpgradeWord::Rolling(RollingEntry {
            batch_percent: batch_percent.unwrap_or(known.batch_percent),
            pause: batch_pause.unwrap_or(known.pause),
        }))
    }

    /// True if no option is set.
    pub(super) fn is_empty(&self) -> bool {
        self.upgrade.is_none() && self.batch_percent.is_none() && self.batch_pause.is_none()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnOff {
    On,
    Off,
}

/// Notices of deletion and of new OS images.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct NoticeArgs {
    /// Notice before deletion (not for spot machines) [default: off]
    #[arg(long, value_enum, value_name = "ON|OFF")]
    terminate_notification: Option<OnOff>,
    /// Length of that notice, 5m to 15m [default: 5m]
    #[arg(long, value_name = "DURATION")]
    terminate_delay: Option<Span>,
    /// Notice before a new OS image [default: off]
    #[arg(long, value_enum, value_name = "ON|OFF")]
    os_image: Option<OnOff>,
}

impl NoticeArgs {
    /// The new notice of deletion, given the current one. None if no option is set.
    #[expect(clippy::option_option, reason = "an omitted option differs from `off`")]
    pub(super) fn terminate(&self, now: Option<Span>) -> Option<Option<Span>> {
        match (self.terminate_notification, self.terminate_delay) {
            (None, None) => None,
            (Some(OnOff::On) | None, Some(delay)) => Some(Some(delay)),
            (Some(OnOff::On), None) => Some(Some(now.unwrap_or(NOTICE))),
            (Some(OnOff::Off), None) => Some(None),
            (Some(OnOff::Off), Some(_)) => {
                let message = "--terminate-delay cannot be used with --terminate-notification off\n";
                clap::Error::raw(ErrorKind::ArgumentConflict, message).exit()
            }
        }
    }

    /// The notice of deletion for a new resource.
    pub(super) fn new_terminate(&self) -> Option<Span> {
        self.terminate(None).flatten()
    }

    /// True if new images are announced. None if the option is omitted.
    pub(super) fn os_image(&self) -> Option<bool> {
        self.os_image.map(|switch| match switch {
            OnOff::On => true,
            OnOff::Off => false,
        })
    }

    /// True if no option is set.
    pub(super) fn is_empty(&self) -> bool {
        self.terminate_notification.is_none() && self.terminate_delay.is_none() && self.os_image.is_none()
    }
}

/// The approval policy; omitted options keep their value.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ApprovalArgs {
    /// Approval of restarts by the owner [default: asked]
    #[arg(long, value_enum, value_name = "MODE")]
    restart: Option<ApprovalMode>,
    /// Approval of redeployments by the owner [default: asked]
    #[arg(long, value_enum, value_name = "MODE")]
    redeploy: Option<ApprovalMode>,
    /// Approval of all events while no machine of the tenant runs [default: automatic]
    #[arg(long, value_enum, value_name = "MODE")]
    all_down: Option<ApprovalMode>,
}

impl ApprovalArgs {
    /// The change. None if no option is set.
    pub(super) fn change(&self) -> Option<PolicyChange> {
        let Self { restart, redeploy, all_down } = *self;
        let change = PolicyChange {
            restart: restart.map(Into::into),
            redeploy: redeploy.map(Into::into),
            all_down: all_down.map(Into::into),
        };
        (change != PolicyChange::default()).then_some(change)
    }
}

/// A tag of a machine: name and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag(pub(super) String, pub(super) String);

impl FromStr for Tag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self(name.to_owned(), value.to_owned())),
            Some(_) | None => Err("write a tag as NAME=VALUE"),
        }
    }
}

pub(super) fn tags(tags: Vec<Tag>) -> BTreeMap<String, String> {
    tags.into_iter().map(|Tag(name, value)| (name, value)).collect()
}

/// Properties of a new machine.
#[derive(Args, Debug)]
pub(crate) struct NewMachineArgs {
    /// Host of the machine
    #[arg(long, value_name = "HOST")]
    host: Name,
    /// Update domain; machines of one tenant on one host share it
    #[arg(long, value_name = "N", default_value_t = 0)]
    update_domain: u16,
    /// Fault domain
    #[arg(long, value_name = "N", default_value_t = 0)]
    fault_domain: u16,
    #[command(flatten)]
    size: SizeArgs,
    /// Create a spot machine, with this effect of an eviction
    #[arg(long, value_enum, value_name = "EVICTION")]
    spot: Option<EvictionArg>,
    #[command(flatten)]
    notices: NoticeArgs,
    /// Source address of the machine's requests; repeatable
    #[arg(long = "address", value_name = "IP")]
    addresses: Vec<IpAddr>,
    /// Tag, as NAME=VALUE; repeatable
    #[arg(long = "tag", value_name = "NAME=VALUE")]
    tags: Vec<Tag>,
}

impl NewMachineArgs {
    pub(super) fn named(self, name: String) -> MachineEntry {
        let Name(host) = self.host;
        MachineEntry {
            name,
            host,
            update_domain: self.update_domain,
            fault_domain: self.fault_domain,
            cpus: self.size.cpus,
            memory: self.size.memory,
            spot: self.spot.map(Into::into),
            terminate: self.notices.new_terminate(),
            os_image: self.notices.os_image().unwrap_or(false),
            addresses: self.addresses,
            tags: tags(self.tags),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_set_changed_or_kept() {
        let ten = Span(Duration::from_secs(600));
        let notice = |terminate_notification, terminate_delay, now| {
            NoticeArgs { terminate_notification, terminate_delay, os_image: None }.terminate(now)
        };
        assert_eq!(notice(None, None, Some(ten)), None);
        assert_eq!(notice(Some(OnOff::On), None, None), Some(Some(NOTICE)));
        assert_eq!(notice(Some(OnOff::On), None, Some(ten)), Some(Some(ten)), "the length stays");
        assert_eq!(notice(Some(OnOff::On), Some(ten), None), Some(Some(ten)));
        assert_eq!(notice(None, Some(ten), None), Some(Some(ten)));
        assert_eq!(notice(Some(OnOff::Off), None, Some(ten)), Some(None));
    }

    #[test]
    fn a_tag_has_a_name() {
        assert_eq!("a=b=c".parse(), Ok(Tag("a".to_owned(), "b=c".to_owned())));
        assert_eq!("a=".parse(), Ok(Tag("a".to_owned(), String::new())));
        assert!("=b".parse::<Tag>().is_err() && "a".parse::<Tag>().is_err());
    }
}
