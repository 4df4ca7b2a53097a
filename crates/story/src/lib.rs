//! The language of stories: statements about a fleet, and the documents that its machines read.
//!
//! A story is a text. It sets up a fleet, performs operations at times of its own clock, and checks expectations.
//! Running it gives a [`Transcript`]: every document that a machine could have read, and the final state of the
//! machines. [`run`] runs a story against the pure rules: fifteen minutes of notice take no time. [`run_on`] runs it on
//! any [`Backend`], and gives the same transcript.
//!
//! ```
//! let text = "\
//! host h1
//! vm solo on h1
//! poll solo
//! at 10s  restart solo
//! expect  solo Scheduled
//! at 30s  approve solo by solo
//! expect  solo Started
//! at 5m   expect solo nothing
//! ";
//! let story = forewarn_story::parse(text).unwrap();
//! let transcript = forewarn_story::run(&story).unwrap();
//! assert!(transcript.to_string().contains("Reboot"));
//! ```
//!
//! ```text
//!   text ──▶ parse ──▶ Story ──▶ play ──▶ Transcript
//!                                 │ ▲
//!                 commands by name│ │views, documents
//!                                 ▼ │
//!                                Backend: the pure rules, or a running server
//! ```

mod approvals;
mod audit_trail;
mod awaiting;
mod backend;
mod check;
mod error;
mod fleet_commands;
mod format;
pub mod library;
mod line_reader;
mod needs;
mod parse;
mod preflight;
mod program;
mod random;
pub mod record;
mod rules_audit;
mod rules_backend;
mod runner;
mod simulated_program;
mod statement;
mod step_recorder;
mod steps;
mod suggest;
mod transcript;

use forewarn_lifecycle::Timestamp;

pub use backend::{Backend, BackendError, ClockStep, Program, ProgramMode, TenantChanges};
pub use error::{StoryError, StoryFailure};
pub use fleet_commands::describes_fleet;
pub use format::format;
pub use needs::{NeedKind, StoryNeed};
pub use parse::{language_words, parse};
pub use rules_backend::RulesBackend;
pub use runner::{run, run_on};
pub use statement::Story;
pub use step_recorder::{CheckedExpectation, StepDocument, StepLimits, StoryStep};
pub use steps::{RunEnd, StoryRun, run_in_steps};
pub use transcript::Transcript;

/// The time at which every story begins, 2026-01-01T00:00:00Z: windows depend on it.
pub const BEGINNING: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// Lines in one story.
pub const LINES_MAX: usize = 2_000;

/// Bytes in one line of a story.
pub const LINE_BYTES_MAX: usize = 500;

/// Statements of a story after repetitions, including its variables and the rounds of its blocks.
pub const STATEMENTS_MAX: usize = 100_000;

/// Bytes of the lines of a story after repetitions.
const EXPANDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of one line with the values of its variables.
const EXPANDED_LINE_BYTES_MAX: usize = 2_000;

/// Blocks around a line.
const BLOCK_DEPTH_MAX: usize = 8;

/// Variables of a story.
const VARIABLES_MAX: usize = 1_000;
