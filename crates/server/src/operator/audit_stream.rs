//! Live stream of audit entries, as server-sent events.
//!
//! The id of an event names all entries that the client has seen ([`SeenEntries`]; in a realm [`StreamNumbers`], which
//! every server understands). A client that reconnects with `Last-Event-ID` receives all others. A client that reads too slowly receives the missed entries from the audit log.
//! All clients share one [`AuditFeed`], which renders each entry once.

mod event;
mod feed;
mod feed_state;
mod filter;
mod group;
mod groups;
mod log_pages;
mod realm_stream;
mod recent;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Query;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use forewarn_control::{find_tenant, schema};
use forewarn_store::{AuditBatch, AuditQuery};
use schemars::JsonSchema;
use serde::Deserialize;

use super::context::OperatorRequest;
use super::header::Header;
use super::problem::ApiProblem;
use super::seen_entries::SeenEntries;
use super::stream_numbers::{STREAMS_MAX, StreamNumbers};
use super::validate::malformed;
use super::visibility::Visibility;
use super::while_valid::WhileValid;
use crate::clients::EndlessBody;
use crate::snapshot::State;
pub(crate) use feed::{AuditFeed, StreamMetrics};
use filter::EntryFilter;
use realm_stream::{RealmStream, current_numbers};
use stream::AuditStream;

/// Filter of the stream.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WatchFilter {
    /// Entries of this tenant.
    #[schemars(with = "Option<schema::Name>")]
    tenant: Option<String>,
}

/// Streams entries from now on, or after `Last-Event-ID`, until the server stops.
pub(super) async fn watch(
    request: OperatorRequest,
    Query(WatchFilter { tenant }): Query<WatchFilter>,
    headers: HeaderMap,
) -> Result<Response, ApiProblem> {
    if let Some(name) = tenant.clone() {
        let permit = Arc::clone(&request.permit);
        let find = move |state: &State<'_>| {
            permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
            Ok::<_, ApiProblem>(())
        };
        request.control.look(find)?.map_err(|problem| request.hide_names(problem))?;
    }
    let filter = EntryFilter { visibility: Visibility::of(&request)?, tenant };
    let last_seen = last_seen(&headers)?;
    let is_in_realm = request.control.realm_name().is_some();
    let numbers = match &last_seen {
        Some(LastSeen::Numbers(numbers)) => Some(numbers.clone()),
        None if is_in_realm && request.control.shared().clusters().count() < STREAMS_MAX => {
            Some(current_numbers(&request.control).await?)
        }
        Some(LastSeen::Positions(_)) | None => None,
    };
    if let Some(numbers) = numbers {
        let stream = RealmStream::start(&request.control, Arc::clone(&request.api.feed), filter, numbers);
        return Ok(response(Body::from_stream(WhileValid::new(&request, stream))));
    }
    let begin = match last_seen.and_then(LastSeen::positions) {
        Some(seen) => {
            let newest = AuditQuery { limit: 0, ..AuditQuery::default() };
            let (seen, origin) = resumed(seen, &request.control.read_audit_log(newest).await?);
            (Some(seen), origin)
        }
        None => (None, IdOrigin::ThisLog),
    };
    let stream = AuditStream::new(Arc::clone(&request.api.feed), filter, begin);
    Ok(response(Body::from_stream(WhileValid::new(&request, stream))))
}

fn response(body: Body) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    let mut response = (headers, body).into_response();
    response.extensions_mut().insert(EndlessBody);
    response
}

/// The entries that a client has, and the log that they are from. Entries after the visible ones follow once they are
/// visible, but the client may have some of them already.
fn resumed(last_seen: SeenEntries, log: &AuditBatch) -> (SeenEntries, IdOrigin) {
    if last_seen.is_within(log.end) {
        (last_seen, IdOrigin::ThisLog)
    } else {
        (SeenEntries::to(log.head), IdOrigin::AnotherLog)
    }
}

/// The log that has given the last id of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdOrigin {
    ThisLog,
    /// The log of another server, or of this one before its data was replaced.
    AnotherLog,
}

/// The entries that `Last-Event-ID` names.
enum LastSeen {
    /// Positions in the log of this server.
    Positions(SeenEntries),
    /// Numbers of streams, which are the same on every server of a realm.
    Numbers(StreamNumbers),
}

impl LastSeen {
    fn parse(id: &str) -> Option<Self> {
        let positions = SeenEntries::parse(id).map(Self::Positions);
        positions.or_else(|| StreamNumbers::parse(id).map(Self::Numbers))
    }

    fn positions(self) -> Option<SeenEntries> {
        match self {
            Self::Positions(seen) => Some(seen),
            Self::Numbers(_) => None,
        }
    }
}

fn last_seen(headers: &HeaderMap) -> Result<Option<LastSeen>, ApiProblem> {
    let Some(text) = headers.get("last-event-id") else { return Ok(None) };
    let seen = text.to_str().ok().and_then(LastSeen::parse);
    seen.map(Some).ok_or_else(|| malformed(Header::LastEventId))
}
