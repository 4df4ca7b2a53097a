//! Output formats: `--output table|wide|json|yaml|name`.
//!
//! Every result is one value. For people it is a table or a sentence; for programs it is the value itself, or the names
//! in it.

use clap::ValueEnum;
use serde_json::Value;

use crate::table::Width;
use crate::{visible, yaml};

/// Values of `--output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatWord {
    /// Tables and sentences; columns that do not fit are left out
    Table,
    /// Tables with all columns and complete ids
    Wide,
    /// Complete result as JSON
    Json,
    /// Complete result as YAML
    Yaml,
    /// Names, event ids or numbers only, one per line
    Name,
}

/// The output format of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Tables and sentences for people.
    Text(Width),
    /// Data for programs.
    Data(DataFormat),
}

/// The format of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFormat {
    Json,
    Yaml,
    /// Only names.
    Name,
}

impl FormatWord {
    /// The format, for the terminal or the pipe that standard output is.
    #[must_use]
    pub fn format(self) -> OutputFormat {
        match self {
            Self::Table => OutputFormat::Text(Width::of_output()),
            Self::Wide => OutputFormat::Text(Width::Wide),
            Self::Json => OutputFormat::Data(DataFormat::Json),
            Self::Yaml => OutputFormat::Data(DataFormat::Yaml),
            Self::Name => OutputFormat::Data(DataFormat::Name),
        }
    }
}

impl OutputFormat {
    /// The width of tables. Data has none.
    #[must_use]
    pub fn width(self) -> Width {
        match self {
            Self::Text(width) => width,
            Self::Data(_) => Width::Wide,
        }
    }
}

impl DataFormat {
    /// One document. `names` finds the names in the value.
    pub fn document(self, value: &Value, names: impl FnOnce(&Value) -> Vec<String>) -> String {
        match self {
            Self::Json => visible::json(&format!("{value:#}\n")),
            Self::Yaml => yaml::document(value),
            Self::Name => names(value).iter().map(|name| format!("{}\n", visible::one_line(name))).collect(),
        }
    }

    /// One document of a stream: like any other, except that JSON is on one line.
    pub fn element(self, value: &Value, names: impl FnOnce(&Value) -> Vec<String>) -> String {
        match self {
            Self::Json => visible::json(&format!("{value}\n")),
            Self::Yaml | Self::Name => self.document(value, names),
        }
    }
}

/// A text or a number as a name.
#[must_use]
pub fn as_name(value: &Value) -> Option<String> {
    match value {
        Value::String(name) => Some(name.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The names in a member of each element of a list. A value that is no list has none.
#[must_use]
pub fn names_in(list: &Value, member: &str) -> Vec<String> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| as_name(&item[member])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_a_document_in_each_format() {
        let value = json!({ "items": [{ "id": 3, "text": "a\u{202e}b" }] });
        let document = |format: DataFormat| format.document(&value, |value| names_in(&value["items"], "id"));
        assert_eq!(
            document(DataFormat::Json),
            "{\n  \"items\": [\n    {\n      \"id\": 3,\n      \"text\": \"a\\u202eb\"\n    }\n  ]\n}\n"
        );
        assert_eq!(document(DataFormat::Yaml), "---\nitems:\n  - id: 3\n    text: \"a\\u202eb\"\n");
        assert_eq!(document(DataFormat::Name), "3\n");
    }

    #[test]
    fn json_in_a_stream_is_on_one_line() {
        let value = json!({ "a": [1], "b": "x" });
        let none = |_: &Value| Vec::new();
        assert_eq!(DataFormat::Json.element(&value, none), "{\"a\":[1],\"b\":\"x\"}\n");
        assert_eq!(DataFormat::Yaml.element(&value, none), "---\na:\n  - 1\nb: x\n");
        assert_eq!(DataFormat::Name.element(&value, none), "");
    }

    #[test]
    fn a_name_stays_on_its_line() {
        let document = DataFormat::Name.document(&json!({}), |_| vec!["a\nb".to_owned()]);
        assert_eq!(document, "a\\nb\n");
    }
}
