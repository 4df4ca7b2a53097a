//! What happens, as it happens: server-sent events.

use std::convert::Infallible;

use axum::extract::{Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use forewarn_wire::operator::{Happening, find_tenant};
use serde::Deserialize;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt};

use super::Api;
use super::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Filter {
    tenant: Option<String>,
}

/// A stream of what happens from now on. A listener that is too slow misses some, and is told so by a comment.
pub(super) async fn watch(
    State(api): State<Api>,
    Query(Filter { tenant }): Query<Filter>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Fault> {
    if let Some(name) = tenant.clone() {
        api.engine.look(move |state| find_tenant(state.cluster, &name).map(drop)).await??;
    }
    let happenings = BroadcastStream::new(api.engine.happenings());
    let beginning = tokio_stream::once(Ok(Event::default().comment("listening")));
    let stream = happenings.filter_map(move |next| {
        let event = match next {
            Ok(happening) if concerns(&happening, tenant.as_deref()) => {
                Event::default().json_data(&*happening).ok()?
            }
            Ok(_) => return None,
            Err(lagged) => Event::default().comment(lagged.to_string()),
        };
        Some(Ok(event))
    });
    Ok(Sse::new(beginning.chain(stream)).keep_alive(KeepAlive::default()))
}

fn concerns(happening: &Happening, tenant: Option<&str>) -> bool {
    tenant.is_none_or(|tenant| happening.tenants.iter().any(|name| name == tenant))
}
