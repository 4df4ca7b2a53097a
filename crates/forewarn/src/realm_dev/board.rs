//! The state of the realm for a person: processes, owners, terms and gaps; as a table, and as changes.

use std::collections::BTreeMap;
use std::time::Duration;

use forewarn_cli_support::table::{Table, Width};
use forewarn_control::ClusterId;
use serde_json::{Value, json};

use super::process::ProcessRole;

/// Time without an acknowledged write that is reported.
const GAP_MIN: Duration = Duration::from_millis(500);

/// The owner of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerView {
    pub(super) server: String,
    pub(super) term: u64,
}

/// A process.
#[derive(Clone, Debug)]
struct ProcessRow {
    name: String,
    role: ProcessRole,
    pid: Option<u32>,
    /// The end of the last process, in words.
    end: String,
}

/// A cluster.
#[derive(Clone, Debug)]
struct ClusterRow {
    name: String,
    owner: Option<OwnerView>,
    writes: u64,
    /// Time of the last acknowledged write, since the start.
    written: Option<Duration>,
    longest: Duration,
}

/// The whole state.
#[derive(Clone, Debug)]
pub(super) struct RealmBoard {
    processes: Vec<ProcessRow>,
    clusters: BTreeMap<ClusterId, ClusterRow>,
    /// Name of the leader of etcd.
    leader: Option<String>,
}

/// A change that a person wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BoardChange {
    Started { name: String, pid: u32 },
    Ended { name: String, pid: u32, end: String },
    Leader { name: Option<String> },
    Owner { cluster: String, owner: OwnerView, pid: Option<u32>, before: Option<OwnerView> },
    Gap { cluster: String, gap: Duration },
}

impl RealmBoard {
    pub(super) fn new(clusters: &[(ClusterId, String)]) -> Self {
        let row = |name: &String| ClusterRow {
            name: name.clone(),
            owner: None,
            writes: 0,
            written: None,
            longest: Duration::ZERO,
        };
        let clusters = clusters.iter().map(|(id, name)| (*id, row(name))).collect();
        Self { processes: Vec::new(), clusters, leader: None }
    }

    pub(super) fn started(&mut self, role: ProcessRole, name: &str, pid: u32) -> BoardChange {
        match self.processes.iter_mut().find(|row| row.name == name) {
            Some(row) => row.pid = Some(pid),
            None => self.processes.push(ProcessRow {
                name: name.to_owned(),
                role,
                pid: Some(pid),
                end: String::new(),
            }),
        }
        BoardChange::Started { name: name.to_owned(), pid }
    }

    pub(super) fn ended(&mut self, name: &str, pid: u32, end: String) -> BoardChange {
        if let Some(row) = self.processes.iter_mut().find(|row| row.name == name) {
            (row.pid, row.end) = (None, end.clone());
        }
        BoardChange::Ended { name: name.to_owned(), pid, end }
    }

    /// Takes note of the leader, a number among the members. Returns the change, if it is one.
    pub(super) fn set_leader(&mut self, number: Option<usize>) -> Option<BoardChange> {
        let mut members = self.processes.iter().filter(|row| row.role == ProcessRole::Member);
        let name = number.and_then(|number| members.nth(number)).map(|row| row.name.clone());
        let is_new = self.leader != name;
        self.leader.clone_from(&name);
        is_new.then_some(BoardChange::Leader { name })
    }

    pub(super) fn set_owners(&mut self, owners: BTreeMap<ClusterId, OwnerView>) -> Vec<BoardChange> {
        let mut changes = Vec::new();
        for (id, owner) in owners {
            let new = || ClusterRow {
                name: format!("cluster {}", id.0),
                owner: None,
                writes: 0,
                written: None,
                longest: Duration::ZERO,
            };
            let pid = self.pid(&owner.server);
            let row = self.clusters.entry(id).or_insert_with(new);
            if row.owner.as_ref() == Some(&owner) {
                continue;
            }
            let (cluster, before) = (row.name.clone(), row.owner.replace(owner.clone()));
            changes.push(BoardChange::Owner { cluster, owner, pid, before });
        }
        changes
    }

    /// Takes note of an acknowledged write, at a time since the start.
    pub(super) fn written(&mut self, cluster: ClusterId, at: Duration) -> Option<BoardChange> {
        let row = self.clusters.get_mut(&cluster)?;
        let gap = row.written.map_or(Duration::ZERO, |last| at.saturating_sub(last));
        (row.writes, row.written) = (row.writes + 1, Some(at));
        row.longest = row.longest.max(gap);
        (gap >= GAP_MIN).then(|| BoardChange::Gap { cluster: row.name.clone(), gap })
    }

    /// Returns true if every cluster has an owner and an acknowledged write.
    pub(super) fn is_ready(&self) -> bool {
        self.leader.is_some() && self.clusters.values().all(|row| row.owner.is_some() && row.writes > 0)
    }

    fn pid(&self, name: &str) -> Option<u32> {
        self.processes.iter().find(|row| row.name == name)?.pid
    }

    /// The process that owns the default cluster.
    pub(super) fn first_owner(&self) -> Option<(String, u32)> {
        let owner = self.clusters.values().next()?.owner.as_ref()?;
        Some((owner.server.clone(), self.pid(&owner.server)?))
    }

    pub(super) fn leader(&self) -> Option<(String, u32)> {
        let leader = self.leader.as_ref()?;
        Some((leader.clone(), self.pid(leader)?))
    }

