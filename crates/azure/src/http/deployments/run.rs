//! Carries a deployment out: one resource after the other, each like a PUT of a client. Resources that were written
//! before a failure stay.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::resource_id::ResourceId;
use forewarn_control::{Denied, Permit};
use forewarn_server::State;
use forewarn_server::{ControlHandle, ResourceGroup};
use forewarn_types::Moment;
use serde_json::Value;

use super::record::{DeploymentStep, Record};
use crate::deployment::failure;
use crate::http::compute::{self, ComputeKind, Conditions, WriteMethod, WriteRequest};
use crate::http::opaque_resources::OpaqueWrite;
use crate::http::rejections::ChangeAttempt;
use crate::http::{errors, opaque_resources};
use crate::template::Expanded;
use crate::{ApiVersion, ArmError, Expand};

#[derive(Clone)]
pub(super) struct Run {
    pub(super) control: ControlHandle,
    pub(super) permit: Arc<Permit>,
    pub(super) group: ResourceGroup,
    /// The id of the deployment.
    pub(super) id: ResourceId,
    /// Version in which the template sees other resources.
    pub(super) version: ApiVersion,
    pub(super) expanded: Expanded,
    pub(super) record: Record,
}

/// Bodies of resources that the template has referred to; none for a resource that does not exist.
type ReadResources = BTreeMap<String, Option<Value>>;

/// Resources that one value may refer to.
const READS_MAX: usize = 1_000;

impl Run {
    /// Writes the resources until one fails. Returns the outputs.
    pub(super) async fn carry_out(mut self) -> (Record, Result<Value, ArmError>) {
        for position in 0..self.expanded.resources.len() {
            let id = self.expanded.resources[position].id.clone();
            let made = self.make(position, &id).await;
            let (operation, error) = match made {
                Ok(operation) => (operation, None),
                Err(refused) => (None, Some(refused)),
            };
            let at = self.control.clock().now().wall.millis();
            let shown = error.as_ref().map(ArmError::inner);
            self.record.steps.push(DeploymentStep { resource: id.to_string(), operation, error: shown, at });
            if let Some(refused) = error {
                self.remember(position, &id, &refused);
                let failed = failure(&self.id, refused.at_resource(&id));
                return (self.record, Err(failed));
            }
        }
        let outputs = self.outputs().await.map_err(|refused| failure(&self.id, refused));
        (self.record, outputs)
    }

    /// Plans every resource as a client that is limited to tenants would write it, and writes nothing: a template that
    /// concerns anything else is refused as a whole. Resources that belong to no tenant, to others or to nobody get one
    /// answer.
    pub(super) async fn plan_only(mut self) -> Result<(), ArmError> {
        for position in 0..self.expanded.resources.len() {
            let id = self.expanded.resources[position].id.clone();
            let planned = self.plan_one(position, &id).await;
            planned.map_err(|refused| refused.at_resource(&id))?;
        }
        Ok(())
    }

    async fn plan_one(&mut self, position: usize, id: &ResourceId) -> Result<(), ArmError> {
        let Some(kind) = ComputeKind::of(&id.kind()) else {
            return Err(errors::of_denied(&Denied::Tenants));
        };
        let request = self.write_request(position, kind, id).await?;
        let plan = move |state: &State<'_>| compute::plan_write(state, &request).map(drop);
        self.control.look(plan).map_err(|problem| errors::of_problem(&problem))?
    }

    async fn write_request(
        &mut self,
        position: usize,
        kind: ComputeKind,
        id: &ResourceId,
    ) -> Result<WriteRequest, ArmError> {
        let sent = self.body(position).await?;
        Ok(WriteRequest {
            permit: Arc::clone(&self.permit),
            group: self.group.clone(),
            kind,
            id: id.clone(),
            version: self.expanded.resources[position].api_version,
            sent,
            method: WriteMethod::Put,
            conditions: Conditions::default(),
        })
    }

