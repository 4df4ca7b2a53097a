//! The options of a rollout: which hosts, what is done to them, and on what terms.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use forewarn_control::{
    AllWord, ConfirmWord, HealthWord, HostSelection, NotAWindow, TermsEntry, WindowEntry, WorkWord,
    ZoneSelection,
};
use forewarn_types::Span;

use super::super::Named;
use super::super::table::some;

/// Which hosts, and what is done to them.
#[derive(Args)]
pub(super) struct Selection {
    /// Their names.
    #[arg(value_name = "HOST", required_unless_present_any = ["all", "zone"])]
    hosts: Vec<Named>,
    /// Every host that has not failed.
    #[arg(long, conflicts_with_all = ["hosts", "zone"])]
    all: bool,
    /// Every host of a zone that has not failed.
    #[arg(long, value_name = "ZONE", conflicts_with = "hosts")]
    zone: Option<u16>,
    /// What is done to them.
    #[arg(long, value_enum, default_value_t = Kind::Update)]
    work: Kind,
}

/// What is done to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// They are updated; machines are paused for some seconds.
    Update,
    /// They are restarted, and their machines with them.
    Reboot,
    /// Their machines are moved live to other hosts.
    Migrate,
    /// Their network is updated.
    Network,
}

/// How a rollout is done.
#[derive(Args)]
#[command(next_help_heading = "Terms")]
pub(super) struct TermsOptions {
    /// At most that many hosts at once; 0: as many as fit.
    #[arg(long, value_name = "N")]
    at_once: Option<u16>,
    /// At most that part of the machines of any tenant at once, but one machine at least.
    #[arg(long, value_name = "PERCENT")]
    tenant_share: Option<Share>,
    /// Machines of a tenant that are worked on at once lie in one fault domain.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    one_fault_domain: Option<bool>,
    /// Groups start only then: `22:00-06:00`, `mon-fri 22:00-06:00 +01:00`; may be said several times. `any`: at any time.
    #[arg(long, value_name = "WINDOW")]
    window: Vec<WindowOption>,
    /// Rest that long between two groups.
    #[arg(long, value_name = "DURATION")]
    pause_between: Option<Span>,
    /// Wait for `rollout resume` after these groups.
    #[arg(long, value_name = "WHEN", value_enum)]
    confirm: Option<ConfirmOption>,
    /// Pause after that many failed impacts; 0: never. Usually 1.
    #[arg(long, value_name = "N")]
    stop_after: Option<u16>,
    /// Go on although a host that was worked on is not well.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ignore_health: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConfirmOption {
    Never,
    First,
    Each,
}

/// A window, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WindowOption {
    Any,
    Only(WindowEntry),
}

/// `25%`, or `25`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share(u8);

impl FromStr for WindowOption {
    type Err = NotAWindow;

    fn from_str(text: &str) -> Result<Self, NotAWindow> {
        if text.trim() == "any" { Ok(Self::Any) } else { text.parse().map(Self::Only) }
    }
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.trim().trim_end_matches('%').parse().ok();
        number.filter(|share| (1..=100).contains(share)).map(Self).ok_or("write 1% to 100%")
    }
}

impl Selection {
    pub(super) fn hosts(&self) -> HostSelection {
        match (self.all, self.zone) {
            (true, _) => HostSelection::Every(AllWord::All),
            (false, Some(zone)) => HostSelection::Zone(ZoneSelection { zone }),
            (false, None) => HostSelection::Names(self.names()),
        }
    }

    fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|Named(host)| host.clone()).collect()
    }

    pub(super) fn work(&self) -> WorkWord {
        match self.work {
            Kind::Update => WorkWord::Update,
            Kind::Reboot => WorkWord::Reboot,
            Kind::Migrate => WorkWord::Migrate,
            Kind::Network => WorkWord::Network,
        }
    }

    /// What it is called in sentences.
    pub(super) fn phrase(&self) -> String {
        let what = match self.work {
            Kind::Update => "update of",
            Kind::Reboot => "restart of",
            Kind::Migrate => "live migration from",
            Kind::Network => "network update of",
        };
        match (self.all, self.zone) {
            (true, _) => format!("{what} all hosts"),
            (false, Some(zone)) => format!("{what} the hosts of zone {zone}"),
            (false, None) => format!("{what} {}", some(&self.names())),
        }
    }
}

impl TermsOptions {
    pub(super) fn entry(&self) -> TermsEntry {
        let windows = self.window.iter().filter_map(|window| match window {
            WindowOption::Any => None,
            WindowOption::Only(window) => Some(*window),
        });
        TermsEntry {
            at_once: self.at_once,
            tenant_share: self.tenant_share.map(|Share(share)| share),
            one_fault_domain: self.one_fault_domain,
            windows: (!self.window.is_empty()).then(|| windows.collect()),
            pause_between: self.pause_between,
            confirm: self.confirm.map(|word| match word {
                ConfirmOption::Never => ConfirmWord::Never,
                ConfirmOption::First => ConfirmWord::First,
                ConfirmOption::Each => ConfirmWord::Each,
            }),
            health: self
                .ignore_health
                .map(|ignored| if ignored { HealthWord::Ignored } else { HealthWord::Awaited }),
            stop_after: self.stop_after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_part_of_the_whole() {
        assert_eq!("25%".parse(), Ok(Share(25)));
        assert_eq!("100".parse(), Ok(Share(100)));
        for wrong in ["0", "101%", "", "%", "x"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_window_is_a_window_too() {
        assert_eq!("any".parse(), Ok(WindowOption::Any));
        assert!(matches!("22:00-06:00".parse(), Ok(WindowOption::Only(_))));
        assert!("sometimes".parse::<WindowOption>().is_err());
    }
}
