//! The extractor of every handler: caller, cluster, permit and headers of a request.

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
use super::header::Header;
use super::problem::ApiProblem;
use super::sessions::OpenSession;
use super::tagged::{Tagged, Tags};
use crate::control_handle::ControlHandle;
use crate::snapshot::State;
use crate::stale::RequestCluster;

/// Query parameter of the cluster.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(super) struct ClusterQuery {
    /// Name of the cluster; default: `default`, or the first in the scope of the token.
    #[schemars(with = "Option<schema::Name>")]
    pub(super) cluster: Option<String>,
}

/// Query parameter of requests that announce events.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct NoticeQuery {
    /// Reject the request, and change nothing, if no machine would be notified: none of the affected tenants is
    /// enrolled.
    require_notice: bool,
}

/// A request of an operator: caller, cluster, permit and headers.
#[derive(Debug)]
pub(super) struct OperatorRequest {
    pub(super) api: Api,
    /// Handle to the cluster of the request.
    pub(super) control: ControlHandle,
    /// Name of the cluster. None if the request named none.
    pub(super) named: Option<String>,
    cluster: (ClusterId, Name),
    pub(super) permit: Arc<Permit>,
    /// Session of the dashboard. None if the caller has another credential.
    pub(super) session: Option<OpenSession>,
    headers: HeaderMap,
    notice: NoticeQuery,
    /// Method, path and query.
    line: String,
}

impl FromRequestParts<Api> for OperatorRequest {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, ApiProblem> {
        // Authentication rejects requests without a permit.
        let permit = parts.extensions.get::<Arc<Permit>>().cloned().ok_or_else(ApiProblem::unauthorized)?;
        let session = parts.extensions.get::<OpenSession>().cloned();
        let query = Query::<ClusterQuery>::try_from_uri(&parts.uri);
        let Query(ClusterQuery { cluster: named }) =
            query.map_err(|error| ApiProblem::bad(error.body_text()))?;
        let query = Query::<NoticeQuery>::try_from_uri(&parts.uri);
        let Query(notice) = query.map_err(|error| ApiProblem::bad(error.body_text()))?;
        let shared = api.control.shared();
        let mut reached = shared.clusters().filter(|(id, _)| permit.reaches(*id));
        // The default cluster is the first one. A limited token means the first one in its scope.
        let found = match named.as_deref() {
            Some(name) => reached.find(|(_, known)| known.as_str() == name),
            None => reached.next(),
        };
        let (cluster, name) = found.ok_or_else(|| no_cluster(named.as_deref(), &permit, &shared))?;
        if let Some(request) = parts.extensions.get::<RequestCluster>() {
            request.set(cluster);
        }
        let line = format!("{} {}", parts.method, parts.uri);
        let (control, headers) = (api.control.of(cluster), parts.headers.clone());
        let cluster = (cluster, name.clone());
        Ok(Self { api: api.clone(), control, named, cluster, permit, session, headers, notice, line })
    }
}

/// Clusters that an error message lists.
const NAMED_MAX: usize = 10;

/// A cluster outside the scope must look like a missing one.
pub(super) fn no_cluster(name: Option<&str>, permit: &Permit, shared: &SharedState) -> ApiProblem {
    let reached = shared.clusters().filter(|(id, _)| permit.reaches(*id)).map(|(_, name)| name.as_str());
    let known: Vec<_> = reached.collect();
    let hint = match (similar(name.unwrap_or_default(), known.iter().copied()), known.as_slice()) {
        (Some(near), _) => format!("\n  hint: did you mean {near}?"),
        (None, []) => String::new(),
        (None, some) => format!("\n  hint: known clusters: {}", some[..some.len().min(NAMED_MAX)].join(", ")),
    };
    ApiProblem::not_found(format!(
        "no such cluster: {}{hint}",
        name.unwrap_or("none is left in the scope of the token")
    ))
}

impl OperatorRequest {
    /// The cluster of the request.
    pub(super) fn cluster_id(&self) -> ClusterId {
        self.cluster.0
    }

    /// Key of the cluster in the audit log.
    pub(super) fn cluster_key(&self) -> String {
        cluster_key(self.cluster.0.0, self.cluster.1.as_str())
    }

    /// The context of a command with this body.
    pub(super) fn context(&self, body: &[u8]) -> Result<RequestContext, ApiProblem> {
        let once = match self.headers.get("idempotency-key") {
            None => None,
            Some(key) => {
                let key = key.to_str().ok().filter(|key| Header::IdempotencyKey.admits(key));
                let key = key.ok_or_else(|| ApiProblem::from(ControlError::from(Refusal::BadKey)))?;
                let mut hash = Sha256::new();
                hash.update(self.line.as_bytes());
                hash.update([0]);
                hash.update(body);
                Some(IdempotencyKey { key: key.to_owned(), fingerprint: hash.finalize().into() })
            }
        };
        let require_notice = self.notice.require_notice;
        Ok(RequestContext { once, require_notice, ..self.permit.context() })
    }

