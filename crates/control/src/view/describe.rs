//! Work, its cause and its obstacles in words: for views, audit entries and explanations.

use forewarn_lifecycle::{
    Approver, Cause, Cluster, Hold, HostId, HostPhase, HostWork, Maintenance, Now, Obstacle, PowerChange,
    Rollout, RolloutId, Stage, Standing, StartCause, Wait,
};
use forewarn_types::{Moment, show_duration};

use crate::command::lookup::full_name;

/// The giver of an approval, in words.
pub(crate) fn approver(cluster: &Cluster, by: Approver) -> String {
    match by {
        Approver::Machine(id) => cluster
            .machine(id)
            .map_or_else(|| "a machine that is gone".to_owned(), |machine| machine.name.to_string()),
        Approver::Owner => "its owner".to_owned(),
    }
}

/// The cause of a start, in words.
pub(crate) fn start(cause: StartCause) -> &'static str {
    match cause {
        StartCause::Approved => "approval",
        StartCause::Expired => "the end of its notice",
        StartCause::Automatic => "the policy of its tenant",
        StartCause::Failure => "the failure of its host",
        StartCause::Forced => "an operator",
        StartCause::AtOnce => "the lack of an enrolled tenant",
    }
}

/// The cause of work, in words.
#[must_use]
pub fn cause(cluster: &Cluster, cause: &Cause) -> String {
    let host =
        |id: HostId| cluster.host(id).map_or_else(|| "a host".to_owned(), |host| host.name.to_string());
    match cause {
        Cause::UserRestart => "restart by the owner".to_owned(),
        Cause::UserRedeploy => "redeploy by the owner".to_owned(),
        Cause::UserDelete(_) => "delete by the owner".to_owned(),
        Cause::Reimage(_) => "new operating-system image".to_owned(),
        Cause::Power(PowerChange::Stop) => "stop by the owner".to_owned(),
        Cause::Power(PowerChange::Start) => "start by the owner".to_owned(),
        Cause::Power(PowerChange::Deallocate) => "deallocation by the owner".to_owned(),
        Cause::Eviction(_) => "eviction".to_owned(),
        Cause::HostWork { work, hosts, .. } => {
            let what = match work.kind {
                HostWork::Update => "update of",
                HostWork::NetworkUpdate => "network update of",
                HostWork::Migration => "live migration from",
                HostWork::Restart => "restart of",
                HostWork::Maintenance { .. } => "maintenance mode of",
            };
            format!("{what} {}", join_first(hosts.iter().map(|id| host(*id)), hosts.len()))
        }
        Cause::DegradedHost { host: id, .. } => format!("{} is expected to fail", host(*id)),
        Cause::FailedHost { host: id, .. } => format!("{} has failed", host(*id)),
        Cause::Fencing { host: id } => format!("fence of {}", host(*id)),
        Cause::HostReturn { host: id, .. } => format!("return to {} after its maintenance", host(*id)),
    }
}

/// Maximum number of names in a sentence; the full list is in another field.
const NAMES_PER_SENTENCE_MAX: usize = 8;

/// The names, or the first of them and the number of the others.
#[must_use]
pub fn join_names(names: &[String]) -> String {
    join_first(names.iter().cloned(), names.len())
}

/// The same for `count` names, of which only the first are made.
pub(crate) fn join_first(names: impl Iterator<Item = String>, count: usize) -> String {
    let rest = count.saturating_sub(NAMES_PER_SENTENCE_MAX);
    let listed = if rest > 1 { NAMES_PER_SENTENCE_MAX } else { count };
    let first = names.take(listed).collect::<Vec<_>>().join(", ");
    if rest > 1 { format!("{first} and {rest} more") } else { first }
}

/// The obstacle or the progress of work, in words.
#[must_use]
pub fn progress(work: &Maintenance) -> String {
    let words = match &work.stage {
        Stage::Waiting(Wait::Notice) if !work.plan.is_announced() => {
            let end = Moment(work.plan.not_before);
            return format!("waits as long as a notice, until {end}: none of its tenants is enrolled");
        }
        Stage::Waiting(Wait::Notice) => "waits for approval or for the end of the notice",
        Stage::Waiting(Wait::Wall) => "waits for the wall clock",
        Stage::Waiting(Wait::Nothing | Wait::Offered { .. }) => "is about to start",
        Stage::Waiting(Wait::Held(Hold::Brake)) => "held by the brake",
        Stage::Waiting(Wait::Held(Hold::UpdateDomain)) => "held: another update domain is being worked on",
        Stage::Waiting(Wait::Held(Hold::NoHost)) => "held: no other host can take a machine",
        Stage::Waiting(Wait::Held(Hold::Fencing)) => {
            "held: its failed host is not fenced, and its machines may still run"
        }
        Stage::Waiting(Wait::Held(Hold::Moving)) => "held: a machine is being moved",
        Stage::Waiting(Wait::Held(Hold::Window { opens })) => {
            return format!("held until the next window: {}", Moment(*opens));
        }
        Stage::Running { actions, steps, .. } => {
            if !steps.suspended.is_empty() {
                return "under way: the result of an action is unknown, it waits for an operator to retry it or to \
                        give it up"
                    .to_owned();
            }
            let is_stepping = |phase: &&HostPhase| matches!(phase, HostPhase::Step { .. });
            let stepping = steps.hosts.values().filter(is_stepping).count();
            if stepping > 0 {
                let hosts = if stepping == 1 { "its host".to_owned() } else { format!("{stepping} hosts") };
                return format!("under way: waits for the end of the work on {hosts}");
            }
            let left = actions.len();
            return format!("under way: {left} {} to go", if left == 1 { "machine" } else { "machines" });
        }
    };
    words.to_owned()
}

