//! Approvals in flight. Each has its own connection, so that none waits for a long poll or for another approval.

use std::collections::HashMap;

use forewarn_agent_core::ApprovalResult;
use forewarn_client::http::error_chain;
use forewarn_client::{Client, Error};
use forewarn_types::EventId;
use tokio::task::{Id, JoinSet};

#[derive(Debug, Default)]
pub(super) struct Approvals {
    tasks: JoinSet<ApprovalResult>,
    events: HashMap<Id, EventId>,
}

impl Approvals {
    /// Approves an event with a client of its own.
    pub(super) fn start(&mut self, mut client: Client, event: EventId) {
        let handle = self.tasks.spawn(async move {
            match client.approve(&[event]).await {
                Ok(()) => ApprovalResult::Accepted,
                Err(error) if was_rejected(&error) => ApprovalResult::Rejected(error_chain(&error)),
                Err(error) => ApprovalResult::Unknown(error_chain(&error)),
            }
        });
        self.events.insert(handle.id(), event);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.events.is_empty()
    }

    /// The next result; never, if none is in flight. Cancel safe.
    pub(super) async fn next(&mut self) -> (EventId, ApprovalResult) {
        loop {
            let Some(joined) = self.tasks.join_next_with_id().await else {
                std::future::pending::<()>().await;
                continue;
            };
            let (id, result) = match joined {
                Ok((id, result)) => (id, result),
                Err(error) => {
                    (error.id(), ApprovalResult::Unknown(format!("internal error of the agent: {error}")))
                }
            };
            if let Some(event) = self.events.remove(&id) {
                return (event, result);
            }
        }
    }
}

/// True if the endpoint has rejected the approval; otherwise its result is unknown.
fn was_rejected(error: &Error) -> bool {
    match error {
        Error::Rejected { .. } | Error::Busy { .. } | Error::Unsupported => true,
        Error::Unreachable { .. }
        | Error::TimedOut { .. }
        | Error::Unreadable(_)
        | Error::NotAnEndpoint { .. } => false,
    }
}
