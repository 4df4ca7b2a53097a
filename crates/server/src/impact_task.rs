//! Impact tasks: each runs one order of the driver program until its result is known.

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::ControlError;
use forewarn_control::request::ClusterRequest;
use forewarn_hypervisor::{DriverRequest, DriverResponse, Program};
use forewarn_lifecycle::{Action, Report};
use tokio::sync::{mpsc, oneshot, watch};

use crate::message::ClusterMessage;

/// First and longest pause between attempts.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The reason of a failure for which the driver program gives none.
const NO_REASON: &str = "the driver program gave no reason";

/// An order, the program that carries it out, and the driver that gets the result.
pub(crate) struct ImpactTask {
    pub(crate) program: Program,
    /// None if the machine or the host is gone: nothing is left to do.
    pub(crate) order: Option<DriverRequest>,
    pub(crate) action: Action,
    pub(crate) driver: mpsc::WeakSender<ClusterMessage>,
    /// No order is repeated once the server stops: the next server repeats it.
    pub(crate) stop: watch::Receiver<bool>,
}

impl ImpactTask {
    /// Runs the order until its result is known, reports it, and ends the task.
    pub(crate) async fn run(mut self) {
        if let Some((report, reason)) = self.carry_out().await {
            let Action { maintenance: work, target, .. } = self.action;
            self.report(ClusterRequest::Report { work, target, report, reason }).await;
        }
        if let Some(driver) = self.driver.upgrade() {
            let Action { maintenance: work, target, .. } = self.action;
            // The driver may have stopped.
            drop(driver.send(ClusterMessage::ImpactOver { work, target }).await);
        }
    }

    async fn carry_out(&mut self) -> Option<(Report, Option<String>)> {
        let Some(order) = self.order.take() else { return Some((Report::Done, None)) };
        let DriverRequest { action, machine, host, .. } = &order;
        let (mut pause, allowance) = (PAUSE_MIN, Arc::default());
        for tries in 1.. {
            let reason = match self.program.perform(&order, &allowance).await {
                DriverResponse::Done => return Some((Report::Done, None)),
                DriverResponse::Failed { message: reason } => {
                    let reason = if reason.is_empty() { NO_REASON.to_owned() } else { reason };
                    tracing::warn!(action, machine, host, reason, "impact failed");
                    return Some((Report::Failed, Some(reason)));
                }
                DriverResponse::Unknown { message: reason } => reason,
            };
            tracing::warn!(
                action,
                machine,
                host,
                reason,
                tries,
                "driver program gave no usable result; retrying"
            );
            self.report_delay(tries, &reason).await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // An error means that the sender is gone: the server stops.
                _ = self.stop.wait_for(|stop| *stop) => return None,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        None
    }

    /// Reports the reason of a retry to the driver.
    async fn report_delay(&self, tries: u32, message: &str) {
        if let Some(driver) = self.driver.upgrade() {
            let Action { maintenance: work, target, .. } = self.action;
            let times = if tries == 1 { "once" } else { "several times" };
            let reason = format!("tried {times}, last: {message}");
            drop(driver.send(ClusterMessage::ImpactDelayed { work, target, reason }).await);
        }
    }

    async fn report(&mut self, report: ClusterRequest) {
        let mut pause = PAUSE_MIN;
        while let Some(driver) = self.driver.upgrade() {
            let (request, (reply, result)) = (Box::new(report.clone()), oneshot::channel());
            if driver.send(ClusterMessage::Request { request, reply }).await.is_err() {
                return;
            }
            drop(driver);
            match result.await {
                // The journal may recover; the report must not be lost.
                Ok(Err(ControlError::Unavailable)) => {}
                Ok(_) | Err(_) => return,
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = self.stop.wait_for(|stop| *stop) => return,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}
