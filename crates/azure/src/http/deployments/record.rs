//! The record of a deployment, and its progress.
//!
//! A deployment runs in one process, which knows its running deployments. In a realm, the record names that process:
//! other servers take the deployment for running as long as the process is live and has not recorded the end.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forewarn_control::ControlState;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resources::{OperationResult, Resource};
use forewarn_lifecycle::Timestamp;
use forewarn_server::{ControlHandle, ServerProcess};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::owner::shown_id;
use crate::ArmError;
use crate::deployment::{DeploymentView, Progress, failure, operation, show};

/// Record of a deployment, running or ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Record {
    /// Number of its run: see [`RunningDeployment`].
    run: u64,
    /// The process that runs it, in a realm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<ServerProcess>,
    began: i64,
    /// End, in milliseconds; none while it runs.
    ended: Option<i64>,
    /// Its steps, in order.
    pub(super) steps: Vec<DeploymentStep>,
    /// The error that ended it.
    error: Option<Value>,
}

/// Write of one resource.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct DeploymentStep {
    pub(super) resource: String,
    /// The operation that ends when the resource is as wanted, if there is one.
    pub(super) operation: Option<String>,
    /// The error of the write.
    pub(super) error: Option<Value>,
    pub(super) at: i64,
}

/// Progress, and the error of a failure.
pub(super) type DeploymentState = (Progress, Option<Value>);

impl Record {
    /// The record of a new deployment on a server. It is running as long as its [`RunningDeployment`] exists.
    pub(super) fn begun(control: &ControlHandle) -> (Self, RunningDeployment) {
        let (live, process) = (RunningDeployment::new(), control.process());
        let began = control.clock().now().wall.millis();
        (Self { run: live.0, process, began, ended: None, steps: Vec::new(), error: None }, live)
    }

    /// Beginning of the deployment.
    pub(super) fn began(&self) -> Timestamp {
        Timestamp::from_millis(self.began)
    }

    /// The process that runs it, in a realm.
    #[cfg(test)]
    pub(super) fn process(&self) -> Option<&ServerProcess> {
        self.process.as_ref()
    }

    /// Returns true if the other record is one of the same run.
    pub(super) fn is_same_run(&self, other: &Self) -> bool {
        (self.run, &self.process) == (other.run, &other.process)
    }

    /// The record of an ended deployment.
    pub(super) fn over(mut self, at: Timestamp, error: Option<&ArmError>) -> Self {
        self.ended = Some(at.millis());
        self.error = error.map(ArmError::inner);
        self
    }

    /// The record of an entry.
    pub(super) fn of(entry: &Resource) -> Option<Self> {
        serde_json::from_slice(&entry.notes.0).ok()
    }

    /// The record as JSON, for the entry.
    pub(super) fn notes(&self) -> Value {
        serde_json::to_value(self).unwrap_or_else(|_| json!({}))
    }

    /// The deployment is running in this process, or in that of another server.
    pub(super) fn is_underway(&self, control: &ControlHandle) -> bool {
        let runs_here = || live().contains(&self.run);
        let elsewhere = self.process.as_ref().filter(|process| control.process().as_ref() != Some(process));
        self.ended.is_none() && elsewhere.map_or_else(runs_here, |process| control.is_live(process))
    }

    /// Returns true if an error has ended it.
    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    /// Progress of the deployment.
    pub(super) fn standing(
        &self,
        control: &ControlHandle,
        state: &ControlState,
        id: &ResourceId,
    ) -> DeploymentState {
        if self.is_underway(control) {
            return (Progress::Running, None);
        }
        if let Some(error) = &self.error {
            return (Progress::Failed, Some(error.clone()));
        }
        if self.ended.is_none() {
            let cause = ArmError::new(
                409,
                "DeploymentInterrupted",
                "The server was stopped meanwhile. Deploy again.",
            );
            return (Progress::Failed, Some(failure(id, cause).inner()));
        }
        let steps: Vec<_> = self.steps.iter().map(|step| step.standing(state)).collect();
        let has = |wanted: Progress| steps.iter().find(|(progress, _)| *progress == wanted);
        if has(Progress::Running).is_some() {
            return (Progress::Running, None);
        }
        match has(Progress::Failed).or_else(|| has(Progress::Canceled)) {
            Some((progress, error)) => {
                let mut shown = failure(id, ArmError::new(409, "", "")).inner();
                shown["details"] = json!([error]);
                (*progress, Some(shown))
            }
            None => (Progress::Succeeded, None),
        }
    }

