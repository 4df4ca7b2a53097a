//! The options of a rollout: its hosts, its work and its terms.

use std::str::FromStr;

use anyhow::Result;
use clap::{Args, ValueEnum};
use forewarn_control::{
    AllWord, ConfirmWord, HealthWord, HostSelection, RolloutEntry, TermsEntry, WindowEntry, WindowError,
    WorkWord, ZoneSelection,
};
use forewarn_types::Span;

use super::super::Name;
use super::super::step_args::StepArgs;
use super::super::table::some;

/// The hosts and the work.
#[derive(Args)]
pub(super) struct HostSelectionArgs {
    /// Hosts
    #[arg(value_name = "HOST", required_unless_present_any = ["all", "zone"])]
    hosts: Vec<Name>,
    /// Select every host that has not failed
    #[arg(long, conflicts_with_all = ["hosts", "zone"])]
    all: bool,
    /// Select every host of this zone that has not failed
    #[arg(long, value_name = "ZONE", conflicts_with = "hosts")]
    zone: Option<u16>,
    /// Host to leave out of `--all` or `--zone`; repeatable
    #[arg(long, value_name = "HOST", conflicts_with = "hosts")]
    except: Vec<Name>,
    /// Kind of work on the hosts [default: update]
    #[arg(long, value_enum)]
    kind: Option<HostWork>,
    #[command(flatten)]
    step: StepArgs,
}

/// Work on hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum HostWork {
    /// Update the hosts; machines are paused for some seconds
    Update,
    /// Restart the hosts; machines are stopped before and started afterwards
    Reboot,
    /// Migrate the machines live to other hosts
    Migrate,
    /// Update the network
    Network,
}

/// The terms of a rollout; omitted options keep their value.
#[derive(Args)]
#[command(next_help_heading = "Terms")]
pub(super) struct TermsArgs {
    /// Maximum number of hosts at once; 0 for no limit [default: 0]
    #[arg(long, value_name = "N")]
    at_once: Option<u16>,
    /// Maximum percentage of a tenant's machines at once, at least one machine [default: 100%]
    #[arg(long, value_name = "PERCENT")]
    tenant_share: Option<Percent>,
    /// Work on only one fault domain of a tenant at once [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    one_fault_domain: Option<bool>,
    /// Window for the start of groups, such as `22:00-06:00` or `mon-fri 22:00-06:00 +01:00`; repeatable [default: any]
    #[arg(long, value_name = "WINDOW")]
    window: Vec<WindowArg>,
    /// Pause between two groups [default: 0s]
    #[arg(long, value_name = "DURATION")]
    pause_between: Option<Span>,
    /// Groups after which the rollout waits for `rollout resume` [default: never]
    #[arg(long, value_name = "GROUPS", value_enum)]
    confirm: Option<ConfirmArg>,
    /// Number of failures after which the rollout pauses; 0 for never [default: 1]
    #[arg(long, value_name = "N")]
    stop_after: Option<u16>,
    /// Continue if a host is not healthy after its work [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ignore_health: Option<bool>,
    /// Wait after each group until its machines have polled again [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(conflicts_with = "ignore_health")]
    await_machines: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConfirmArg {
    Never,
    First,
    Each,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum WindowArg {
    Any,
    Only(WindowEntry),
}

/// A percentage from the command line: `25%` or `25`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Percent(u8);

impl FromStr for WindowArg {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        if text.trim() == "any" { Ok(Self::Any) } else { text.parse().map(Self::Only) }
    }
}

impl FromStr for Percent {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().trim_end_matches('%').parse().ok();
        number.filter(|share| (1..=100).contains(share)).map(Self).ok_or("write 1% to 100%")
    }
}

impl HostSelectionArgs {
    fn hosts(&self) -> HostSelection {
        match (self.all, self.zone) {
            (true, _) => HostSelection::Every(AllWord::All),
            (false, Some(zone)) => HostSelection::Zone(ZoneSelection { zone }),
            (false, None) => HostSelection::Names(self.names()),
        }
    }

    fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|Name(host)| host.clone()).collect()
    }

    /// The rollout on these terms.
    pub(super) fn entry(&self, terms: TermsEntry) -> Result<RolloutEntry> {
        self.step.check_kind(self.kind.is_some())?;
        let StepArgs { work, no_work, duration } = self.step.clone();
        let (kind, hosts) = (self.kind_word(), self.hosts());
        let except = self.except.iter().map(|Name(host)| host.clone()).collect();
        Ok(RolloutEntry { kind, hosts, except, terms, work, no_work, duration })
    }

    fn kind(&self) -> HostWork {
        self.kind.unwrap_or(HostWork::Update)
    }

    fn kind_word(&self) -> WorkWord {
        match self.kind() {
            HostWork::Update => WorkWord::Update,
            HostWork::Reboot => WorkWord::Reboot,
            HostWork::Migrate => WorkWord::Migrate,
            HostWork::Network => WorkWord::Network,
        }
    }

    /// A noun phrase, such as `update of h1`.
    pub(super) fn phrase(&self) -> String {
        let what = match self.kind() {
            HostWork::Update => "update of",
            HostWork::Reboot => "restart of",
            HostWork::Migrate => "live migration from",
            HostWork::Network => "network update of",
        };
        let except: Vec<_> = self.except.iter().map(|Name(host)| host.as_str()).collect();
        let except = if except.is_empty() { String::new() } else { format!(" except {}", some(&except)) };
        match (self.all, self.zone) {
            (true, _) => format!("{what} all hosts{except}"),
            (false, Some(zone)) => format!("{what} the hosts of zone {zone}{except}"),
            (false, None) => format!("{what} {}", some(&self.names())),
        }
    }
}

impl TermsArgs {
    pub(super) fn entry(&self) -> TermsEntry {
        let windows = self.window.iter().filter_map(|window| match window {
            WindowArg::Any => None,
            WindowArg::Only(window) => Some(window.clone()),
        });
        TermsEntry {
            at_once: self.at_once,
            tenant_share: self.tenant_share.map(|Percent(share)| share),
            one_fault_domain: self.one_fault_domain,
            windows: (!self.window.is_empty()).then(|| windows.collect()),
            pause_between: self.pause_between,
            confirm: self.confirm.map(|word| match word {
                ConfirmArg::Never => ConfirmWord::Never,
                ConfirmArg::First => ConfirmWord::First,
                ConfirmArg::Each => ConfirmWord::Each,
            }),
            health: match (self.ignore_health, self.await_machines) {
                (Some(true), _) => Some(HealthWord::Ignored),
                (_, Some(true)) => Some(HealthWord::Machines),
                (Some(false), _) | (_, Some(false)) => Some(HealthWord::Awaited),
                (None, None) => None,
            },
            stop_after: self.stop_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_from_1_to_100() {
        assert_eq!("25%".parse(), Ok(Percent(25)));
        assert_eq!("100".parse(), Ok(Percent(100)));
        for wrong in ["0", "101%", "", "%", "x"] {
            assert!(wrong.parse::<Percent>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn any_means_no_window() {
        assert_eq!("any".parse(), Ok(WindowArg::Any));
        assert!(matches!("22:00-06:00".parse(), Ok(WindowArg::Only(_))));
        assert!("sometimes".parse::<WindowArg>().is_err());
    }
}
