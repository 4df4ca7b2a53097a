//! A visit: who asks, of which cluster, and on which terms. What a handler begins with.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use forewarn_control::ClusterId;
use forewarn_control::refusal::Refusal;
use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, HostNames, IdempotencyKey, PermitCheck, Request,
    RequestContext, SharedRequest,
};
use forewarn_control::shared::SharedState;
use forewarn_control::{ControlError, Denied, NamedCommand, Outcome, Permit, cluster_key, schema, similar};
use forewarn_lifecycle::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Api;
use super::fault::Fault;
use super::header::Header;
use super::tagged::{Tagged, Tags};
use crate::control_handle::ControlHandle;
use crate::snapshot::State;

/// Which cluster is meant.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct Which {
    /// The cluster; `default`, if not said, or the first that the token is good for.
    #[schemars(with = "Option<schema::Name>")]
    pub(super) cluster: Option<String>,
}

/// Who asks, of which cluster, and on which terms.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) api: Api,
    /// A handle to the cluster that is meant.
    pub(super) engine: ControlHandle,
    /// The name of the cluster, if one was named.
    pub(super) named: Option<String>,
    cluster: (ClusterId, Name),
    pub(super) permit: Arc<Permit>,
    headers: HeaderMap,
    /// Method, path and query.
    line: String,
}

impl FromRequestParts<Api> for Visit {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Fault> {
        // The gate lets nobody through without one.
        let permit = parts.extensions.get::<Arc<Permit>>().cloned().ok_or_else(Fault::unauthorized)?;
        let which = Query::<Which>::try_from_uri(&parts.uri);
        let Query(Which { cluster: named }) = which.map_err(|problem| Fault::bad(problem.body_text()))?;
        let shared = api.engine.shared();
        let mut reached = shared.clusters().filter(|(id, _)| permit.reaches(*id));
        // The default cluster is the first; who is limited to others means the first of those.
        let found = match named.as_deref() {
            Some(name) => reached.find(|(_, known)| known.as_str() == name),
            None => reached.next(),
        };
        let (cluster, name) = found.ok_or_else(|| no_cluster(named.as_deref(), &permit, &shared))?;
        let line = format!("{} {}", parts.method, parts.uri);
        let (engine, headers) = (api.engine.of(cluster), parts.headers.clone());
        let cluster = (cluster, name.clone());
        Ok(Self { api: api.clone(), engine, named, cluster, permit, headers, line })
    }
}

/// Clusters that are named where one is not there.
const NAMED_MAX: usize = 10;

/// What is outside of a permit and what is not there look alike.
pub(super) fn no_cluster(name: Option<&str>, permit: &Permit, shared: &SharedState) -> Fault {
    let reached = shared.clusters().filter(|(id, _)| permit.reaches(*id)).map(|(_, name)| name.as_str());
    let known: Vec<_> = reached.collect();
    let hint = match (similar(name.unwrap_or_default(), known.iter().copied()), known.as_slice()) {
        (Some(near), _) => format!("\n  hint: did you mean {near}?"),
        (None, []) => String::new(),
        (None, some) => format!("\n  hint: there is {}", some[..some.len().min(NAMED_MAX)].join(", ")),
    };
    Fault::not_found(format!("no such cluster: {}{hint}", name.unwrap_or("the token has none left")))
}

impl Visit {
    /// Under what the trail has entries about the cluster that is meant.
    pub(super) fn cluster_key(&self) -> String {
        cluster_key(self.cluster.0.0, self.cluster.1.as_str())
    }

    /// The context of a request with that body.
    pub(super) fn context(&self, body: &[u8]) -> Result<RequestContext, Fault> {
        let once = match self.headers.get("idempotency-key") {
            None => None,
            Some(key) => {
                let key = key.to_str().ok().filter(|key| Header::IdempotencyKey.admits(key));
                let key = key.ok_or_else(|| Fault::from(ControlError::from(Refusal::BadKey)))?;
                let mut hash = Sha256::new();
                hash.update(self.line.as_bytes());
                hash.update([0]);
                hash.update(body);
                Some(IdempotencyKey { key: key.to_owned(), fingerprint: hash.finalize().into() })
            }
        };
        Ok(RequestContext { once, ..self.permit.context() })
    }

