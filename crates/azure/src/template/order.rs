//! In which order resources are made: each after what it waits for, otherwise as they are written.

use std::collections::{BTreeMap, BTreeSet};

use super::resources::{Found, Presence};
use super::trouble::{quoted, refusal};
use crate::ArmError;
use forewarn_control::resource_id::ResourceId;

/// Resources by everything they may be called, in lower case.
pub(super) type Index = BTreeMap<String, Vec<usize>>;

/// Everything a resource may be called, in lower case.
pub(super) fn index(found: &[Found]) -> Result<Index, ArmError> {
    let mut index = Index::new();
    let mut ids = BTreeSet::new();
    for (place, resource) in found.iter().enumerate() {
        if resource.presence == Presence::Wanted && !ids.insert(resource.id.key()) {
            return Err(refusal(format!(
                "the resource {} is defined multiple times in a template",
                quoted(&resource.id)
            )));
        }
        let names: BTreeSet<_> = spellings(&resource.id).into_iter().chain(resource.called.clone()).collect();
        for name in names {
            index.entry(name).or_default().push(place);
        }
    }
    Ok(index)
}

/// The id, the id without its group, the type with the names after it, and the names alone.
fn spellings(id: &ResourceId) -> [String; 4] {
    let names: Vec<_> = id.parts.iter().map(|(_, name)| name.as_str()).collect();
    let names = names.join("/");
    let pairs =
        id.parts.iter().fold(id.namespace.clone(), |text, (kind, name)| format!("{text}/{kind}/{name}"));
    [id.key(), pairs.to_lowercase(), format!("{}/{names}", id.kind()).to_lowercase(), names.to_lowercase()]
}

/// A resource and what it comes after, by their places in the template.
pub(super) type Step = (usize, Vec<usize>);

/// The resources in the order in which they are to be made.
pub(super) fn order(found: &[Found], index: &Index) -> Result<Vec<Step>, ArmError> {
    let mut waiting: Vec<BTreeSet<usize>> = Vec::with_capacity(found.len());
    for (place, resource) in found.iter().enumerate() {
        waiting.push(before(place, resource, found, index)?);
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); found.len()];
    for (place, before) in waiting.iter().enumerate() {
        before.iter().for_each(|before| after[*before].push(place));
    }
    let all: Vec<Vec<usize>> = waiting.iter().map(|before| before.iter().copied().collect()).collect();
    let mut ready: BTreeSet<_> = (0..found.len()).filter(|place| waiting[*place].is_empty()).collect();
    let mut order = Vec::with_capacity(found.len());
    while let Some(place) = ready.pop_first() {
        order.push((place, all[place].clone()));
        for next in &after[place] {
            waiting[*next].remove(&place);
            if waiting[*next].is_empty() {
                ready.insert(*next);
            }
        }
    }
    match waiting.iter().position(|before| !before.is_empty()) {
        Some(stuck) => {
            Err(refusal(format!("circular dependency detected on resource: {}", quoted(&found[stuck].id))))
        }
        None => Ok(order),
    }
}

/// What a resource comes after.
fn before(
    place: usize,
    resource: &Found,
    found: &[Found],
    index: &Index,
) -> Result<BTreeSet<usize>, ArmError> {
    if resource.presence != Presence::Wanted {
        return Ok(BTreeSet::new());
    }
    let mut before = BTreeSet::new();
    for name in &resource.waits_for {
        let name = name.trim_end_matches('/');
        let places = index.get(name).ok_or_else(|| {
            refusal(format!("the resource {} is not defined in the template", quoted(&name)))
                .at(resource.id.to_string())
        })?;
        // A resource that names itself never gets made; one that shares its name with another one means that one.
        let others = places.iter().copied().filter(|other| *other != place);
        before.extend(if places.len() > 1 { others.collect() } else { places.clone() });
    }
    // What is only looked at may also be outside of the template.
    let referred = resource.referred.iter().filter_map(|name| index.get(name)).flatten();
    before.extend(referred.copied().filter(|other| *other != place));
    before.retain(|other| found[*other].presence == Presence::Wanted);
    Ok(before)
}
