//! Which edition to ask for: the newest that both sides know.
//!
//! A refusal that names versions leads to the newest of them that is known here. One that names none leads one edition down at a
//! time, and from the oldest back to the newest: it may have been about something else, and pass.

use forewarn_imds::Edition;
use serde_json::Value;

use crate::http::HttpResponse;

/// The edition that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    current: Edition,
    /// Whether a document came with it.
    settled: bool,
}

impl Default for Ladder {
    fn default() -> Self {
        Self::at(Edition::newest())
    }
}

impl Ladder {
    /// That edition first.
    pub(crate) fn at(edition: Edition) -> Self {
        Self { current: edition, settled: false }
    }

    pub(crate) fn current(self) -> Edition {
        self.current
    }

    /// A document came: this one is known.
    pub(crate) fn settle(&mut self) {
        self.settled = true;
    }

    /// What a refused question for a document means for the edition. Whether it is worth asking again at once.
    pub(crate) fn step(&mut self, answer: &HttpResponse) -> bool {
        let is_about_editions = answer.status == 400 && named(&answer.body).is_some();
        // An edition that has worked is not the reason.
        if answer.status == 400 && !is_about_editions && !self.settled {
            let older = Edition::ALL.into_iter().rev().find(|edition| *edition < self.current);
            self.current = older.unwrap_or(Edition::newest());
        }
        self.follow(answer)
    }

    /// The same, where only versions that are named count.
    pub(crate) fn follow(&mut self, answer: &HttpResponse) -> bool {
        if answer.status != 400 {
            return false;
        }
        let versions = named(&answer.body).unwrap_or_default();
        let known = versions.iter().filter_map(|version| Edition::parse(version)).max();
        let Some(edition) = known.filter(|edition| *edition != self.current) else { return false };
        self.current = edition;
        true
    }
}

/// The versions that a refusal names, newest first.
fn named(body: &[u8]) -> Option<Vec<String>> {
    let said: Value = serde_json::from_slice(body).ok()?;
    let versions = said.get("newest-versions")?.as_array()?;
    Some(versions.iter().filter_map(|version| version.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Bytes, HeaderMap};

    fn refusal(status: u16, body: &str) -> HttpResponse {
        HttpResponse { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    #[test]
    fn the_newest_that_both_know_is_asked_for_at_once() {
        let mut ladder = Ladder::default();
        let old = r#"{"error":"x","newest-versions":["2031-01-01","2019-04-01","2019-01-01"]}"#;
        assert!(ladder.step(&refusal(400, old)));
        assert_eq!(ladder.current(), Edition::V2019_04_01);
        assert!(!ladder.step(&refusal(400, old)), "it refuses what it offers: that is no matter of editions");
        let none = r#"{"newest-versions":["2031-01-01"]}"#;
        assert!(!ladder.step(&refusal(400, none)));
        assert_eq!(ladder.current(), Edition::V2019_04_01);
    }

    #[test]
    fn where_none_is_named_it_goes_down_step_by_step_and_begins_anew() {
        let mut ladder = Ladder::default();
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push(ladder.current());
            assert!(!ladder.step(&refusal(400, "no")), "one question at a time");
        }
        let mut expected: Vec<_> = Edition::ALL.into_iter().rev().collect();
        expected.push(Edition::newest());
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_edition_that_has_worked_stays_and_only_a_400_is_about_editions() {
        let mut ladder = Ladder::default();
        assert!(!ladder.step(&refusal(500, r#"{"newest-versions":["2019-04-01"]}"#)));
        ladder.settle();
        assert!(!ladder.step(&refusal(400, "something else")));
        assert_eq!(ladder.current(), Edition::newest());
    }
}
