//! Commands, and the clock.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use forewarn_wire::Span;
use forewarn_wire::operator::{ClockOrder, ClockView, NamedCommand, Outcome};
use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::{Api, reads};
use crate::clock::Speed;
use crate::engine::ClockCommand;

/// The fastest that a virtual clock runs: a year in half a minute.
const SPEED_MAX: u32 = 1_000_000;

/// Reads a body; what is wrong with it is said.
pub(super) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Fault> {
    serde_json::from_slice(body)
        .map_err(|problem| Fault::bad(format!("the body is not understood: {problem}")))
}

pub(super) async fn command(State(api): State<Api>, body: Bytes) -> Result<Json<Outcome>, Fault> {
    let command: NamedCommand = read(&body)?;
    let outcome = api.engine.order(vec![command]).await;
    match &outcome {
        Ok(_) => api.metrics.commands.inc(),
        Err(_) => api.metrics.refused.inc(),
    };
    Ok(Json(outcome?))
}

pub(super) async fn clock(State(api): State<Api>, body: Bytes) -> Result<Json<ClockView>, Fault> {
    let command = match read(&body)? {
        ClockOrder::Freeze {} => ClockCommand::Run(Speed(0)),
        ClockOrder::Scale { speed } if speed > SPEED_MAX => {
            return Err(Fault::bad(format!("the clock is too fast: at most {SPEED_MAX}")));
        }
        ClockOrder::Scale { speed } => ClockCommand::Run(Speed(speed)),
        ClockOrder::Advance { by: Span(span) } => ClockCommand::Advance(span),
        ClockOrder::Next { within } => ClockCommand::Next { within: within.map(|Span(span)| span) },
    };
    api.engine.drive(command).await?;
    reads::clock(State(api)).await
}
