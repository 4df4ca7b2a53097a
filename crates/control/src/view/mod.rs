//! Views: the state as operators see it.

pub(crate) mod access;
pub(crate) mod capacity;
pub mod deletion;
pub mod describe;
pub(crate) mod document;
pub(crate) mod failure;
pub(crate) mod fault;
pub(crate) mod fleet;
pub mod host_mode;
pub(crate) mod outcome;
pub(crate) mod pick;
pub(crate) mod realm;
pub(crate) mod rollout;
pub(crate) mod sets;
pub(crate) mod start;
pub(crate) mod webhook;

pub use access::{
    BrakeView, BrakeWord, CallerView, ClusterChange, ClusterView, IssuedToken, NewCluster, NewToken,
    RoleWord, SettingsView, TokenView, cluster_view, settings_view,
};
pub use capacity::RoomView;
pub use document::document_of;
pub use failure::{FAILURES_MAX, FailureView};
pub use fault::{BadFault, ClearedFaults, FaultView, NewFault};
pub use fleet::{
    ClockView, DifferenceState, DifferenceView, DriverKind, EndedView, Ending, EventView, FleetReport,
    HostView, Items, MachineView, ServerView, TenantView, Unfinished, clock_view, event_view, host_view,
    machine_view, tenant_view,
};
pub use host_mode::MaintenanceModeView;
pub use outcome::{Outcome, outcome};
pub use pick::{pick_machine, pick_tenant};
pub use realm::{
    ClusterMoveRequest, ClusterOwnerView, DrainChange, DrainWord, EngineMemberView, FormatChange,
    RealmServerView, RealmView, ServerStateWord, StreamView,
};
pub use rollout::{AwayView, RolloutView, rollout_view};
pub use sets::{
    InstanceView, MachineSetSummary, MachineSetView, MemberView, ScaleSetSummary, ScaleSetView,
    machine_set_summary, machine_set_view, scale_set_summary, scale_set_view,
};
pub use start::{SeesTenant, StartState, StartView, Unapproved, WorkNotice, event_progress};
pub use webhook::{NewWebhook, WebhookState, WebhookTest, WebhookTestRequest, WebhookView};
