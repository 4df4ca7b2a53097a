//! Commands, and the clock.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use forewarn_wire::Span;
use forewarn_wire::operator::{ClockOrder, ClockView, NamedCommand, Outcome};
use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::wording::plain;
use super::{Api, reads};
use crate::clock::Speed;
use crate::engine::{ClockCommand, Terms};

/// The fastest that a virtual clock runs: a year in half a minute.
const SPEED_MAX: u32 = 1_000_000;

/// Reads a body, which has to be an object; what is wrong with it is said.
///
/// The decoder alone would take a list for an object whose members come in their order.
pub(super) fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Fault> {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        Some(_) => return Err(Fault::bad("the body is not a JSON object")),
        None => return Err(Fault::bad("the body is empty: a JSON object is expected")),
    }
    let problem = |problem: serde_json::Error| {
        Fault::bad(format!("the body is not understood: {}", plain(&problem.to_string())))
    };
    serde_json::from_slice(body).map_err(problem)
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
    api.engine.drive_for(command, Terms::default()).await?;
    reads::clock(State(api)).await
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    #[test]
    fn a_body_is_an_object_and_nothing_else() {
        let read = |json: &'static str| read::<NamedCommand>(&Bytes::from_static(json.as_bytes()));
        assert_eq!(read(" {\"command\":\"brake_on\"}"), Ok(NamedCommand::BrakeOn {}));
        for wrong in ["[\"brake_on\"]", "\"brake_on\"", "", " ", "{", "{}"] {
            let status = read(wrong).expect_err(wrong).into_response().status();
            assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
        }
    }
}
