//! The cause of a start, read from the sentence of its audit entry.

use forewarn_lifecycle::StartCause;

use crate::audit::log::AuditEntry;
use crate::view::describe::start;

/// All causes. Those with a common beginning are told apart by their full words.
const CAUSES: [StartCause; 5] = [
    StartCause::Approved,
    StartCause::Expired,
    StartCause::Automatic,
    StartCause::Failure,
    StartCause::Forced,
];

/// The end of the sentence about a start.
pub(super) fn words_of_start(cause: StartCause) -> String {
    match cause {
        StartCause::AtOnce => "has started at once".to_owned(),
        StartCause::Approved
        | StartCause::Expired
        | StartCause::Automatic
        | StartCause::Failure
        | StartCause::Forced => format!("has started, by {}", start(cause)),
    }
}

impl AuditEntry {
    /// The cause of the start that the entry is about. None if it is about something else.
    #[must_use]
    pub fn start_cause(&self) -> Option<StartCause> {
        if self.kind != "started" {
            return None;
        }
        let is_meant = |cause: &StartCause| self.text.contains(&words_of_start(*cause));
        Some(CAUSES.into_iter().find(is_meant).unwrap_or(StartCause::AtOnce))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::log::{Chain, NewAuditEntry};

    #[test]
    fn the_cause_is_read_from_the_words_that_were_written() {
        for cause in CAUSES.into_iter().chain([StartCause::AtOnce]) {
            let text = format!("Reboot of web_0 (restart by the owner) {}", words_of_start(cause));
            let entry = |kind: &str| {
                let new =
                    NewAuditEntry { kind: kind.to_owned(), text: text.clone(), ..NewAuditEntry::default() };
                Chain::default().seal(new)
            };
            assert_eq!(entry("started").start_cause(), Some(cause), "{text}");
            assert_eq!(entry("completed").start_cause(), None);
        }
    }
}
