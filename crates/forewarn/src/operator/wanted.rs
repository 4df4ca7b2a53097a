//! What several commands say of what is to be: notices, policies, where a machine is.

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

use super::Named;

/// The notice of a deletion where nobody says how long: the shortest.
const NOTICE: Span = Span(Duration::from_secs(300));

/// Makes words of the command line that mean words of the operator's language.
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
    /// What eviction does to a spot machine.
    Spot = Eviction {
        /// It is gone.
        Delete,
        /// Its disks stay, and it can be started again.
        Deallocate
    }
    /// How instances are grouped into tenants.
    Grouping = OrchestrationWord {
        /// Placement groups of at most 100 instances.
        Uniform,
        /// One tenant.
        Flexible
    }
    /// Whether something needs an approval.
    Approving = ApproveWord {
        /// It approves itself.
        Automatic,
        /// A machine of the tenant approves, or the notice runs out.
        Asked
    }
}

/// How a change of the model reaches instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Upgrading {
    /// When an instance is upgraded.
    Manual,
    /// At once.
    Automatic,
    /// Batch by batch.
    Rolling,
}

/// How a change of the model reaches instances, all of it; what is not said stays.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Upgrades {
    /// How a change of the model reaches instances.
    #[arg(long, value_enum, value_name = "HOW")]
    upgrade: Option<Upgrading>,
    /// How many hundredths of the instances are in a batch of a rolling upgrade; 20, if never said.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    batch_percent: Option<u8>,
    /// How long a rolling upgrade rests between two batches: at most 7 days; not at all, if never said.
    #[arg(long, value_name = "DURATION")]
    batch_pause: Option<Span>,
}

impl Upgrades {
    /// The way that is wanted, where there is `now` one; nothing, if nothing was said of it.
    pub(super) fn change(&self, now: UpgradeWord) -> Option<UpgradeWord> {
        let Self { upgrade, batch_percent, batch_pause } = *self;
        let is_paced = batch_percent.is_some() || batch_pause.is_some();
        let known = match (upgrade, now) {
            (None, _) if !is_paced => return None,
            (Some(Upgrading::Manual), _) if !is_paced => return Some(UpgradeWord::Manual),
            (Some(Upgrading::Automatic), _) if !is_paced => return Some(UpgradeWord::Automatic),
            (Some(Upgrading::Rolling) | None, UpgradeWord::Rolling(known)) => known,
            (Some(Upgrading::Rolling), UpgradeWord::Manual | UpgradeWord::Automatic) => {
                RollingEntry::default()
            }
            (Some(Upgrading::Manual | Upgrading::Automatic) | None, _) => {
                let said = "--batch-percent and --batch-pause are for --upgrade rolling\n";
                clap::Error::raw(ErrorKind::ArgumentConflict, said).exit()
            }
        };
        Some(UpgradeWord::Rolling(RollingEntry {
            batch_percent: batch_percent.unwrap_or(known.batch_percent),
            pause: batch_pause.unwrap_or(known.pause),
        }))
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        self.upgrade.is_none() && self.batch_percent.is_none() && self.batch_pause.is_none()
    }
}

/// On, or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

/// What machines are told of their deletion and of new images.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Notices {
    /// Whether deletion is announced, to machines that are not spot machines.
    #[arg(long, value_enum, value_name = "ON|OFF")]
    terminate_notification: Option<Switch>,
    /// How long before deletion that is: 5 to 15 minutes; 5, if not said.
    #[arg(long, value_name = "DURATION")]
    terminate_delay: Option<Span>,
    /// Whether a new operating-system image is announced.
    #[arg(long, value_enum, value_name = "ON|OFF")]
    os_image: Option<Switch>,
}

impl Notices {
    /// The notice of deletion that is wanted, where there is `now` one; nothing, if nothing was said of it.
    #[expect(clippy::option_option, reason = "not said is another thing than nothing")]
    pub(super) fn terminate(&self, now: Option<Span>) -> Option<Option<Span>> {
        match (self.terminate_notification, self.terminate_delay) {
            (None, None) => None,
            (Some(Switch::On) | None, Some(delay)) => Some(Some(delay)),
            (Some(Switch::On), None) => Some(Some(now.unwrap_or(NOTICE))),
            (Some(Switch::Off), None) => Some(None),
            (Some(Switch::Off), Some(_)) => {
                let said = "--terminate-delay cannot be used with --terminate-notification off\n";
                clap::Error::raw(ErrorKind::ArgumentConflict, said).exit()
            }
        }
    }

