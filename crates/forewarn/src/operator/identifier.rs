//! Ids of events, abbreviated as far as they stay unique.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{Result, bail};
use forewarn_control::{AuditPage, EventView};

use super::session::Session;

/// Characters of a whole id.
const WHOLE_CHARS: usize = 36;

/// Characters that tell enough to be worth looking for.
const SHORT_CHARS_MIN: usize = 4;

/// Characters of an id in a sentence: its first group.
const SHOWN_CHARS: usize = 8;

/// The newest announcements.
const RECENT: &str = "/v1/audit?kind=announced&limit=1000";

/// Ids that are shown where a beginning fits several.
const SHOWN_MAX: usize = 3;

/// An id of an event, or how one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Beginning(String);

/// A text that is not how an id begins.
#[derive(Debug, thiserror::Error)]
#[error(
    "not the id of an event: {0:?}\n  hint: as `forewarn event ls` shows it, the first {SHORT_CHARS_MIN} characters at least"
)]
pub(crate) struct NotAnId(String);

impl FromStr for Beginning {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let plausible = text.chars().all(|char| char.is_ascii_hexdigit() || char == '-');
        if plausible && (SHORT_CHARS_MIN..=WHOLE_CHARS).contains(&text.len()) {
            Ok(Self(text.to_ascii_uppercase()))
        } else {
            Err(NotAnId(text.to_owned()))
        }
    }
}

impl Beginning {
    /// The visible event that is meant.
    pub(super) fn resolve(&self, session: &Session) -> Result<EventView> {
        if self.0.len() == WHOLE_CHARS {
            return session.get(&format!("/v1/events/{}", self.0));
        }
        self.pick(session.all("/v1/events")?)
    }

    /// The id that is meant, be it of an event that is over.
    pub(super) fn resolve_any(&self, session: &Session) -> Result<String> {
        match self.look_for_any(session)? {
            Some(id) => Ok(id),
            None => {
                bail!("no such event: {}\n  hint: of one that is long over, the whole id is needed", self.0)
            }
        }
    }

    /// The same, where it may be none.
    pub(super) fn look_for_any(&self, session: &Session) -> Result<Option<String>> {
        if self.0.len() == WHOLE_CHARS {
            return Ok(Some(self.0.clone()));
        }
        let fits = |id: &String| id.starts_with(&self.0);
        let visible: Vec<EventView> = session.all("/v1/events")?;
        let mut ids: BTreeSet<_> = visible.into_iter().map(|event| event.id).filter(fits).collect();
        if ids.is_empty() {
            // Of what is over, the newest are looked at.
            let page: AuditPage = session.get(RECENT)?;
            ids.extend(page.items.into_iter().flat_map(|entry| entry.events).filter(fits));
        }
        let mut ids = ids.into_iter();
        match (ids.next(), ids.next()) {
            (Some(one), Some(other)) => {
                bail!("several events begin so: {}\n  hint: write {one} or {other}", self.0)
            }
            (id, _) => Ok(id),
        }
    }

    fn pick(&self, all: Vec<EventView>) -> Result<EventView> {
        let fits = |event: &EventView| event.id.to_ascii_uppercase().starts_with(&self.0);
        let mut fitting = all.into_iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(event), None) => Ok(event),
            (None, _) => bail!("no such event: {}\n  hint: `forewarn event ls` lists them", self.0),
            (Some(first), Some(second)) => {
                let few = [first, second].into_iter().chain(fitting).take(SHOWN_MAX);
                let ids: Vec<_> = few.map(|event| event.id).collect();
                bail!("several events begin so: {}\n  hint: write {}", self.0, ids.join(" or "))
            }
        }
    }
}

/// How an id is called where it need not be whole.
pub(super) fn short(id: &str) -> &str {
    id.get(..SHOWN_CHARS).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::super::say::tests::event;
    use super::*;

    fn pick(beginning: &str) -> Result<String> {
        let ids = ["28512AF7-C957-4500-9BC4-842D6FB531E4", "28519F00-0000-4000-8000-000000000000"];
        let all = ids.map(|id| EventView { id: id.to_owned(), ..event("Scheduled") }).to_vec();
        Ok(beginning.parse::<Beginning>()?.pick(all)?.id)
    }

    #[test]
    fn a_beginning_is_enough_where_only_one_event_has_it() {
        assert_eq!(pick("28512af7").unwrap(), "28512AF7-C957-4500-9BC4-842D6FB531E4");
        assert_eq!(pick("28519").unwrap(), "28519F00-0000-4000-8000-000000000000");
        assert_eq!(
            pick("2851").unwrap_err().to_string(),
            "several events begin so: 2851\n  hint: write 28512AF7-C957-4500-9BC4-842D6FB531E4 or \
             28519F00-0000-4000-8000-000000000000"
        );
        assert_eq!(
            pick("ABCD").unwrap_err().to_string(),
            "no such event: ABCD\n  hint: `forewarn event ls` lists them"
        );
    }

    #[test]
    fn what_cannot_begin_an_id_is_not_looked_for() {
        for wrong in ["", "285", "web_0", "28512AF7-C957-4500-9BC4-842D6FB531E4-"] {
            assert!(wrong.parse::<Beginning>().unwrap_err().to_string().contains("hint: "), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_shown_by_its_first_group() {
        assert_eq!(short("28512AF7-C957-4500-9BC4-842D6FB531E4"), "28512AF7");
        assert_eq!(short("E1"), "E1");
    }
}
