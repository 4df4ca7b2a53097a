//! A visit: who asks, of which cluster, and on which terms. What a handler begins with.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use forewarn_control::shared::{ClusterId, Refusal};
use forewarn_control::{NamedCommand, Outcome, cluster_key, schema, similar};
use forewarn_lifecycle::{Cluster, Name};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Api;
use super::fault::Fault;
use super::header::Header;
use super::permit::{Denied, Permit};
use super::tagged::{Tagged, Tags};
use crate::engine::{self, Condition, Engine, Once, Order, Problem, Terms};

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
    pub(super) engine: Engine,
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
        let roster = api.engine.roster();
        let mut reached = roster.clusters().filter(|(id, _)| permit.reaches(*id));
        // The default cluster is the first; who is limited to others means the first of those.
        let found = match named.as_deref() {
            Some(name) => reached.find(|(_, known)| known.as_str() == name),
            None => reached.next(),
        };
        let (cluster, name) = found.ok_or_else(|| no_cluster(named.as_deref(), &permit, &roster))?;
        let line = format!("{} {}", parts.method, parts.uri);
        let (engine, headers) = (api.engine.of(cluster), parts.headers.clone());
        let cluster = (cluster, name.clone());
        Ok(Self { api: api.clone(), engine, named, cluster, permit, headers, line })
    }
}

/// Clusters that are named where one is not there.
const NAMED_MAX: usize = 10;

/// What is outside of a permit and what is not there look alike.
pub(super) fn no_cluster(name: Option<&str>, permit: &Permit, roster: &crate::Roster) -> Fault {
    let reached = roster.clusters().filter(|(id, _)| permit.reaches(*id)).map(|(_, name)| name.as_str());
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

    /// On which terms something is done that was asked for with that body.
    pub(super) fn terms(&self, body: &[u8]) -> Result<Terms, Fault> {
        let once = match self.headers.get("idempotency-key") {
            None => None,
            Some(key) => {
                // Whether it can be kept is known before anything is done.
                let key = key.to_str().ok().filter(|key| Header::IdempotencyKey.admits(key));
                let key = key.ok_or_else(|| Fault::from(Problem::from(Refusal::BadKey)))?;
                let mut hash = Sha256::new();
                hash.update(self.line.as_bytes());
                hash.update([0]);
                hash.update(body);
                Some(Once { key: key.to_owned(), fingerprint: hash.finalize().into() })
            }
        };
        Ok(Terms { once, ..self.permit.terms() })
    }

    /// The same, if what is there is still what whoever asks has seen of it: its tag is that of `If-Match`.
    pub(super) fn terms_if(&self, body: &[u8], tag: TagOf) -> Result<Terms, Fault> {
        let terms = self.terms(body)?;
        let Some(wanted) = self.if_match()? else { return Ok(terms) };
        let unchanged = move |state: &engine::State<'_>| match tag(state) {
            Some(now) if !wanted.fits(&now) => Err(Problem::Changed),
            // What is not there has not changed, and is refused as such.
            Some(_) | None => Ok(()),
        };
        Ok(Terms { only_if: Some(Condition(Box::new(unchanged))), ..terms })
    }

    /// Carries out commands, if whoever asks may have them.
    pub(super) async fn order(&self, commands: Vec<NamedCommand>, body: &[u8]) -> Result<Outcome, Fault> {
        self.order_if(commands, body, None).await
    }

    /// The same, if what is there is still what whoever asks has seen of it: its tag is that of `If-Match`.
    pub(super) async fn order_if(
        &self,
        commands: Vec<NamedCommand>,
        body: &[u8],
        tag: Option<TagOf>,
    ) -> Result<Outcome, Fault> {
        let terms = match tag {
            Some(tag) => self.terms_if(body, tag)?,
            None => self.terms(body)?,
        };
        Ok(self.carry_out(commands, terms, Permit::check_request).await?)
    }

    /// The same for commands that the server has made of a request: it has chosen the hosts that they name.
    pub(super) async fn order_on(
        &self,
        commands: Vec<NamedCommand>,
        terms: Terms,
    ) -> Result<Outcome, Problem> {
        self.carry_out(commands, terms, Permit::check_command).await
    }

    async fn carry_out(
        &self,
        commands: Vec<NamedCommand>,
        mut terms: Terms,
        check: fn(&Permit, &NamedCommand, &Cluster) -> Result<(), Denied>,
    ) -> Result<Outcome, Problem> {
        let (permit, asked) = (Arc::clone(&self.permit), commands.clone());
        let permitted = move |state: &engine::State<'_>| {
            let check = |command| check(&permit, command, state.cluster);
            asked.iter().try_for_each(check).map_err(Problem::from)
        };
        terms.permitted = Some(Condition(Box::new(permitted)));
        let outcome = self.engine.order(Order { commands, terms }).await;
        match &outcome {
            Ok(_) => self.api.metrics.commands.inc(),
            Err(_) => self.api.metrics.refused.inc(),
        };
        outcome
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

/// What a thing is tagged with at a moment; nothing, if it is not there.
pub(super) type TagOf = Box<dyn FnOnce(&engine::State<'_>) -> Option<String> + Send>;