/// The work of a rollout.
#[must_use]
pub fn work_word(work: HostWork) -> &'static str {
    match work {
        HostWork::Update => "update",
        HostWork::NetworkUpdate => "network update",
        HostWork::Migration => "live migration",
        HostWork::Restart => "restart",
        HostWork::Maintenance { .. } => "maintenance mode",
    }
}

/// The obstacle of a rollout, in words.
#[must_use]
pub fn waits(
    cluster: &Cluster,
    now: Now,
    (id, rollout): (RolloutId, &Rollout),
    standing: Standing,
) -> String {
    match standing {
        Standing::Next | Standing::Works(_) => "goes on".to_owned(),
        Standing::Paused => "is paused".to_owned(),
        Standing::Room(Obstacle::NoHost) => {
            let next = rollout.waiting.iter().next();
            let lack = next.and_then(|host| cluster.lack_of_room_beside(host));
            let lack = lack.map(|lack| format!(": {lack}")).unwrap_or_default();
            format!("waits: {}{lack}", in_the_way(Obstacle::NoHost))
        }
        Standing::Room(obstacle) => format!("waits: {}", in_the_way(obstacle)),
        Standing::Rests { until } => {
            format!("pauses for {} before its next group", show_duration(until.since(now.steady)))
        }
        Standing::Window { announces } => {
            format!("waits for its window: the next group is announced at {}", Moment(announces))
        }
        Standing::TenantWindow { tenant, announces } => {
            let name = cluster.tenant(tenant).map_or_else(String::new, |tenant| format!(" {}", tenant.name));
            match announces {
                Some(announces) => format!(
                    "waits for a window of tenant{name}: the next group is announced at {}",
                    Moment(announces)
                ),
                None => format!(
                    "waits for other windows: those of tenant{name}, of the other tenants on the host and of the \
                     rollout never overlap"
                ),
            }
        }
        Standing::Unwell => unwell(cluster, id, rollout),
        Standing::Unconfirmed => {
            format!("waits for an operator to resume it, after {} groups", rollout.groups)
        }
        Standing::Brake => "waits: the brake is on".to_owned(),
    }
}

/// The unhealthy hosts and the machines that have not returned, in words.
fn unwell(cluster: &Cluster, id: RolloutId, rollout: &Rollout) -> String {
    let hosts = host_names(cluster, cluster.unhealthy_hosts_of(rollout));
    let hosts = (!hosts.is_empty())
        .then(|| format!("hosts that are unhealthy after their maintenance: {}", hosts.join(", ")));
    let away: Vec<_> = cluster.machines_away(id).collect();
    let machines = away.iter().map(|(_, since)| *since).min().map(|since| {
        let names = join_first(away.iter().map(|(machine, _)| full_name(cluster, *machine)), away.len());
        format!("machines that have not polled after their maintenance, since {}: {names}", Moment(since))
    });
    let awaited: Vec<_> = hosts.into_iter().chain(machines).collect();
    format!("waits for {}", awaited.join("; and for "))
}

pub(crate) fn in_the_way(obstacle: Obstacle) -> &'static str {
    match obstacle {
        Obstacle::Failed => "the next host has failed",
        Obstacle::Arrivals => "a machine is being moved to the next host",
        Obstacle::UpdateDomain => "another update domain of a tenant is in planned work",
        Obstacle::TenantShare => "the limit of machines of a tenant in planned work is reached",
        Obstacle::FaultDomain => "another fault domain of a tenant is in planned work",
        Obstacle::Events => "a tenant has the maximum number of events",
        Obstacle::NoHost => "no other host can take a machine",
        Obstacle::Full => "the group has reached its maximum size",
        Obstacle::NeedsAttention => "the next host needs attention",
        Obstacle::TenantWindow => "the windows of a tenant are closed",
    }
}

pub(crate) fn host_names(cluster: &Cluster, hosts: impl Iterator<Item = HostId>) -> Vec<String> {
    hosts.filter_map(|host| cluster.host(host)).map(|host| host.name.to_string()).collect()
}
