//! What is done to machines, in words: what they keep, and what they lose.

use forewarn_lifecycle::{
    Cause, Cluster, EvictionPolicy, FailureKind, HostId, HostWork, Impact, PowerChange,
};

/// What a machine loses when it is restarted.
const RESTARTED: &str = "memory is lost, disks are kept";
const MOVED: &str = "memory and the ephemeral disk are lost, other disks are kept";

/// What work of that cause will do to a machine.
pub(crate) fn fate(cause: &Cause) -> String {
    match cause {
        Cause::UserRestart | Cause::HostWork { work: HostWork::Restart, .. } => {
            format!("is restarted: {RESTARTED}")
        }
        Cause::UserRedeploy | Cause::DegradedHost { .. } => format!("is moved to another host: {MOVED}"),
        Cause::UserDelete(_) => "is deleted: everything on it is lost".to_owned(),
        Cause::Reimage(_) => {
            "gets its operating-system image anew: memory and the system disk are lost, data disks are kept"
                .to_owned()
        }
        Cause::Power(PowerChange::Stop) => "is stopped: memory is lost, disks are kept".to_owned(),
        Cause::Power(PowerChange::Start) => "is started".to_owned(),
        Cause::Power(PowerChange::Deallocate) => format!("is stopped and leaves its host: {MOVED}"),
        Cause::Eviction(EvictionPolicy::Delete) => {
            "is evicted and deleted: everything on it is lost".to_owned()
        }
        Cause::Eviction(EvictionPolicy::Deallocate) => format!("is evicted, and off afterwards: {MOVED}"),
        Cause::HostWork { work: HostWork::Update, .. } => {
            "is paused for about 9 seconds: memory, disks and connections are kept".to_owned()
        }
        Cause::HostWork { work: HostWork::NetworkUpdate, .. } => {
            "may miss its network for a moment: nothing is lost".to_owned()
        }
        Cause::HostWork { work: HostWork::Migration, .. } => {
            "is moved live to another host, with a pause of about 5 seconds: memory and disks are kept"
                .to_owned()
        }
        Cause::FailedHost { kind: FailureKind::Reboot, .. } => {
            format!("is started again, on another host if there is one: {RESTARTED}")
        }
        Cause::FailedHost { kind: FailureKind::Redeploy, .. } => {
            format!("is started again on another host: {MOVED}")
        }
    }
}

/// What is being done to a machine, beyond what its cause says: where it goes.
pub(crate) fn going(cluster: &Cluster, impact: Impact) -> Option<String> {
    let to: HostId = impact.destination()?;
    Some(format!("; it goes to {}", cluster.host(to)?.name))
}
