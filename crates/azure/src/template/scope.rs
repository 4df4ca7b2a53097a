//! What an expression can know: names and their values, the group, the loop it is in; and how much effort is left.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use serde_json::Value;

use super::limits::{DEPTH_MAX, EFFORT_MAX, UNDERWAY_MAX, VALUE_WEIGHT};
use super::trouble::{Trouble, bad, quoted};
use forewarn_control::resource_id::{GroupId, ResourceId};

/// Shows a resource as a whole, if it is there.
pub(super) type Look<'a> = &'a dyn Fn(&ResourceId) -> Option<Value>;

/// What is called by a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    /// `parameters('x')`
    Parameter,
    /// `variables('x')`
    Variable,
}

/// Where the value of a name comes from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// It is there.
    Given(Value),
    /// It is written in the template, and evaluated when it is needed.
    Written(Value),
    /// It is a list, made by a loop that is written in the template.
    Loop(Value),
}

/// What all expressions of a template know. It owns what it holds, so that outputs can be had long after.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    /// The group that is deployed to.
    pub(super) group: GroupId,
    /// Where the group is.
    pub(super) location: String,
    /// What the deployment is called.
    pub(super) deployment: String,
    /// `contentVersion` of the template.
    pub(super) content_version: String,
    /// Parameters and variables, by their names in lower case.
    pub(super) names: BTreeMap<(Space, String), Source>,
    /// The resources of the template, by everything they may be called, in lower case.
    pub(super) resources: BTreeMap<String, Vec<ResourceId>>,
}

/// A turn of a loop, in the turn of the loop around it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn<'a> {
    /// What the loop is called.
    pub(super) name: &'a str,
    /// The first turn is 0.
    pub(super) index: usize,
    /// The loop around it.
    pub(super) outer: Option<&'a Turn<'a>>,
}

/// Everything an expression can know, and what it may still cost.
pub(super) struct Scope<'a> {
    /// What all expressions know.
    pub(super) ground: &'a Ground,
    /// Shows resources, once there are any.
    pub(super) look: Option<Look<'a>>,
    /// What was asked of resources that cannot be looked at yet: ids and names in lower case.
    pub(super) referred: RefCell<Vec<String>>,
    /// Values of names that are written; none while it is being evaluated.
    known: RefCell<BTreeMap<(Space, String), Option<Value>>>,
    effort: Cell<u64>,
    underway: Cell<usize>,
}

impl<'a> Scope<'a> {
    /// A scope in which resources can be looked at, or not yet.
    pub(super) fn new(ground: &'a Ground, look: Option<Look<'a>>) -> Self {
        Self {
            ground,
            look,
            referred: RefCell::default(),
            known: RefCell::default(),
            effort: Cell::new(EFFORT_MAX),
            underway: Cell::new(0),
        }
    }

    /// The same, with what another one has left of its effort.
    pub(super) fn with_effort(self, effort: u64) -> Self {
        self.effort.set(effort);
        self
    }

    /// What is left of the effort.
    pub(super) fn effort(&self) -> u64 {
        self.effort.get()
    }

    /// Takes something off the effort.
    pub(super) fn spend(&self, weight: u64) -> Result<(), Trouble> {
        match self.effort.get().checked_sub(weight) {
            Some(left) => {
                self.effort.set(left);
                Ok(())
            }
            None => Err(bad("the template takes too much effort to evaluate")),
        }
    }

    /// A value that was made, if there was effort for it and it is not too deep.
    pub(super) fn made(&self, value: Value) -> Result<Value, Trouble> {
        self.spend(weigh(&value)?)?;
        Ok(value)
    }

    /// Goes one step deeper.
    pub(super) fn deeper<T>(&self, step: impl FnOnce() -> Result<T, Trouble>) -> Result<T, Trouble> {
        let underway = self.underway.get();
        if underway >= UNDERWAY_MAX {
            return Err(bad("values of the template need each other too deeply"));
        }
        self.underway.set(underway + 1);
        let outcome = step();
        self.underway.set(underway);
        outcome
    }

    /// The value of a parameter or a variable.
    pub(super) fn named(&self, space: Space, name: &str) -> Result<Value, Trouble> {
        let key = (space, name.to_lowercase());
        let source = self.ground.names.get(&key).ok_or_else(|| {
            let kind = match space {
                Space::Parameter => "parameter",
                Space::Variable => "variable",
            };
            bad(format!("the template {kind} {} is not found", quoted(&name)))
        })?;
        if let Source::Given(value) = source {
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
            Source::Given(value) => value.clone(),
            Source::Written(written) => {
                self.value(written, None).map_err(|trouble| not_here(trouble, name))?
            }
            Source::Loop(entry) => {
                let (_, list) = self.repeated(entry, None).map_err(|trouble| not_here(trouble, name))?;
                Value::Array(list)
            }
        };
        let value = self.made(value)?;
        self.known.borrow_mut().insert(key, Some(value.clone()));
        Ok(value)
    }
}

fn not_here(trouble: Trouble, name: &str) -> Trouble {
    Trouble::Refused(trouble.here(&quoted(&name)))
}

/// What a value weighs, if it is not too deep.
pub(super) fn weigh(value: &Value) -> Result<u64, Trouble> {
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
