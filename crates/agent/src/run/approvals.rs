//! Approvals that are under way, each over a line of its own: none waits behind a question, or behind another.

use std::collections::HashMap;

use forewarn_agent_core::Answer;
use forewarn_client::http::error_chain;
use forewarn_client::{Client, Error};
use forewarn_types::EventId;
use tokio::task::{Id, JoinSet};

/// Approvals that are under way.
#[derive(Debug, Default)]
pub(super) struct Approvals {
    tasks: JoinSet<Answer>,
    events: HashMap<Id, EventId>,
}

impl Approvals {
    /// Approves an event, with a client of its own.
    pub(super) fn start(&mut self, mut client: Client, event: EventId) {
        let handle = self.tasks.spawn(async move {
            match client.approve(&[event]).await {
                Ok(()) => Answer::Taken,
                Err(error) if was_answered(&error) => Answer::Refused(error_chain(&error)),
                Err(error) => Answer::Unknown(error_chain(&error)),
            }
        });
        self.events.insert(handle.id(), event);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.events.is_empty()
    }

    /// The next one that is answered; never, if none is under way. Nothing is lost if it is not waited for to the end.
    pub(super) async fn next(&mut self) -> (EventId, Answer) {
        loop {
            let Some(joined) = self.tasks.join_next_with_id().await else {
                std::future::pending::<()>().await;
                continue;
            };
            let (id, answer) = match joined {
                Ok((id, answer)) => (id, answer),
                Err(problem) => {
                    (problem.id(), Answer::Unknown(format!("the agent itself has failed at it: {problem}")))
                }
            };
            if let Some(event) = self.events.remove(&id) {
                return (event, answer);
            }
        }
    }
}

/// Whether the endpoint has said that it does not take it. Whoever has heard nothing knows nothing.
fn was_answered(error: &Error) -> bool {
    match error {
        Error::Refused { .. } | Error::Busy { .. } | Error::NotOffered => true,
        Error::Unreachable { .. }
        | Error::Late { .. }
        | Error::Unreadable(_)
        | Error::NotAnEndpoint { .. } => false,
    }
}
