//! Resources of a template: expands loops, evaluates conditions, flattens children.

use serde_json::{Map, Value};

use super::error::{TemplateError, bad, quoted};
use super::limits::{DEPENDENCIES_MAX, RESOURCES_MAX};
use super::scope::{LoopIteration, Scope, weigh};
use crate::ApiVersion;
use forewarn_control::resource_id::ResourceId;

/// A resource of a template.
#[derive(Clone, Debug)]
pub(super) struct TemplateResource {
    pub(super) id: ResourceId,
    pub(super) version: ApiVersion,
    pub(super) body: ResourceBody,
    /// Its dependencies: ids and names in lower case.
    pub(super) waits_for: Vec<String>,
    /// Resources that its expressions refer to, perhaps in the template.
    pub(super) referred: Vec<String>,
    /// Further names: its loop, and its symbolic name.
    pub(super) called: Vec<String>,
    pub(super) presence: Presence,
}

/// Treatment of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Wanted,
    /// It is skipped: its condition is false.
    LeftOut,
    /// It exists, and is only referred to.
    Existing,
}

/// Body of a PUT of a resource.
#[derive(Clone, Debug)]
pub(super) enum ResourceBody {
    Known(Value),
    /// Depends on other resources: the body as written, and the iteration of its loop.
    Later(Map<String, Value>, Option<(String, usize)>),
}

/// Members of a resource in a template that are not part of its body.
const ABOUT: [&str; 13] = [
    "type",
    "name",
    "apiVersion",
    "dependsOn",
    "copy",
    "condition",
    "resources",
    "comments",
    "metadata",
    "existing",
    "scope",
    "resourceGroup",
    "subscriptionId",
];

/// Collects the resources of a template.
pub(super) struct ResourceCollector<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) found: Vec<TemplateResource>,
}

