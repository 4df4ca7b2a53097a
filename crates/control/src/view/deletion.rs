//! The notice of a deletion, in words: how long it is for a machine, and why there is none.

use forewarn_lifecycle::{Cause, Cluster, Machine, Plan, Power, ScaleSet, Shape, TerminateNotice};

use crate::resource_id::show_iso_duration;

/// Where no event is announced, and how it is said.
const UNANNOUNCED: &str = ", without a Terminate event: ";

/// The length of a notice, as scale sets write it: `PT5M`.
#[must_use]
pub fn length(terminate: Option<TerminateNotice>) -> String {
    terminate.map_or_else(|| "no notice of deletion".to_owned(), |notice| show_iso_duration(notice.length()))
}

/// The scale set that a machine is an instance of.
#[must_use]
pub fn scale_set_of<'a>(cluster: &'a Cluster, machine: &Machine) -> Option<&'a ScaleSet> {
    match cluster.tenant(machine.tenant)?.shape {
        Shape::PlacementGroup(set) => cluster.scale_set(set),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
    }
}

/// The model of its scale set that a machine runs, if that is not the latest: `model 3 of 5: PT5M`.
#[must_use]
pub fn older_model(cluster: &Cluster, machine: &Machine) -> Option<String> {
    let set = scale_set_of(cluster, machine)?;
    let (own, latest) = (machine.model_version, set.model_version);
    (own != latest).then(|| format!("model {own} of {latest}: {}", length(machine.profile.terminate)))
}

/// Why a deletion that is planned is announced to nobody, as the end of a sentence. Nothing, if it is announced, or no deletion.
pub(crate) fn unannounced(cluster: &Cluster, plan: &Plan) -> Option<String> {
    let Cause::UserDelete(notice) = &plan.cause else { return None };
    let part = plan.parts.first().filter(|part| part.announcement.is_none())?;
    let machine = cluster.machine(*part.machines.first()?)?;
    let why = match (notice, machine.power) {
        (Some(_), _) => format!("tenant {} is not enrolled", cluster.tenant(part.tenant)?.name),
        (None, Power::Deallocated) if machine.profile.terminate.is_some() => {
            format!("{} is deallocated, and nobody is there to be told", machine.name)
        }
        (None, Power::Running | Power::Stopped | Power::Deallocated) => {
            let how = match older_model(cluster, machine) {
                Some(model) => format!("runs {model}"),
                None => "has no notice of deletion".to_owned(),
            };
            format!("{} {how}", machine.name)
        }
    };
    Some(format!("{UNANNOUNCED}{why}"))
}

/// The reason that `unannounced` has written into a text.
#[must_use]
pub fn unannounced_told(text: &str) -> Option<&str> {
    text.split_once(UNANNOUNCED).map(|(_, why)| why)
}
