//! Writes records of deployments.

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::Permit;
use forewarn_control::request::{RequestContext, ResourceWrite, Transaction};
use forewarn_control::resource_id::ResourceId;
use forewarn_lifecycle::Timestamp;
use forewarn_server::{ControlHandle, State};
use serde_json::{Value, json};

use super::owner::shown_id;
use super::record::{Record, RunningDeployment, shown};
use super::{active, interrupted};
use crate::ArmError;
use crate::deployment::Progress;
use crate::http::{errors, written};

/// Pause before another attempt to record the end of a deployment.
const PAUSE: Duration = Duration::from_secs(1);

/// Writes the record of a deployment.
#[derive(Clone)]
pub(super) struct Recorder {
    pub(super) control: ControlHandle,
    pub(super) permit: Arc<Permit>,
    pub(super) id: ResourceId,
}

/// The end of a deployment.
pub(super) struct DeploymentEnd {
    pub(super) at: Timestamp,
    pub(super) record: Record,
    pub(super) body: Value,
}

/// The first write of a deployment fails if one of the same name is running, the last one if another one has replaced it
/// meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteStage {
    First,
    Last,
}

impl Recorder {
    /// Records the beginning. Returns the body of the response to the PUT.
    pub(super) async fn begin(&self, record: &Record, body: &Value) -> Result<Value, ArmError> {
        self.write(record, body, WriteStage::First).await
    }

    /// Records the end. While the server cannot write, it tries again in the background: other servers of a realm take the
    /// deployment for running until its end is recorded.
    pub(super) async fn end(self, end: DeploymentEnd, live: RunningDeployment) -> Result<(), ArmError> {
        let recorded = self.try_end(&end).await;
        if recorded.as_ref().is_err_and(is_passing) {
            tokio::spawn(async move {
                let _live = live;
                loop {
                    tokio::time::sleep(PAUSE).await;
                    if !self.try_end(&end).await.is_err_and(|refused| is_passing(&refused)) {
                        return;
                    }
                }
            });
        }
        recorded
    }

    async fn try_end(&self, DeploymentEnd { at, record, body }: &DeploymentEnd) -> Result<(), ArmError> {
        let Err(refused) = self.write(record, body, WriteStage::Last).await else { return Ok(()) };
        if record.has_failed() || is_passing(&refused) {
            return Err(refused);
        }
        // Outputs that are too long to be stored are left out; the resources exist.
        let mut body = body.clone();
        body["outputs"] = json!({});
        self.write(&record.clone().over(*at, Some(&refused)), &body, WriteStage::Last).await.map(drop)
    }

    async fn write(&self, record: &Record, body: &Value, stage: WriteStage) -> Result<Value, ArmError> {
        let asked = match stage {
            WriteStage::First => {
                Some(json!({ "command": "write_resource", "resource": shown_id(&self.id).to_string() }))
            }
            WriteStage::Last => None,
        };
        // The end of a deployment is recorded even if its token was revoked meanwhile.
        let token = self.permit.context().token.filter(|_| stage == WriteStage::First);
        let context = RequestContext { asked, token, ..self.permit.context() };
        let (id, notes, body) = (self.id.clone(), written(&record.notes()), written(body));
        let plan = |state: &State<'_>| {
            let entry = state.all.resource(&id.key());
            let found = entry.and_then(Record::of);
            match stage {
                WriteStage::First => {
                    if found.is_some_and(|found| found.is_underway(&self.control)) {
                        return Err(active(&id));
                    }
                }
                WriteStage::Last => {
                    if found.is_none_or(|found| !found.is_same_run(record)) {
                        return Err(interrupted());
                    }
                }
            }
            let spelled = entry.map_or_else(|| id.to_string(), |entry| entry.id.clone());
            let (body, notes) = (body.clone(), notes.clone());
            let write = ResourceWrite::Put { id: spelled, link: None, body, notes };
            Ok((Transaction { writes: vec![write], ..Transaction::default() }, ()))
        };
        let transacted =
            self.control.transact(context, plan).await.map_err(|problem| errors::of_problem(&problem))?;
        transacted?;
        let look = |state: &State<'_>| {
            let entry = state.all.resource(&id.key())?;
            shown(&self.control, state.all, state.now.wall, entry)
        };
        let found = self.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
        let (mut shown, _) = found.ok_or_else(interrupted)?;
        shown["properties"]["provisioningState"] = json!(Progress::Accepted.word());
        Ok(shown)
    }
}

/// Returns true if another attempt may succeed.
fn is_passing(refused: &ArmError) -> bool {
    refused.status == 503
}
