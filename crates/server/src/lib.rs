//! Server library: drivers, journal, clock, metadata endpoint, operator API, extensions and webhooks.
//!
//! ```text
//!    VM ──HTTP──▶ metadata ┐  (1 task per cluster)              ┌─▶ store      (durable first)
//!                          ├─▶ driver ──▶ lifecycle ──▶ changes ┤
//!  operator ───▶ operator  ┘              decide/evolve         └─▶ hypervisor (then act)
//!                     ▲                                               │
//!                     └──────── published documents ◀─────────────────┘  completion returns as a command
//! ```
//!
//! One task owns the state of a cluster; another one owns the state that clusters share. Results are journaled before
//! they are answered, published or carried out. A read never waits for a driver.

mod api_listener;
mod approvals;
mod boot;
mod bound_extension;
mod broadcasts;
mod clients;
mod clock;
mod clock_driver;
mod clock_hold;
mod clock_policy;
mod clock_watch;
mod cluster_runtime;
mod clusters;
mod control_handle;
mod descriptors;
mod driver;
mod extension;
mod first_token;
mod fleet_loading;
mod gate;
mod host_reminder;
mod hypervisor;
mod impact_task;
mod initial_state;
mod instance;
mod journal;
mod log_length;
mod long_work;
mod message;
pub mod operator;
mod peer_polls;
mod publication;
mod realm;
mod realm_log;
mod realm_secrets;
mod rejections;
mod reopening;
mod replacement;
mod resource_groups;
mod role;
mod scheme;
mod service;
mod shared_driver;
mod snapshot;
mod stale;
mod start_error;
mod stream_thread;
mod supervisor;
mod telemetry;
pub mod tls;
mod unsettled;
mod webhooks;
mod work_times;

pub use forewarn_realm::{
    CallTimes, Engine, EtcdEngine, Keyspace, REALM_SPEED_MAX, Realm, RealmCompleteness, VersionVerdict,
};

pub use api_listener::{ApiListener, issue_token};
pub use clients::{
    ClientLimits, ConnectionRefusal, RefusalFormat, TooManyConnections, authenticate_connection,
};
pub use clock::{CLOCK_END, Clock, ClockKind, ClockPlan, Speed};
pub use control_handle::ControlHandle;
pub use descriptors::{Descriptors, OpenConnections};
pub use extension::{
    ExtensionApi, ExtensionError, ExtensionMount, ExtensionRoutes, ExtensionRoutesRef, ExtensionSettings,
    HttpExtension, TlsListener,
};
pub use fleet_loading::{admit_fleet_if_empty, control_with_fleet};
pub use hypervisor::{HostWorker, Hypervisor, MachineDriver, REMINDER};
pub use log_length::LogLimits;
pub use message::ClockCommand;
pub use realm::{
    AcceptanceError, AcceptanceReport, MigrationError, MigrationReport, RealmPlan, RestoredRealm,
    ServerProcess, StreamLoss, UnsafeVersion, cancel_migration, migrate,
};
pub use rejections::{REJECTED_RESOURCES_MAX, RecentRejections};
pub use replacement::{ReplaceError, ServerState};
pub use resource_groups::{ResourceGroup, group_in_cluster, group_of, groups_with_id, is_removed};
pub use scheme::Scheme;
pub use service::{Adjustable, Plan, Service};
pub use snapshot::{Polls, Snapshot, State};
pub use stale::STALE;
pub use start_error::StartError;
pub use telemetry::Telemetry;
pub use webhooks::WebhookSettings;
