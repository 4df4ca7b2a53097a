//! Order of creation: each resource after its dependencies, otherwise as written.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{quoted, refusal};
use super::resources::{Presence, TemplateResource};
use crate::ArmError;
use forewarn_control::resource_id::ResourceId;

/// Resources by all their names, in lower case.
pub(super) type ResourceIndex = BTreeMap<String, Vec<usize>>;

/// Indexes resources by all their names, in lower case.
pub(super) fn index(found: &[TemplateResource]) -> Result<ResourceIndex, ArmError> {
    let mut index = ResourceIndex::new();
    let mut ids = BTreeSet::new();
    for (position, resource) in found.iter().enumerate() {
        if resource.presence == Presence::Wanted && !ids.insert(resource.id.key()) {
            return Err(refusal(format!(
                "the resource {} is defined multiple times in a template",
                quoted(&resource.id)
            )));
        }
        let names: BTreeSet<_> = spellings(&resource.id).into_iter().chain(resource.called.clone()).collect();
        for name in names {
            index.entry(name).or_default().push(position);
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

/// A resource and its dependencies, by their positions in the template.
pub(super) type OrderedResource = (usize, Vec<usize>);

pub(super) fn order(
    found: &[TemplateResource],
    index: &ResourceIndex,
) -> Result<Vec<OrderedResource>, ArmError> {
    let mut waiting: Vec<BTreeSet<usize>> = Vec::with_capacity(found.len());
    for (position, resource) in found.iter().enumerate() {
        waiting.push(before(position, resource, found, index)?);
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); found.len()];
    for (position, before) in waiting.iter().enumerate() {
        before.iter().for_each(|before| after[*before].push(position));
    }
    let all: Vec<Vec<usize>> = waiting.iter().map(|before| before.iter().copied().collect()).collect();
    let mut ready: BTreeSet<_> = (0..found.len()).filter(|position| waiting[*position].is_empty()).collect();
    let mut order = Vec::with_capacity(found.len());
    while let Some(position) = ready.pop_first() {
        order.push((position, all[position].clone()));
        for next in &after[position] {
            waiting[*next].remove(&position);
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

/// Dependencies of a resource.
fn before(
    position: usize,
    resource: &TemplateResource,
    found: &[TemplateResource],
    index: &ResourceIndex,
) -> Result<BTreeSet<usize>, ArmError> {
    if resource.presence != Presence::Wanted {
        return Ok(BTreeSet::new());
    }
    let mut before = BTreeSet::new();
    for name in &resource.waits_for {
        let name = name.trim_end_matches('/');
        let positions = index.get(name).ok_or_else(|| {
            refusal(format!("the resource {} is not defined in the template", quoted(&name)))
                .at(resource.id.to_string())
        })?;
        // A resource that names itself would never be created; with a shared name, the other one is meant.
        let others = positions.iter().copied().filter(|other| *other != position);
        before.extend(if positions.len() > 1 { others.collect() } else { positions.clone() });
    }
    // A referenced resource may also be outside the template.
    let referred = resource.referred.iter().filter_map(|name| index.get(name)).flatten();
    before.extend(referred.copied().filter(|other| *other != position));
    before.retain(|other| found[*other].presence == Presence::Wanted);
    Ok(before)
}
