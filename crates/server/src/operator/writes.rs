//! Commands, and the clock.

use axum::Json;
use axum::body::Bytes;
use forewarn_control::{ClockOrder, ClockView, NamedCommand, Outcome, SPEED_MAX};
use forewarn_types::Span;

use super::body::read;
use super::fault::Fault;
use super::reads;
use super::visit::Visit;
use crate::clock::Speed;
use crate::message::ClockCommand;

pub(super) async fn command(visit: Visit, body: Bytes) -> Result<Json<Outcome>, Fault> {
    let command: NamedCommand = read(&body)?;
    Ok(Json(visit.order(vec![command], &body).await?))
}

pub(super) async fn clock(visit: Visit, body: Bytes) -> Result<Json<ClockView>, Fault> {
    let command = match read(&body)? {
        ClockOrder::Freeze {} => ClockCommand::Run(Speed(0)),
        ClockOrder::Scale { speed } if speed > SPEED_MAX => {
            return Err(Fault::bad(format!("the clock is too fast: at most {SPEED_MAX}")));
        }
        ClockOrder::Scale { speed } => ClockCommand::Run(Speed(speed)),
        ClockOrder::Advance { by: Span(span) } => ClockCommand::Advance(span),
        ClockOrder::Next { within } => ClockCommand::Next { within: within.map(|Span(span)| span) },
    };
    visit.engine.drive_for(command, visit.context(&body)?).await?;
    reads::clock(visit).await
}
