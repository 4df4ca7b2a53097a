//! The shell around the rules. A library.
//!
//! ```text
//!    VM ──HTTP──▶ metadata ┐                                    ┌─▶ store      (durable first)
//!                          ├─▶ driver ──▶ lifecycle ──▶ changes ┤
//!  operator ───▶ operator  ┘  (1 task)    decide/evolve         └─▶ hands      (then act)
//!                     ▲                                               │
//!                     └──────── published documents ◀─────────────────┘  completion returns as a command
//! ```
//!
//! One task owns the state. What was answered, published or done is in the journal. A read never touches the driver.

mod api_door;
mod arm;
mod arm_door;
mod base64url;
mod boot;
mod clients;
mod clock;
mod clock_watch;
mod descriptors;
mod directory;
mod driver;
mod engine;
mod instance;
mod journal;
mod load;
pub mod metadata;
pub mod operator;
mod polls;
mod published;
mod refused_entry;
mod roster;
mod service;
mod snapshot;
mod socket_file;
mod telemetry;
mod throttle;
pub mod tls;
mod webhooks;

pub use api_door::ApiDoor;
pub use arm::{ArmPlan, Credentials};
pub use clients::ClientLimits;
pub use clock::{CLOCK_END, Clock, ClockPlan, Kind, Speed};
pub use descriptors::{Descriptors, OpenConnections};
pub use directory::{Caller, Directory};
pub use driver::ClockCommand;
pub use engine::{Engine, Hypervisor};
pub use published::{Prepared, Published, SERVER, Slot};
pub use roster::Roster;
pub use snapshot::{Polls, Snapshot, State};
pub use service::{Adjustable, Plan, Service, StartError, engine_with};
pub use telemetry::Telemetry;
pub use webhooks::WebhookSettings;