    /// Writes one resource. Returns the operation that ends when the resource is as wanted, if there is one.
    async fn make(&mut self, position: usize, id: &ResourceId) -> Result<Option<String>, ArmError> {
        if let Some(kind) = ComputeKind::of(&id.kind()) {
            let request = self.write_request(position, kind, id).await?;
            let written = compute::write(&self.control, request).await?;
            return Ok(Some(written.operation.name));
        }
        let sent = self.body(position).await?;
        let version = self.expanded.resources[position].api_version;
        let (permit, conditions) = (Arc::clone(&self.permit), Conditions::default());
        let outermost = id.parts.first().map_or("", |(kind, _)| kind);
        if !opaque_resources::is_opaque(&id.namespace, outermost) {
            let message = format!(
                "Forewarn does not support resources of type '{}': it manages the lifecycle of machines only.",
                id.kind()
            );
            return Err(ArmError::new(400, "OperationNotSupported", message));
        }
        let change =
            OpaqueWrite { permit, id: id.clone(), version, sent, method: WriteMethod::Put, conditions };
        opaque_resources::write(&self.control, change).await?;
        Ok(None)
    }

    /// Remembers the rejection for explanations.
    fn remember(&self, position: usize, id: &ResourceId, refused: &ArmError) {
        let version = self.expanded.resources[position].api_version;
        if let Some(attempt) = ChangeAttempt::of_template(id, &self.permit, version) {
            let at = Moment(self.control.clock().now().wall);
            attempt.remember(self.control.rejections(), refused, at);
        }
    }

    async fn body(&mut self, position: usize) -> Result<Value, ArmError> {
        let mut read_resources = ReadResources::new();
        for _ in 0..READS_MAX {
            let (body, missing) = evaluate_with(&read_resources, |look| self.expanded.body(position, look));
            let Some(missing) = missing else { return body };
            self.read_resource(&mut read_resources, missing).await?;
        }
        Err(too_many_reads())
    }

    async fn outputs(&mut self) -> Result<Value, ArmError> {
        let mut read_resources = ReadResources::new();
        for _ in 0..READS_MAX {
            let (outputs, missing) = evaluate_with(&read_resources, |look| self.expanded.outputs(look));
            let Some(missing) = missing else { return outputs };
            self.read_resource(&mut read_resources, missing).await?;
        }
        Err(too_many_reads())
    }

    /// Reads a resource that a value refers to.
    async fn read_resource(
        &self,
        read_resources: &mut ReadResources,
        id: ResourceId,
    ) -> Result<(), ArmError> {
        let (key, version, permit) = (id.key(), self.version, Arc::clone(&self.permit));
        let group = self.group.clone();
        let look = move |state: &State<'_>| {
            // A resource of another group may be in another cluster.
            if id.group.key() != group.id.key() {
                return None;
            }
            let Some(kind) = ComputeKind::of(&id.kind()) else {
                // Opaque resources belong to no tenant.
                let is_limited = !permit.scope.tenants.is_all();
                return if is_limited { None } else { opaque_resources::shown(state, &id) };
            };
            let asker = (&*permit, version);
            let found = compute::find(state, asker, kind, &group, id.name())?;
            Some(compute::show(state, asker, &found, Expand::Nothing))
        };
        let shown = self.control.look(look).map_err(|problem| errors::of_problem(&problem))?;
        read_resources.insert(key, shown);
        Ok(())
    }
}

/// Evaluates a value with the resources read so far. Returns a resource that is missing, if there is one.
fn evaluate_with<T>(
    read_resources: &ReadResources,
    evaluate: impl FnOnce(&dyn Fn(&ResourceId) -> Option<Value>) -> T,
) -> (T, Option<ResourceId>) {
    let missing = RefCell::new(None);
    let value = evaluate(&|id: &ResourceId| match read_resources.get(&id.key()) {
        Some(shown) => shown.clone(),
        None => {
            missing.replace(Some(id.clone()));
            None
        }
    });
    (value, missing.into_inner())
}

fn too_many_reads() -> ArmError {
    ArmError::new(400, "InvalidTemplate", "The template refers to too many resources.")
}

/// Adds the resource to an error.
trait AtResource {
    fn at_resource(self, id: &ResourceId) -> Self;
}

impl AtResource for ArmError {
    fn at_resource(self, id: &ResourceId) -> Self {
        if self.target.is_some() { self } else { self.at(id.to_string()) }
    }
}