    /// The same, with a check of the commands against the permit.
    pub(super) fn checked_context(
        &self,
        body: &[u8],
        hosts: HostNames,
    ) -> Result<RequestContext, ApiProblem> {
        let permit = Some(PermitCheck { permit: Permit::clone(&self.permit), hosts });
        Ok(RequestContext { permit, ..self.context(body)? })
    }

    /// Runs commands that the permit allows.
    pub(super) async fn run(&self, commands: Vec<NamedCommand>, body: &[u8]) -> Result<Outcome, ApiProblem> {
        let context = self.checked_context(body, HostNames::FromCaller)?;
        self.run_batch(CommandBatch { commands, context }).await
    }

    /// Runs commands with their context.
    pub(super) async fn run_batch(&self, batch: CommandBatch) -> Result<Outcome, ApiProblem> {
        self.count_outcome(self.control.run_commands(batch).await)
    }

    /// Runs commands if the tag of their target matches `If-Match`.
    pub(super) async fn run_if(
        &self,
        commands: Vec<NamedCommand>,
        body: &[u8],
        tag: impl Fn(&State<'_>) -> Option<String>,
    ) -> Result<Outcome, ApiProblem> {
        let Some(wanted) = self.if_match()? else { return self.run(commands, body).await };
        let context = self.checked_context(body, HostNames::FromCaller)?;
        let request = |revision| {
            let context = RequestContext { if_revision: Some(revision), ..context.clone() };
            let batch = CommandBatch { commands: commands.clone(), context };
            self.control.to_cluster(ClusterRequest::Commands(batch))
        };
        let check = |state: &State<'_>| unchanged(&wanted, tag(state)).map(|()| state.revision);
        self.count_outcome(self.control.request_if(check, request).await)
    }

    /// Changes clusters, tokens or webhooks if the tag of the target matches `If-Match`. The outer error is about the
    /// headers.
    pub(super) async fn administer_if(
        &self,
        control: &ControlHandle,
        change: Administration,
        body: &[u8],
        tag: impl Fn(&State<'_>) -> Option<String>,
    ) -> Result<Result<Outcome, ControlError>, ApiProblem> {
        let (context, wanted) = (self.context(body)?, self.if_match()?);
        let Some(wanted) = wanted else { return Ok(control.administer(change, context).await) };
        let request = |revision| {
            let context = RequestContext { if_revision: Some(revision), ..context.clone() };
            let change = change.clone();
            Request::Shared(SharedRequest::Administer { change, context })
        };
        let check = |state: &State<'_>| unchanged(&wanted, tag(state)).map(|()| state.shared_revision);
        Ok(control.request_if(check, request).await)
    }

    /// Counts the outcome of commands.
    pub(super) fn count_outcome<T>(&self, outcome: Result<T, ControlError>) -> Result<T, ApiProblem> {
        match &outcome {
            Ok(_) => self.api.metrics.commands.inc(),
            Err(_) => self.api.metrics.refused.inc(),
        };
        let is_limited = !self.permit.scope.tenants.is_all();
        Ok(outcome.map_err(|error| if is_limited { error.without_hosts() } else { error })?)
    }

    /// The tags of `If-Match`.
    pub(super) fn if_match(&self) -> Result<Option<Tags>, ApiProblem> {
        let Some(value) = self.headers.get(header::IF_MATCH) else { return Ok(None) };
        let text = value.to_str().map_err(|_| ApiProblem::bad("invalid If-Match"))?;
        Ok(Some(Tags::new(text.to_owned())))
    }

    /// A view with its tag, and the tags that the client has.
    pub(super) fn tagged<T: Serialize>(&self, view: T) -> Tagged<T> {
        let known = self.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
        Tagged::new(view, known.map(|text| Tags::new(text.to_owned())))
    }

    /// Replaces problems that reveal names, for tokens with a tenant scope: a foreign resource must look like a
    /// missing one.
    pub(super) fn hide_names(&self, problem: ApiProblem) -> ApiProblem {
        let is_limited = !self.permit.scope.tenants.is_all();
        if is_limited && problem.is_about_names() { Denied::Tenants.into() } else { problem }
    }
}

/// Compares the tag of a target with `If-Match`. A missing target counts as unchanged: it is rejected later.
pub(super) fn unchanged(wanted: &Tags, tag: Option<String>) -> Result<(), ControlError> {
    match tag {
        Some(tag) if !wanted.fits(&tag) => Err(ControlError::Changed),
        Some(_) | None => Ok(()),
    }
}
