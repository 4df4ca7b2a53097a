//! Positions of rejected fleet entries.

use forewarn_lifecycle::Refusal;

use crate::command::CommandError;
use crate::error::{ControlError, RefusedCommand};
use crate::fleet_file::difference::Difference;
use crate::fleet_file::position::FleetPosition;

/// Position of the fleet entry, or of its member, that caused a rejection.
#[must_use]
pub fn refused_place<'a>(
    differences: impl IntoIterator<Item = &'a Difference>,
    refused: &RefusedCommand,
) -> FleetPosition {
    let mut with_commands = differences.into_iter().filter(|one| one.command.is_some());
    let entry = with_commands.nth(refused.index).map(|one| one.place.clone()).unwrap_or_default();
    match member(&refused.error) {
        Some(member) if !entry.pointer().is_empty() => entry.member(member),
        Some(_) | None => entry,
    }
}

/// The member of an entry that an error is about.
fn member(error: &ControlError) -> Option<&str> {
    use CommandError::{Batch, Name, Notice, TooMany, Unknown};
    use ControlError::{AddressTaken, Bad, GroupTaken, Refused};

    if let Bad(TooMany { what, .. }) = error {
        return Some(what);
    }
    let members = [
        ("name", matches!(error, Bad(Name { .. }) | Refused(Refusal::NameTaken(_)))),
        ("host", matches!(error, Bad(Unknown(_)) | Refused(Refusal::HostFailed(_)))),
        ("host", matches!(error, Refused(Refusal::HostNotHealthy(_) | Refusal::HostBusy(_)))),
        ("id", matches!(error, Refused(Refusal::InstanceNumberPassed { .. }))),
        ("update_domain", matches!(error, Refused(Refusal::UpdateDomainClash { .. }))),
        ("terminate", matches!(error, Bad(Notice(_)) | Refused(Refusal::TerminateOnSpot(_)))),
        ("upgrade", matches!(error, Bad(Batch(_)))),
        ("addresses", matches!(error, AddressTaken { .. })),
        ("resource_group", matches!(error, GroupTaken(_))),
    ];
    members.into_iter().find_map(|(member, is_it)| is_it.then_some(member))
}