    /// The steps as clients see them.
    pub(super) fn operations(&self, state: &ControlState, id: &ResourceId) -> Vec<Value> {
        let shown = |(number, step): (usize, &DeploymentStep)| {
            let (progress, error) = step.standing(state);
            let at = Timestamp::from_millis(step.at);
            let resource = ResourceId::parse(&step.resource)?;
            Some(operation(id, number, &resource, (progress, at, error.as_ref())))
        };
        self.steps.iter().enumerate().filter_map(shown).collect()
    }
}

impl DeploymentStep {
    fn standing(&self, state: &ControlState) -> DeploymentState {
        if let Some(error) = &self.error {
            return (Progress::Failed, Some(error.clone()));
        }
        // Operations that ended long ago are forgotten.
        let operation = self.operation.as_ref().and_then(|name| state.operation(name));
        let Some(operation) = operation else { return (Progress::Succeeded, None) };
        if operation.is_open() {
            return (Progress::Running, None);
        }
        match &operation.result {
            OperationResult::Succeeded => (Progress::Succeeded, None),
            OperationResult::Canceled => {
                let message = "An operator has cancelled the operation.";
                (Progress::Canceled, Some(ArmError::new(409, "OperationCanceled", message).inner()))
            }
            OperationResult::Failed { code, message } => {
                (Progress::Failed, Some(ArmError::new(409, code.clone(), message.clone()).inner()))
            }
        }
    }
}

/// A deployment as clients see it.
pub(super) fn shown(
    control: &ControlHandle,
    state: &ControlState,
    now: Timestamp,
    entry: &Resource,
) -> Option<(Value, DeploymentState)> {
    let (id, record) = (shown_id(&ResourceId::parse(&entry.id)?), Record::of(entry)?);
    let stored: Value = serde_json::from_slice(&entry.body.0).ok()?;
    let standing = record.standing(control, state, &id);
    let shown = show(&DeploymentView {
        id: &id,
        stored: &stored,
        progress: standing.0,
        began: record.began(),
        until: record.ended.map_or(now, Timestamp::from_millis),
        error: standing.1.as_ref(),
    });
    Some((shown, standing))
}

/// A running deployment of this process. It stops being one when this is dropped; another process does
/// not continue it.
#[derive(Debug)]
pub(super) struct RunningDeployment(u64);

impl RunningDeployment {
    fn new() -> Self {
        // Random: no other run has this number, also not in another process.
        let number = RandomState::new().hash_one("deployment");
        live().insert(number);
        Self(number)
    }
}

impl Drop for RunningDeployment {
    fn drop(&mut self) {
        live().remove(&self.0);
    }
}

fn live() -> MutexGuard<'static, BTreeSet<u64>> {
    static LIVE: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// promise: Z4
    #[tokio::test]
    async fn an_abandoned_deployment_has_failed() {
        let id = ResourceId::parse(
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Resources/deployments/d",
        );
        let (id, state) = (id.unwrap(), ControlState::new(forewarn_lifecycle::Seed([0; 16])));
        let control =
            ControlHandle::simulated(forewarn_lifecycle::Seed([0; 16]), crate::http::tests::clock());
        let (record, live) = Record::begun(&control);
        assert!(record.is_underway(&control));
        assert_eq!(record.standing(&control, &state, &id), (Progress::Running, None));
        drop(live);
        let (progress, error) = record.standing(&control, &state, &id);
        assert_eq!((progress, record.is_underway(&control)), (Progress::Failed, false));
        assert_eq!(error.unwrap()["details"][0]["code"], "DeploymentInterrupted");
        let over = record.over(Timestamp::from_millis(2_000), None);
        assert_eq!(over.standing(&control, &state, &id), (Progress::Succeeded, None));
    }
}
