//! Live stream of audit entries, as server-sent events.
//!
//! Every entry has its number as id. A client that reconnects with `Last-Event-ID` receives all later entries. A
//! client that reads too slowly receives the missed entries from the audit log.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use forewarn_control::{AuditEntry, find_tenant, schema};
use forewarn_store::AuditQuery;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

use super::context::OperatorRequest;
use super::problem::ApiProblem;
use super::visibility::Visibility;
use super::while_valid::WhileValid;
use crate::control_handle::ControlHandle;
use crate::snapshot::State;
use forewarn_control::Permit;

/// Filter of the stream.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WatchFilter {
    /// Entries of this tenant.
    #[schemars(with = "Option<schema::Name>")]
    tenant: Option<String>,
}

/// Entries that are buffered for a slow client; later ones stay in the broadcast channel.
const WAITING_MAX: usize = 16;

/// Streams entries from now on, or after `Last-Event-ID`, until the server stops.
pub(super) async fn watch(
    request: OperatorRequest,
    Query(WatchFilter { tenant }): Query<WatchFilter>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiProblem> {
    if let Some(name) = tenant.clone() {
        let permit = Arc::clone(&request.permit);
        let find = move |state: &State<'_>| {
            permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
            Ok::<_, ApiProblem>(())
        };
        request.control.look(find)?.map_err(|problem| request.hide_names(problem))?;
    }
    let visibility = Visibility::of(&request)?;
    let entries = request.control.entries();
    let newest = AuditQuery { limit: 0, ..AuditQuery::default() };
    let head = request.control.read_audit_log(newest).await?.head;
    // A greater number belongs to another audit log.
    let seen = last_seen(&headers)?.map_or(head, |seen| seen.min(head));
    let (client, stream) = mpsc::channel(WAITING_MAX);
    let (control, stop) = (request.control.clone(), request.api.stop.clone());
    let permit = Arc::clone(&request.permit);
    tokio::spawn(AuditStream { control, entries, stop, permit, visibility, tenant, seen, client }.run());
    let stream = WhileValid::new(&request, ReceiverStream::new(stream));
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// The number in `Last-Event-ID`.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, ApiProblem> {
    let Some(text) = headers.get("last-event-id") else { return Ok(None) };
    let number = text.to_str().ok().and_then(|text| text.parse().ok());
    number
        .map(Some)
        .ok_or_else(|| ApiProblem::bad("invalid Last-Event-ID: the number of an audit entry is expected"))
}

struct AuditStream {
    control: ControlHandle,
    entries: broadcast::Receiver<Arc<AuditEntry>>,
    stop: watch::Receiver<bool>,
    permit: Arc<Permit>,
    visibility: Visibility,
    tenant: Option<String>,
    /// Number of the last examined entry.
    seen: u64,
    client: mpsc::Sender<Result<Event, Infallible>>,
}

/// The client disconnected, the token is no longer valid, or the server stops.
struct StreamClosed;

impl AuditStream {
    /// Runs the stream to its end.
    async fn run(mut self) {
        // All reasons to end are equal here.
        drop(self.send_all().await);
    }

    async fn send_all(&mut self) -> Result<(), StreamClosed> {
        // The first id lets a client resume from here even if no entry follows.
        self.send(Event::default().id(self.seen.to_string()).comment("listening")).await?;
        self.catch_up().await?;
        loop {
            let next = tokio::select! {
                next = self.entries.recv() => next,
                // An error means that the sender is gone: the server stops.
                _ = self.stop.wait_for(|stop| *stop) => return Err(StreamClosed),
            };
            // A revocation is an entry, too.
            if !self.control.admits(&self.permit) {
                return Err(StreamClosed);
            }
            match next {
                Ok(entry) if entry.number <= self.seen.saturating_add(1) => self.show(&entry).await?,
                Ok(_) | Err(RecvError::Lagged(_)) => self.catch_up().await?,
                Err(RecvError::Closed) => return Err(StreamClosed),
            }
        }
    }

    /// Sends the missed entries from the audit log.
    async fn catch_up(&mut self) -> Result<(), StreamClosed> {
        let mut after = Some(self.seen);
        while after.is_some() {
            // Unpublished entries follow later. Until then, the snapshot may lack a revocation that
            // precedes them.
            let before = Some(self.control.published_entry().saturating_add(1));
            let query = AuditQuery { after, before, ..AuditQuery::default() };
            // After a read error, the client resumes by reconnecting.
            let page = self.control.read_audit_log(query).await.map_err(|_| StreamClosed)?;
            if page.swept > self.seen {
                let text = format!("entries up to {} have been swept", page.swept);
                let missed = json!({ "kind": "missed", "text": text });
                self.send(Event::default().data(missed.to_string())).await?;
                self.seen = page.swept;
            }
            for entry in &page.entries {
                self.show(entry).await?;
            }
            after = page.next;
        }
        Ok(())
    }

    /// Sends an entry, if it is new and visible.
    async fn show(&mut self, entry: &AuditEntry) -> Result<(), StreamClosed> {
        if entry.number <= self.seen {
            return Ok(());
        }
        self.seen = entry.number;
        let is_concerned = |tenant: &String| entry.tenants.contains(tenant);
        if !self.tenant.as_ref().is_none_or(is_concerned) || !self.visibility.admits(entry) {
            return Ok(());
        }
        let event =
            Event::default().id(entry.number.to_string()).json_data(entry).map_err(|_| StreamClosed)?;
        self.send(event).await
    }

    async fn send(&mut self, event: Event) -> Result<(), StreamClosed> {
        tokio::select! {
            sent = self.client.send(Ok(event)) => sent.map_err(|_| StreamClosed),
            _ = self.stop.wait_for(|stop| *stop) => Err(StreamClosed),
        }
    }
}
