//! Commands by name: their form, and their translation into commands of the rules. Each name is looked up here.

pub(crate) mod check;
pub(crate) mod entry;
pub(crate) mod find;
pub(crate) mod limits;
pub(crate) mod named;
pub(crate) mod object;
pub(crate) mod resolve;
pub mod schema;
pub(crate) mod terms;
pub(crate) mod upgrade;

pub use check::ControlCharacter;
pub use entry::{
    ApproveWord, Eviction, HostEntry, InstanceEntry, MachineEntry, OrchestrationWord, PolicyEntry,
    ScaleSetEntry, SetEntry, Site, VmEntry,
};
pub use entry::{notices, spot};
pub use find::{
    Unknown, find_event, find_host, find_machine, find_scale_set, find_tenant, full_name, similar,
};
pub use limits::{ADDRESSES_MAX, TAG_CHARS_MAX, TAGS_MAX};
pub use named::{
    ClockOrder, EventSelection, FailureWord, NamedCommand, SPEED_MAX, SettingsChange, SiteChange,
    UnenrolledWord,
};
pub use resolve::{BadCommand, MachineDetails, MachineDetailsChange, Resolved, ResourceGroupRef};
pub use terms::{
    AllWord, AnyWord, BadTerms, ConfirmWord, HealthWord, HostSelection, NotAWindow, RolloutEntry, TermsEntry,
    WindowEntry, WindowSelection, WorkWord, ZoneSelection,
};
pub use upgrade::{BadBatch, RollingEntry, UpgradeWord};
