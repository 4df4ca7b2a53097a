//! The impact of work on machines, in words: what they keep, and what they lose.

use forewarn_lifecycle::{
    Cause, Cluster, EvictionPolicy, FailureKind, HostId, HostWork, Impact, Leaving, PowerChange, ReturnWay,
};

/// Losses of a machine that is restarted.
const RESTARTED: &str = "memory is lost, disks are kept";
const MOVED: &str = "memory and the ephemeral disk are lost, other disks are kept";

/// The impact of work on a machine, by its cause.
pub(crate) fn describe(cause: &Cause) -> String {
    match cause {
        Cause::UserRestart => format!("is restarted: {RESTARTED}"),
        Cause::UserRedeploy | Cause::DegradedHost { .. } => format!("is moved to another host: {MOVED}"),
        Cause::UserDelete(_) => "is deleted: everything on it is lost".to_owned(),
        Cause::Reimage(_) => {
            "gets a new operating-system image: memory and the system disk are lost, data disks are kept"
                .to_owned()
        }
        Cause::Power(PowerChange::Stop) => "is stopped: memory is lost, disks are kept".to_owned(),
        Cause::Power(PowerChange::Start) => "is started".to_owned(),
        Cause::Power(PowerChange::Deallocate) => format!("is stopped and leaves its host: {MOVED}"),
        Cause::Eviction(EvictionPolicy::Delete) => {
            "is evicted and deleted: everything on it is lost".to_owned()
        }
        Cause::Eviction(EvictionPolicy::Deallocate) => format!("is evicted and deallocated: {MOVED}"),
        Cause::HostWork { work, .. } => {
            let seconds = work.duration_seconds();
            match work.kind {
                HostWork::Update => {
                    format!("is paused for about {seconds} seconds: memory, disks and connections are kept")
                }
                HostWork::NetworkUpdate => "may lose its network for a moment: no data is lost".to_owned(),
                HostWork::Migration => format!(
                    "is moved live to another host, with a pause of about {seconds} seconds: memory and disks are kept"
                ),
                HostWork::Restart => format!("is restarted: {RESTARTED}"),
                HostWork::Maintenance { leaving: Leaving::Live, .. } => format!(
                    "is moved live to another host, with a pause of about {seconds} seconds: memory and disks are kept"
                ),
                HostWork::Maintenance { leaving: Leaving::Redeploy, .. } => {
                    format!("is moved to another host: {MOVED}")
                }
                HostWork::Maintenance { leaving: Leaving::Stop, .. } => {
                    format!("is stopped until it is started again: {RESTARTED}")
                }
            }
        }
        Cause::HostReturn { way: ReturnWay::Live, .. } => {
            "is moved live back to its former host, with a pause of about 5 seconds: memory and disks are kept"
                .to_owned()
        }
        Cause::HostReturn { way: ReturnWay::Redeploy, .. } => {
            format!("is moved back to its former host: {MOVED}")
        }
        Cause::FailedHost { kind: FailureKind::Reboot, .. } => {
            format!("is started again, on another host if there is one: {RESTARTED}")
        }
        Cause::Fencing { .. } => "is not affected".to_owned(),
        Cause::FailedHost { kind: FailureKind::Redeploy, .. } => {
            format!("is started again on another host: {MOVED}")
        }
    }
}

/// The destination of a machine that is moved.
pub(crate) fn destination(cluster: &Cluster, impact: Impact) -> Option<String> {
    let to: HostId = impact.destination()?;
    Some(format!("; it moves to {}", cluster.host(to)?.name))
}
