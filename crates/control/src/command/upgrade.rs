//! Upgrade policy of a scale set: the way in which instances get a new model.
//!
//! ```text
//!   "manual"   "automatic"   "rolling"   {"rolling": {"batch_percent": 20, "pause": "1h"}}
//! ```

use std::fmt;
use std::time::Duration;

use forewarn_lifecycle::{Percent, UpgradePolicy};
use schemars::JsonSchema;
use serde::de::IntoDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

use crate::command::object::objects;
use forewarn_types::{Span, show_duration};

/// Upgrade policy: the way in which instances get a new model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "UpgradeForm", into = "UpgradeForm")]
pub enum UpgradeWord {
    /// Only on request, instance by instance.
    #[default]
    Manual,
    /// All at once.
    Automatic,
    /// Batch by batch.
    Rolling(RollingEntry),
}

/// A rolling upgrade: batch by batch, in the order of the numbers of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct RollingEntry {
    /// Size of a batch in percent of the instances, rounded up.
    #[schemars(range(min = 1, max = 100))]
    pub batch_percent: u8,
    /// Pause between two batches: at most 7 days.
    pub pause: Span,
}

/// Written form: a word, or an object with more.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "upgrade is \"manual\", \"automatic\", \"rolling\", or {\"rolling\": {\"batch_percent\": 20, \"pause\": \"1h\"}}"
)]
#[schemars(rename = "Upgrading")]
enum UpgradeForm {
    /// One of the words.
    #[serde(deserialize_with = "word")]
    Word(UpgradePolicyWord),
    /// A rolling upgrade with terms.
    Rolling(RollingTerms),
}

/// Reads a word from a text only: a derived reader would also accept `{"rolling": null}`.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UpgradePolicyWord, D::Error> {
    let text = String::deserialize(deserializer)?;
    UpgradePolicyWord::deserialize(text.into_deserializer())
}

/// Upgrade policy without terms.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "UpgradingWord")]
enum UpgradePolicyWord {
    /// Only on request, instance by instance.
    Manual,
    /// All at once.
    Automatic,
    /// Batch by batch: 20 % at a time, without a pause.
    Rolling,
}

/// A rolling upgrade with terms.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
struct RollingTerms {
    /// The terms.
    rolling: RollingEntry,
}

objects! { RollingEntry RollingTerms }

impl Default for RollingEntry {
    fn default() -> Self {
        Self { batch_percent: 20, pause: Span(Duration::ZERO) }
    }
}

impl From<UpgradeForm> for UpgradeWord {
    fn from(form: UpgradeForm) -> Self {
        match form {
            UpgradeForm::Word(UpgradePolicyWord::Manual) => Self::Manual,
            UpgradeForm::Word(UpgradePolicyWord::Automatic) => Self::Automatic,
            UpgradeForm::Word(UpgradePolicyWord::Rolling) => Self::Rolling(RollingEntry::default()),
            UpgradeForm::Rolling(RollingTerms { rolling }) => Self::Rolling(rolling),
        }
    }
}

impl From<UpgradeWord> for UpgradeForm {
    fn from(word: UpgradeWord) -> Self {
        match word {
            UpgradeWord::Manual => Self::Word(UpgradePolicyWord::Manual),
            UpgradeWord::Automatic => Self::Word(UpgradePolicyWord::Automatic),
            UpgradeWord::Rolling(rolling) => Self::Rolling(RollingTerms { rolling }),
        }
    }
}

/// A batch size that is zero or exceeds 100 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("batch size must be 1 to 100 % of a scale set, not {0} %")]
pub struct BatchSizeError(pub u8);

impl TryFrom<UpgradeWord> for UpgradePolicy {
    type Error = BatchSizeError;

    fn try_from(word: UpgradeWord) -> Result<Self, BatchSizeError> {
        Ok(match word {
            UpgradeWord::Manual => Self::Manual,
            UpgradeWord::Automatic => Self::Automatic,
            UpgradeWord::Rolling(RollingEntry { batch_percent, pause: Span(pause) }) => Self::Rolling {
                batch: Percent::new(batch_percent).ok_or(BatchSizeError(batch_percent))?,
                pause,
            },
        })
    }
}

impl From<UpgradePolicy> for UpgradeWord {
    fn from(policy: UpgradePolicy) -> Self {
        match policy {
            UpgradePolicy::Manual => Self::Manual,
            UpgradePolicy::Automatic => Self::Automatic,
            UpgradePolicy::Rolling { batch, pause } => {
                Self::Rolling(RollingEntry { batch_percent: batch.percent(), pause: Span(pause) })
            }
        }
    }
}

impl fmt::Display for UpgradeWord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manual => out.write_str("manual"),
            Self::Automatic => out.write_str("automatic"),
            Self::Rolling(RollingEntry { batch_percent, pause: Span(pause) }) => {
                write!(out, "rolling, {batch_percent} % at a time")?;
                if pause.is_zero() { Ok(()) } else { write!(out, ", {} between", show_duration(*pause)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_upgrade_is_a_word_or_an_object() {
        let hourly = RollingEntry { batch_percent: 34, pause: Span(Duration::from_hours(1)) };
        for (written, word, shown) in [
            (json!("manual"), UpgradeWord::Manual, "manual"),
            (json!("automatic"), UpgradeWord::Automatic, "automatic"),
            (json!("rolling"), UpgradeWord::Rolling(RollingEntry::default()), "rolling, 20 % at a time"),
            (
                json!({ "rolling": { "batch_percent": 34, "pause": "1h" } }),
                UpgradeWord::Rolling(hourly),
                "rolling, 34 % at a time, 1h between",
            ),
            (
                json!({ "rolling": { "pause": "1h" } }),
                UpgradeWord::Rolling(RollingEntry { batch_percent: 20, ..hourly }),
                "rolling, 20 % at a time, 1h between",
            ),
        ] {
            let read = |value: &Value| serde_json::from_value::<UpgradeWord>(value.clone()).unwrap();
            assert_eq!(read(&written), word);
            assert_eq!(word.to_string(), shown);
            let again = serde_json::to_value(word).unwrap();
            assert_eq!(read(&again), word, "{again}");
            assert_eq!(UpgradePolicy::try_from(word).map(UpgradeWord::from), Ok(word));
        }
    }

    #[test]
    fn invalid_upgrade_policies_are_rejected() {
        for wrong in [
            json!("sometimes"),
            json!({ "rolling": null }),
            json!({ "manual": null }),
            json!({}),
            json!({ "manual": {} }),
            json!({ "rolling": [] }),
            json!({ "rolling": { "percent": 3 } }),
            json!({ "rolling": { "batch_percent": 256 } }),
            json!({ "rolling": {}, "more": 1 }),
            json!(null),
        ] {
            let refused = serde_json::from_value::<UpgradeWord>(wrong.clone()).unwrap_err();
            assert!(refused.to_string().contains("upgrade is \"manual\""), "{wrong}: {refused}");
        }
        for percent in [0, 101, 255] {
            let word =
                UpgradeWord::Rolling(RollingEntry { batch_percent: percent, ..RollingEntry::default() });
            assert_eq!(UpgradePolicy::try_from(word), Err(BatchSizeError(percent)));
        }
    }
}
