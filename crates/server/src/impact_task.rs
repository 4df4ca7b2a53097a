//! Impact tasks: each gives one order to the driver program until its result is known.

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::ControlError;
use forewarn_control::request::{ClusterRequest, Request};
use forewarn_hypervisor::{Answer, Order, Program};
use forewarn_lifecycle::{Action, Report};
use tokio::sync::{mpsc, oneshot, watch};

use crate::message::Message;

/// The first pause before an order is given again, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The reason of a failure for which the driver program gives none.
const NO_REASON: &str = "the driver program gave no reason";

/// An order, the program that carries it out, and the driver that gets the result.
pub(crate) struct ImpactTask {
    pub(crate) program: Program,
    /// None, if the machine is gone: it needs nothing any more.
    pub(crate) order: Option<Order>,
    pub(crate) cluster: ClusterId,
    pub(crate) action: Action,
    pub(crate) driver: mpsc::WeakSender<Message>,
    /// No order is given again once the server stops: the next server gives it.
    pub(crate) stop: watch::Receiver<bool>,
}

impl ImpactTask {
    /// Gives the order until somebody knows how it ended, reports that, and says that it is over.
    pub(crate) async fn run(mut self) {
        if let Some((report, reason)) = self.carry_out().await {
            let Action { maintenance: work, machine, .. } = self.action;
            self.report(ClusterRequest::Report { work, machine, report, reason }).await;
        }
        if let Some(driver) = self.driver.upgrade() {
            let Action { maintenance, machine, .. } = self.action;
            // If nobody takes it, the driver has ended already.
            let cluster = self.cluster;
            drop(driver.send(Message::ImpactOver { cluster, work: maintenance, machine }).await);
        }
    }

    async fn carry_out(&mut self) -> Option<(Report, Option<String>)> {
        let Some(order) = self.order.take() else { return Some((Report::Done, None)) };
        let Order { action, machine, .. } = &order;
        let (mut pause, allowance) = (PAUSE_MIN, Arc::default());
        for tries in 1.. {
            let reason = match self.program.perform(&order, &allowance).await {
                Answer::Done => return Some((Report::Done, None)),
                Answer::Failed { message: reason } => {
                    let reason = if reason.is_empty() { NO_REASON.to_owned() } else { reason };
                    tracing::warn!(action, machine, reason, "an impact failed");
                    return Some((Report::Failed, Some(reason)));
                }
                Answer::Unknown { message: reason } => reason,
            };
            tracing::warn!(action, machine, reason, tries, "nobody knows how an impact ended");
            self.complain(tries, &reason).await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // It is an error if nobody is left who could say so: then it is time to stop, too.
                _ = self.stop.wait_for(|stop| *stop) => return None,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        None
    }

    /// Tells why the order has to be given again.
    async fn complain(&self, tries: u32, message: &str) {
        if let Some(driver) = self.driver.upgrade() {
            let Action { maintenance, machine, .. } = self.action;
            let times = if tries == 1 { "once" } else { "several times" };
            let trouble = format!("tried {times}, last: {message}");
            let cluster = self.cluster;
            drop(
                driver
                    .send(Message::ImpactDelayed { cluster, work: maintenance, machine, reason: trouble })
                    .await,
            );
        }
    }

    async fn report(&mut self, report: ClusterRequest) {
        let mut pause = PAUSE_MIN;
        while let Some(driver) = self.driver.upgrade() {
            let request = Request::Cluster(self.cluster, report.clone());
            let (reply, answer) = oneshot::channel();
            if driver.send(Message::Request { request, reply }).await.is_err() {
                return;
            }
            drop(driver);
            match answer.await {
                // What could not be written now can be later; it must not be forgotten.
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
