//! Reset of a server for development, and its whole state as a document.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use data_encoding::BASE64;
use forewarn_control::{AuditEntry, Chain, ClockView, ClusterId, SPEED_MAX, Stream};
use forewarn_store::{RecentLog, SavedStateError, export_state, read_state};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::read;
use super::context::OperatorRequest;
use super::problem::{ApiProblem, ProblemKind};
use super::reads;
use crate::clock::{CLOCK_END, Speed};
use crate::long_work::run_long_work;
use crate::replacement::{ReplaceError, ServerState};

/// The format of saved states.
const FORMAT: u32 = 1;

/// Largest saved state: some 200,000 machines.
pub const SAVED_STATE_BYTES_MAX: usize = 64 << 20;

/// Audit entries that are saved: the newest.
const ENTRIES_MAX: usize = 10_000;

/// The whole state of a server for development.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedState {
    /// Format of the document.
    forewarn_state: u32,
    /// Version of the server that saved it.
    version: String,
    /// Speed of the clock; 0 is frozen.
    speed: u32,
    /// Number of audit entries in the life of the server.
    audit_entries: u64,
    /// Ends of the audit logs.
    audit_ends: Vec<AuditEnd>,
    /// The newest audit entries.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    audit: Vec<AuditEntry>,
    /// Fleet, work and settings of all clusters, and the time of the clock: an export of the store, in base64.
    export: String,
}

/// The end of an audit log.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AuditEnd {
    /// Number of the cluster. Missing for the log that clusters share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<u32>,
    /// Number of the last entry.
    number: u64,
    /// Hash of the last entry.
    hash: String,
}

/// The member that every format has.
#[derive(Deserialize)]
struct AnyFormat {
    forewarn_state: u32,
}

/// Returns the server to its initial state.
pub(super) async fn reset(request: OperatorRequest) -> Result<Json<ClockView>, ApiProblem> {
    request.api.control.reset().await?;
    tracing::info!("server reset");
    reads::clock(request).await
}

pub(super) async fn save(request: OperatorRequest) -> Result<Json<SavedState>, ApiProblem> {
    let (state, version) = (request.api.control.save_state().await?, request.api.about.version.clone());
    let document = run_long_work(move || SavedState::of(state, version)).await;
    let bytes =
        document.export.len() + document.audit.iter().map(|entry| entry.to_line().len()).sum::<usize>();
    if bytes > SAVED_STATE_BYTES_MAX {
        let problem =
            format!("the state is too large to be saved: {bytes} bytes, not {SAVED_STATE_BYTES_MAX}");
        return Err(ApiProblem::conflict(format!(
            "{problem}\n  hint: use a data directory and `forewarn backup`"
        )));
    }
    Ok(Json(document))
}

/// Replaces the state by a saved one. A document that cannot be used changes nothing.
pub(super) async fn load(request: OperatorRequest, body: Bytes) -> Result<Json<ClockView>, ApiProblem> {
    let state = run_long_work(move || decode(&body)).await?;
    request.api.control.load_state(state).await?;
    tracing::info!("state loaded");
    reads::clock(request).await
}

fn decode(body: &[u8]) -> Result<ServerState, ApiProblem> {
    if let Ok(AnyFormat { forewarn_state }) = serde_json::from_slice(body)
        && forewarn_state > FORMAT
    {
        return Err(newer(&format!("{forewarn_state}, not {FORMAT}")));
    }
    read::<SavedState>(body)?.into_state()
}

fn newer(what: &str) -> ApiProblem {
    ApiProblem::conflict(format!(
        "the saved state has a later format than this program knows: {what}\n  hint: use the forewarn that saved it, or a newer one"
    ))
}

fn damaged(what: impl std::fmt::Display) -> ApiProblem {
    ApiProblem::bad(format!(
        "the saved state is damaged: {what}\n  hint: `forewarn state save` writes another one"
    ))
}

impl SavedState {
    fn of(
        ServerState { state, identity, clock, speed: Speed(speed), log }: ServerState,
        version: String,
    ) -> Self {
        let audit_end = |(stream, end): (Stream, Chain)| {
            let cluster = match stream {
                Stream::Shared => None,
                Stream::Cluster(ClusterId(id)) => Some(id),
            };
            AuditEnd { cluster, number: end.number, hash: end.hash_in_hex() }
        };
        Self {
            forewarn_state: FORMAT,
            version,
            speed,
            audit_entries: log.last(),
            audit_ends: log.ends().into_iter().map(audit_end).collect(),
            audit: log.newest(ENTRIES_MAX).iter().map(|entry| AuditEntry::clone(entry)).collect(),
            export: BASE64.encode(&export_state(state, identity, clock)),
        }
    }

    fn into_state(self) -> Result<ServerState, ApiProblem> {
        if self.forewarn_state != FORMAT {
            return Err(damaged(format!("unknown format {}", self.forewarn_state)));
        }
        if self.speed > SPEED_MAX {
            return Err(damaged(format!("a speed of {}", self.speed)));
        }
        let mut ends = BTreeMap::new();
        for AuditEnd { cluster, number, hash } in self.audit_ends {
            let stream = cluster.map_or(Stream::Shared, |id| Stream::Cluster(ClusterId(id)));
            let end = Chain::from_hex(number, &hash).ok_or_else(|| damaged("an invalid hash"))?;
            ends.insert(stream, end);
        }
        let log = RecentLog::from_parts(self.audit_entries, &ends, self.audit).map_err(damaged)?;
        let export = BASE64.decode(self.export.as_bytes()).map_err(damaged)?;
        let (state, identity, clock) = read_state(&export).map_err(|error| match error {
            SavedStateError::Newer => newer("of its export"),
            SavedStateError::Foreign | SavedStateError::Damaged(_) => damaged(error),
        })?;
        if clock.wall > CLOCK_END {
            return Err(damaged("its clock is after the end of time"));
        }
        Ok(ServerState { state, identity, clock, speed: Speed(self.speed), log })
    }
}

impl From<ReplaceError> for ApiProblem {
    fn from(error: ReplaceError) -> Self {
        let kind = match error {
            ReplaceError::RealClock | ReplaceError::Durable => ProblemKind::Refused,
            ReplaceError::Stopping => ProblemKind::Unavailable,
        };
        Self::new(kind, error.to_string())
    }
}
