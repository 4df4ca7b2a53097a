//! Maintenance mode of hosts, as seen from requested actions and changes alone: a host in the mode takes no machines,
//! and has its step after its machines have left.

use forewarn_lifecycle::*;

use crate::promise::{BrokenPromises, Promise};

/// Checks a change after it was applied. Returns the promises that it breaks, and the kind of observation.
pub(super) fn changed(
    cluster: &Cluster,
    change: &Change,
    effects: &[Effect],
) -> (BrokenPromises, &'static str) {
    let mut broken = Vec::new();
    let in_mode = |id: HostId| cluster.host(id).is_some_and(|host| host.mode.is_some());
    let mut note = |what: String| broken.push((Promise::ClosedHost, what));
    match change {
        Change::MachineAdmitted { new: Machine { host: to, .. }, .. } | Change::MachineMoved { to, .. }
            if in_mode(*to) =>
        {
            note(format!("a machine joins {to}"));
        }
        _ => {}
    }
    for effect in effects {
        let Effect::Perform(action) = effect else { continue };
        // Requested before, when the host was open.
        if matches!(change, Change::Retried { .. } | Change::FenceChanged { .. }) {
            continue;
        }
        if let Some(to) = action.impact.destination().filter(|to| in_mode(*to)) {
            note(format!("{action:?} goes to {to}"));
        }
        if let (Target::Machine(machine), Impact::Start { to: None }) = (action.target, action.impact)
            && cluster.machine(machine).is_some_and(|known| in_mode(known.host))
        {
            note(format!("{action:?} starts on a closed host"));
        }
        if let Target::Host(host) = action.target
            && in_mode(host)
            && action.impact != Impact::OnHost(HostOperation::Fence)
        {
            let runs =
                |(_, known): &(MachineId, &Machine)| known.host == host && known.power == Power::Running;
            let healthy = cluster.host(host).is_some_and(|host| host.health != Health::Failed);
            if let Some((machine, _)) = cluster.machines().find(runs).filter(|_| healthy) {
                note(format!("step on {host} while {machine} runs there"));
            }
        }
    }
    let seen = match change {
        Change::ModeEntered { .. } => "maintenance mode",
        Change::Planned(Plan { cause: Cause::HostReturn { .. }, .. }) => "return after maintenance mode",
        _ => "",
    };
    (broken, seen)
}
