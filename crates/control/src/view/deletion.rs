//! The notice of a deletion in words: its length for a machine, or the reason why there is none.

use forewarn_lifecycle::{Cause, Cluster, Machine, Plan, Power, Priority, ScaleSet, Shape, TerminateNotice};

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

/// The change that lets the next deletion be announced, in words. None if the deletion is announced, is not one, or
/// nothing of that kind helps: a tenant that is not enrolled, a machine that cannot receive events.
pub(crate) fn remedy(cluster: &Cluster, plan: &Plan) -> Option<String> {
    let Cause::UserDelete(None) = &plan.cause else { return None };
    let machine = cluster.machine(*plan.parts.first()?.machines.first()?)?;
    if machine.profile.terminate.is_some() || machine.priority != Priority::Regular {
        return None;
    }
    let (machine, command) = match scale_set_of(cluster, machine) {
        Some(set) if set.model.terminate.is_some() => {
            (&machine.name, format!("forewarn scaleset upgrade {} --all", set.name))
        }
        Some(set) => {
            (&machine.name, format!("forewarn scaleset update {} --terminate-notification on", set.name))
        }
        None => (&machine.name, format!("forewarn vm update {} --terminate-notification on", machine.name)),
    };
    Some(format!(
        "{machine} has no terminate notification, so its deletion is not announced; to have deletions announced, first \
         run: {command}"
    ))
}

/// The reason that [`unannounced`] has put into a text.
#[must_use]
pub fn unannounced_reason(text: &str) -> Option<&str> {
    text.split_once(UNANNOUNCED).map(|(_, why)| why)
}
