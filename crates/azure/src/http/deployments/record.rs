//! The record of a deployment, and its progress.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forewarn_control::ControlState;
use forewarn_control::resource_id::ResourceId;
use forewarn_control::resources::{OperationResult, Resource};
use forewarn_lifecycle::Timestamp;
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
    /// The record of a new deployment. It is running as long as its [`RunningDeployment`] exists.
    pub(super) fn begun(at: Timestamp) -> (Self, RunningDeployment) {
        let live = RunningDeployment::new();
        (Self { run: live.0, began: at.millis(), ended: None, steps: Vec::new(), error: None }, live)
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

    /// The deployment is running in this process.
    pub(super) fn is_underway(&self) -> bool {
        self.ended.is_none() && live().contains(&self.run)
    }

    /// Progress of the deployment.
    pub(super) fn standing(&self, state: &ControlState, id: &ResourceId) -> DeploymentState {
        if self.is_underway() {
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
    state: &ControlState,
    now: Timestamp,
    entry: &Resource,
) -> Option<(Value, DeploymentState)> {
    let (id, record) = (shown_id(&ResourceId::parse(&entry.id)?), Record::of(entry)?);
    let stored: Value = serde_json::from_slice(&entry.body.0).ok()?;
    let standing = record.standing(state, &id);
    let shown = show(&DeploymentView {
        id: &id,
        stored: &stored,
        progress: standing.0,
        began: Timestamp::from_millis(record.began),
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
    #[test]
    fn an_abandoned_deployment_has_failed() {
        let id = ResourceId::parse(
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Resources/deployments/d",
        );
        let (id, state) = (id.unwrap(), ControlState::new(forewarn_lifecycle::Seed([0; 16])));
        let (record, live) = Record::begun(Timestamp::from_millis(1_000));
        assert!(record.is_underway());
        assert_eq!(record.standing(&state, &id), (Progress::Running, None));
        drop(live);
        let (progress, error) = record.standing(&state, &id);
        assert_eq!((progress, record.is_underway()), (Progress::Failed, false));
        assert_eq!(error.unwrap()["details"][0]["code"], "DeploymentInterrupted");
        let over = record.over(Timestamp::from_millis(2_000), None);
        assert_eq!(over.standing(&state, &id), (Progress::Succeeded, None));
    }
}
