//! Entries of a fleet that the driver refuses.

use forewarn_control::{BadCommand, Difference, FleetPlace};
use forewarn_lifecycle::Refusal;

use forewarn_control::{ControlError, RefusedCommand};

/// Position of the entry, or of its member, that makes the driver refuse the commands of these differences.
pub(crate) fn refused_place(differences: &[Difference], refused: &RefusedCommand) -> FleetPlace {
    let mut with_commands = differences.iter().filter(|one| one.command.is_some());
    let entry = with_commands.nth(refused.index).map(|one| one.place.clone()).unwrap_or_default();
    match member(&refused.error) {
        Some(member) if !entry.pointer().is_empty() => entry.member(member),
        Some(_) | None => entry,
    }
}

/// The member of an entry that a problem is about, if it is about one.
fn member(problem: &ControlError) -> Option<&'static str> {
    use BadCommand::{Batch, Name, Notice, TooMany, Unknown};
    use ControlError::{AddressTaken, Bad, GroupTaken, Refused};

    if let Bad(TooMany { what, .. }) = problem {
        return Some(what);
    }
    let members = [
        ("name", matches!(problem, Bad(Name { .. }) | Refused(Refusal::NameTaken(_)))),
        ("host", matches!(problem, Bad(Unknown(_)) | Refused(Refusal::HostFailed(_)))),
        ("host", matches!(problem, Refused(Refusal::HostNotHealthy(_) | Refusal::HostBusy(_)))),
        ("id", matches!(problem, Refused(Refusal::InstanceNumberPassed { .. }))),
        ("update_domain", matches!(problem, Refused(Refusal::UpdateDomainClash { .. }))),
        ("terminate", matches!(problem, Bad(Notice(_)) | Refused(Refusal::TerminateOnSpot(_)))),
        ("upgrade", matches!(problem, Bad(Batch(_)))),
        ("addresses", matches!(problem, AddressTaken { .. })),
        ("resource_group", matches!(problem, GroupTaken(_))),
    ];
    members.into_iter().find_map(|(member, is_it)| is_it.then_some(member))
}
