//! Views of rollouts, and the sentences about them in the audit log.

use forewarn_lifecycle::{
    Change, Cluster, EndedRollout, HostId, HostResult, Now, Pause, Rollout, RolloutEnd, RolloutId, Standing,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::lookup::full_name;
use crate::command::terms::TermsEntry;
use crate::view::describe::{host_names, progress, waits, work_word};
use forewarn_types::Moment;

/// A rollout: work on many hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "the names describe the fields")]
pub struct RolloutView {
    pub id: u64,
    /// The work, in words.
    pub work: String,
    /// State, as one word: `going`, `waits-for-room`, `waits-for-window`, `waits-for-health`, `waits-for-brake`,
    /// `waits-for-confirmation`, `rests`, `paused`, `paused-by-failures`, `finished` or `cancelled`.
    pub state: String,
    /// State as a sentence, with the reason of a wait.
    pub text: String,
    pub terms: TermsEntry,
    pub planned_at: Moment,
    /// Time of its end; null while it runs.
    pub ended_at: Option<Moment>,
    /// Hosts that have not been announced yet.
    pub waiting: Vec<String>,
    /// Numbers of the work that is announced or under way.
    pub current: Option<u64>,
    /// Hosts of that work.
    pub current_hosts: Vec<String>,
    pub done: Vec<String>,
    /// Hosts on which an impact failed.
    pub failed: Vec<String>,
    /// Hosts whose group was withdrawn.
    pub skipped: Vec<String>,
    /// Impacts that have failed since the rollout began, or was resumed.
    pub failures: u32,
    /// Number of completed groups.
    pub groups: u32,
    /// Machines of the last group that have not polled since their impact ended; only with the health check `machines`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<AwayView>,
}

/// A machine that has not returned after its impact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AwayView {
    /// Name, with its tenant.
    pub machine: String,
    /// End of its impact.
    pub since: Moment,
}

/// View of a rollout that runs or has ended.
#[must_use]
pub fn rollout_view(cluster: &Cluster, now: Now, id: RolloutId) -> Option<RolloutView> {
    let ended = cluster.ended_rollout(id);
    let rollout = cluster.rollout(id).or(ended.map(|ended| &ended.rollout))?;
    let work = rollout.current().and_then(|work| cluster.maintenance(work));
    let (state, text) = match ended {
        Some(ended) => (end_word(ended.how).to_owned(), tally(ended)),
        None => (state(rollout).to_owned(), text(cluster, now, id, rollout)),
    };
    let fated = |wanted| {
        let past = rollout.past.iter().filter(move |(_, fate)| **fate == wanted);
        host_names(cluster, past.map(|(host, _)| *host))
    };
    Some(RolloutView {
        id: id.0,
        work: work_word(rollout.work.kind).to_owned(),
        state,
        text,
        terms: TermsEntry::from(&rollout.terms),
        planned_at: Moment(rollout.planned_at),
        ended_at: ended.map(|ended| Moment(ended.at)),
        waiting: host_names(cluster, rollout.waiting.iter()),
        current: rollout.current().map(|work| work.0),
        current_hosts: work
            .map(|work| host_names(cluster, work.plan.hosts().iter().copied()))
            .unwrap_or_default(),
        done: fated(HostResult::Done),
        failed: fated(HostResult::Failed),
        skipped: fated(HostResult::Skipped),
        failures: rollout.failures,
        groups: rollout.groups,
        away: cluster
            .machines_away(id)
            .map(|(machine, since)| AwayView { machine: full_name(cluster, machine), since: Moment(since) })
            .collect(),
    })
}

fn end_word(how: RolloutEnd) -> &'static str {
    match how {
        RolloutEnd::Finished => "finished",
        RolloutEnd::Cancelled => "cancelled",
    }
}

fn state(rollout: &Rollout) -> &'static str {
    match (rollout.pause, rollout.standing) {
        (Some(Pause::Operator), _) | (None, Standing::Paused) => "paused",
        (Some(Pause::Failures), _) => "paused-by-failures",
        (None, Standing::Next | Standing::Works(_)) => "going",
        (None, Standing::Room(_)) => "waits-for-room",
        (None, Standing::Rests { .. }) => "rests",
        (None, Standing::Window { .. } | Standing::TenantWindow { .. }) => "waits-for-window",
        (None, Standing::Unwell) => "waits-for-health",
        (None, Standing::Unconfirmed) => "waits-for-confirmation",
        (None, Standing::Brake) => "waits-for-brake",
    }
}

/// The state of a rollout, in words.
fn text(cluster: &Cluster, now: Now, id: RolloutId, rollout: &Rollout) -> String {
    let busy = rollout.current().and_then(|work| cluster.maintenance(work)).map(|work| {
        let hosts = work.plan.hosts().len();
        format!("{hosts} {} of it: {}", if hosts == 1 { "host" } else { "hosts" }, progress(work))
    });
    let paused = rollout.pause.map(|why| match why {
        Pause::Operator => "paused by an operator".to_owned(),
        Pause::Failures => format!("paused automatically: {} failed", impacts(rollout.failures)),
    });
    match (paused, busy) {
        (Some(paused), Some(busy)) => format!("{paused}; {busy}"),
        (Some(paused), None) => paused,
        (None, Some(busy)) => busy,
        (None, None) => waits(cluster, now, (id, rollout), rollout.standing),
    }
}

