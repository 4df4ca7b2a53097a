//! The language of stories: what happens to a fleet, told line by line, and what its machines see of it.
//!
//! A story is a text. It sets up a fleet, lets things happen at times of its own clock, and says what it expects. Running
//! it gives a [`Transcript`]: every document that any machine could have read, and what became of the machines. [`run`]
//! plays a story against the pure rules: fifteen minutes of notice take no time. [`play`] plays it on any [`Stage`], and gives
//! the same transcript.
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
//!                                Stage: the pure rules, or a running server
//! ```

mod check;
mod error;
mod parse;
mod play;
mod rules;
mod stage;
mod statement;
mod transcript;
mod words;

pub use error::Mistake;
pub use parse::parse;
pub use play::{play, run};
pub use rules::Rules;
pub use stage::{ClockStep, Stage, Undone};
pub use statement::Story;
pub use transcript::Transcript;

/// Lines in one story.
pub const LINES_MAX: usize = 2_000;

/// Bytes in one line of a story.
pub const LINE_BYTES_MAX: usize = 500;
