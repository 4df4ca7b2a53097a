//! Whether the server lives, and whether it can be asked.

use std::time::Duration;

use axum::extract::State;

use super::Api;
use super::fault::Fault;

/// How long the engine may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

pub(super) async fn readyz(State(api): State<Api>) -> Result<&'static str, Fault> {
    if let Some(trouble) = api.engine.trouble() {
        return Err(Fault::unavailable(trouble));
    }
    match tokio::time::timeout(PATIENCE, api.engine.look(|_| ())).await {
        Ok(Ok(())) => Ok("ready\n"),
        // It may have come into trouble meanwhile.
        Ok(Err(problem)) => {
            Err(Fault::unavailable(api.engine.trouble().unwrap_or_else(|| problem.to_string())))
        }
        Err(_) => Err(Fault::unavailable("the engine does not answer")),
    }
}
