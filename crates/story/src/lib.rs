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

mod backend;
mod check;
mod error;
mod line_reader;
mod parse;
mod rules_backend;
mod runner;
mod statement;
mod transcript;

pub use backend::{Backend, BackendError, ClockStep};
pub use error::StoryError;
pub use parse::parse;
pub use rules_backend::RulesBackend;
pub use runner::{run, run_on};
pub use statement::Story;
pub use transcript::Transcript;

/// Lines in one story.
pub const LINES_MAX: usize = 2_000;

/// Bytes in one line of a story.
pub const LINE_BYTES_MAX: usize = 500;
