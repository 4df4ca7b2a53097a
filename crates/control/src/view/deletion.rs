//! The notice of a deletion in words: its length for a machine, or the reason why there is none.

use forewarn_lifecycle::{Cause, Cluster, Machine, Plan, Power, ScaleSet, Shape, TerminateNotice};

use crate::resource_id::show_iso_duration;

/// Introduces the reason why no event is announced.
const UNANNOUNCED: &str = ", without a Terminate event: ";

/// Length of a notice in the syntax of scale sets: `PT5M`.
#[must_use]
pub fn length(terminate: Option<TerminateNotice>) -> String {
    terminate.map_or_else(|| "no notice of deletion".to_owned(), |notice| show_iso_duration(notice.length()))
}

/// The scale set of an instance.
#[must_use]
pub fn scale_set_of<'a>(cluster: &'a Cluster, machine: &Machine) -> Option<&'a ScaleSet> {
    match cluster.tenant(machine.tenant)?.shape {
        Shape::PlacementGroup(set) => cluster.scale_set(set),
        Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
    }
}

/// The model of an instance, if it is not the latest: `model 3 of 5: PT5M`.
#[must_use]
pub fn older_model(cluster: &Cluster, machine: &Machine) -> Option<String> {
    let set = scale_set_of(cluster, machine)?;
    let (own, latest) = (machine.model_version, set.model_version);
    (own != latest).then(|| format!("model {own} of {latest}: {}", length(machine.profile.terminate)))
}

/// The reason why a planned deletion is not announced, as the end of a sentence. None if it is announced, or no
/// deletion.
pub(crate) fn unannounced(cluster: &Cluster, plan: &Plan) -> Option<String> {
    let Cause::UserDelete(notice) = &plan.cause else { return None };
    let part = plan.parts.first().filter(|part| part.announcement.is_none())?;
    let machine = cluster.machine(*part.machines.first()?)?;
    let why = match (notice, machine.power) {
        (Some(_), _) => format!("tenant {} is not enrolled", cluster.tenant(part.tenant)?.name),
        (None, Power::Deallocated) if machine.profile.terminate.is_some() => {
            format!("{} is deallocated and cannot receive events", machine.name)
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

/// The reason that [`unannounced`] has put into a text.
#[must_use]
pub fn unannounced_reason(text: &str) -> Option<&str> {
    text.split_once(UNANNOUNCED).map(|(_, why)| why)
}
