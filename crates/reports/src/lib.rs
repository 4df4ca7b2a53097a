//! Reports of tests that other programs read: JUnit XML, which most CI systems show, and TAP.
//!
//! Pure: a caller makes a [`Suite`] of its results, and gets a text. Where the text goes is left to the caller.
//!
//! ```
//! use forewarn_reports::{Case, CaseOutcome, Suite, tap};
//!
//! let case = Case::new("approvals", "svc approved E1", CaseOutcome::Passed);
//! let suite = Suite { name: "forewarn test".to_owned(), cases: vec![case] };
//! assert_eq!(tap(&suite), "TAP version 13\n1..1\nok 1 - svc approved E1\n");
//! ```

#![warn(missing_docs)]

mod junit;
mod tap;

use std::time::Duration;

pub use junit::{escape_xml, junit};
pub use tap::tap;

/// The results of tests that were run together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// Name of the suite.
    pub name: String,
    /// The tests, in the order in which they are shown.
    pub cases: Vec<Case>,
}

/// The result of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name of the group of the test.
    pub class: String,
    /// Name of the test.
    pub name: String,
    /// Result of the test.
    pub outcome: CaseOutcome,
    /// Time that the test took, if that is known.
    pub duration: Option<Duration>,
}

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseOutcome {
    /// The test has passed.
    Passed,
    /// The test has failed.
    Failed {
        /// The failure in a sentence.
        message: String,
        /// Everything else about it; may have several lines.
        details: String,
    },
    /// The test could not run, or does not count.
    Skipped {
        /// The reason in a sentence.
        message: String,
    },
}

impl Case {
    /// The result of a test of unknown duration.
    #[must_use]
    pub fn new(class: impl Into<String>, name: impl Into<String>, outcome: CaseOutcome) -> Self {
        Self { class: class.into(), name: name.into(), outcome, duration: None }
    }
}

impl Suite {
    /// Number of tests that have failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, CaseOutcome::Failed { .. })).count()
    }

    /// Number of tests that were skipped.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.cases.iter().filter(|case| matches!(case.outcome, CaseOutcome::Skipped { .. })).count()
    }
}
