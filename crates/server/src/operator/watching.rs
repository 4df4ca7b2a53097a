//! What happens, as it happens: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use forewarn_wire::Moment;
use forewarn_wire::operator::{Happening, find_tenant, schema};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;

use super::Api;
use super::fault::Fault;

/// What is to be told.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Filter {
    /// Only what concerns that tenant.
    #[schemars(with = "Option<schema::Name>")]
    tenant: Option<String>,
}

/// Events that wait for a listener that is slow; the rest waits with everybody else's.
const WAITING_MAX: usize = 16;

/// A stream of what happens from now on, until the server stops.
pub(super) async fn watch(
    State(api): State<Api>,
    Query(Filter { tenant }): Query<Filter>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Fault> {
    if let Some(name) = tenant.clone() {
        api.engine.look(move |state| find_tenant(state.cluster, &name).map(drop)).await??;
    }
    let (listener, stream) = mpsc::channel(WAITING_MAX);
    let teller = Teller { happenings: api.engine.happenings(), stop: api.stop.clone(), tenant, listener };
    tokio::spawn(teller.tell(api.engine.clock().clone()));
    Ok(Sse::new(ReceiverStream::new(stream)).keep_alive(KeepAlive::default()))
}

struct Teller {
    happenings: broadcast::Receiver<Arc<Happening>>,
    stop: watch::Receiver<bool>,
    tenant: Option<String>,
    listener: mpsc::Sender<Result<Event, Infallible>>,
}

impl Teller {
    /// Tells everything that concerns the listener, until one of both has had enough.
    async fn tell(mut self, clock: crate::Clock) {
        let mut is_heard = self.send(Event::default().comment("listening")).await;
        while is_heard {
            let next = tokio::select! {
                next = self.happenings.recv() => next,
                // It is an error if nobody is left who could say so: then it is time to stop, too.
                _ = self.stop.wait_for(|stop| *stop) => return,
            };
            let happening = match next {
                Ok(happening) if concerns(&happening, self.tenant.as_deref()) => happening,
                Ok(_) => continue,
                Err(RecvError::Lagged(missed)) => Arc::new(lagged(missed, Moment(clock.now().wall))),
                Err(RecvError::Closed) => return,
            };
            let Ok(event) = Event::default().json_data(&*happening) else { return };
            is_heard = self.send(event).await;
        }
    }

    async fn send(&mut self, event: Event) -> bool {
        tokio::select! {
            sent = self.listener.send(Ok(event)) => sent.is_ok(),
            _ = self.stop.wait_for(|stop| *stop) => false,
        }
    }
}

/// A listener that is too slow is told that it has missed something.
fn lagged(missed: u64, at: Moment) -> Happening {
    let text = format!("{missed} changes came too fast to be told");
    Happening { at, kind: "missed".to_owned(), text, tenants: Vec::new(), events: Vec::new() }
}

fn concerns(happening: &Happening, tenant: Option<&str>) -> bool {
    tenant.is_none_or(|tenant| happening.tenants.iter().any(|name| name == tenant))
}
