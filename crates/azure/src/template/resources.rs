//! The resources of a template: loops gone round, conditions asked, children below their parents.

use serde_json::{Map, Value};

use super::limits::{DEPENDENCIES_MAX, RESOURCES_MAX};
use super::scope::{Scope, Turn, weigh};
use super::trouble::{Trouble, bad, quoted};
use crate::ApiVersion;
use forewarn_control::resource_id::ResourceId;

/// A resource as it was found in the template.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) id: ResourceId,
    pub(super) version: ApiVersion,
    pub(super) body: Body,
    /// What it waits for: ids and names in lower case.
    pub(super) waits_for: Vec<String>,
    /// What its expressions ask of resources, which may be in the template.
    pub(super) referred: Vec<String>,
    /// What it may be called besides its name: the loop it comes from, a name of the template's own.
    pub(super) called: Vec<String>,
    pub(super) presence: Presence,
}

/// Whether a resource is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// It is.
    Wanted,
    /// Not now: its condition is false.
    LeftOut,
    /// It is there already, and only spoken of.
    Existing,
}

/// What a PUT of a resource would send.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// It is known.
    Known(Value),
    /// It needs what other resources show; as it is written, and the turn of its loop.
    Later(Map<String, Value>, Option<(String, usize)>),
}

/// Members of a resource in a template that are not part of it.
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

/// Goes over the resources of a template.
pub(super) struct Survey<'a> {
    pub(super) scope: &'a Scope<'a>,
    pub(super) found: Vec<Found>,
}

