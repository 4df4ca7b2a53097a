//! The command of an audit entry: compact JSON, kept as text. A tree of a large request would cost more than all of
//! its changes, and few readers need one.

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Bytes of a command as JSON; of a larger command, only the length and the hash are stored.
pub const COMMAND_BYTES_MAX: usize = 256 << 10;

/// Nesting of a command as JSON: readers of an entry may limit the depth.
const COMMAND_DEPTH_MAX: usize = 64;

/// A command as compact JSON. A new one is within the limits of an entry.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct CommandJson(#[schemars(with = "Value")] Box<RawValue>);

impl CommandJson {
    /// The command that a value describes. None for `null`, which JSON does not distinguish from an absent command.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        let text = to_raw_value(value).ok().filter(|_| !value.is_null())?;
        if depth(value) > COMMAND_DEPTH_MAX { left_out(text.get()) } else { bounded(text) }.map(Self)
    }

    /// A command of a type that limits the nesting, written without a tree.
    pub(crate) fn from_type(command: &impl Serialize) -> Option<Self> {
        to_raw_value(command).ok().and_then(bounded).map(Self)
    }

    /// The command as a tree.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }
}

impl PartialEq for CommandJson {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl<'de> Deserialize<'de> for CommandJson {
    /// Reads any JSON, of which the compact form is kept.
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(input)?;
        to_raw_value(&value).map(Self).map_err(D::Error::custom)
    }
}

fn bounded(text: Box<RawValue>) -> Option<Box<RawValue>> {
    if text.get().len() > COMMAND_BYTES_MAX { left_out(text.get()) } else { Some(text) }
}

/// The length and the hash of a command that is not stored.
fn left_out(text: &str) -> Option<Box<RawValue>> {
    let hash = HEXLOWER.encode(&Sha256::digest(text));
    to_raw_value(&json!({ "left_out": { "bytes": text.len(), "sha256": hash } })).ok()
}

fn depth(value: &Value) -> usize {
    let inside = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(members) => members.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + inside.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_the_same_text_from_a_tree_from_a_type_and_from_a_file() {
        let value = json!({ "b": ["é\u{7f}\u{2028}\"\n", 1, -2, true, null, {}, []], "a": {} });
        let from_value = CommandJson::from_value(&value).unwrap();
        assert_eq!(serde_json::to_string(&from_value).unwrap(), value.to_string());
        assert_eq!(CommandJson::from_type(&value).unwrap(), from_value);
        let spaced = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(serde_json::from_str::<CommandJson>(&spaced).unwrap(), from_value);
        assert_eq!(from_value.to_value(), value);
        assert_eq!(CommandJson::from_value(&Value::Null), None);
    }

    #[test]
    fn a_command_at_a_limit_is_kept_and_one_beyond_it_is_left_out() {
        let is_kept = |value: &Value| CommandJson::from_value(value).unwrap().to_value() == *value;
        let text = |bytes: usize| Value::from("x".repeat(bytes - r#""""#.len()));
        assert!(is_kept(&text(COMMAND_BYTES_MAX)) && !is_kept(&text(COMMAND_BYTES_MAX + 1)));
        let nested = |depth| (0..depth).fold(json!(1), |inside, _| json!([inside]));
        assert!(is_kept(&nested(COMMAND_DEPTH_MAX)) && !is_kept(&nested(COMMAND_DEPTH_MAX + 1)));
        let long = CommandJson::from_type(&text(COMMAND_BYTES_MAX + 1)).unwrap().to_value();
        assert_eq!(long["left_out"]["bytes"], COMMAND_BYTES_MAX + 1);
        assert_eq!(long, CommandJson::from_value(&text(COMMAND_BYTES_MAX + 1)).unwrap().to_value());
    }
}
