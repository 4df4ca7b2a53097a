//! Negotiation of the edition: the newest that both sides support.
//!
//! A rejection that lists versions selects the newest listed one that this client supports. A rejection without
//! versions selects the next older edition, and after the oldest one the newest again, because it may have had another
//! cause.

use forewarn_imds::Edition;
use serde_json::Value;

use crate::http::HttpResponse;

/// The edition of the next request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EditionFallback {
    current: Edition,
    /// True once a document of this edition was received.
    settled: bool,
}

impl Default for EditionFallback {
    fn default() -> Self {
        Self::at(Edition::newest())
    }
}

impl EditionFallback {
    /// Starts with that edition.
    pub(crate) fn at(edition: Edition) -> Self {
        Self { current: edition, settled: false }
    }

    pub(crate) fn current(self) -> Edition {
        self.current
    }

    /// Records that a document of the current edition was received.
    pub(crate) fn settle(&mut self) {
        self.settled = true;
    }

    /// Adapts the edition after a rejected request for a document. Returns true if a retry at once makes sense.
    pub(crate) fn step(&mut self, response: &HttpResponse) -> bool {
        let is_about_editions = response.status == 400 && named(&response.body).is_some();
        // An edition that has worked is not the cause.
        if response.status == 400 && !is_about_editions && !self.settled {
            let older = Edition::ALL.into_iter().rev().find(|edition| *edition < self.current);
            self.current = older.unwrap_or(Edition::newest());
        }
        self.follow(response)
    }

    /// Like `step`, but considers only versions that the response lists.
    pub(crate) fn follow(&mut self, response: &HttpResponse) -> bool {
        if response.status != 400 {
            return false;
        }
        let versions = named(&response.body).unwrap_or_default();
        let known = versions.iter().filter_map(|version| Edition::parse(version)).max();
        let Some(edition) = known.filter(|edition| *edition != self.current) else { return false };
        self.current = edition;
        true
    }
}

/// The versions that a rejection lists, newest first.
fn named(body: &[u8]) -> Option<Vec<String>> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let versions = value.get("newest-versions")?.as_array()?;
    Some(versions.iter().filter_map(|version| version.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Bytes, HeaderMap};

    fn rejection(status: u16, body: &str) -> HttpResponse {
        HttpResponse { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    #[test]
    fn the_newest_that_both_know_is_asked_for_at_once() {
        let mut fallback = EditionFallback::default();
        let old = r#"{"error":"x","newest-versions":["2031-01-01","2019-04-01","2019-01-01"]}"#;
        assert!(fallback.step(&rejection(400, old)));
        assert_eq!(fallback.current(), Edition::V2019_04_01);
        assert!(
            !fallback.step(&rejection(400, old)),
            "it rejects a version that it lists, so the version is not the cause"
        );
        let none = r#"{"newest-versions":["2031-01-01"]}"#;
        assert!(!fallback.step(&rejection(400, none)));
        assert_eq!(fallback.current(), Edition::V2019_04_01);
    }

    #[test]
    fn where_none_is_named_it_goes_down_step_by_step_and_begins_anew() {
        let mut fallback = EditionFallback::default();
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push(fallback.current());
            assert!(!fallback.step(&rejection(400, "no")), "one request at a time");
        }
        let mut expected: Vec<_> = Edition::ALL.into_iter().rev().collect();
        expected.push(Edition::newest());
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_edition_that_has_worked_stays_and_only_a_400_is_about_editions() {
        let mut fallback = EditionFallback::default();
        assert!(!fallback.step(&rejection(500, r#"{"newest-versions":["2019-04-01"]}"#)));
        fallback.settle();
        assert!(!fallback.step(&rejection(400, "something else")));
        assert_eq!(fallback.current(), Edition::newest());
    }
}