impl ResourceCollector<'_> {
    /// Collects the resources of a list, or of an object with symbolic names, with their children.
    pub(super) fn all(
        &mut self,
        written: &Value,
        parent: Option<&ResourceId>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<(), TemplateError> {
        match written {
            Value::Null => Ok(()),
            Value::Array(list) => list.iter().try_for_each(|one| self.one(one, None, parent, iteration)),
            Value::Object(members) => {
                members.iter().try_for_each(|(symbol, one)| self.one(one, Some(symbol), parent, iteration))
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(bad("resources are to be a list")),
        }
    }

    fn one(
        &mut self,
        written: &Value,
        symbol: Option<&str>,
        parent: Option<&ResourceId>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<(), TemplateError> {
        let Value::Object(written) = written else { return Err(bad("a resource is to be an object")) };
        let Some(copy) = written.get("copy").filter(|copy| !copy.is_null()) else {
            return self.iteration(written, symbol, parent, iteration);
        };
        if parent.is_some() {
            return Err(bad("a resource inside another one cannot be in a loop of its own"));
        }
        let name = self.scope.value(&copy["name"], iteration)?;
        let Some(name) = name.as_str() else { return Err(bad("the loop of a resource has no name")) };
        for index in 0..self.scope.count(&copy["count"], iteration)? {
            self.iteration(written, symbol, parent, Some(&LoopIteration { name, index, outer: iteration }))?;
        }
        Ok(())
    }

    /// Collects one resource in one iteration of its loop.
    fn iteration(
        &mut self,
        written: &Map<String, Value>,
        symbol: Option<&str>,
        parent: Option<&ResourceId>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<(), TemplateError> {
        if self.found.len() >= RESOURCES_MAX {
            return Err(bad(format!("a template has at most {RESOURCES_MAX} resources")));
        }
        let id = self.id(written, parent, iteration)?;
        let position = id.to_string();
        let at = |error: TemplateError| error.at(&position);
        let presence = self.presence(written, parent, iteration).map_err(at)?;
        let version = self.version(written, iteration).map_err(at)?;
        let mut waits_for = self.dependencies(written, iteration).map_err(at)?;
        waits_for.extend(parent.map(ResourceId::key));
        let body = match presence {
            Presence::Wanted => self.body(written, iteration).map_err(at)?,
            Presence::LeftOut | Presence::Existing => ResourceBody::Known(Value::Null),
        };
        let referred = self.scope.referred.take();
        let called = [symbol, iteration.map(|iteration| iteration.name)]
            .into_iter()
            .flatten()
            .map(str::to_lowercase)
            .collect();
        self.found.push(TemplateResource {
            id: id.clone(),
            version,
            body,
            waits_for,
            referred,
            called,
            presence,
        });
        match presence {
            Presence::Wanted => {
                let children = written.get("resources").unwrap_or(&Value::Null);
                self.scope.deeper(|| self.all(children, Some(&id), iteration))
            }
            Presence::LeftOut | Presence::Existing => Ok(()),
        }
    }

    fn presence(
        &self,
        written: &Map<String, Value>,
        parent: Option<&ResourceId>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<Presence, TemplateError> {
        for elsewhere in ["scope", "resourceGroup", "subscriptionId"] {
            let Some(written) = written.get(elsewhere).filter(|written| !written.is_null()) else { continue };
            let group = &self.scope.environment.group;
            let given = self.scope.value(written, iteration)?;
            let given = given.as_str().unwrap_or_default();
            let is_here = [group.to_string().as_str(), &group.name, &group.subscription]
                .iter()
                .any(|here| here.eq_ignore_ascii_case(given));
            if !is_here || parent.is_some() {
                return Err(bad(format!(
                    "a resource is deployed to its own group only: it has a '{elsewhere}'"
                )));
            }
        }
        if written.get("existing") == Some(&Value::Bool(true)) {
            return Ok(Presence::Existing);
        }
        match self.scope.value(written.get("condition").unwrap_or(&Value::Bool(true)), iteration)? {
            Value::Bool(true) => Ok(Presence::Wanted),
            Value::Bool(false) => Ok(Presence::LeftOut),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(bad("the condition of a resource is to be true or false"))
            }
        }
    }

    /// The id of a resource, from its type and name and those of its parents.
    fn id(
        &self,
        written: &Map<String, Value>,
        parent: Option<&ResourceId>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<ResourceId, TemplateError> {
        let (kind, name) = (self.word(written, "type", iteration)?, self.word(written, "name", iteration)?);
        let mut kinds: Vec<_> = kind.split('/').collect();
        let names: Vec<_> = name.split('/').collect();
        let mut id = match parent {
            Some(parent) => parent.clone(),
            None => ResourceId {
                group: self.scope.environment.group.clone(),
                namespace: kinds.remove(0).to_owned(),
                parts: vec![],
            },
        };
        if kinds.len() != names.len() {
            return Err(bad(format!(
                "the template resource {} for type {} has incorrect segment lengths. A nested resource type must have \
                 identical number of segments as its resource name. A root resource type must have segment length one \
                 greater than its resource name",
                quoted(&name),
                quoted(&kind),
            )));
        }
        if id.parts.is_empty() && kind.eq_ignore_ascii_case("Microsoft.Resources/deployments") {
            return Err(bad("nested templates are not supported"));
        }
        id.parts
            .extend(kinds.iter().zip(&names).map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())));
        let text = id.to_string();
        let is_sound = ResourceId::parse(&text).as_ref() == Some(&id) && !text.chars().any(char::is_control);
        if is_sound { Ok(id) } else { Err(bad(format!("{} is not the name of a resource", quoted(&name)))) }
    }

    /// A member that must be a text.
    fn word(
        &self,
        written: &Map<String, Value>,
        member: &str,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<String, TemplateError> {
        let value = self.scope.value(written.get(member).unwrap_or(&Value::Null), iteration);
        match value.map_err(|error| error.here(member))? {
            Value::String(text) => Ok(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(bad(format!("a resource has no '{member}', or one that is not a text")))
            }
        }
    }

    fn version(
        &self,
        written: &Map<String, Value>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<ApiVersion, TemplateError> {
        let version = self.word(written, "apiVersion", iteration)?;
        ApiVersion::parse(&version).map_err(|_| bad(format!("not an api-version: {}", quoted(&version))))
    }

    fn dependencies(
        &self,
        written: &Map<String, Value>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<Vec<String>, TemplateError> {
        let value = self.scope.value(written.get("dependsOn").unwrap_or(&Value::Null), iteration);
        match value.map_err(|error| error.here("dependsOn"))? {
            Value::Null => Ok(vec![]),
            Value::Array(list) if list.len() <= DEPENDENCIES_MAX => {
                let text = |value: &Value| value.as_str().map(str::to_lowercase);
                let all: Option<_> = list.iter().map(text).collect();
                all.ok_or_else(|| bad("what a resource depends on is to be a list of texts"))
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(bad(format!(
                    "what a resource depends on is to be a list of at most {DEPENDENCIES_MAX} texts"
                )))
            }
        }
    }

    fn body(
        &self,
        written: &Map<String, Value>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<ResourceBody, TemplateError> {
        let is_part = |key: &&String| !ABOUT.iter().any(|about| about.eq_ignore_ascii_case(key));
        let mut body = Map::new();
        let mut later = false;
        for (key, value) in written.iter().filter(|(key, _)| is_part(key)) {
            match self.scope.value(value, iteration) {
                Ok(value) => drop(body.insert(key.clone(), value)),
                Err(TemplateError::Later) => later = true,
                Err(refused) => return Err(refused),
            }
        }
        if !later {
            return Ok(ResourceBody::Known(self.scope.made(body.into())?));
        }
        let mut pending = Map::new();
        for (key, value) in written.iter().filter(|(key, _)| is_part(key)) {
            self.scope.spend(weigh(value)?)?;
            pending.insert(key.clone(), value.clone());
        }
        Ok(ResourceBody::Later(
            pending,
            iteration.map(|iteration| (iteration.name.to_owned(), iteration.index)),
        ))
    }
}
