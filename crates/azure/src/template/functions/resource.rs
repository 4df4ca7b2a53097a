//! Functions on the deployment: parameters, variables, scopes and resources.

use serde_json::{Value, json};

use super::super::error::{bad, quoted};
use super::super::limits::REFERENCE_WEIGHT;
use super::super::scope::{LoopIteration, NameKind, Scope};
use super::{Arguments, TemplateError};
use crate::{ArmError, providers as table};
use forewarn_control::resource_id::{GroupId, ResourceId};

type EnclosingLoop<'a> = Option<&'a LoopIteration<'a>>;

pub(super) fn parameters(
    scope: &Scope<'_>,
    arguments: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    scope.named(NameKind::Parameter, arguments.text(0)?)
}

pub(super) fn variables(
    scope: &Scope<'_>,
    arguments: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    scope.named(NameKind::Variable, arguments.text(0)?)
}

/// `copyIndex()`, `copyIndex(1)`, `copyIndex('disks')`, `copyIndex('disks', 1)`: the iteration of the resource's loop,
/// or of the named one.
pub(super) fn copy_index(
    _: &Scope<'_>,
    arguments: &Arguments<'_>,
    iteration: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    let name = arguments.value(0).as_str();
    let offset_at = usize::from(name.is_some());
    let offset = if arguments.values.len() > offset_at { arguments.number(offset_at)? } else { 0 };
    let mut iterations = std::iter::successors(iteration, |iteration| iteration.outer);
    let found = match name {
        Some(name) => iterations.find(|iteration| iteration.name.eq_ignore_ascii_case(name)),
        None => iterations.last(),
    };
    let found = found.ok_or_else(|| arguments.wrong("is not in a loop, or not in one of that name"))?;
    let index = i64::try_from(found.index).ok().and_then(|index| index.checked_add(offset));
    Ok(index.ok_or_else(|| arguments.wrong("has no result that is a whole number of 64 bits"))?.into())
}

pub(super) fn resource_group(
    scope: &Scope<'_>,
    _: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    let group = &scope.environment.group;
    Ok(json!({
        "id": group.to_string(),
        "name": group.name,
        "type": "Microsoft.Resources/resourceGroups",
        "location": scope.environment.location,
        "tags": {},
        "properties": { "provisioningState": "Succeeded" },
    }))
}

pub(super) fn subscription(
    scope: &Scope<'_>,
    _: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    let id = &scope.environment.group.subscription;
    Ok(json!({ "id": format!("/subscriptions/{id}"), "subscriptionId": id, "displayName": id }))
}

pub(super) fn deployment(
    scope: &Scope<'_>,
    _: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    Ok(json!({
        "name": scope.environment.deployment,
        "properties": {
            "mode": "Incremental",
            "provisioningState": "Accepted",
            "template": { "contentVersion": scope.environment.content_version },
        },
    }))
}

pub(super) fn providers(
    scope: &Scope<'_>,
    arguments: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    let namespace = arguments.text(0)?;
    if arguments.values.len() < 2 {
        return Ok(table::provider(namespace, &scope.environment.location));
    }
    Ok(table::resource_type(namespace, arguments.text(1)?, &scope.environment.location))
}

/// `resourceId([subscription,] [group,] type, name, …)`
pub(super) fn resource_id(
    scope: &Scope<'_>,
    arguments: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    let (before, (namespace, parts)) = typed(arguments, 2)?;
    let mut group = scope.environment.group.clone();
    match before[..] {
        [name] => name.clone_into(&mut group.name),
        [subscription, name] => {
            group = GroupId { subscription: subscription.to_owned(), name: name.to_owned() };
        }
        _ => {}
    }
    Ok(ResourceId { group, namespace, parts }.to_string().into())
}

/// `subscriptionResourceId([subscription,] type, name, …)`
pub(super) fn subscription_resource_id(
    scope: &Scope<'_>,
    arguments: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    let (before, (namespace, parts)) = typed(arguments, 1)?;
    let subscription = before.first().copied().unwrap_or(&scope.environment.group.subscription);
    let start = format!("/subscriptions/{subscription}/providers/{namespace}");
    let id = parts.iter().fold(start, |id, (kind, name)| format!("{id}/{kind}/{name}"));
    Ok(id.into())
}

/// A namespace, and types with their names.
type TypedName = (String, Vec<(String, String)>);

/// Splits the arguments into those before the type, and the type with its names.
fn typed<'a>(
    arguments: &Arguments<'a>,
    before_max: usize,
) -> Result<(Vec<&'a str>, TypedName), TemplateError> {
    let texts = arguments.texts()?;
    let at = texts.iter().position(|text| text.contains('/')).filter(|at| *at <= before_max);
    let at =
        at.ok_or_else(|| arguments.wrong("expects a type such as 'Microsoft.Compute/virtualMachines'"))?;
    let mut kinds = texts[at].split('/');
    let namespace = kinds.next().unwrap_or_default().to_owned();
    let (kinds, names): (Vec<_>, Vec<_>) =
        (kinds.collect(), texts[at + 1..].iter().flat_map(|name| name.split('/')).collect());
    let is_blank = |part: &&str| part.is_empty();
    if namespace.is_empty() || kinds.len() != names.len() || kinds.iter().chain(&names).any(is_blank) {
        return Err(arguments.wrong("expects as many names as the type has parts after its namespace"));
    }
    let owned = |(kind, name): (&str, &str)| (kind.to_owned(), name.to_owned());
    let parts = kinds.into_iter().zip(names).map(owned).collect();
    Ok((texts[..at].to_vec(), (namespace, parts)))
}

/// `reference(what [, version [, 'Full']])`: the properties of a resource, or all of it.
pub(super) fn reference(
    scope: &Scope<'_>,
    arguments: &Arguments<'_>,
    _: EnclosingLoop<'_>,
) -> Result<Value, TemplateError> {
    let what = arguments.text(0)?;
    let Some(look) = scope.look else {
        scope.referred.borrow_mut().push(what.to_lowercase());
        return Err(TemplateError::Later);
    };
    scope.spend(REFERENCE_WEIGHT)?;
    let id = find(scope, what)?;
    let mut resource = look(&id).ok_or_else(|| not_found(&id))?;
    let whole = arguments.value(2).as_str().is_some_and(|word| word.eq_ignore_ascii_case("full"));
    Ok(if whole { resource } else { resource["properties"].take() })
}

/// Finds a resource by its id, or by its name in the template.
fn find(scope: &Scope<'_>, what: &str) -> Result<ResourceId, TemplateError> {
    if let Some(id) = ResourceId::parse(what) {
        return Ok(id);
    }
    match scope.environment.resources.get(&what.to_lowercase()).map(Vec::as_slice) {
        Some([id]) => Ok(id.clone()),
        Some(_) => Err(bad(format!("the resource reference {} is ambiguous", quoted(&what)))),
        None => {
            let relative = format!("{}/providers/{what}", scope.environment.group);
            let id = ResourceId::parse(&relative).filter(|_| what.contains('/'));
            id.ok_or_else(|| {
                bad(format!(
                    "the resource reference {} is invalid: no resource of that name is in the template",
                    quoted(&what)
                ))
            })
        }
    }
}

fn not_found(id: &ResourceId) -> TemplateError {
    let (kind, name) =
        (id.kind(), id.parts.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join("/"));
    let group = &id.group.name;
    let message = format!(
        "The Resource '{kind}/{name}' under resource group '{group}' was not found. For more details please go to \
         https://aka.ms/ARMResourceNotFoundFix"
    );
    TemplateError::Refused(ArmError::new(404, "ResourceNotFound", message))
}
