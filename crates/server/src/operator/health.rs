//! Liveness and readiness.

use std::time::Duration;

use axum::extract::State;

use super::Api;
use super::problem::ApiProblem;
use crate::clock_hold::ClockHold;

/// Deadline of the response of the driver of the shared stream.
const DRIVER_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

pub(super) async fn readyz(State(api): State<Api>) -> Result<&'static str, ApiProblem> {
    api.control.check_engine()?;
    if let Some(silence) = api.control.engine_silence() {
        let seconds = silence.as_secs();
        return Err(ApiProblem::unavailable(format!("etcd has not answered this server for {seconds} s")));
    }
    let response = tokio::time::timeout(DRIVER_TIMEOUT, api.control.responds()).await;
    match (api.control.write_error(), response) {
        (Some(error), _) => Err(ApiProblem::unavailable(error)),
        (None, Ok(Ok(()))) => match api.control.clock_hold() {
            Some(by_millis) => Err(ApiProblem::unavailable(ClockHold::text(by_millis))),
            None => Ok("ready\n"),
        },
        (None, Ok(Err(error))) => Err(error.into()),
        (None, Err(_)) => Err(ApiProblem::unavailable("the driver does not respond")),
    }
}
