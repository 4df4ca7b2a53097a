//! Scope of an expression: names and values, the group, the loop; and the remaining effort.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{TemplateError, bad, quoted};
use super::limits::{DEPTH_MAX, EFFORT_MAX, UNDERWAY_MAX, VALUE_WEIGHT};
use forewarn_control::resource_id::{GroupId, ResourceId};

/// Reads a resource, if it exists.
pub(super) type ResourceReader<'a> = &'a dyn Fn(&ResourceId) -> Option<Value>;

/// Kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameKind {
    /// `parameters('x')`
    Parameter,
    /// `variables('x')`
    Variable,
}

/// Source of the value of a name.
#[derive(Clone, Debug)]
pub(super) enum ValueSource {
    /// A value of the deployment.
    Given(Value),
    /// A value of the template, evaluated when it is needed.
    Written(Value),
    /// A list that a loop of the template makes.
    Loop(Value),
}

/// Facts that all expressions of a template share. Owned, so that outputs can be evaluated long after.
#[derive(Clone, Debug)]
pub(super) struct TemplateEnvironment {
    pub(super) group: GroupId,
    /// Location of the group.
    pub(super) location: String,
    /// Name of the deployment.
    pub(super) deployment: String,
    /// `contentVersion` of the template.
    pub(super) content_version: String,
    /// Parameters and variables, by their names in lower case.
    pub(super) names: BTreeMap<(NameKind, String), ValueSource>,
    /// The resources of the template, by all their names, in lower case.
    pub(super) resources: BTreeMap<String, Vec<ResourceId>>,
}

/// An iteration of a loop, within that of the enclosing loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopIteration<'a> {
    /// Name of the loop.
    pub(super) name: &'a str,
    /// Index of the iteration, from 0.
    pub(super) index: usize,
    pub(super) outer: Option<&'a LoopIteration<'a>>,
}

/// Everything that an expression can refer to, and the remaining effort.
pub(super) struct Scope<'a> {
    pub(super) environment: &'a TemplateEnvironment,
    /// Reads resources, once they exist.
    pub(super) look: Option<ResourceReader<'a>>,
    /// Referenced resources that cannot be read yet: ids and names in lower case.
    pub(super) referred: RefCell<Vec<String>>,
    /// Values of names; `None` while one is being evaluated.
    known: RefCell<BTreeMap<(NameKind, String), Option<Value>>>,
    effort: Cell<u64>,
    underway: Cell<usize>,
}

impl<'a> Scope<'a> {
    /// A scope in which resources can be read, or not yet.
    pub(super) fn new(environment: &'a TemplateEnvironment, look: Option<ResourceReader<'a>>) -> Self {
        Self {
            environment,
            look,
            referred: RefCell::default(),
            known: RefCell::default(),
            effort: Cell::new(EFFORT_MAX),
            underway: Cell::new(0),
        }
    }

    /// The same, with the remaining effort of another scope.
    pub(super) fn with_effort(self, effort: u64) -> Self {
        self.effort.set(effort);
        self
    }

    pub(super) fn effort(&self) -> u64 {
        self.effort.get()
    }

    /// Reduces the remaining effort.
    pub(super) fn spend(&self, weight: u64) -> Result<(), TemplateError> {
        match self.effort.get().checked_sub(weight) {
            Some(left) => {
                self.effort.set(left);
                Ok(())
            }
            None => Err(bad("the template takes too much effort to evaluate")),
        }
    }

    /// Accounts for a computed value, and checks its depth.
    pub(super) fn made(&self, value: Value) -> Result<Value, TemplateError> {
        self.spend(weigh(&value)?)?;
        Ok(value)
    }

    /// Runs a nested evaluation.
    pub(super) fn deeper<T>(
        &self,
        step: impl FnOnce() -> Result<T, TemplateError>,
    ) -> Result<T, TemplateError> {
        let underway = self.underway.get();
        if underway >= UNDERWAY_MAX {
            return Err(bad("values of the template are nested too deeply"));
        }
        self.underway.set(underway + 1);
        let outcome = step();
        self.underway.set(underway);
        outcome
    }

    /// The value of a parameter or a variable.
    pub(super) fn named(&self, space: NameKind, name: &str) -> Result<Value, TemplateError> {
        let key = (space, name.to_lowercase());
        let source = self.environment.names.get(&key).ok_or_else(|| {
            let kind = match space {
                NameKind::Parameter => "parameter",
                NameKind::Variable => "variable",
            };
            bad(format!("the template {kind} {} is not found", quoted(&name)))
        })?;
        if let ValueSource::Given(value) = source {
            return self.made(value.clone());
        }
        let known = self.known.borrow().get(&key).cloned();
        match known {
            Some(Some(value)) => return self.made(value),
            Some(None) => {
                return Err(bad(format!("a circular reference was found at {}", quoted(&name))));
            }
            None => {}
        }
        self.known.borrow_mut().insert(key.clone(), None);
        let value = match source {
            ValueSource::Given(value) => value.clone(),
            ValueSource::Written(written) => {
                self.value(written, None).map_err(|error| not_here(error, name))?
            }
            ValueSource::Loop(entry) => {
                let (_, list) = self.repeated(entry, None).map_err(|error| not_here(error, name))?;
                Value::Array(list)
            }
        };
        let value = self.made(value)?;
        self.known.borrow_mut().insert(key, Some(value.clone()));
        Ok(value)
    }
}

fn not_here(error: TemplateError, name: &str) -> TemplateError {
    TemplateError::Refused(error.here(&quoted(&name)))
}

/// Weight of a value; fails if it is too deep.
pub(super) fn weigh(value: &Value) -> Result<u64, TemplateError> {
    fn within(value: &Value, depth: usize) -> Option<u64> {
        let room = depth.checked_sub(1);
        Some(
            VALUE_WEIGHT
                + match value {
                    Value::Null | Value::Bool(_) | Value::Number(_) => 0,
                    Value::String(text) => text.len() as u64,
                    Value::Array(list) => {
                        let room = room?;
                        list.iter().try_fold(0, |sum, item| Some(sum + within(item, room)?))?
                    }
                    Value::Object(members) => {
                        let room = room?;
                        let weigh = |sum, (key, item): (&String, &Value)| {
                            Some(sum + key.len() as u64 + VALUE_WEIGHT + within(item, room)?)
                        };
                        members.iter().try_fold(0, weigh)?
                    }
                },
        )
    }
    within(value, DEPTH_MAX).ok_or_else(|| bad(format!("a value is nested more than {DEPTH_MAX} deep")))
}