    /// The state as tables, at a time since the start.
    pub(super) fn text(&self, width: Width, now: Duration) -> String {
        let mut clusters = Table::new(
            width,
            &["cluster", "owner", "term", "writes", "last write", "longest gap", "kill its owner"],
        );
        for row in self.clusters.values() {
            let owner = row.owner.as_ref();
            let since = row.written.map(|at| seconds(now.saturating_sub(at)) + " ago");
            clusters.row([
                row.name.clone(),
                owner.map(|owner| owner.server.clone()).unwrap_or_default(),
                owner.map(|owner| owner.term.to_string()).unwrap_or_default(),
                row.writes.to_string(),
                since.unwrap_or_default(),
                seconds(row.longest),
                owner.and_then(|owner| self.pid(&owner.server)).map(kill).unwrap_or_default(),
            ]);
        }
        let mut processes = Table::new(width, &["process", "state", "kill it"]);
        for row in &self.processes {
            let state = match row.pid {
                Some(_) if self.leader.as_ref() == Some(&row.name) => "running, leader".to_owned(),
                Some(_) => "running".to_owned(),
                None => row.end.clone(),
            };
            processes.row([row.name.clone(), state, row.pid.map(kill).unwrap_or_default()]);
        }
        format!("{clusters}\n{processes}")
    }
}

impl BoardChange {
    /// The change as a sentence.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Started { name, pid } => format!("{name} started: process {pid}"),
            Self::Ended { name, pid, end } => format!("{name} {end}: process {pid}"),
            Self::Leader { name: Some(name) } => format!("{name} is the leader of etcd"),
            Self::Leader { name: None } => "etcd has no leader: nothing is written".to_owned(),
            Self::Owner { cluster, owner, pid, before } => {
                let before = before.as_ref().map(|before| format!(", after {}", before.server));
                let kill = pid.map(|pid| format!("; kill this one: `{}`", kill(pid)));
                let (before, kill) = (before.unwrap_or_default(), kill.unwrap_or_default());
                format!("{} owns cluster {cluster}, term {}{before}{kill}", owner.server, owner.term)
            }
            Self::Gap { cluster, gap } => {
                format!("cluster {cluster} accepts writes again, after {}", seconds(*gap))
            }
        }
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Self::Started { name, pid } => json!({ "kind": "started", "name": name, "pid": pid }),
            Self::Ended { name, pid, end } => {
                json!({ "kind": "ended", "name": name, "pid": pid, "end": end })
            }
            Self::Leader { name } => json!({ "kind": "leader", "name": name }),
            Self::Owner { cluster, owner, pid, before } => json!({
                "kind": "owner", "cluster": cluster, "name": owner.server, "term": owner.term, "pid": pid,
                "before": before.as_ref().map(|before| &before.server),
            }),
            Self::Gap { cluster, gap } => {
                json!({ "kind": "gap", "cluster": cluster, "gap_seconds": gap.as_secs_f64() })
            }
        }
    }
}

fn kill(pid: u32) -> String {
    format!("kill -9 {pid}")
}

/// A span with one decimal.
pub(super) fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(server: &str, term: u64) -> BTreeMap<ClusterId, OwnerView> {
        [(ClusterId::DEFAULT, OwnerView { server: server.to_owned(), term })].into()
    }

    fn board() -> RealmBoard {
        let mut board = RealmBoard::new(&[(ClusterId::DEFAULT, "default".to_owned())]);
        for (role, name, pid) in [(ProcessRole::Member, "etcd-1", 10), (ProcessRole::Server, "s1", 11)] {
            board.started(role, name, pid);
        }
        board
    }

    #[test]
    fn a_change_of_the_owner_is_reported_once() {
        let mut board = board();
        let texts = |changes: Vec<BoardChange>| changes.iter().map(BoardChange::text).collect::<Vec<_>>();
        assert_eq!(
            texts(board.set_owners(owners("s1", 1))),
            ["s1 owns cluster default, term 1; kill this one: `kill -9 11`"]
        );
        assert_eq!(texts(board.set_owners(owners("s1", 1))), [""; 0]);
        assert_eq!(
            board.ended("s1", 11, "was ended by signal 9".to_owned()).text(),
            "s1 was ended by signal 9: process 11"
        );
        assert_eq!(texts(board.set_owners(owners("s2", 2))), ["s2 owns cluster default, term 2, after s1"]);
    }

    #[test]
    fn a_gap_is_the_time_between_two_acknowledged_writes() {
        let (mut board, at) = (board(), Duration::from_millis);
        assert!(!board.is_ready());
        assert_eq!(board.written(ClusterId::DEFAULT, at(9_000)), None, "the first one");
        assert_eq!(board.written(ClusterId::DEFAULT, at(9_100)), None);
        let gap = board.written(ClusterId::DEFAULT, at(10_400)).unwrap();
        assert_eq!(gap.text(), "cluster default accepts writes again, after 1.3 s");
        assert_eq!(gap.json()["gap_seconds"], 1.3);
        board.set_owners(owners("s1", 1));
        board.set_leader(Some(0));
        assert!(board.is_ready());
        let text = board.text(Width::Wide, at(12_400));
        for expected in [
            "default  s1     1     3       2.0 s ago   1.3 s        kill -9 11",
            "etcd-1   running, leader  kill -9 10",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
