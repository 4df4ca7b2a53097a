//! Everything that clients of several servers have sent and received, and the rules that it has to follow. Pure.
//!
//! An answer names its entry of the audit log, so the order of all writes is known and no rule has to search for one:
//! every check is a pass over the history.

mod actions;
mod notices;
mod reads;
mod writes;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

/// A moment: the time since the first request.
pub(crate) type Since = Duration;

/// Requests, answers and the logs of all servers.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) writes: Vec<Write>,
    pub(crate) host_reads: Vec<HostRead>,
    pub(crate) log_reads: Vec<LogRead>,
    /// The documents of each guest at each server, in the order in which the guest has read them.
    pub(crate) sightings: Vec<Sighting>,
    /// Polls without a document.
    pub(crate) missed_polls: Vec<MissedPoll>,
    /// Approvals that were answered with success, and those of unknown result.
    pub(crate) approvals: Vec<Approval>,
    /// The audit log of the cluster at the end, of each server.
    pub(crate) logs: Vec<Vec<LogEntry>>,
    /// Actions that were carried out, read after the logs.
    pub(crate) effects: Vec<Effect>,
    /// The number of them before the logs were read.
    pub(crate) effects_before_logs: usize,
}

/// A request that changes something, perhaps sent several times with one key.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) sent: Since,
    /// None if no answer came.
    pub(crate) answer: Option<Acknowledgement>,
    pub(crate) command: WriteCommand,
}

/// An answer that a write was carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acknowledgement {
    pub(crate) at: Since,
    /// The number of its entry. None if nothing was to be done.
    pub(crate) entry: Option<u64>,
}

/// The name of a command and its host or machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WriteCommand {
    pub(crate) name: String,
    pub(crate) subject: String,
}

/// The names of all hosts, read from one server.
#[derive(Clone, Debug)]
pub(crate) struct HostRead {
    pub(crate) server: usize,
    pub(crate) sent: Since,
    pub(crate) answered: Since,
    pub(crate) hosts: BTreeSet<String>,
}

/// The newest entries of the audit log, read from one server: number and hash, newest first.
#[derive(Clone, Debug)]
pub(crate) struct LogRead {
    pub(crate) server: usize,
    pub(crate) sent: Since,
    pub(crate) answered: Since,
    pub(crate) entries: Vec<(u64, String)>,
}

/// A document that differs from the one that the guest has read before at this server.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) server: usize,
    pub(crate) guest: String,
    /// The time at which the last poll was sent that was answered with the document before; zero if there is none.
    pub(crate) previous_sent: Since,
    pub(crate) answered: Since,
    pub(crate) incarnation: u64,
    pub(crate) events: Vec<SeenEvent>,
}

/// A poll that was not answered with a document.
#[derive(Clone, Debug)]
pub(crate) struct MissedPoll {
    pub(crate) server: usize,
    pub(crate) sent: Since,
    pub(crate) reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeenEvent {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) is_started: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Approval {
    pub(crate) event: String,
    pub(crate) is_acknowledged: bool,
}

/// An entry of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogEntry {
    pub(crate) number: u64,
    pub(crate) hash: String,
    pub(crate) kind: String,
    /// Of an entry of the kind `command`.
    pub(crate) command: Option<WriteCommand>,
    pub(crate) hosts: Vec<String>,
    /// As `tenant/name`.
    pub(crate) machines: Vec<String>,
    pub(crate) events: Vec<String>,
    /// The number of the command that has caused it.
    pub(crate) because: Option<u64>,
}

/// An action that a driver program has carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) action: String,
    pub(crate) machine: String,
}

impl History {
    /// All violations of the rules, in words.
    pub(crate) fn violations(&self) -> Vec<String> {
        let mut found = self.check_logs();
        let Some(log) = self.logs.iter().max_by_key(|log| log.len()) else {
            found.push("no server has a log".to_owned());
            return found;
        };
        found.extend(writes::check(&self.writes, &self.approvals, log));
        found.extend(reads::check(self, log));
        found.extend(notices::check(self, log));
        found.extend(actions::check(&self.effects, self.effects_before_logs, log));
        found
    }

    /// Polls from a time on that a server has not answered, although nothing was wrong with its process.
    pub(crate) fn unanswered(&self, from: Since, is_well: impl Fn(usize) -> bool) -> Vec<String> {
        let missed = self.missed_polls.iter().filter(|poll| poll.sent >= from && is_well(poll.server));
        let text = |poll: &MissedPoll| {
            format!("s{} has not answered: {} (sent {:?})", poll.server, poll.reason, poll.sent)
        };
        missed.map(text).collect()
    }

    /// Every server has the same entries, and each number occurs once.
    fn check_logs(&self) -> Vec<String> {
        let mut found = Vec::new();
        let newest = self.writes.iter().filter_map(|write| write.answer?.entry).max().unwrap_or(0);
        for (server, log) in self.logs.iter().enumerate() {
            for (entry, expected) in log.iter().zip(1..) {
                if entry.number != expected {
                    found.push(format!("s{server}: entry {} in place of {expected}", entry.number));
                    break;
                }
            }
            let last = log.last().map_or(0, |entry| entry.number);
            if last < newest {
                found.push(format!(
                    "s{server}: the log ends at {last}, before the acknowledged entry {newest}"
                ));
            }
            let differs = log.iter().zip(&self.logs[0]).find(|(own, other)| own != other);
            found.extend(
                differs.map(|(own, other)| format!("s{server} and s0 differ: {own:?} and {other:?}")),
            );
        }
        found
    }
}
