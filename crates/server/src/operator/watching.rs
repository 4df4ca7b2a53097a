//! What happens, as it happens: the trail, as server-sent events.
//!
//! Every entry has its number as its id. Who comes back with the last one it has seen is told everything since, and so is
//! who reads too slowly: what the wire could not take is read from the trail.

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

use super::audience::Audience;
use super::fault::Fault;
use super::visit::Visit;
use super::while_valid::WhileValid;
use crate::control_handle::ControlHandle;
use crate::snapshot::State;
use forewarn_control::Permit;

/// What is to be told.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Filter {
    /// Only what concerns that tenant.
    #[schemars(with = "Option<schema::Name>")]
    tenant: Option<String>,
}

/// Events that wait for a listener that is slow; the rest waits with everybody else's.
const WAITING_MAX: usize = 16;

/// A stream of what happens from now on, or since what was seen last, until the server stops.
pub(super) async fn watch(
    visit: Visit,
    Query(Filter { tenant }): Query<Filter>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Fault> {
    if let Some(name) = tenant.clone() {
        let permit = Arc::clone(&visit.permit);
        let find = move |state: &State<'_>| {
            permit.check_tenant(state.cluster, find_tenant(state.cluster, &name)?)?;
            Ok::<_, Fault>(())
        };
        visit.engine.look(find)?.map_err(|fault| visit.discreet(fault))?;
    }
    let audience = Audience::of(&visit)?;
    let entries = visit.engine.entries();
    let newest = AuditQuery { limit: 0, ..AuditQuery::default() };
    let head = visit.engine.read_trail(newest).await?.head;
    // One who has seen more than there is has seen another trail.
    let seen = last_seen(&headers)?.map_or(head, |seen| seen.min(head));
    let (listener, stream) = mpsc::channel(WAITING_MAX);
    let (engine, stop) = (visit.engine.clone(), visit.api.stop.clone());
    let permit = Arc::clone(&visit.permit);
    tokio::spawn(Teller { engine, entries, stop, permit, audience, tenant, seen, listener }.tell());
    let stream = WhileValid::new(&visit, ReceiverStream::new(stream));
    Ok(Sse::new(stream).keep_alive(KeepAlive::default()))
}

/// The number of the last entry that somebody has seen who comes back.
fn last_seen(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
    let Some(text) = headers.get("last-event-id") else { return Ok(None) };
    let number = text.to_str().ok().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| Fault::bad("Last-Event-ID is not the number of an entry"))
}

struct Teller {
    engine: ControlHandle,
    entries: broadcast::Receiver<Arc<AuditEntry>>,
    stop: watch::Receiver<bool>,
    permit: Arc<Permit>,
    audience: Audience,
    tenant: Option<String>,
    /// The number of the last entry that was looked at.
    seen: u64,
    listener: mpsc::Sender<Result<Event, Infallible>>,
}

/// Nobody listens any more, or the server stops.
struct Over;

impl Teller {
    /// Tells everything that concerns the listener, until one of both has had enough.
    async fn tell(mut self) {
        // Whoever does not listen any more needs no farewell.
        drop(self.tell_all().await);
    }

    async fn tell_all(&mut self) -> Result<(), Over> {
        // Who comes back after this was told of everything until then, also if nothing has happened.
        self.send(Event::default().id(self.seen.to_string()).comment("listening")).await?;
        self.catch_up().await?;
        loop {
            let next = tokio::select! {
                next = self.entries.recv() => next,
                // It is an error if nobody is left who could say so: then it is time to stop, too.
                _ = self.stop.wait_for(|stop| *stop) => return Err(Over),
            };
            // That a token was revoked is an entry, too.
            if !self.engine.admits(&self.permit) {
                return Err(Over);
            }
            match next {
                Ok(entry) if entry.number <= self.seen.saturating_add(1) => self.show(&entry).await?,
                Ok(_) | Err(RecvError::Lagged(_)) => self.catch_up().await?,
                Err(RecvError::Closed) => return Err(Over),
            }
        }
    }

    /// Reads from the trail what the listener has not seen.
    async fn catch_up(&mut self) -> Result<(), Over> {
        let mut after = Some(self.seen);
        while after.is_some() {
            // An entry that is durable and not yet published comes with the others later. Until then a revocation before
            // it may not have reached the snapshot.
            let before = Some(self.engine.published_entry().saturating_add(1));
            let query = AuditQuery { after, before, ..AuditQuery::default() };
            // Who comes back later is told what could not be read now.
            let page = self.engine.read_trail(query).await.map_err(|_| Over)?;
            if page.swept > self.seen {
                let text = format!("what happened up to entry {} is not kept any more", page.swept);
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

    /// Sends an entry, if the listener has not seen it and it concerns them.
    async fn show(&mut self, entry: &AuditEntry) -> Result<(), Over> {
        if entry.number <= self.seen {
            return Ok(());
        }
        self.seen = entry.number;
        let is_concerned = |tenant: &String| entry.tenants.contains(tenant);
        if !self.tenant.as_ref().is_none_or(is_concerned) || !self.audience.admits(entry) {
            return Ok(());
        }
        let event = Event::default().id(entry.number.to_string()).json_data(entry).map_err(|_| Over)?;
        self.send(event).await
    }

    async fn send(&mut self, event: Event) -> Result<(), Over> {
        tokio::select! {
            sent = self.listener.send(Ok(event)) => sent.map_err(|_| Over),
            _ = self.stop.wait_for(|stop| *stop) => Err(Over),
        }
    }
}
