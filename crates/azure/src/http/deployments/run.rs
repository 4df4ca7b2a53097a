//! Carries a deployment out: one resource after the other, each like a PUT of a client. Resources that were written before a
//! failure stay.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::Permit;
use forewarn_control::resource_id::ResourceId;
use forewarn_server::State;
use forewarn_server::{ControlHandle, ResourceGroup};
use forewarn_types::Moment;
use serde_json::Value;

use super::record::{Record, Step};
use crate::deployment::failure;
use crate::http::compute::{self, ComputeKind, Conditions, WriteMethod, WriteRequest};
use crate::http::opaque_resources::OpaqueWrite;
use crate::http::rejections::ChangeAttempt;
use crate::http::{errors, opaque_resources};
use crate::template::Expanded;
use crate::{ApiVersion, ArmError, Expand};

/// A running deployment.
pub(super) struct Run {
    pub(super) engine: ControlHandle,
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
type Seen = BTreeMap<String, Option<Value>>;

/// Resources that one value may refer to.
const LOOKS_MAX: usize = 1_000;

impl Run {
    /// Writes the resources until one fails. Returns the outputs.
    pub(super) async fn carry_out(mut self) -> (Record, Result<Value, ArmError>) {
        for place in 0..self.expanded.resources.len() {
            let id = self.expanded.resources[place].id.clone();
            let made = self.make(place, &id).await;
            let (operation, error) = match made {
                Ok(operation) => (operation, None),
                Err(refused) => (None, Some(refused)),
            };
            let at = self.engine.clock().now().wall.millis();
            let shown = error.as_ref().map(ArmError::inner);
            self.record.steps.push(Step { resource: id.to_string(), operation, error: shown, at });
            if let Some(refused) = error {
                self.remember(place, &id, &refused);
                let failed = failure(&self.id, refused.at_resource(&id));
                return (self.record, Err(failed));
            }
        }
        let outputs = self.outputs().await.map_err(|refused| failure(&self.id, refused));
        (self.record, outputs)
    }

    /// Writes one resource. Returns the operation that ends when the resource is as wanted, if there is one.
    async fn make(&mut self, place: usize, id: &ResourceId) -> Result<Option<String>, ArmError> {
        let sent = self.body(place).await?;
        let version = self.expanded.resources[place].api_version;
        let (permit, conditions) = (Arc::clone(&self.permit), Conditions::default());
        if let Some(kind) = ComputeKind::of(&id.kind()) {
            let (group, id) = (self.group.clone(), id.clone());
            let asked =
                WriteRequest { permit, group, kind, id, version, sent, method: WriteMethod::Put, conditions };
            let written = compute::write(&self.engine, asked).await?;
            return Ok(Some(written.operation.name));
        }
        let outermost = id.parts.first().map_or("", |(kind, _)| kind);
        if !opaque_resources::is_opaque(&id.namespace, outermost) {
            let message = format!(
                "Forewarn does not make resources of type '{}'. It is about the life of machines, and nothing besides.",
                id.kind()
            );
            return Err(ArmError::new(400, "OperationNotSupported", message));
        }
        let wish =
            OpaqueWrite { permit, id: id.clone(), version, sent, method: WriteMethod::Put, conditions };
        opaque_resources::write(&self.engine, wish).await?;
        Ok(None)
    }

    /// Remembers the rejection for explanations.
    fn remember(&self, place: usize, id: &ResourceId, refused: &ArmError) {
        let version = self.expanded.resources[place].api_version;
        if let Some(attempt) = ChangeAttempt::of_template(id, &self.permit, version) {
            let at = Moment(self.engine.clock().now().wall);
            attempt.remember(self.engine.rejections(), refused, at);
        }
    }

    async fn body(&mut self, place: usize) -> Result<Value, ArmError> {
        let mut seen = Seen::new();
        for _ in 0..LOOKS_MAX {
            let (body, missing) = looking(&seen, |look| self.expanded.body(place, look));
            let Some(missing) = missing else { return body };
            self.see(&mut seen, missing).await?;
        }
        Err(too_many_looks())
    }

    async fn outputs(&mut self) -> Result<Value, ArmError> {
        let mut seen = Seen::new();
        for _ in 0..LOOKS_MAX {
            let (outputs, missing) = looking(&seen, |look| self.expanded.outputs(look));
            let Some(missing) = missing else { return outputs };
            self.see(&mut seen, missing).await?;
        }
        Err(too_many_looks())
    }

    /// Reads a resource that a value refers to.
    async fn see(&self, seen: &mut Seen, id: ResourceId) -> Result<(), ArmError> {
        let (key, version, permit) = (id.key(), self.version, Arc::clone(&self.permit));
        let group = self.group.clone();
        let look = move |state: &State<'_>| {
            // A resource of another group may be in another cluster.
            if id.group.key() != group.id.key() {
                return None;
            }
            let Some(kind) = ComputeKind::of(&id.kind()) else { return opaque_resources::shown(state, &id) };
            let asker = (&*permit, version);
            let found = compute::find(state, asker, kind, &group, id.name())?;
            Some(compute::show(state, asker, &found, Expand::Nothing))
        };
        let shown = self.engine.look(look).map_err(|problem| errors::of_problem(&problem))?;
        seen.insert(key, shown);
        Ok(())
    }
}

/// Evaluates a value with the resources read so far. Returns a resource that is missing, if there is one.
fn looking<T>(
    seen: &Seen,
    evaluate: impl FnOnce(&dyn Fn(&ResourceId) -> Option<Value>) -> T,
) -> (T, Option<ResourceId>) {
    let missing = RefCell::new(None);
    let value = evaluate(&|id: &ResourceId| match seen.get(&id.key()) {
        Some(shown) => shown.clone(),
        None => {
            missing.replace(Some(id.clone()));
            None
        }
    });
    (value, missing.into_inner())
}

fn too_many_looks() -> ArmError {
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
