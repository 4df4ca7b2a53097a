//! Liveness and readiness.

use std::time::Duration;

use axum::extract::State;

use super::Api;
use super::fault::Fault;

/// Time that the driver has to answer.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

pub(super) async fn readyz(State(api): State<Api>) -> Result<&'static str, Fault> {
    let settled = tokio::time::timeout(PATIENCE, api.engine.settled()).await;
    match (api.engine.trouble(), settled) {
        (Some(trouble), _) => Err(Fault::unavailable(trouble)),
        (None, Ok(Ok(()))) => Ok("ready\n"),
        (None, Ok(Err(error))) => Err(error.into()),
        (None, Err(_)) => Err(Fault::unavailable("the engine does not answer")),
    }
}
