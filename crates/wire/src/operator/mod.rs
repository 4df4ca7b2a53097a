//! What operators and the server say to each other: commands by name, the fleet file, and what is shown.
//!
//! The rules know numbers; people know names. Here a [`NamedCommand`] becomes a command of the rules, and the state of a
//! cluster becomes views that can be printed. The operator API, the command line, fleet files and stories all speak this
//! one language, so a machine that cannot be found is not found in the same words everywhere.
//!
//! ```text
//!   fleet file ──▶ Fleet ──difference──▶ NamedCommand ──resolve(&Cluster)──▶ Command
//!   Cluster ──▶ views (hosts, machines, tenants, events), and back to a Fleet
//! ```
//!
//! ```
//! use forewarn_wire::operator::NamedCommand;
//!
//! let restart: NamedCommand = serde_json::from_str(r#"{"command":"restart","machine":"web_0"}"#)?;
//! assert_eq!(restart, NamedCommand::Restart { machine: "web_0".to_owned() });
//! # Ok::<_, serde_json::Error>(())
//! ```

mod access;
mod bounds;
mod check;
mod command;
mod difference;
mod entry;
mod explain;
mod failure;
mod find;
mod fleet;
mod growth;
mod happening;
mod notice;
mod object;
mod outcome;
mod preview;
mod resolve;
mod rollout;
mod scalein;
mod scaleset;
pub mod schema;
mod sets;
mod spread;
mod terms;
#[cfg(test)]
pub(crate) mod town;
mod trail;
mod upgrade;
mod view;
mod webhook;

pub use access::{
    BrakeView, BrakeWord, ClusterChange, ClusterView, IssuedToken, NewCluster, NewToken, RoleWord,
    SettingsView, TokenView, cluster_view, settings_view,
};
pub use bounds::{COMMAND_BYTES_MAX, NAMES_PER_ENTRY_MAX};
pub use check::ControlCharacter;
pub use command::{
    ClockOrder, FailureWord, NamedCommand, SPEED_MAX, SettingsChange, SiteChange, UnenrolledWord,
};
pub use difference::{Difference, Unmentioned, difference};
pub use entry::{
    ApproveWord, Eviction, HostEntry, InstanceEntry, MachineEntry, OrchestrationWord, PolicyEntry,
    ScaleSetEntry, SetEntry, Site, VmEntry,
};
pub(crate) use entry::{notices, spot};
pub use explain::{
    ApprovalView, AskedView, Azure, Chronicle, ComingView, EventExplanation, Explained, FateView,
    MachineExplanation, Onlooker, Poll, PollView, RefusedView, Resource, ScaleSetExplanation, Scene, Step,
    Wanted, explain_event, explain_machine, explain_scale_set,
};
pub use failure::{FAILURES_MAX, FailureView};
pub use find::{
    Unknown, find_event, find_host, find_machine, find_scale_set, find_tenant, full_name, pick_machine,
    pick_tenant, similar,
};
pub use fleet::{BadFleet, FLEET_BYTES_MAX, Fleet, fleet_of};
pub use happening::{Happening, happening};
pub use outcome::{Outcome, outcome};
pub use preview::{CourseView, NoPreview, PreviewView, StepView, TenantStepView, preview};
pub use resolve::{
    ADDRESSES_MAX, BadCommand, Details, DetailsChange, Home, Resolved, TAG_CHARS_MAX, TAGS_MAX,
};
pub use rollout::{RolloutView, rollout_view};
pub use scalein::{ScaleIn, ScaleInRule, pick_for_scale_in};
pub(crate) use scaleset::instances;
pub use scaleset::{
    BadWish, DeleteInstances, INSTANCES_MAX, NewScaleSet, PolicyChange, Scale, ScaleSetChange, Upgrade, Wish,
    leaving, scale,
};
pub use sets::{
    AvailabilitySetSummary, AvailabilitySetView, InstanceView, MemberView, ScaleSetSummary, ScaleSetView,
    availability_set_summary, availability_set_view, scale_set_summary, scale_set_view,
};
pub use spread::{FAULT_DOMAINS, Place, UPDATE_DOMAINS, Whereabouts, place_machine};
pub use terms::{
    AllWord, BadTerms, ConfirmWord, HealthWord, HostSelection, NotAWindow, RolloutEntry, TermsEntry,
    WindowEntry, WorkWord, ZoneSelection,
};
pub use trail::{AuditPage, BrokenLink, Chain, ENTRY_BYTES_MAX, Subject, Told, TrailEntry, cluster_key};
pub use upgrade::{BadBatch, RollingEntry, UpgradeWord};
pub use view::{
    ClockView, DifferenceState, DifferenceView, EndedView, Ending, EventView, FleetReport, HostView, Items,
    MachineView, ServerView, TenantView, Unfinished, clock_view, event_view, host_view, machine_view,
    tenant_view,
};
pub use webhook::{KindWord, NewWebhook, SchemaWord, TestOrder, WebhookState, WebhookTest, WebhookView};
