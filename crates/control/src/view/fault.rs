//! Faults of a test server: request bodies and views.

use forewarn_types::{FAULT_REQUESTS_MAX, FaultAnswer, FaultedRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::schema;

/// A new fault of a machine or of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewFault {
    /// Machine whose requests get the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::MachineName>")]
    pub machine: Option<String>,
    /// Webhook whose messages are sent twice, instead of a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Name>")]
    pub webhook: Option<String>,
    /// Requests of the machine that the fault applies to; polls if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<FaultedRequest>,
    /// Number of requests or deliveries; 1 if absent. A fault `hide` without a number lasts until it is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = FAULT_REQUESTS_MAX))]
    pub next: Option<u32>,
    /// The answer.
    pub answer: FaultAnswer,
}

/// A fault that is not used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FaultView {
    /// Number of the fault.
    pub id: u64,
    /// Machine, as `tenant/name`; null for a fault of a webhook.
    pub machine: Option<String>,
    /// Webhook; null for a fault of a machine.
    pub webhook: Option<String>,
    /// Requests that the fault applies to; null for a fault of a webhook.
    pub request: Option<FaultedRequest>,
    /// The answer.
    pub answer: FaultAnswer,
    /// Number of requests or deliveries that the fault still applies to; null if it lasts until it is cleared.
    pub left: Option<u32>,
    /// Number of requests or deliveries that it has applied to.
    pub used: u64,
}

/// The result of clearing faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClearedFaults {
    /// Number of faults that were cleared.
    pub cleared: u32,
}

/// The reason why a fault makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFault {
    #[error("a fault has one target\n  hint: name a machine or a webhook")]
    Target,
    #[error("{0} is no fault of a webhook\n  hint: a webhook has only the fault `duplicate`")]
    OfMachine(FaultAnswer),
    #[error("{0} is no fault of a machine\n  hint: it is for a webhook")]
    OfWebhook(FaultAnswer),
    #[error("a fault of a webhook applies to its messages, not to requests")]
    RequestOfWebhook,
    #[error("{0} alters a document, so it applies to polls only")]
    PollsOnly(FaultAnswer),
}

impl NewFault {
    /// Checks that target, request and answer fit.
    ///
    /// # Errors
    /// Returns the first reason why they do not.
    pub fn check(&self) -> Result<(), BadFault> {
        let answer = self.answer;
        let is_duplicate = answer == FaultAnswer::Duplicate;
        match (&self.machine, &self.webhook, self.request.unwrap_or_default()) {
            (None, None, _) | (Some(_), Some(_), _) => Err(BadFault::Target),
            (Some(_), None, _) if is_duplicate => Err(BadFault::OfWebhook(answer)),
            (Some(_), None, FaultedRequest::Approve | FaultedRequest::Any) if answer.is_for_polls() => {
                Err(BadFault::PollsOnly(answer))
            }
            (None, Some(_), _) if self.request.is_some() => Err(BadFault::RequestOfWebhook),
            (None, Some(_), _) if !is_duplicate => Err(BadFault::OfMachine(answer)),
            (Some(_), None, _) | (None, Some(_), _) => Ok(()),
        }
    }

    /// The number of requests or deliveries that the fault applies to. None: until it is cleared.
    #[must_use]
    pub fn times(&self) -> Option<u32> {
        match (self.next, self.answer) {
            (None, FaultAnswer::Hide(_)) => None,
            (next, _) => Some(next.unwrap_or(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_a_fitting_target_and_request() {
        let check = |json: &str| serde_json::from_str::<NewFault>(json).unwrap().check();
        for good in [
            r#"{"machine":"web_0","answer":"500"}"#,
            r#"{"machine":"web_0","answer":"hang","request":"any","next":3}"#,
            r#"{"machine":"web_0","answer":"hide=5s"}"#,
            r#"{"webhook":"ops","answer":"duplicate","next":2}"#,
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let refused = |json: &str| check(json).unwrap_err();
        assert_eq!(refused(r#"{"answer":"500"}"#), BadFault::Target);
        assert_eq!(refused(r#"{"machine":"a","webhook":"b","answer":"500"}"#), BadFault::Target);
        let duplicate = FaultAnswer::Duplicate;
        assert_eq!(refused(r#"{"machine":"a","answer":"duplicate"}"#), BadFault::OfWebhook(duplicate));
        assert_eq!(refused(r#"{"webhook":"a","answer":"hang"}"#), BadFault::OfMachine(FaultAnswer::Hang));
        let webhook = r#"{"webhook":"a","answer":"duplicate","request":"poll"}"#;
        assert_eq!(refused(webhook), BadFault::RequestOfWebhook);
        for answer in ["empty", "jump", "hide=5s"] {
            let polls_only = format!(r#"{{"machine":"a","answer":"{answer}","request":"any"}}"#);
            assert_eq!(refused(&polls_only), BadFault::PollsOnly(answer.parse().unwrap()));
        }
    }

    #[test]
    fn only_hiding_lasts_until_it_is_cleared() {
        let times = |json: &str| serde_json::from_str::<NewFault>(json).unwrap().times();
        assert_eq!(times(r#"{"machine":"a","answer":"hide=5s"}"#), None);
        assert_eq!(times(r#"{"machine":"a","answer":"hide=5s","next":2}"#), Some(2));
        assert_eq!(times(r#"{"machine":"a","answer":"500"}"#), Some(1));
    }
}
