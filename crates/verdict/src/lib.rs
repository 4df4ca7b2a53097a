//! Histories of events, and the verdict on the programs that should have approved them.
//!
//! Pure: everything is made of audit entries, and of observations that the caller has made meanwhile.
//!
//! ```text
//! audit entries ──▶ EventHistory (announced, approved, started, ended) ──┐
//! Observations (polls, readings, real time) ─────────────────────────────┼──▶ judge ──▶ Verdict, in sentences
//! VerdictRules ──────────────────────────────────────────────────────────┘
//! ```
//!
//! ```
//! use forewarn_verdict::{Observations, VerdictRules, event_histories, judge};
//!
//! let verdict = judge(event_histories([]), &Observations::default(), VerdictRules::default());
//! assert!(!verdict.passed(), "nothing was tested");
//! ```

#![warn(missing_docs)]

mod history;
mod judge;
mod sentences;
mod verdict;

pub use history::{
    ApprovedBy, EventApproval, EventEnd, EventHistory, EventStart, Occurrence, event_histories,
};
pub use judge::{ApprovalRule, MachineName, Observations, UntestedRule, VerdictRules, judge};
pub use sentences::{after_words, count_words};
pub use verdict::{EventVerdict, Finding, Verdict};
