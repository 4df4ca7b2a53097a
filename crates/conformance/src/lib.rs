//! Checks of an endpoint of Scheduled Events: does it keep the contract that clients rely on?
//!
//! ```text
//!   requests ──▶ refused and accepted as documented?            always
//!   visible events ──▶ every field, in every edition            if an event is visible
//!   commands that make events ──▶ announcement, notice, no start before approval, start, end
//! ```
//!
//! The judge is independent of the server: it sends requests as a client would, and knows nothing but the responses. A
//! check that could not run is never counted as passed.

#![warn(missing_docs)]

mod approvals;
mod catalogue;
mod check;
mod documents;
mod endpoint;
mod events;
mod formats;
mod observer;
mod report;
mod requests;

use std::time::Duration;

use forewarn_http_client::Url;
use forewarn_types::EventKind;

pub use catalogue::CHECKS;
pub use check::{Check, Outcome, Severity};
pub use report::{Report, Score};

use endpoint::Endpoint;
use observer::Observer;
use report::Results;

/// The endpoint to be checked, and the permitted means.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// Base URL; `/metadata/…` is appended.
    pub url: Url,
    /// Sends no start requests and runs no commands.
    pub is_read_only: bool,
    /// Shell commands that make events, each of one kind.
    pub causes: Vec<(EventKind, String)>,
    /// Shell command that lets time pass, so that started events end.
    pub advance: Option<String>,
    /// How long unapproved events are watched.
    pub watch: Duration,
    /// Maximum time for a response, and for each event to appear, to start and to end.
    pub patience: Duration,
}

/// Reason why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ConformanceError {
    /// The endpoint does not respond at all.
    #[error(
        "the endpoint {0}\n  hint: the URL is the part before `/metadata`: http://169.254.169.254 inside a VM; \
         `--as VM` names a machine of `forewarn dev`"
    )]
    Unreachable(String),
}

/// Runs every check that is possible.
///
/// # Errors
/// Fails if the endpoint does not respond to the first request.
pub async fn run(assignment: &Assignment) -> Result<Report, ConformanceError> {
    let endpoint = Endpoint::new(&assignment.url, assignment.patience);
    let mut results = Results::new();
    // The first response after a long time may be an empty document: the service is being enabled.
    endpoint.document(forewarn_imds::Edition::newest()).await.map_err(ConformanceError::Unreachable)?;
    requests::check(&endpoint, &mut results).await;
    let mut observer = Observer::new(&endpoint);
    observer.observe(&mut results).await;
    if !assignment.is_read_only {
        approvals::check_malformed(&endpoint, &mut results).await;
        events::announce(assignment, &mut observer, &mut results).await;
    }
    documents::check_editions(&endpoint, &mut results).await;
    observer.watch(assignment.watch, &mut results).await;
    if !assignment.is_read_only {
        approvals::check(assignment, &mut observer, &mut results).await;
    }
    observer.judge(&mut results);
    Ok(results.into_report(assignment))
}
