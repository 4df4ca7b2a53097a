//! Handlers of commands and the clock.

use axum::Json;
use axum::body::Bytes;
use forewarn_control::{ClockChange, ClockView, NamedCommand, Outcome, SPEED_MAX};
use forewarn_types::{Moment, Span};

use super::body::read;
use super::context::OperatorRequest;
use super::problem::ApiProblem;
use super::reads;
use crate::clock::Speed;
use crate::message::ClockCommand;

pub(super) async fn command(request: OperatorRequest, body: Bytes) -> Result<Json<Outcome>, ApiProblem> {
    let command: NamedCommand = read(&body)?;
    Ok(Json(request.run(vec![command], &body).await?))
}

pub(super) async fn clock(request: OperatorRequest, body: Bytes) -> Result<Json<ClockView>, ApiProblem> {
    let command = match read(&body)? {
        ClockChange::Freeze {} => ClockCommand::Run(Speed(0)),
        ClockChange::Scale { speed } if speed > SPEED_MAX => {
            return Err(ApiProblem::bad(format!("invalid speed: at most {SPEED_MAX}")));
        }
        ClockChange::Scale { speed } => ClockCommand::Run(Speed(speed)),
        ClockChange::Advance { by: Span(span) } => ClockCommand::Advance(span),
        ClockChange::Until { at: Moment(at) } => ClockCommand::Until(at),
        ClockChange::Next { within } => ClockCommand::Next { within: within.map(|Span(span)| span) },
    };
    request.control.drive_for(command, request.context(&body)?).await?;
    reads::clock(request).await
}
