//! Carrying a deployment out: one resource after the other, each as if a client had put it. What was made before something
//! fails stays.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_azure::deployment::failure;
use forewarn_azure::template::Expanded;
use forewarn_azure::{ApiVersion, ArmError, Expand};
use forewarn_control::resource_id::ResourceId;
use forewarn_imds::Moment;
use serde_json::Value;

use super::record::{Record, Step};
use crate::arm::compute::{self, Asked, Conditions, Kind, Way};
use crate::arm::place::Group;
use crate::arm::{Attempt, kept, refusal};
use crate::engine::{Engine, State};
use crate::operator::Permit;

/// A deployment that is carried out.
pub(super) struct Run {
    pub(super) engine: Engine,
    pub(super) permit: Arc<Permit>,
    pub(super) group: Group,
    /// The id of the deployment.
    pub(super) id: ResourceId,
    /// What an output or a property sees of another resource.
    pub(super) version: ApiVersion,
    pub(super) expanded: Expanded,
    pub(super) record: Record,
}

/// What resources show, as far as it was needed; nothing, if one is not there.
type Seen = BTreeMap<String, Option<Value>>;

/// How often somebody looks again for what else one value needs.
const LOOKS_MAX: usize = 1_000;

impl Run {
    /// Does all of it, or as much as can be done. Gives the outputs.
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

    /// Makes one resource. Gives the operation that is over when it is as wanted, if there is one.
    async fn make(&mut self, place: usize, id: &ResourceId) -> Result<Option<String>, ArmError> {
        let sent = self.body(place).await?;
        let version = self.expanded.resources[place].api_version;
        let (permit, conditions) = (Arc::clone(&self.permit), Conditions::default());
        if let Some(kind) = Kind::of(&id.kind()) {
            let (group, id) = (self.group.clone(), id.clone());
            let asked = Asked { permit, group, kind, id, version, sent, way: Way::Put, conditions };
            let written = compute::write(&self.engine, asked).await?;
            return Ok(Some(written.operation.name));
        }
        let outermost = id.parts.first().map_or("", |(kind, _)| kind);
        if !kept::is_kept(&id.namespace, outermost) {
            let message = format!(
                "Forewarn does not make resources of type '{}'. It is about the life of machines, and nothing besides.",
                id.kind()
            );
            return Err(ArmError::new(400, "OperationNotSupported", message));
        }
        let wish = kept::Wish { permit, id: id.clone(), version, sent, way: Way::Put, conditions };
        kept::write(&self.engine, wish).await?;
        Ok(None)
    }

    /// So that it can be explained why a resource is not as wanted.
    fn remember(&self, place: usize, id: &ResourceId, refused: &ArmError) {
        let version = self.expanded.resources[place].api_version;
        if let Some(attempt) = Attempt::of_template(id, &self.permit, version) {
            let at = Moment(self.engine.clock().now().wall);
            self.engine.refusals().remember(attempt, refused, at);
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

    /// Looks at a resource once, for all that want to see it.
    async fn see(&self, seen: &mut Seen, id: ResourceId) -> Result<(), ArmError> {
        let (key, version, permit) = (id.key(), self.version, Arc::clone(&self.permit));
        let group = self.group.clone();
        let look = move |state: &State<'_>| {
            // What is in another group may be in another cluster.
            if id.group.key() != group.id.key() {
                return None;
            }
            let Some(kind) = Kind::of(&id.kind()) else { return kept::shown(state, &id) };
            let asker = (&*permit, version);
            let found = compute::find(state, asker, kind, &group, id.name())?;
            Some(compute::show(state, asker, &found, Expand::Nothing))
        };
        let shown = self.engine.look(look).await.map_err(|problem| refusal::of(&problem))?;
        seen.insert(key, shown);
        Ok(())
    }
}

/// Evaluates something with what was seen so far. Says what is still to be seen, if that is why it could not be done.
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

/// A refusal with the resource that it is about.
trait AtResource {
    fn at_resource(self, id: &ResourceId) -> Self;
}

impl AtResource for ArmError {
    fn at_resource(self, id: &ResourceId) -> Self {
        if self.target.is_some() { self } else { self.at(id.to_string()) }
    }
}
