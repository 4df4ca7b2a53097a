//! Having a program of the operator's do something to a machine.

use std::time::Duration;

use forewarn_hypervisor::{Answer, Order, Program};
use forewarn_lifecycle::{Action, Command, Report};
use tokio::sync::{mpsc, oneshot};

use crate::engine::{Problem, Request};

/// The first pause before an order is given again, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Gives an order until somebody knows how it ended, and reports that.
pub(super) async fn run(
    program: Program,
    order: Option<Order>,
    action: Action,
    driver: mpsc::WeakSender<Request>,
) {
    let mut pause = PAUSE_MIN;
    let report = loop {
        // A machine that is gone needs nothing any more.
        let Some(order) = &order else { break Report::Done };
        let Order { action, machine, .. } = order;
        match program.perform(order).await {
            Answer::Done => break Report::Done,
            Answer::Failed { message } => {
                tracing::warn!(action, machine, message, "an impact failed");
                break Report::Failed;
            }
            Answer::Unknown { message } => {
                tracing::warn!(action, machine, message, "nobody knows how an impact ended");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    };
    let mut pause = PAUSE_MIN;
    while let Some(driver) = driver.upgrade() {
        let command = Command::Complete { maintenance: action.maintenance, machine: action.machine, report };
        let (reply, answer) = oneshot::channel();
        if driver.send(Request::Submit { command, reply }).await.is_err() {
            return;
        }
        drop(driver);
        match answer.await {
            // What could not be written now can be later; it must not be forgotten.
            Ok(Err(Problem::Unavailable)) => tokio::time::sleep(pause).await,
            Ok(_) | Err(_) => return,
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
