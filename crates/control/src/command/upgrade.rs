//! How a change of the model reaches the instances of a scale set, as people write it.
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

/// How a change of the model reaches the instances of a scale set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Said", into = "Said")]
pub enum UpgradeWord {
    /// When an instance is upgraded.
    #[default]
    Manual,
    /// At once.
    Automatic,
    /// Batch by batch.
    Rolling(RollingEntry),
}

/// A rolling upgrade: batch by batch, in the order of the numbers of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields, default)]
pub struct RollingEntry {
    /// How many hundredths of the instances are in a batch, rounded up.
    #[schemars(range(min = 1, max = 100))]
    pub batch_percent: u8,
    /// How long it rests between two batches: at most 7 days.
    pub pause: Span,
}

/// The same as it is written: a word, or an object that says more.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "upgrade is \"manual\", \"automatic\", \"rolling\", or {\"rolling\": {\"batch_percent\": 20, \"pause\": \"1h\"}}"
)]
#[schemars(rename = "Upgrading")]
enum Said {
    /// A word.
    #[serde(deserialize_with = "word")]
    Word(Word),
    /// Batch by batch, on terms.
    Rolling(RollingTerms),
}

/// A word is a text: a derived reader would also take `{"rolling": null}` for one.
fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
    let text = String::deserialize(deserializer)?;
    Word::deserialize(text.into_deserializer())
}

/// How a change of the model reaches instances.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "UpgradingWord")]
enum Word {
    /// When an instance is upgraded.
    Manual,
    /// At once.
    Automatic,
    /// Batch by batch: a fifth at a time, without a pause.
    Rolling,
}

/// Batch by batch, on terms.
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

impl From<Said> for UpgradeWord {
    fn from(said: Said) -> Self {
        match said {
            Said::Word(Word::Manual) => Self::Manual,
            Said::Word(Word::Automatic) => Self::Automatic,
            Said::Word(Word::Rolling) => Self::Rolling(RollingEntry::default()),
            Said::Rolling(RollingTerms { rolling }) => Self::Rolling(rolling),
        }
    }
}

impl From<UpgradeWord> for Said {
    fn from(word: UpgradeWord) -> Self {
        match word {
            UpgradeWord::Manual => Self::Word(Word::Manual),
            UpgradeWord::Automatic => Self::Word(Word::Automatic),
            UpgradeWord::Rolling(rolling) => Self::Rolling(RollingTerms { rolling }),
        }
    }
}

/// A batch of nobody, or of more than all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a batch is 1 to 100 % of a scale set, not {0} %")]
pub struct BadBatch(pub u8);

impl TryFrom<UpgradeWord> for UpgradePolicy {
    type Error = BadBatch;

    fn try_from(word: UpgradeWord) -> Result<Self, BadBatch> {
        Ok(match word {
            UpgradeWord::Manual => Self::Manual,
            UpgradeWord::Automatic => Self::Automatic,
            UpgradeWord::Rolling(RollingEntry { batch_percent, pause: Span(pause) }) => {
                Self::Rolling { batch: Percent::new(batch_percent).ok_or(BadBatch(batch_percent))?, pause }
            }
        })
    }
}

impl From<UpgradePolicy> for UpgradeWord {
    fn from(policy: UpgradePolicy) -> Self {
        match policy {
            UpgradePolicy::Manual => Self::Manual,
            UpgradePolicy::Automatic => Self::Automatic,
            UpgradePolicy::Rolling { batch, pause } => {
                Self::Rolling(RollingEntry { batch_percent: batch.hundredths(), pause: Span(pause) })
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
    fn an_upgrade_is_a_word_or_says_more() {
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
    fn what_means_nothing_is_refused() {
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
            assert_eq!(UpgradePolicy::try_from(word), Err(BadBatch(percent)));
        }
    }
}
