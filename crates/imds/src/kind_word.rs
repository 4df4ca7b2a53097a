//! Types of events, as a word in settings and in JSON.

use forewarn_lifecycle::EventKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A type of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "they are those of a document")]
pub enum KindWord {
    Freeze,
    Reboot,
    Redeploy,
    Preempt,
    Terminate,
}

impl KindWord {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Freeze, Self::Reboot, Self::Redeploy, Self::Preempt, Self::Terminate];
}

impl From<KindWord> for EventKind {
    fn from(word: KindWord) -> Self {
        match word {
            KindWord::Freeze => Self::Freeze,
            KindWord::Reboot => Self::Reboot,
            KindWord::Redeploy => Self::Redeploy,
            KindWord::Preempt => Self::Preempt,
            KindWord::Terminate => Self::Terminate,
        }
    }
}

impl From<EventKind> for KindWord {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Freeze => Self::Freeze,
            EventKind::Reboot => Self::Reboot,
            EventKind::Redeploy => Self::Redeploy,
            EventKind::Preempt => Self::Preempt,
            EventKind::Terminate => Self::Terminate,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_words_of_a_document() {
        for word in KindWord::ALL {
            let written = serde_json::to_value(word).unwrap();
            assert_eq!(written, crate::kind_word(word.into()));
            assert_eq!(KindWord::from(EventKind::from(word)), word);
        }
    }
}
