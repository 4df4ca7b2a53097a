//! Requests of a machine with an injected fault. Only test servers get here.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::{Connection, NextStep};
use crate::callers::{Alteration, Caller, DocumentView, Failure, TakenFault};
use crate::control_plane::ControlPlane;
use crate::perform::document_response;
use crate::request::KnownIncarnations;
use crate::response::Response;
use crate::response_rules::ResponseRules;
use crate::route::{Action, Wait};
use crate::stream::ClientStream;

/// Interval at which a request that waits looks for events that appear late: no publication wakes it.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

impl<C: ControlPlane, S: ClientStream> Connection<C, S> {
    /// Serves a request with its fault.
    pub(super) async fn serve_with_fault(
        &mut self,
        fault: TakenFault,
        (caller, action): (Arc<Caller>, Action),
        rules: ResponseRules,
    ) -> io::Result<NextStep> {
        match fault {
            TakenFault::Instead(failure) => self.fail(failure, rules).await,
            TakenFault::Altered { answer, view } => {
                self.serve_altered((answer, view), (caller, action), rules).await
            }
        }
    }

    /// Ends a request that is not processed. It is in no count of the endpoint.
    async fn fail(&mut self, failure: Failure, rules: ResponseRules) -> io::Result<NextStep> {
        match failure {
            Failure::Reset => {
                self.stream.reset_on_close();
                return Ok(NextStep::Close);
            }
            Failure::Status(_) | Failure::Hang => {}
        }
        if let Err(problem) = self.collect(rules).await? {
            return self.refuse_and_drain(problem, rules).await;
        }
        let Failure::Status(status) = failure else {
            self.release_buffers();
            tokio::select! {
                () = sleep(self.limits.life) => {}
                () = self.disconnected() => {}
                () = self.guard.stopping() => {}
            }
            return Ok(NextStep::Close);
        };
        let now = self.endpoint.control.now();
        self.output.clear();
        let response = Response::Fault(status);
        response.write(&mut self.output, now.wall, rules.connection_mode, rules.body_mode);
        self.write_output().await?;
        Ok(rules.connection_mode.into())
    }

    /// Processes a request as usual, and alters its answer.
    async fn serve_altered(
        &mut self,
        (answer, view): (Alteration, DocumentView),
        (caller, mut action): (Arc<Caller>, Action),
        rules: ResponseRules,
    ) -> io::Result<NextStep> {
        let admitted = self.endpoint.admit(&caller, &action).await;
        let body = match self.collect(rules).await? {
            Ok(body) => body,
            Err(problem) => return self.refuse_and_drain(problem, rules).await,
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(problem) => {
                let now = self.endpoint.control.now();
                return self.finish(&problem.into(), rules, now).await;
            }
        };
        if let Action::Events { wait: Some(wait), .. } = &action
            && self.shown_incarnation(&caller, view) == wait.incarnation
        {
            match self.endpoint.admit_waiting(&caller) {
                Ok(_waiting) => self.wait_for_shown_change(&caller, *wait, view).await,
                Err(problem) => {
                    let now = self.endpoint.control.now();
                    return self.finish(&problem.into(), rules, now).await;
                }
            }
        }
        let known = take_known(&mut action);
        let read_before = caller.last_poll().map_or(0, |poll| poll.last_audit_entry);
        let mut response = self.endpoint.perform(&caller, action, &body, &admitted).await;
        let now = self.endpoint.control.now();
        if let Response::Document { published, edition } = response {
            response = document_response(view.of(published, now.wall), edition, &known);
        }
        if let (Alteration::Truncated | Alteration::Empty, Some(poll)) = (&answer, caller.last_poll()) {
            // The machine has polled, and has read nothing new.
            caller.polled.note(poll.at, poll.edition, read_before);
        }
        match answer {
            Alteration::None => {}
            Alteration::Truncated => return self.send_truncated(&response, rules).await,
            Alteration::Empty => response = Response::NothingYet,
            Alteration::Slow(delay) => {
                tokio::select! {
                    () = sleep(delay) => {}
                    () = self.disconnected() => {}
                    () = self.guard.stopping() => {}
                }
            }
        }
        let now = self.endpoint.control.now();
        self.finish(&response, rules, now).await
    }

    /// Sends half of the body, or half of the head of a response without a body, and closes the connection.
    async fn send_truncated(&mut self, response: &Response, rules: ResponseRules) -> io::Result<NextStep> {
        let now = self.endpoint.control.now();
        self.endpoint.counts.count_response(rules.path, response.code());
        self.output.clear();
        response.write(&mut self.output, now.wall, rules.connection_mode, rules.body_mode);
        let end = self.output.windows(4).position(|four| four == b"\r\n\r\n").map_or(0, |at| at + 4);
        let body_bytes = self.output.len() - end;
        self.output.truncate(if body_bytes > 0 { end + body_bytes / 2 } else { end / 2 });
        self.write_output().await?;
        Ok(NextStep::Drain)
    }

    fn shown_incarnation(&self, caller: &Caller, view: DocumentView) -> u64 {
        view.of(caller.slot.read(), self.endpoint.control.now().wall).document.incarnation
    }

    /// Waits until the document that the caller sees changes, the wait expires, or the client disconnects.
    async fn wait_for_shown_change(&self, caller: &Caller, wait: Wait, view: DocumentView) {
        let changed = async {
            while self.shown_incarnation(caller, view) == wait.incarnation && !caller.slot.is_retired() {
                sleep(LOOK_INTERVAL).await;
            }
        };
        tokio::select! {
            _ = tokio::time::timeout(wait.at_most, changed) => {}
            () = self.disconnected() => {}
            () = self.guard.stopping() => {}
        }
    }
}

/// Takes the incarnations that the client knows: they are compared with the one that it sees.
fn take_known(action: &mut Action) -> KnownIncarnations {
    match action {
        Action::Events { known, .. } => std::mem::take(known),
        Action::Approve
        | Action::Instance { .. }
        | Action::Versions
        | Action::Members
        | Action::Token { .. } => KnownIncarnations::default(),
    }
}
