//! The word for the time at which tenants are enrolled, in settings, fleet files and stories.

use forewarn_lifecycle::EnrolmentRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The time at which tenants are enrolled, so that their machines get notice of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnrolmentWord {
    /// A tenant is enrolled by the first poll of one of its machines, and loses it after 24 hours without a poll.
    #[default]
    OnFirstPoll,
    /// Every tenant is enrolled as soon as it exists, and stays so.
    Always,
}

impl EnrolmentWord {
    /// The word in settings, files and stories.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::OnFirstPoll => "on-first-poll",
            Self::Always => "always",
        }
    }
}

impl From<EnrolmentRule> for EnrolmentWord {
    fn from(rule: EnrolmentRule) -> Self {
        match rule {
            EnrolmentRule::OnFirstPoll => Self::OnFirstPoll,
            EnrolmentRule::Always => Self::Always,
        }
    }
}

impl From<EnrolmentWord> for EnrolmentRule {
    fn from(word: EnrolmentWord) -> Self {
        match word {
            EnrolmentWord::OnFirstPoll => Self::OnFirstPoll,
            EnrolmentWord::Always => Self::Always,
        }
    }
}
