//! The endpoint and hyper on the same bytes: where they disagree about what is a request, and where it ends, there is a reason.
//!
//! Every request that both take shows, by what follows it, that they agree where it ends. The endpoint is the stricter one by
//! design; each way in which it is stricter is a [`Reason`], and stands in docs/reference/http.md. Anything else fails.

#![cfg(test)]

mod hyper_server;
mod message;
mod mutations;
mod reasons;

use std::collections::BTreeSet;

use forewarn_fuzz::answers::{self, Answer};
use forewarn_fuzz::corpus::{self, Input};
use forewarn_fuzz::endpoint::MemoryEndpoint;
use forewarn_fuzz::{Target, large};
use forewarn_imds::RequestError;
use forewarn_metadata::fuzzing::Script;

use hyper_server::Hyper;
use message::Message;
use reasons::{Disagreement, Reason};

/// Mutations of each file: some thousands altogether.
const MUTATIONS_OF_EACH: usize = 24;

/// What a server made of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    /// Requests that it took for requests, whatever it answered.
    taken: usize,
    /// Whether it refused what came after them.
    refused: bool,
    /// Whether the last of them was refused, too, and was the last: nobody knows whether its body was any good.
    refused_last: bool,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Endpoint,
    Hyper,
}

struct Servers {
    endpoint: MemoryEndpoint,
    hyper: Hyper,
}

impl Servers {
    fn new() -> Self {
        Self { endpoint: MemoryEndpoint::new(), hyper: Hyper::new() }
    }

    /// Why they disagree about these bytes; nothing, if they do not.
    fn compare(&self, bytes: &[u8]) -> Result<Option<Reason>, Disagreement> {
        reasons::explain(self.endpoint_sees(bytes), self.hyper.see(bytes), |taken| {
            let here = self.end_of(bytes, taken);
            let before =
                taken.checked_sub(1).map(|before| Message::read(&bytes[self.end_of(bytes, before)..here]));
            (before, Message::read(&bytes[here..]))
        })
    }

    fn endpoint_sees(&self, bytes: &[u8]) -> Seen {
        let answers = self.endpoint.answer(Script::new(vec![bytes.to_vec()]));
        seen_by_endpoint(&answers::read(&answers).unwrap())
    }

    /// Where the last of so many messages ends that both take: the shortest beginning in which the endpoint, or hyper, takes them.
    fn end_of(&self, bytes: &[u8], taken: usize) -> usize {
        let takes = |end: usize| {
            self.endpoint_sees(&bytes[..end]).taken.max(self.hyper.see(&bytes[..end]).taken) >= taken
        };
        let (mut low, mut high) = (0, bytes.len());
        while low < high {
            let middle = low.midpoint(high);
            if takes(middle) { high = middle } else { low = middle + 1 }
        }
        low
    }
}

/// A refusal of the framing closes the connection and is no answer to what was asked.
fn seen_by_endpoint(answers: &[Answer]) -> Seen {
    let is_refusal = |answer: &&Answer| {
        let is_framing = [RequestError::Malformed, RequestError::ForeignHost { advice: None }]
            .iter()
            .any(|problem| answer.body == problem.body().as_bytes())
            || answer.body.ends_with(b" is not accepted\" }");
        answer.closes
            && (matches!(answer.status, 413 | 414 | 431)
                || (answer.status == 400 && (is_framing || answer.body.is_empty())))
    };
    let refused = answers.last().as_ref().is_some_and(is_refusal);
    let refused_last = !refused && answers.last().is_some_and(|answer| answer.closes && answer.status >= 400);
    Seen { taken: answers.len() - usize::from(refused), refused, refused_last }
}

fn check_all(inputs: impl IntoIterator<Item = Input>) -> BTreeSet<Reason> {
    let servers = Servers::new();
    let mut reasons = BTreeSet::new();
    let mut unexplained = Vec::new();
    for input in inputs {
        match servers.compare(&input.bytes) {
            Ok(reason) => reasons.extend(reason),
            Err(disagreement) => unexplained.push(format!("{}: {disagreement}", input.name)),
        }
    }
    let shown: Vec<_> = unexplained.iter().take(20).map(String::as_str).collect();
    assert!(unexplained.is_empty(), "{} unexplained:\n{}", unexplained.len(), shown.join("\n"));
    reasons
}

fn files() -> Vec<Input> {
    let mut inputs = corpus::files(Target::Request);
    let bodies = corpus::files(Target::StartRequests);
    inputs.extend(
        bodies.into_iter().map(|body| Input { bytes: corpus::approval(&body.bytes), name: body.name }),
    );
    inputs
}

/// promise: M5
#[test]
fn every_disagreement_about_the_corpus_is_explained_and_every_explanation_is_needed() {
    let found = check_all(files().into_iter().chain(large::inputs(Target::Request)));
    let unneeded: Vec<_> = Reason::ALL.iter().filter(|reason| !found.contains(reason)).collect();
    assert!(unneeded.is_empty(), "nothing in the corpus needs these: {unneeded:?}");
}

/// promise: M5
#[test]
fn every_disagreement_about_mutations_of_the_corpus_is_explained() {
    let inputs = files();
    check_all(mutations::of(&inputs, MUTATIONS_OF_EACH));
}

/// promise: M5
#[test]
fn every_reason_is_documented() {
    let document = include_str!("../../../docs/reference/http.md");
    for reason in Reason::ALL {
        assert!(document.contains(&format!("`{}`", reason.name())), "{}", reason.name());
    }
}
