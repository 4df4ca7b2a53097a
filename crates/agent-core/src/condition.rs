//! Which events something is about.

use forewarn_types::{EventKind, EventSource, Span, list};
use serde::Deserialize;

use crate::seen::Seen;

/// Which events. Nothing said, nothing asked for: the default fits every event of this machine.
///
/// Where an edition does not say what is asked for (no source before 2019-08-01, no duration before 2020-07-01, no description
/// before 2019-04-01, and a duration of -1 in any), `unknown` decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    /// Of one of these types; of any, if not said.
    #[serde(deserialize_with = "list::at_least_one")]
    pub types: Vec<EventKind>,
    /// From one of these sources; from any, if not said.
    #[serde(deserialize_with = "list::at_least_one")]
    pub sources: Vec<EventSource>,
    /// Shorter than this.
    pub shorter_than: Option<Span>,
    /// As long as this, or longer.
    pub at_least: Option<Span>,
    /// A live migration, or not one.
    pub live_migration: Option<bool>,
    /// Whether this machine is named.
    pub mine: Mine,
    /// Whether it fits if what is asked for is not said.
    pub unknown: bool,
}

/// Whether an event names this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mine {
    /// It does.
    #[default]
    Yes,
    /// It does not.
    No,
    /// Whatever it names.
    Any,
}

impl Condition {
    /// Whether an event is one of them.
    #[must_use]
    pub fn fits(&self, seen: &Seen, me: &str) -> bool {
        self.fits_owner(seen.names(me))
            && self.fits_kind(seen)
            && self.asked(seen).all(|fits| fits.unwrap_or(self.unknown))
    }

    fn fits_owner(&self, is_mine: bool) -> bool {
        match self.mine {
            Mine::Yes => is_mine,
            Mine::No => !is_mine,
            Mine::Any => true,
        }
    }

    fn fits_kind(&self, seen: &Seen) -> bool {
        self.types.is_empty() || self.types.iter().any(|kind| kind.as_str() == seen.kind)
    }

    /// For each thing that is asked for and may not be said: whether it fits, if that is known.
    fn asked(&self, seen: &Seen) -> impl Iterator<Item = Option<bool>> {
        let source = (!self.sources.is_empty()).then(|| {
            let said = seen.source.as_deref()?;
            Some(self.sources.iter().any(|source| source.as_str() == said))
        });
        let seconds = seen.duration();
        let shorter = self.shorter_than.map(|bound| Some(seconds? < bound.0));
        let longer = self.at_least.map(|bound| Some(seconds? >= bound.0));
        let migration = self.live_migration.map(|wanted| Some(seen.is_live_migration()? == wanted));
        [source, shorter, longer, migration].into_iter().flatten()
    }
}
