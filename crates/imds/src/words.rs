//! The words of a document: states, and descriptions of reasons.

use forewarn_types::{Phase, Reason};

/// `EventStatus`: the state of an event, for clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Announced; waits for approval or for its time.
    Scheduled,
    /// In progress.
    Started,
}

/// A parsed word: a known one, or one that a later service has added.
///
/// An unknown word does not prevent the parsing of the rest of the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word<T> {
    /// A known word.
    Known(T),
    /// Any other word, unchanged.
    Other(String),
}

impl<T> Word<T> {
    pub(crate) fn read(text: String, known: impl IntoIterator<Item = (&'static str, T)>) -> Self {
        match known.into_iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Self::Known(meaning),
            None => Self::Other(text),
        }
    }

    /// The known value; `None` for other words.
    #[must_use]
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(meaning) => Some(meaning),
            Self::Other(_) => None,
        }
    }
}

impl Status {
    pub(crate) const ALL: [Self; 2] = [Self::Scheduled, Self::Started];

    /// The status of an event in that phase.
    #[must_use]
    pub fn of(phase: &Phase) -> Self {
        match phase {
            Phase::Scheduled { .. } => Self::Scheduled,
            Phase::Started { .. } => Self::Started,
        }
    }

    /// The word in a document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "Scheduled",
            Self::Started => "Started",
        }
    }
}

/// The text that describes a reason in a document.
#[must_use]
pub const fn description(reason: Reason) -> &'static str {
    match reason {
        Reason::HostMaintenance => "Host server is undergoing maintenance.",
        Reason::InfrastructureMaintenance => "Host Server infrastructure is undergoing maintenance.",
        Reason::LiveMigration => {
            "Virtual machine is being paused because of a memory-preserving Live Migration operation."
        }
        Reason::HostFailure => "Virtual machine has encountered a failure.",
        Reason::UserRestart => "Virtual machine is going to be restarted as requested by authorized user.",
        Reason::UserRedeploy => "Virtual machine is going to be redeployed as requested by authorized user.",
        Reason::Unspoken => "",
    }
}

#[cfg(test)]
mod tests {
    use forewarn_types::EventKind;

    use super::*;

    #[test]
    fn every_reason_has_its_sentence() {
        let sentences = [
            (Reason::HostMaintenance, "Host server is undergoing maintenance."),
            (Reason::InfrastructureMaintenance, "Host Server infrastructure is undergoing maintenance."),
            (
                Reason::LiveMigration,
                "Virtual machine is being paused because of a memory-preserving Live Migration operation.",
            ),
            (Reason::HostFailure, "Virtual machine has encountered a failure."),
            (
                Reason::UserRestart,
                "Virtual machine is going to be restarted as requested by authorized user.",
            ),
            (
                Reason::UserRedeploy,
                "Virtual machine is going to be redeployed as requested by authorized user.",
            ),
            (Reason::Unspoken, ""),
        ];
        for (reason, sentence) in sentences {
            assert_eq!(description(reason), sentence);
        }
    }

    #[test]
    fn an_unknown_word_is_stored_unchanged() {
        let words = || EventKind::ALL.map(|kind| (kind.as_str(), kind));
        assert_eq!(Word::read("Preempt".to_owned(), words()), Word::Known(EventKind::Preempt));
        assert_eq!(Word::read("preempt".to_owned(), words()), Word::Other("preempt".to_owned()));
        assert_eq!(Word::Known(EventKind::Freeze).known(), Some(&EventKind::Freeze));
        assert_eq!(Word::<EventKind>::Other("Thaw".to_owned()).known(), None);
    }
}
