//! Hints for a test that has failed.

use forewarn_types::show_duration;
use forewarn_url::Url;
use forewarn_verdict::count_words;

use super::outcome::{Ending, TestOutcome};
use super::preparation::Scenario;
use super::{ApprovalArg, TestArgs};
use crate::machine_url::ListenerReach;

/// The guide for programs that do not read `FOREWARN_METADATA`.
const FIXED_ADDRESS_GUIDE: &str = "docs/guides/my-program-uses-169-254-169-254.md";

/// Everything that hints depend on besides the outcome.
pub(super) struct Advisor<'a> {
    pub(super) arguments: &'a TestArgs,
    pub(super) scenario: &'a Scenario,
    /// The base URL of the first program. None if none was started.
    pub(super) first_metadata: Option<String>,
    /// Requests that the endpoint answered with an error, by the status.
    pub(super) refused: Vec<(u16, u64)>,
    pub(super) unknown_callers: UnknownCallers,
    /// Machines that the story has deleted without an event.
    pub(super) unannounced_deletions: Vec<String>,
}

/// The rule for requests of callers that are no machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownCallers {
    /// A program has made a mistake.
    Unexpected,
    /// A machine has gone, and its program has not.
    Expected,
}

impl Advisor<'_> {
    /// Hints about a test that has failed; none about one that has passed.
    pub(super) fn hints(&self, outcome: &TestOutcome) -> Vec<String> {
        let mut hints = Vec::new();
        if outcome.passed() {
            return hints;
        }
        if outcome.polled.is_empty() {
            self.add_about_polls(outcome, &mut hints);
        }
        if outcome.unapproved().next().is_some() {
            self.add_about_approvals(outcome, &mut hints);
        } else if !outcome.ended_programs.is_empty() {
            hints.push("the program has to run, and to poll, until the test ends it".to_owned());
        }
        hints.extend(self.unannounced_deletions.iter().map(|machine| {
            format!(
                "{machine} was deleted without notice: `terminate 5m` in the statement that makes it gives it one, such as \
                 `vm {machine} on h1 terminate 5m`"
            )
        }));
        self.add_about_refusals(&mut hints);
        hints
    }

    /// A test that was cut short gave the program less time than its options say.
    fn is_complete(outcome: &TestOutcome) -> bool {
        outcome.ending == Ending::Complete
    }

    fn add_about_polls(&self, outcome: &TestOutcome, hints: &mut Vec<String>) {
        let url = self.first_metadata.as_ref();
        let url = url.map(|url| format!("; FOREWARN_METADATA was {url}")).unwrap_or_default();
        hints.push(format!(
            "the program has to poll $FOREWARN_METADATA/metadata/scheduledevents?api-version=2020-07-01 with the header \
             `Metadata: true`{url}"
        ));
        if ListenerReach::of(self.arguments.metadata_listen.0.ip()) == ListenerReach::Loopback {
            hints.push(format!(
                "a program with the fixed address 169.254.169.254, or in a container, does not reach this server: see \
                 {FIXED_ADDRESS_GUIDE}"
            ));
        }
        if Self::is_complete(outcome) && outcome.ended_programs.is_empty() {
            let startup = show_duration(self.arguments.startup);
            hints.push(format!("it had {startup} for its first poll: --startup changes that"));
        }
    }

    fn add_about_approvals(&self, outcome: &TestOutcome, hints: &mut Vec<String>) {
        hints.push(
            "a program approves with POST {\"StartRequests\":[{\"EventId\":\"…\"}]} to \
             $FOREWARN_METADATA/metadata/scheduledevents?api-version=2020-07-01"
                .to_owned(),
        );
        if Self::is_complete(outcome) {
            let is_strict = matches!(self.scenario, Scenario::Events(_))
                && self.arguments.approval == ApprovalArg::Required;
            let optional =
                if is_strict { "; --approval optional accepts a program that only looks" } else { "" };
            let patience = show_duration(self.arguments.patience);
            hints.push(format!(
                "it had {patience} of real time to approve: --patience changes that{optional}"
            ));
        }
    }

    /// Hints about requests that were answered with an error: 403 is about the caller, everything else about the request.
    fn add_about_refusals(&self, hints: &mut Vec<String>) {
        let (unknown, invalid): (Vec<_>, Vec<_>) = self.refused.iter().partition(|(code, _)| *code == 403);
        if !unknown.is_empty() && self.unknown_callers == UnknownCallers::Unexpected {
            let path = self.first_metadata.as_ref().and_then(|url| Some(Url::parse(url).ok()?.target()));
            let remedy = match path.filter(|path| path != "/") {
                Some(path) => format!("the path must begin with that of FOREWARN_METADATA ({path})"),
                None => "the caller needs an address of a machine in the fleet file".to_owned(),
            };
            hints.push(format!("the endpoint answered requests with {}: {remedy}", counted(&unknown)));
        }
        if !invalid.is_empty() {
            hints.push(format!(
                "the endpoint answered requests with {}: a request needs the header `Metadata: true` and a known \
                 api-version, an approval the members StartRequests and EventId",
                counted(&invalid)
            ));
        }
    }
}

/// Codes with their numbers: `400 (3 times), 404 (1 time)`.
fn counted(refused: &[(u16, u64)]) -> String {
    let one = |(code, count): &(u16, u64)| {
        let count = usize::try_from(*count).unwrap_or(usize::MAX);
        format!("{code} ({})", count_words(count, "time"))
    };
    refused.iter().map(one).collect::<Vec<_>>().join(", ")
}
