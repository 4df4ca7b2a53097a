//! Maintenance mode of hosts in its written form.

use std::num::NonZeroU16;

use forewarn_lifecycle::{HostOperation, HostWork, Leaving, StepWish};
use forewarn_types::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::host_work::{HostWorkError, StepOptions, is_false};
use crate::command::object::objects;
use crate::command::schema;

/// Maintenance mode of a host: how its machines leave, and the step on the empty host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct MaintenanceEntry {
    /// The host.
    #[schemars(with = "schema::Name")]
    pub host: String,
    /// The way in which its machines leave; live if absent.
    #[serde(default, rename = "move")]
    pub leaving: LeavingWord,
    /// The work on the empty host, for the driver and for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::WorkText>")]
    pub work: Option<String>,
    /// The kind of work on the empty host: an update if only `work` is given. Without both, the host has no step, or
    /// the one that an earlier command asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<HostStepWord>,
    /// True if the host has no step, also if an earlier command asked for one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_work: bool,
    /// Announced length of the interruption: 1 second to 18 hours; the usual one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Interruption>")]
    pub duration: Option<Span>,
}

objects! { MaintenanceEntry }

/// The way in which machines leave a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LeavingWord {
    /// Moved live.
    #[default]
    Live,
    /// Redeployed.
    Redeploy,
    /// Stopped; they stay on the host.
    Stop,
}

/// The step on an empty host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostStepWord {
    /// It is updated.
    Update,
    /// It is restarted.
    Reboot,
}

impl From<LeavingWord> for Leaving {
    fn from(word: LeavingWord) -> Self {
        match word {
            LeavingWord::Live => Self::Live,
            LeavingWord::Redeploy => Self::Redeploy,
            LeavingWord::Stop => Self::Stop,
        }
    }
}

impl From<Leaving> for LeavingWord {
    fn from(leaving: Leaving) -> Self {
        match leaving {
            Leaving::Live => Self::Live,
            Leaving::Redeploy => Self::Redeploy,
            Leaving::Stop => Self::Stop,
        }
    }
}

impl MaintenanceEntry {
    /// Maintenance mode of that host, with all else as usual.
    #[must_use]
    pub fn of(host: String) -> Self {
        Self { host, ..Self::default() }
    }

    /// The step on the empty host, and the announced length of the interruption.
    pub(crate) fn step(&self) -> Result<(StepWish, Option<NonZeroU16>), HostWorkError> {
        let operation = match self.kind {
            Some(HostStepWord::Update) | None => HostOperation::Update,
            Some(HostStepWord::Reboot) => HostOperation::Reboot,
        };
        let options = StepOptions { work: self.work.as_deref(), no_work: false, duration: self.duration };
        let task = options.task(HostWork::Maintenance { leaving: self.leaving.into(), operation })?;
        let text = task.step.and_then(|step| step.text);
        let is_asked = self.work.is_some() || self.kind.is_some();
        let wish = match (self.no_work, is_asked) {
            (true, _) => StepWish::Declined,
            (false, true) => StepWish::Asked { operation, text },
            (false, false) => StepWish::Unchanged,
        };
        Ok((wish, task.seconds))
    }
}
