//! What has been measured, by kind of command.

use std::fmt::Write;
use std::time::Duration;

use crate::copies::{Cost, Costs};

/// The kinds of command in the mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Restart,
    Redeploy,
    Delete,
    Admit,
    Evict,
    Power,
    HostUpdate,
    Approve,
    Complete,
    Tick,
}

/// Sums over the commands so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    changes: u64,
    by_kind: [Sum; Kind::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    commands: u64,
    time: Duration,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Restart,
        Self::Redeploy,
        Self::Delete,
        Self::Admit,
        Self::Evict,
        Self::Power,
        Self::HostUpdate,
        Self::Approve,
        Self::Complete,
        Self::Tick,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Redeploy => "redeploy",
            Self::Delete => "delete",
            Self::Admit => "admit",
            Self::Evict => "evict",
            Self::Power => "power",
            Self::HostUpdate => "host update",
            Self::Approve => "approve",
            Self::Complete => "complete",
            Self::Tick => "tick",
        }
    }
}

impl Tally {
    pub(crate) fn add(&mut self, kind: Kind, changes: usize, time: Duration) {
        self.changes += changes as u64;
        let sum = &mut self.by_kind[kind as usize];
        sum.commands += 1;
        sum.time += time;
    }

    pub(crate) fn commands(&self) -> u64 {
        self.by_kind.iter().map(|sum| sum.commands).sum()
    }

    /// One line: what `cargo xtask bench core` reads.
    pub(crate) fn to_json(&self, machines: u32, bytes_per_machine: u64, copies: Costs) -> String {
        let commands = self.commands();
        let time = self.by_kind.iter().map(|sum| sum.time).sum();
        let mut line = format!("{{\"machines\":{machines},\"commands\":{commands}");
        let _ = write!(line, ",\"nanoseconds_per_command\":{}", per(time, commands));
        let hundredths = self.changes * 100 / commands.max(1);
        let _ = write!(line, ",\"changes_per_command\":{}.{:02}", hundredths / 100, hundredths % 100);
        let _ = write!(line, ",\"resident_bytes_per_machine\":{bytes_per_machine}");
        for (name, Cost { time, bytes }) in [("copy", copies.copy), ("order", copies.order)] {
            let nanoseconds = time.as_nanos();
            let _ = write!(line, ",\"{name}\":{{\"nanoseconds\":{nanoseconds},\"bytes\":{bytes}}}");
        }
        line.push_str(",\"kinds\":[");
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            let sum = self.by_kind[kind as usize];
            let (comma, name) = (if place == 0 { "" } else { "," }, kind.name());
            let nanoseconds = per(sum.time, sum.commands);
            let _ = write!(line, "{comma}{{\"kind\":\"{name}\",\"commands\":{}", sum.commands);
            let _ = write!(line, ",\"nanoseconds_per_command\":{nanoseconds}}}");
        }
        line.push_str("]}");
        line
    }
}

fn per(time: Duration, commands: u64) -> u128 {
    time.as_nanos() / u128::from(commands.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_divided_by_the_number_of_commands() {
        let mut tally = Tally::default();
        tally.add(Kind::Restart, 1, Duration::from_nanos(100));
        tally.add(Kind::Tick, 4, Duration::from_nanos(300));
        let cost = |nanoseconds, bytes| Cost { time: Duration::from_nanos(nanoseconds), bytes };
        let line = tally.to_json(1_000, 42, Costs { copy: cost(5, 6), order: cost(7, 8) });
        assert!(line.starts_with(concat!(
            "{\"machines\":1000,\"commands\":2,\"nanoseconds_per_command\":200,\"changes_per_command\":2.50,",
            "\"resident_bytes_per_machine\":42,",
            "\"copy\":{\"nanoseconds\":5,\"bytes\":6},\"order\":{\"nanoseconds\":7,\"bytes\":8},\"kinds\":[",
            "{\"kind\":\"restart\",\"commands\":1,\"nanoseconds_per_command\":100},",
        )));
        assert!(line.ends_with("{\"kind\":\"tick\",\"commands\":1,\"nanoseconds_per_command\":300}]}"));
    }
}