fn impacts(number: u32) -> String {
    format!("{number} {}", if number == 1 { "impact" } else { "impacts" })
}

/// Number of hosts in each state, at the end.
fn tally(ended: &EndedRollout) -> String {
    let EndedRollout { rollout, how, .. } = ended;
    let count = |wanted| rollout.past.values().filter(|fate| **fate == wanted).count();
    let mut words = vec![format!("{} done", count(HostResult::Done))];
    for (number, what) in [
        (count(HostResult::Failed), "failed"),
        (count(HostResult::Skipped), "skipped"),
        (rollout.waiting.len(), "not started"),
    ] {
        if number > 0 {
            words.push(format!("{number} {what}"));
        }
    }
    if rollout.current().is_some() {
        words.push("the last group still under way".to_owned());
    }
    format!("{}: {}", end_word(*how), words.join(", "))
}

/// The pause of a rollout, in words.
fn pause_words(cluster: &Cluster, rollout: RolloutId, why: Pause) -> String {
    match why {
        Pause::Operator => "is paused".to_owned(),
        Pause::Failures => {
            let failures = cluster.rollout(rollout).map_or(1, |known| known.failures);
            format!("is paused automatically: {} failed", impacts(failures))
        }
    }
}

/// The fact about a rollout in a change, in a cluster to which it has not been applied yet: kind, sentence, and hosts.
#[allow(clippy::too_many_lines, reason = "one line for each change")]
pub(crate) fn describe_rollout_change(
    cluster: &Cluster,
    now: Now,
    change: &Change,
) -> Option<(&'static str, String, Vec<HostId>)> {
    let fact =
        |kind, id: &RolloutId, words: String| Some((kind, format!("rollout {id} {words}"), Vec::new()));
    match change {
        Change::RolloutPlanned { rollout, hosts, .. } => {
            let count = format!("{} {}", hosts.len(), if hosts.len() == 1 { "host" } else { "hosts" });
            Some(("planned", format!("rollout {rollout} over {count} is planned"), hosts.clone()))
        }
        Change::RolloutWaits { rollout, standing } => match standing {
            // A wait is evaluated after every completion: an entry for each would repeat itself.
            Standing::Next | Standing::Works(_) | Standing::Room(_) | Standing::Paused => None,
            Standing::Rests { .. }
            | Standing::Window { .. }
            | Standing::TenantWindow { .. }
            | Standing::Unwell
            | Standing::Unconfirmed
            | Standing::Brake => {
                let known = cluster.rollout(*rollout);
                let words = known.map(|known| waits(cluster, now, (*rollout, known), *standing));
                fact("waits", rollout, words.unwrap_or_else(|| "waits".to_owned()))
            }
        },
        Change::RolloutPaused { rollout, why } => {
            fact("paused", rollout, pause_words(cluster, *rollout, *why))
        }
        Change::RolloutResumed(rollout) => fact("resumed", rollout, "is resumed".to_owned()),
        Change::RolloutChanged { rollout, added, removed, .. } => {
            let (come, go) = (added.len(), removed.len());
            let words = format!("rollout {rollout} is changed: {come} hosts added, {go} removed");
            Some(("changed", words, [added.as_slice(), removed].concat()))
        }
        Change::RolloutEnded { rollout, how } => {
            let known = cluster.rollout(*rollout)?.clone();
            let ended = EndedRollout { rollout: known, at: now.wall, how: *how };
            fact("ended", rollout, format!("ended: {}", tally(&ended)))
        }
        Change::SeedSet(_)
        | Change::HostAdmitted { .. }
        | Change::HostRemoved(_)
        | Change::HealthChanged { .. }
        | Change::TenantAdmitted { .. }
        | Change::PolicyChanged { .. }
        | Change::WindowsChanged { .. }
        | Change::TenantRemoved(_)
        | Change::ScaleSetAdmitted { .. }
        | Change::ModelChanged { .. }
        | Change::UpgradePolicyChanged { .. }
        | Change::BatchUpgraded(_)
        | Change::RollingEnded(_)
        | Change::ScaleSetPolicyChanged { .. }
        | Change::ScaleSetRemoved(_)
        | Change::MachineAdmitted { .. }
        | Change::ProfileChanged { .. }
        | Change::MachineForgotten(_)
        | Change::CapacityChanged { .. }
        | Change::MachineResized { .. }
        | Change::InstancesResized { .. }
        | Change::MachineMoved { .. }
        | Change::Planned(_)
        | Change::Approved { .. }
        | Change::Waits { .. }
        | Change::NoticeExtended { .. }
        | Change::Started { .. }
        | Change::Withdrawn { .. }
        | Change::Completed { .. }
        | Change::HostAdvanced { .. }
        | Change::Suspended { .. }
        | Change::Retried { .. }
        | Change::FenceChanged { .. }
        | Change::AttentionChanged { .. }
        | Change::ModeEntered { .. }
        | Change::ModeExited { .. }
        | Change::Enrolled(_)
        | Change::Heard { .. }
        | Change::Disabled(_)
        | Change::Polled(_)
        | Change::BrakeSet(_)
        | Change::SettingsChanged(_) => None,
    }
}
