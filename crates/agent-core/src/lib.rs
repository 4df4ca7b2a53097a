//! What an agent inside a virtual machine makes of the documents it reads, and nothing else.
//!
//! A watcher is told what there is (a document, how a hook ended, what a peer said, that time has passed) and says what is to be
//! done (run this hook, approve that event, undo). It does none of it: no I/O, no clock, no randomness, no operating system. The
//! same inputs give the same deeds, in every test and on every machine.
//!
//! ```text
//!   document, hook ended, peer heard, time ──▶ Watcher ──▶ deeds: run, stop, approve, note
//!                                                │
//!                                                └──▶ memory, which is kept before any deed is done
//!
//!   an event of this machine:
//!   seen ──▶ scheduled hooks ──▶ ready ──▶ approved ──▶ started hooks ──▶ gone ──▶ completed hooks ─┐
//!                 └────────────── cancelled ──────────▶ cancelled hooks ───────────────────────────┤
//!                                                                  nothing else pending ──▶ undo ◀─┘
//! ```
//!
//! What the caller owes: to keep the [`Memory`] durably before it does what it was told; to tell how each [`Deed::Run`] ended,
//! whatever became of it; and to call [`Watcher::tick`] at [`Watcher::next_wake`].

mod advance;
mod approval;
mod case;
mod condition;
mod deed;
mod memory;
mod peers;
mod seen;
mod settings;
mod undo;
mod watcher;

pub use case::{Case, Consent, Gone, Progress, State};
pub use condition::{Condition, Mine};
pub use deed::{Answer, Deed, Ending, Note, Run, Task, What};
pub use memory::{Memory, Owed};
pub use peers::{Asking, PeerReport, PeerWord, Stage, Standing};
pub use seen::{Seen, Sight, Status};
pub use settings::{Approval, Failure, Hook, Peers, Phase, Rule, Settings, Silence, Treatment};
pub use watcher::Watcher;
