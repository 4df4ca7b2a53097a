//! Commands by name: their form, and their translation into commands of the rules. Each name is looked up here.

pub(crate) mod check;
pub(crate) mod enrolment;
pub(crate) mod entry;
pub(crate) mod host_mode;
pub(crate) mod host_work;
pub(crate) mod limits;
pub(crate) mod lookup;
pub(crate) mod machine_details;
pub(crate) mod named;
pub(crate) mod object;
pub(crate) mod resolve;
pub mod schema;
pub(crate) mod size;
pub(crate) mod terms;
pub(crate) mod time_zone;
pub(crate) mod upgrade;
pub(crate) mod window;

pub use check::ControlCharacterError;
pub use enrolment::EnrolmentWord;
pub use entry::{
    ApproveWord, Eviction, HostEntry, InstanceEntry, MachineEntry, OrchestrationWord, PlacementEntry,
    PolicyEntry, ScaleSetEntry, SetEntry, Site, VmEntry,
};
pub use entry::{notices, spot};
pub use host_mode::{HostStepWord, LeavingWord, MaintenanceEntry};
pub use host_work::{HostWorkEntry, HostWorkError};
pub use limits::{ADDRESSES_MAX, TAG_CHARS_MAX, TAGS_MAX};
pub use lookup::{
    LookupError, find_event, find_host, find_machine, find_scale_set, find_tenant, full_name,
    machine_if_known, similar,
};
pub use machine_details::{MachineDetails, MachineDetailsChange, ResourceGroupRef};
pub use named::{
    ClockChange, EventSelection, FailureWord, NamedCommand, SPEED_MAX, SettingsChange, SiteChange,
    UnenrolledWord,
};
pub use resolve::{CommandError, Resolved};
pub use size::{Memory, NotMemory, cpus_and_memory};
pub use terms::{
    AllWord, AnyWord, ConfirmWord, HealthWord, HostSelection, RolloutEntry, TermsEntry, TermsError,
    WindowSelection, WorkWord, ZoneSelection,
};
pub use time_zone::TimeZoneError;
pub use upgrade::{BatchSizeError, RollingEntry, UpgradeWord};
pub use window::{WindowEntry, WindowError};
