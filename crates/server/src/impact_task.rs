//! Impact tasks: each runs one order until its result is known.

use std::sync::Arc;
use std::time::Duration;

use forewarn_control::ControlError;
use forewarn_control::request::ClusterRequest;
use forewarn_hypervisor::{DriverRequest, DriverResponse, OutputAllowance};
use forewarn_lifecycle::{Action, HostId, Report, Target};
use forewarn_types::Span;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::host_reminder::HostReminder;
use crate::hypervisor::Performer;
use crate::message::{ClusterMessage, ImpactEnd};

/// First and longest pause between attempts.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The reason of a failure for which the driver program gives none.
const NO_REASON: &str = "the driver program gave no reason";

/// An order, the part that carries it out, and the driver that gets the result.
pub(crate) struct ImpactTask {
    pub(crate) performer: Performer,
    /// Only if a person carries out the order.
    pub(crate) reminder: Option<HostReminder>,
    /// None if the machine or the host is gone: nothing is left to do.
    pub(crate) order: Option<DriverRequest>,
    pub(crate) action: Action,
    pub(crate) driver: mpsc::WeakSender<ClusterMessage>,
    /// No order is repeated once the server stops: the next server repeats it.
    pub(crate) stop: watch::Receiver<bool>,
    /// An operator wants the order to be repeated now.
    pub(crate) wake: Arc<Notify>,
}

/// The end of an order.
enum OrderEnd {
    Known(Report, Option<String>),
    /// The result is unknown, and the order must not be repeated.
    Suspended(String),
    /// The server stops, or the order is no longer wanted.
    Abandoned,
}

impl ImpactTask {
    /// Runs the order until its result is known, reports it, and ends the task.
    pub(crate) async fn run(mut self) {
        let Action { maintenance: work, target, .. } = self.action;
        let end = match self.carry_out().await {
            OrderEnd::Known(report, reason) => {
                let report = ClusterRequest::Report { work, target, report, reason };
                // The other server carries out the order too, and this one again if it gets the cluster back.
                if self.report(report).await { ImpactEnd::Reported } else { ImpactEnd::Abandoned }
            }
            OrderEnd::Suspended(reason) => {
                self.report_delay(&reason).await;
                self.report(ClusterRequest::Suspend { work, target, reason }).await;
                ImpactEnd::Suspended
            }
            OrderEnd::Abandoned => ImpactEnd::Abandoned,
        };
        if let Some(driver) = self.driver.upgrade() {
            // The driver may have stopped.
            drop(driver.send(ClusterMessage::ImpactOver { work, target, end }).await);
        }
    }

    async fn carry_out(&mut self) -> OrderEnd {
        let Some(order) = self.order.take() else { return OrderEnd::Known(Report::Done, None) };
        if let (Some(reminder), Target::Host(host)) = (self.reminder.take(), self.action.target) {
            return self.remind(&order, &reminder, host).await;
        }
        let DriverRequest { action, machine, host, .. } = &order;
        let (mut pause, allowance) = (PAUSE_MIN, Arc::default());
        for tries in 1.. {
            let reason = match self.perform(&order, &allowance).await {
                DriverResponse::Done => return OrderEnd::Known(Report::Done, None),
                DriverResponse::Failed { message: reason } => {
                    let reason = if reason.is_empty() { NO_REASON.to_owned() } else { reason };
                    tracing::warn!(action, machine, host, reason, "impact failed");
                    return OrderEnd::Known(Report::Failed, Some(reason));
                }
                DriverResponse::Unknown { message: reason, repeat: false } => {
                    tracing::warn!(
                        action,
                        machine,
                        host,
                        reason,
                        "impact has an unknown result; not retrying"
                    );
                    return OrderEnd::Suspended(reason);
                }
                DriverResponse::Unknown { message: reason, repeat: true } => reason,
            };
            tracing::warn!(
                action,
                machine,
                host,
                reason,
                tries,
                "driver program gave no usable result; retrying"
            );
            let times = if tries == 1 { "once" } else { "several times" };
            self.report_delay(&format!("tried {times}, last: {reason}")).await;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.wake.notified() => {}
                // An error means that the sender is gone: the server stops.
                _ = self.stop.wait_for(|stop| *stop) => return OrderEnd::Abandoned,
            }
            if !self.is_wanted().await {
                return OrderEnd::Abandoned;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        OrderEnd::Abandoned
    }

    async fn perform(&self, order: &DriverRequest, allowance: &Arc<OutputAllowance>) -> DriverResponse {
        match &self.performer {
            Performer::Program(program) => program.perform(order, allowance).await,
            Performer::Command(command) => command.perform(order, allowance).await,
            Performer::Simulated | Performer::Person { .. } => DriverResponse::Done,
        }
    }

    /// Writes and logs that a host is ready for the work of a person, again and again until it is done.
    async fn remind(&mut self, order: &DriverRequest, reminder: &HostReminder, id: HostId) -> OrderEnd {
        let DriverRequest { action, host, work, .. } = order;
        let (maintenance, interval) = (self.action.maintenance, Span(reminder.interval));
        let mut logged = None;
        loop {
            self.report(ClusterRequest::Remind { work: maintenance, host: id, interval }).await;
            let written = reminder.written(maintenance, id);
            if logged != Some(written) {
                tracing::warn!(action, host, work, "host is ready for work; `forewarn host done` ends it");
                logged = Some(written);
            }
            tokio::select! {
                () = reminder.wait(written) => {}
                () = self.wake.notified() => {}
                _ = self.stop.wait_for(|stop| *stop) => return OrderEnd::Abandoned,
            }
            if !self.is_wanted().await {
                return OrderEnd::Abandoned;
            }
        }
    }

    /// Asks the driver whether the action is still to be carried out: an operator may have given it up, or the host of
    /// its machine may have failed.
    async fn is_wanted(&self) -> bool {
        let Action { maintenance: work, target, .. } = self.action;
        let Some(driver) = self.driver.upgrade() else { return false };
        let (reply, wanted) = oneshot::channel();
        let sent = driver.send(ClusterMessage::IsWanted { work, target, reply }).await;
        sent.is_ok() && wanted.await.unwrap_or(false)
    }

    /// Reports the reason of a retry to the driver.
    async fn report_delay(&self, reason: &str) {
        if let Some(driver) = self.driver.upgrade() {
            let Action { maintenance: work, target, .. } = self.action;
            let reason = reason.to_owned();
            drop(driver.send(ClusterMessage::ImpactDelayed { work, target, reason }).await);
        }
    }

    /// Returns false if another server decides about the cluster.
    async fn report(&mut self, report: ClusterRequest) -> bool {
        let mut pause = PAUSE_MIN;
        while let Some(driver) = self.driver.upgrade() {
            let (request, (reply, result)) = (Box::new(report.clone()), oneshot::channel());
            if driver.send(ClusterMessage::Request { request, reply }).await.is_err() {
                return true;
            }
            drop(driver);
            match result.await {
                // The journal may recover; the report must not be lost.
                Ok(Err(ControlError::Unavailable)) => {}
                Ok(Err(ControlError::Elsewhere)) => return false,
                Ok(_) | Err(_) => return true,
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = self.stop.wait_for(|stop| *stop) => return true,
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        true
    }
}