    /// The notice of deletion of something new.
    pub(super) fn new_terminate(&self) -> Option<Span> {
        self.terminate(None).flatten()
    }

    /// Whether new images are announced, if something was said of it.
    pub(super) fn os_image(&self) -> Option<bool> {
        self.os_image.map(|switch| match switch {
            Switch::On => true,
            Switch::Off => false,
        })
    }

    /// Whether nothing was said.
    pub(super) fn is_empty(&self) -> bool {
        self.terminate_notification.is_none() && self.terminate_delay.is_none() && self.os_image.is_none()
    }
}

/// Which events approve themselves; what is not said stays.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Approvals {
    /// A restart by the owner.
    #[arg(long, value_enum, value_name = "WHEN")]
    restart: Option<Approving>,
    /// A redeploy by the owner.
    #[arg(long, value_enum, value_name = "WHEN")]
    redeploy: Option<Approving>,
    /// Everything, while no machine of the tenant runs.
    #[arg(long, value_enum, value_name = "WHEN")]
    all_down: Option<Approving>,
}

impl Approvals {
    /// The change, if something was said.
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

/// A name and a value of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag(pub(super) String, pub(super) String);

impl FromStr for Tag {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self(name.to_owned(), value.to_owned())),
            Some(_) | None => Err("a tag is NAME=VALUE"),
        }
    }
}

pub(super) fn tags(tags: Vec<Tag>) -> BTreeMap<String, String> {
    tags.into_iter().map(|Tag(name, value)| (name, value)).collect()
}

/// A machine that is to be.
#[derive(Args, Debug)]
pub(crate) struct NewMachine {
    /// Its host.
    #[arg(long, value_name = "HOST")]
    host: Named,
    /// Its update domain: on one host the machines of one tenant share one.
    #[arg(long, value_name = "N", default_value_t = 0)]
    update_domain: u16,
    /// Its fault domain.
    #[arg(long, value_name = "N", default_value_t = 0)]
    fault_domain: u16,
    /// It is a spot machine, and that is what eviction does to it.
    #[arg(long, value_enum, value_name = "WHAT")]
    spot: Option<Spot>,
    #[command(flatten)]
    notices: Notices,
    /// An address from which it calls; several times, if it has several.
    #[arg(long = "address", value_name = "IP")]
    addresses: Vec<IpAddr>,
    /// A name and a value of its owner; several times, if there are several.
    #[arg(long = "tag", value_name = "NAME=VALUE")]
    tags: Vec<Tag>,
}

impl NewMachine {
    pub(super) fn named(self, name: String) -> MachineEntry {
        let Named(host) = self.host;
        MachineEntry {
            name,
            host,
            update_domain: self.update_domain,
            fault_domain: self.fault_domain,
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
    fn a_notice_is_on_off_so_long_or_as_it_was() {
        let ten = Span(Duration::from_secs(600));
        let said = |terminate_notification, terminate_delay, now| {
            Notices { terminate_notification, terminate_delay, os_image: None }.terminate(now)
        };
        assert_eq!(said(None, None, Some(ten)), None);
        assert_eq!(said(Some(Switch::On), None, None), Some(Some(NOTICE)));
        assert_eq!(said(Some(Switch::On), None, Some(ten)), Some(Some(ten)), "it is on, and stays so long");
        assert_eq!(said(Some(Switch::On), Some(ten), None), Some(Some(ten)));
        assert_eq!(said(None, Some(ten), None), Some(Some(ten)));
        assert_eq!(said(Some(Switch::Off), None, Some(ten)), Some(None));
    }

    #[test]
    fn a_tag_has_a_name() {
        assert_eq!("a=b=c".parse(), Ok(Tag("a".to_owned(), "b=c".to_owned())));
        assert_eq!("a=".parse(), Ok(Tag("a".to_owned(), String::new())));
        assert!("=b".parse::<Tag>().is_err() && "a".parse::<Tag>().is_err());
    }
}