    /// The context of a request whose commands are checked against the permit.
    pub(super) fn checked_context(&self, body: &[u8], hosts: HostNames) -> Result<RequestContext, Fault> {
        let permit = Some(PermitCheck { permit: Permit::clone(&self.permit), hosts });
        Ok(RequestContext { permit, ..self.context(body)? })
    }

    /// Carries out commands, if the caller may have them.
    pub(super) async fn order(&self, commands: Vec<NamedCommand>, body: &[u8]) -> Result<Outcome, Fault> {
        let context = self.checked_context(body, HostNames::FromCaller)?;
        self.counted(self.engine.order(CommandBatch { commands, context }).await)
    }

    /// Carries out commands if the tag of their target is one of `If-Match`.
    pub(super) async fn order_if(
        &self,
        commands: Vec<NamedCommand>,
        body: &[u8],
        tag: impl Fn(&State<'_>) -> Option<String>,
    ) -> Result<Outcome, Fault> {
        let Some(wanted) = self.if_match()? else { return self.order(commands, body).await };
        let context = self.checked_context(body, HostNames::FromCaller)?;
        let request = |revision| {
            let context = RequestContext { if_revision: Some(revision), ..context.clone() };
            let batch = CommandBatch { commands: commands.clone(), context };
            self.engine.to_cluster(ClusterRequest::Commands(batch))
        };
        let check = |state: &State<'_>| unchanged(&wanted, tag(state)).map(|()| state.revision);
        self.counted(self.engine.request_if(check, request).await)
    }

    /// Changes clusters, tokens or webhooks if the tag of the target is one of `If-Match`. The outer error is one of the headers.
    pub(super) async fn administer_if(
        &self,
        engine: &ControlHandle,
        change: Administration,
        body: &[u8],
        tag: impl Fn(&State<'_>) -> Option<String>,
    ) -> Result<Result<Outcome, ControlError>, Fault> {
        let (context, wanted) = (self.context(body)?, self.if_match()?);
        let Some(wanted) = wanted else { return Ok(engine.administer(change, context).await) };
        let request = |revision| {
            let context = RequestContext { if_revision: Some(revision), ..context.clone() };
            let change = change.clone();
            Request::Shared(SharedRequest::Administer { change, context })
        };
        let check = |state: &State<'_>| unchanged(&wanted, tag(state)).map(|()| state.server_revision);
        Ok(engine.request_if(check, request).await)
    }

    /// Counts a result.
    pub(super) fn counted(&self, outcome: Result<Outcome, ControlError>) -> Result<Outcome, Fault> {
        match &outcome {
            Ok(_) => self.api.metrics.commands.inc(),
            Err(_) => self.api.metrics.refused.inc(),
        };
        Ok(outcome?)
    }

    /// The tags that `If-Match` names.
    pub(super) fn if_match(&self) -> Result<Option<Tags>, Fault> {
        let Some(value) = self.headers.get(header::IF_MATCH) else { return Ok(None) };
        let text = value.to_str().map_err(|_| Fault::bad("If-Match is not understood"))?;
        Ok(Some(Tags::new(text.to_owned())))
    }

    /// What is shown, with its tag, to somebody who may have seen it before.
    pub(super) fn tagged<T: Serialize>(&self, shown: T) -> Tagged<T> {
        let seen = self.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        Tagged::new(shown, seen.map(|text| Tags::new(text.to_owned())))
    }

    /// What is outside of a permit and what is not there look alike, also in what is said of them.
    pub(super) fn discreet(&self, fault: Fault) -> Fault {
        let is_limited = !self.permit.scope.tenants.is_all();
        if is_limited && fault.is_about_names() { Denied::Tenants.into() } else { fault }
    }
}

/// Compares the tag of a target with those that a caller has seen. A target that does not exist has not changed.
pub(super) fn unchanged(wanted: &Tags, tag: Option<String>) -> Result<(), ControlError> {
    match tag {
        Some(tag) if !wanted.fits(&tag) => Err(ControlError::Changed),
        Some(_) | None => Ok(()),
    }
}