impl Survey<'_> {
    /// All resources in a list, or in an object of names of the template's own; with their children.
    pub(super) fn all(
        &mut self,
        written: &Value,
        parent: Option<&ResourceId>,
        turn: Option<&Turn<'_>>,
    ) -> Result<(), Trouble> {
        match written {
            Value::Null => Ok(()),
            Value::Array(list) => list.iter().try_for_each(|one| self.one(one, None, parent, turn)),
            Value::Object(members) => {
                members.iter().try_for_each(|(symbol, one)| self.one(one, Some(symbol), parent, turn))
            }
            Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(bad("resources are to be a list")),
        }
    }

    fn one(
        &mut self,
        written: &Value,
        symbol: Option<&str>,
        parent: Option<&ResourceId>,
        turn: Option<&Turn<'_>>,
    ) -> Result<(), Trouble> {
        let Value::Object(written) = written else { return Err(bad("a resource is to be an object")) };
        let Some(copy) = written.get("copy").filter(|copy| !copy.is_null()) else {
            return self.turn(written, symbol, parent, turn);
        };
        if parent.is_some() {
            return Err(bad("a resource inside another one cannot be in a loop of its own"));
        }
        let name = self.scope.value(&copy["name"], turn)?;
        let Some(name) = name.as_str() else { return Err(bad("the loop of a resource has no name")) };
        for index in 0..self.scope.count(&copy["count"], turn)? {
            self.turn(written, symbol, parent, Some(&Turn { name, index, outer: turn }))?;
        }
        Ok(())
    }

    /// One resource, in one turn of its loop.
    fn turn(
        &mut self,
        written: &Map<String, Value>,
        symbol: Option<&str>,
        parent: Option<&ResourceId>,
        turn: Option<&Turn<'_>>,
    ) -> Result<(), Trouble> {
        if self.found.len() >= RESOURCES_MAX {
            return Err(bad(format!("a template has at most {RESOURCES_MAX} resources")));
        }
        let id = self.id(written, parent, turn)?;
        let place = id.to_string();
        let at = |trouble: Trouble| trouble.at(&place);
        let presence = self.presence(written, parent, turn).map_err(at)?;
        let version = self.version(written, turn).map_err(at)?;
        let mut waits_for = self.dependencies(written, turn).map_err(at)?;
        waits_for.extend(parent.map(ResourceId::key));
        let body = match presence {
            Presence::Wanted => self.body(written, turn).map_err(at)?,
            Presence::LeftOut | Presence::Existing => Body::Known(Value::Null),
        };
        let referred = self.scope.referred.take();
        let called =
            [symbol, turn.map(|turn| turn.name)].into_iter().flatten().map(str::to_lowercase).collect();
        self.found.push(Found { id: id.clone(), version, body, waits_for, referred, called, presence });
        match presence {
            Presence::Wanted => {
                let children = written.get("resources").unwrap_or(&Value::Null);
                self.scope.deeper(|| self.all(children, Some(&id), turn))
            }
            Presence::LeftOut | Presence::Existing => Ok(()),
        }
    }

    fn presence(
        &self,
        written: &Map<String, Value>,
        parent: Option<&ResourceId>,
        turn: Option<&Turn<'_>>,
    ) -> Result<Presence, Trouble> {
        for elsewhere in ["scope", "resourceGroup", "subscriptionId"] {
            let Some(written) = written.get(elsewhere).filter(|written| !written.is_null()) else { continue };
            let group = &self.scope.ground.group;
            let given = self.scope.value(written, turn)?;
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
        match self.scope.value(written.get("condition").unwrap_or(&Value::Bool(true)), turn)? {
            Value::Bool(true) => Ok(Presence::Wanted),
            Value::Bool(false) => Ok(Presence::LeftOut),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(bad("the condition of a resource is to be true or false"))
            }
        }
    }

    /// The id of a resource, from its type and its name and those of what it is in.
    fn id(
        &self,
        written: &Map<String, Value>,
        parent: Option<&ResourceId>,
        turn: Option<&Turn<'_>>,
    ) -> Result<ResourceId, Trouble> {
        let (kind, name) = (self.word(written, "type", turn)?, self.word(written, "name", turn)?);
        let mut kinds: Vec<_> = kind.split('/').collect();
        let names: Vec<_> = name.split('/').collect();
        let mut id = match parent {
            Some(parent) => parent.clone(),
            None => ResourceId {
                group: self.scope.ground.group.clone(),
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
            return Err(bad("a template that deploys another template is not known here"));
        }
        id.parts
            .extend(kinds.iter().zip(&names).map(|(kind, name)| ((*kind).to_owned(), (*name).to_owned())));
        let text = id.to_string();
        let is_sound = ResourceId::parse(&text).as_ref() == Some(&id) && !text.chars().any(char::is_control);
        if is_sound { Ok(id) } else { Err(bad(format!("{} is not the name of a resource", quoted(&name)))) }
    }

    /// A member that is to be a text.
    fn word(
        &self,
        written: &Map<String, Value>,
        member: &str,
        turn: Option<&Turn<'_>>,
    ) -> Result<String, Trouble> {
        let value = self.scope.value(written.get(member).unwrap_or(&Value::Null), turn);
        match value.map_err(|trouble| trouble.here(member))? {
            Value::String(text) => Ok(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(bad(format!("a resource has no '{member}', or one that is not a text")))
            }
        }
    }

    fn version(&self, written: &Map<String, Value>, turn: Option<&Turn<'_>>) -> Result<ApiVersion, Trouble> {
        let version = self.word(written, "apiVersion", turn)?;
        ApiVersion::parse(&version).map_err(|_| bad(format!("not an api-version: {}", quoted(&version))))
    }

    fn dependencies(
        &self,
        written: &Map<String, Value>,
        turn: Option<&Turn<'_>>,
    ) -> Result<Vec<String>, Trouble> {
        let value = self.scope.value(written.get("dependsOn").unwrap_or(&Value::Null), turn);
        match value.map_err(|trouble| trouble.here("dependsOn"))? {
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

    fn body(&self, written: &Map<String, Value>, turn: Option<&Turn<'_>>) -> Result<Body, Trouble> {
        let is_part = |key: &&String| !ABOUT.iter().any(|about| about.eq_ignore_ascii_case(key));
        let mut body = Map::new();
        let mut later = false;
        for (key, value) in written.iter().filter(|(key, _)| is_part(key)) {
            match self.scope.value(value, turn) {
                Ok(value) => drop(body.insert(key.clone(), value)),
                Err(Trouble::Later) => later = true,
                Err(refused) => return Err(refused),
            }
        }
        if !later {
            return Ok(Body::Known(self.scope.made(body.into())?));
        }
        let mut kept = Map::new();
        for (key, value) in written.iter().filter(|(key, _)| is_part(key)) {
            self.scope.spend(weigh(value)?)?;
            kept.insert(key.clone(), value.clone());
        }
        Ok(Body::Later(kept, turn.map(|turn| (turn.name.to_owned(), turn.index))))
    }
}
