//! The rules of Scheduled Events, and nothing else.
//!
//! Decides about the announcement, the approval, the start and the end of events. No I/O, no tasks, no clock, no
//! randomness: the same inputs give the same outputs, on every replica and in every test.
//!
//! ```text
//!   Command ──▶ decide(&self, now) ──▶ Change ──▶ evolve(&mut self) ──▶ Effect
//!               reads, may refuse      (journal)   writes, cannot fail   (once durable)
//! ```
//!
//! The unit of ownership is the [`Cluster`]: a set of hosts and the tenants placed on them. No rule needs two clusters.
//! The caller must do four things: apply every returned change, in order; perform effects only after their changes are
//! durable; while [`Cluster::next_deadline`] is due, answer every tenant of [`Cluster::silences_due`] with
//! [`Command::Heard`] or [`Command::Silent`]; and otherwise repeat [`Command::Tick`]. [`simulator`] has such a loop.
//!
//! ```
//! use forewarn_lifecycle::*;
//!
//! let mut cluster = Cluster::new(Seed([7; 16]));
//! let mut now = Now::at_millis(0);
//! let mut submit = |now, command| {
//!     let changes = cluster.decide(now, &command)?;
//!     changes.iter().for_each(|change| drop(cluster.evolve(now, change)));
//!     Ok::<_, Refusal>(cluster.clone())
//! };
//! submit(now, Command::AdmitHost { name: Name::new("h1").unwrap(), zone: None, capacity: Size::NONE })?;
//! submit(now, Command::AdmitStandalone {
//!     name: Name::new("solo").unwrap(),
//!     placement: Placement { host: HostId(0), update_domain: UpdateDomain(0), fault_domain: FaultDomain(0), size: Size::NONE },
//!     priority: Priority::Regular,
//!     profile: Profile::default(),
//!     policy: Policy::default(),
//! })?;
//! submit(now, Command::Enrol(TenantId(0)))?;
//! let after = submit(now, Command::Restart(MachineId(0)))?;
//! let event = &after.tenant(TenantId(0)).unwrap().events()[0];
//! assert_eq!(event.announcement.kind, EventKind::Reboot);
//! assert!(event.is_scheduled());
//! # Ok::<_, Refusal>(())
//! ```

#![warn(missing_docs)]

mod action;
mod agenda;
mod capacity;
mod capacity_rows;
mod change;
mod cluster;
mod cluster_windows;
mod command;
mod common_hours;
mod decide;
mod evolve;
mod fence;
mod fleet;
mod health_gate;
mod host_mode;
mod host_step;
pub mod limits;
mod maintenance;
mod mode_progress;
mod name_index;
mod notice;
pub mod paged;
mod part_ends;
mod parts;
mod percent;
mod placement;
mod policy;
mod reads;
mod refusal;
mod rollout;
mod room;
mod row_ids;
mod rows;
mod shared_announcement;
mod simulated_machines;
pub mod simulator;
mod table;
mod tenant;
mod tenant_windows;
mod time_zone;
mod waiting_events;
mod waiting_hosts;
mod window;

pub use action::{Action, Impact, Report};
pub use agenda::{Attention, Deadline};
pub use capacity::{Amount, HostRoom, Size, memory_text};
pub use change::{Change, Effect};
pub use cluster::{Cluster, Counters, FormerSeed};
pub use command::{Command, Exposure, PlannedWork, SetShape};
pub use fleet::{
    EvictionPolicy, Fence, Health, Host, HostAttention, Machine, Orchestration, OsImageNotice, Placement,
    Power, Priority, Profile, ResourceKind, ScaleSet, TerminateNotice, UpgradePolicy,
};
pub use forewarn_types::{
    ActionName, Announcement, Approval, Approver, BadName, Event, EventId, EventKind, EventSource,
    FaultDomain, HostId, MachineId, MaintenanceId, Name, Now, Phase, Reason, RolloutId, ScaleSetId, Seed,
    StartCause, Steady, TenantId, Timestamp, UpdateDomain, Zone,
};
pub use host_mode::{GuestReturn, MaintenanceMode, ModeProgress, ModeStep, StepWish};
pub use host_step::{
    Aside, HostOperation, HostPhase, HostStep, HostTask, HostWork, Leaving, Readiness, ReturnWay, Steps,
    Target, WorkText,
};
pub use maintenance::{Cause, Hold, Maintenance, Plan, PowerChange, Stage, Wait, Withdrawal};
pub use notice::minimum_notice;
pub use parts::{Part, Parts};
pub use percent::Percent;
pub use policy::{Approve, Brake, EnrolmentRule, FailureKind, Policy, Settings, Unenrolled};
#[cfg(debug_assertions)]
pub use reads::reads;
pub use refusal::Refusal;
pub use rollout::{
    Announced, Confirm, EndedRollout, FaultDomains, HealthGate, HostResult, Obstacle, Pause, Presence,
    Rollout, RolloutEnd, RolloutTerms, Standing,
};
pub use rows::{BadRows, Head, HostRow, MachineRow, Restoring, Row, TenantRow};
pub use simulated_machines::SimulatedMachines;
pub use tenant::{Enrolment, Shape, Tenant};
pub use tenant_windows::WindowOwner;
pub use time_zone::{OffsetChange, TimeZone};
pub use waiting_hosts::WaitingHosts;
pub use window::{Weekdays, Window};
