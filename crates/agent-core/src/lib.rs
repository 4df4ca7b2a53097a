//! The decision logic of the agent inside a virtual machine.
//!
//! A [`Watcher`] takes inputs (a document, the result of a hook, the report of a peer, a retry, the passing of time) and returns
//! effects (run this hook, approve that event, undo). It performs none of them: it has no I/O, no clock, no randomness.
//! The same inputs always give the same effects.
//!
//! ```text
//!   document, hook result, peer report, time ──▶ Watcher ──▶ effects: run, stop, approve, log
//!                                                  │
//!                                                  └──▶ memory, stored before any effect is performed
//!
//!   an event of this machine:
//!   observed ──▶ scheduled hooks ──▶ ready ──▶ approved ──▶ started hooks ──▶ gone ──▶ completed hooks ─┐
//!                     └────────────── cancelled ──────────▶ cancelled hooks ───────────────────────────┤
//!                                                                      nothing else pending ──▶ undo ◀─┘
//! ```
//!
//! The caller must store the [`Memory`] durably before it performs the effects, report the result of each
//! [`Effect::Run`], and call [`Watcher::tick`] at [`Watcher::next_wake`].

mod advance;
mod approval;
mod condition;
mod effect;
mod event_case;
mod memory;
mod observation;
mod obstacle;
mod peers;
mod retry;
mod settings;
mod stage;
mod undo;
mod watcher;

pub use condition::{Condition, Mine};
pub use effect::{ApprovalResult, Effect, EventLogEntry, EventLogKind, HookOutcome, Run, Task};
pub use event_case::{Consent, EventCase, EventOutcome, HookProgress, HookState};
pub use memory::{Memory, PendingUndo};
pub use observation::{Observation, ObservedEvent, Status};
pub use obstacle::{ApprovalObstacle, AwaitedPeer, PeerState};
pub use peers::{PeerEventStatus, PeerReport, PeerStatus, PeersToPoll};
pub use settings::{Approval, Failure, Hook, Peers, Phase, Rule, Settings, Silence, Treatment};
pub use stage::Stage;
pub use watcher::Watcher;
