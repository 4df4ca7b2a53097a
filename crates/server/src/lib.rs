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
mod boot;
mod clients;
mod clock;
mod clock_watch;
mod descriptors;
mod directory;
mod driver;
mod engine;
mod extension;
mod instance;
mod journal;
mod load;
pub mod metadata;
pub mod operator;
mod polls;
mod published;
mod refused_entry;
mod rejections;
mod resource_groups;
mod roster;
mod service;
mod snapshot;
mod socket_file;
mod stale;
mod telemetry;
mod throttle;
pub mod tls;
mod webhooks;

pub use api_door::{ApiDoor, issue_token};
pub use clients::{ClientLimits, ConnectionRefusal, RefusalFormat};
pub use clock::{CLOCK_END, Clock, ClockPlan, Kind, Speed};
pub use descriptors::{Descriptors, OpenConnections};
pub use directory::{Caller, Directory};
pub use driver::ClockCommand;
pub use engine::{Engine, Hypervisor};
pub use extension::{
    ExtensionApi, ExtensionError, ExtensionMount, ExtensionRoutes, ExtensionRoutesRef, ExtensionSettings,
    HttpExtension, Scheme, TlsListener,
};
pub use published::{Prepared, Published, SERVER, Slot};
pub use rejections::{REJECTED_RESOURCES_MAX, RecentRejections};
pub use resource_groups::{ResourceGroup, group_in_cluster, group_of, groups_with_id, is_removed};
pub use roster::Roster;
pub use service::{Adjustable, Plan, Service, StartError, admit_fleet_if_empty, engine_with};
pub use snapshot::{Polls, Snapshot, State};
pub use stale::STALE;
pub use telemetry::Telemetry;
pub use webhooks::WebhookSettings;
