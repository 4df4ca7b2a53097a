//! Conditions of rules and hooks: the events to which they apply.

use forewarn_types::{EventKind, EventSource, Span, list};
use serde::Deserialize;

use crate::observation::ObservedEvent;

/// A set of criteria for events. The default matches every event that names this machine.
///
/// Older editions lack some fields (`EventSource` before 2019-08-01, `DurationInSeconds` before 2020-07-01,
/// `Description` before 2019-04-01), and a duration may be -1. `unknown` decides whether a criterion on a missing value
/// matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    /// Event types; empty for any type.
    #[serde(deserialize_with = "list::at_least_one")]
    pub types: Vec<EventKind>,
    /// Event sources; empty for any source.
    #[serde(deserialize_with = "list::at_least_one")]
    pub sources: Vec<EventSource>,
    /// Exclusive upper bound of the expected interruption.
    pub shorter_than: Option<Span>,
    /// Inclusive lower bound of the expected interruption.
    pub at_least: Option<Span>,
    /// True for live migrations only, false for all other events.
    pub live_migration: Option<bool>,
    /// Relation of the event to this machine.
    pub mine: Mine,
    /// True if a criterion on a missing value matches.
    pub unknown: bool,
}

/// Relation of an event to this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mine {
    /// The event names this machine.
    #[default]
    Yes,
    /// The event does not name this machine.
    No,
    Any,
}

impl Condition {
    /// True if the event meets all criteria.
    #[must_use]
    pub fn fits(&self, observed: &ObservedEvent, me: &str) -> bool {
        self.fits_owner(observed.names(me))
            && self.fits_kind(observed)
            && self.optional_criteria(observed).all(|fits| fits.unwrap_or(self.unknown))
    }

    fn fits_owner(&self, is_mine: bool) -> bool {
        match self.mine {
            Mine::Yes => is_mine,
            Mine::No => !is_mine,
            Mine::Any => true,
        }
    }

    fn fits_kind(&self, observed: &ObservedEvent) -> bool {
        self.types.is_empty() || self.types.iter().any(|kind| kind.as_str() == observed.kind)
    }

    /// The result of each criterion whose value may be missing: `None` if it is.
    fn optional_criteria(&self, observed: &ObservedEvent) -> impl Iterator<Item = Option<bool>> {
        let source = (!self.sources.is_empty()).then(|| {
            let value = observed.source.as_deref()?;
            Some(self.sources.iter().any(|source| source.as_str() == value))
        });
        let seconds = observed.duration();
        let shorter = self.shorter_than.map(|bound| Some(seconds? < bound.0));
        let longer = self.at_least.map(|bound| Some(seconds? >= bound.0));
        let migration = self.live_migration.map(|wanted| Some(observed.is_live_migration()? == wanted));
        [source, shorter, longer, migration].into_iter().flatten()
    }
}
