//! Event ids, which may be abbreviated to a unique prefix.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{Result, bail};
use forewarn_control::{AuditPage, EventView};

use super::session::Session;

/// Characters of a complete id.
const WHOLE_CHARS: usize = 36;

/// Characters of the shortest prefix.
const SHORT_CHARS_MIN: usize = 4;

/// Characters of an id in tables and sentences: its first group.
const SHOWN_CHARS: usize = 8;

/// The query for the latest announcements.
const RECENT: &str = "/v1/audit?kind=announced&limit=1000";

/// Ids in the error about an ambiguous prefix.
const SHOWN_MAX: usize = 3;

/// An event id, or a prefix of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventIdPrefix(String);

/// A text that cannot be the prefix of an event id.
#[derive(Debug, thiserror::Error)]
#[error(
    "invalid event id: {0:?}\n  hint: write an id of `forewarn event ls`, or at least its first {SHORT_CHARS_MIN} characters"
)]
pub(crate) struct InvalidEventId(String);

impl FromStr for EventIdPrefix {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let plausible = text.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
        if plausible && (SHORT_CHARS_MIN..=WHOLE_CHARS).contains(&text.len()) {
            Ok(Self(text.to_ascii_uppercase()))
        } else {
            Err(InvalidEventId(text.to_owned()))
        }
    }
}

impl EventIdPrefix {
    /// The visible event with this prefix.
    pub(super) fn resolve(&self, session: &Session) -> Result<EventView> {
        if self.0.len() == WHOLE_CHARS {
            return session.get(&format!("/v1/events/{}", self.0));
        }
        self.pick(session.all("/v1/events")?)
    }

    /// The complete id, also of a completed event.
    pub(super) fn resolve_any(&self, session: &Session) -> Result<String> {
        match self.look_for_any(session)? {
            Some(id) => Ok(id),
            None => {
                bail!("no such event: {}\n  hint: for an old event, write the complete id", self.0)
            }
        }
    }

    /// The complete id, also of a completed event. None if there is no such event.
    pub(super) fn look_for_any(&self, session: &Session) -> Result<Option<String>> {
        if self.0.len() == WHOLE_CHARS {
            return Ok(Some(self.0.clone()));
        }
        let matches = |id: &String| id.starts_with(&self.0);
        let visible: Vec<EventView> = session.all("/v1/events")?;
        let mut ids: BTreeSet<_> = visible.into_iter().map(|event| event.id).filter(matches).collect();
        if ids.is_empty() {
            // Completed events: only the latest ones.
            let page: AuditPage = session.get(RECENT)?;
            ids.extend(page.items.into_iter().flat_map(|entry| entry.events).filter(matches));
        }
        let mut ids = ids.into_iter();
        match (ids.next(), ids.next()) {
            (Some(one), Some(other)) => {
                bail!("ambiguous event id: {}\n  hint: write {one} or {other}", self.0)
            }
            (id, _) => Ok(id),
        }
    }

    fn pick(&self, all: Vec<EventView>) -> Result<EventView> {
        let matches = |event: &EventView| event.id.to_ascii_uppercase().starts_with(&self.0);
        let mut matching = all.into_iter().filter(matches);
        match (matching.next(), matching.next()) {
            (Some(event), None) => Ok(event),
            (None, _) => bail!("no such event: {}\n  hint: `forewarn event ls` lists them", self.0),
            (Some(first), Some(second)) => {
                let few = [first, second].into_iter().chain(matching).take(SHOWN_MAX);
                let ids: Vec<_> = few.map(|event| event.id).collect();
                bail!("ambiguous event id: {}\n  hint: write {}", self.0, ids.join(" or "))
            }
        }
    }
}

/// The short form of an id.
pub(super) fn short(id: &str) -> &str {
    id.get(..SHOWN_CHARS).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::super::sentences::tests::event;
    use super::*;

    fn pick(prefix: &str) -> Result<String> {
        let ids = ["28512AF7-C957-4500-9BC4-842D6FB531E4", "28519F00-0000-4000-8000-000000000000"];
        let all = ids.map(|id| EventView { id: id.to_owned(), ..event("Scheduled") }).to_vec();
        Ok(prefix.parse::<EventIdPrefix>()?.pick(all)?.id)
    }

    #[test]
    fn a_unique_prefix_is_resolved() {
        assert_eq!(pick("28512af7").unwrap(), "28512AF7-C957-4500-9BC4-842D6FB531E4");
        assert_eq!(pick("28519").unwrap(), "28519F00-0000-4000-8000-000000000000");
        assert_eq!(
            pick("2851").unwrap_err().to_string(),
            "ambiguous event id: 2851\n  hint: write 28512AF7-C957-4500-9BC4-842D6FB531E4 or \
             28519F00-0000-4000-8000-000000000000"
        );
        assert_eq!(
            pick("ABCD").unwrap_err().to_string(),
            "no such event: ABCD\n  hint: `forewarn event ls` lists them"
        );
    }

    #[test]
    fn an_invalid_prefix_is_rejected() {
        for wrong in ["", "285", "web_0", "28512AF7-C957-4500-9BC4-842D6FB531E4-"] {
            assert!(wrong.parse::<EventIdPrefix>().unwrap_err().to_string().contains("hint: "), "{wrong}");
        }
    }

    #[test]
    fn the_short_form_of_an_id_is_its_first_group() {
        assert_eq!(short("28512AF7-C957-4500-9BC4-842D6FB531E4"), "28512AF7");
        assert_eq!(short("E1"), "E1");
    }
}
