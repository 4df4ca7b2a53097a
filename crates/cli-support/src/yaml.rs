//! JSON values as YAML documents that readers of YAML 1.1 and of YAML 1.2 understand alike.
//!
//! The two versions disagree about many plain words: `no`, `1e3`, `0o7`, `12:30:00`, `2026-01-01`. Therefore a text is
//! only plain if it begins with a letter, has no character with a meaning in YAML, and is no such word. Every other
//! text is in double quotes, on one line.

use serde_json::{Number, Value};

use crate::visible::is_invisible;

/// Words that mean true, false or null in a version of YAML, in any case.
const WORDS: [&str; 9] = ["false", "n", "no", "null", "off", "on", "true", "y", "yes"];

/// Characters, besides letters and digits, that mean nothing within a plain text.
const PLAIN: &str = " _-./()+=%@,;'";

/// Bytes of the longest text before a colon. YAML limits it to 1024 characters.
const KEY_BYTES_MAX: usize = 1_000;

/// A document, with the line that separates it from the one before.
#[must_use]
pub fn document(value: &Value) -> String {
    let mut out = "---\n".to_owned();
    node(&mut out, value, 0);
    out
}

/// Writes a value from column `indent` of the current line on, and the end of its last line.
fn node(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (position, item) in items.iter().enumerate() {
                begin_line(out, position, indent);
                out.push_str("- ");
                node(out, item, indent + 2);
            }
        }
        Value::Object(members) if !members.is_empty() => {
            for (position, (key, member)) in members.iter().enumerate() {
                begin_line(out, position, indent);
                out.push_str(&self::key(key, indent));
                if is_block(member) {
                    out.push('\n');
                    begin_line(out, 1, indent + 2);
                } else {
                    out.push(' ');
                }
                node(out, member, indent + 2);
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            out.push_str(&scalar(value));
            out.push('\n');
        }
    }
}

/// Indents a line. The first line of a block begins where the block begins.
fn begin_line(out: &mut String, position: usize, indent: usize) {
    if position > 0 {
        out.extend(std::iter::repeat_n(' ', indent));
    }
}

/// Returns true if a value has lines of its own.
fn is_block(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The key of a member, with its colon.
fn key(key: &str, indent: usize) -> String {
    let text = text(key);
    if text.len() <= KEY_BYTES_MAX { format!("{text}:") } else { format!("? {text}\n{:indent$}:", "") }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(content) => text(content),
        Value::Number(value) => number(value),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A number. A reader of YAML 1.1 expects a point and the sign of the exponent.
fn number(value: &Number) -> String {
    let text = value.to_string();
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else { return text };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

fn text(content: &str) -> String {
    if is_plain(content) { content.to_owned() } else { quoted(content) }
}

fn is_plain(content: &str) -> bool {
    content.starts_with(|first: char| first.is_ascii_alphabetic())
        && !content.ends_with(' ')
        && content.chars().all(|char| char.is_alphanumeric() || PLAIN.contains(char))
        && !content.chars().any(is_invisible)
        && !WORDS.contains(&content.to_ascii_lowercase().as_str())
}

/// A text in double quotes. Characters that YAML or a terminal does not show as they are become escape sequences.
fn quoted(content: &str) -> String {
    let mut out = String::with_capacity(content.len() + 2);
    out.push('"');
    for char in content.chars() {
        match (char, u32::from(char)) {
            ('"' | '\\', _) => out.extend(['\\', char]),
            ('\n', _) => out.push_str("\\n"),
            ('\t', _) => out.push_str("\\t"),
            (_, code) if char.is_control() || is_invisible(char) || code & 0xfffe == 0xfffe => {
                let escape = if code > 0xffff { format!("\\U{code:08x}") } else { format!("\\u{code:04x}") };
                out.push_str(&escape);
            }
            (_, _) => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_objects_are_blocks() {
        let value = json!({
            "items": [
                { "name": "web_0", "tags": {}, "events": [], "host": null },
                { "name": "solo", "tags": { "role": "db" }, "events": ["A-1", [1, [true]], []] },
            ],
            "next": { "in": { "seconds": 1.5 } },
        });
        assert_eq!(
            document(&value),
            "---\n\
             items:\n\
             \x20 - name: web_0\n\
             \x20   tags: {}\n\
             \x20   events: []\n\
             \x20   host: null\n\
             \x20 - name: solo\n\
             \x20   tags:\n\
             \x20     role: db\n\
             \x20   events:\n\
             \x20     - A-1\n\
             \x20     - - 1\n\
             \x20       - - true\n\
             \x20     - []\n\
             next:\n\
             \x20 in:\n\
             \x20   seconds: 1.5\n"
        );
        assert_eq!(document(&json!([])), "---\n[]\n");
    }

    #[test]
    fn a_text_that_a_reader_might_take_for_something_else_is_quoted() {
        for plain in
            ["web_0", "update of h1, h2", "A1B2-C3", "größe", "it's", "x=y (z)", "nothing", "tenant/name"]
        {
            assert_eq!(text(plain), plain);
        }
        for word in ["yes", "No", "ON", "off", "y", "N", "null", "Null", "true", "False"] {
            assert_eq!(text(word), format!("\"{word}\""));
        }
        let others = [
            "",
            "~",
            " x",
            "x ",
            "1",
            "-1",
            "+1",
            "0x1F",
            "0o7",
            "1e3",
            "1_000",
            ".5",
            ".inf",
            "12:30:00",
            "2026-01-01",
            "2026-01-01T00:00:00Z",
            "28512AF7",
            "-",
            "--- x",
            "- x",
            "? x",
            ": x",
            "x: y",
            "x:",
            "x #y",
            "#x",
            "*x",
            "&x",
            "!x",
            "|",
            ">",
            "@x",
            "`x`",
            "%x",
            "{x}",
            "[x]",
            "'x'",
            "a{b",
            "<<",
            "=",
            "_1",
        ];
        for other in others {
            assert_eq!(text(other), format!("\"{other}\""));
        }
        assert_eq!(text("a\"\\b\n\tc\r\u{7f}"), "\"a\\\"\\\\b\\n\\tc\\u000d\\u007f\"");
        assert_eq!(text("x\u{202e}y\u{e0041}\u{fffe}\u{85}"), "\"x\\u202ey\\U000e0041\\ufffe\\u0085\"");
    }

    #[test]
    fn a_number_stays_a_number() {
        for (value, shown) in
            [(json!(-7), "-7"), (json!(u64::MAX), "18446744073709551615"), (json!(0.25), "0.25")]
        {
            assert_eq!(scalar(&value), shown);
        }
        assert_eq!(scalar(&json!(1e300)), "1.0e+300");
        assert_eq!(scalar(&json!(-1.5e-9)), "-1.5e-9");
    }

    #[test]
    fn a_long_key_has_a_line_of_its_own() {
        let long = "k".repeat(1_001);
        assert_eq!(
            document(&json!({ "a": { long.clone(): { "b": 1 } } })),
            format!("---\na:\n  ? {long}\n  :\n    b: 1\n")
        );
    }
}
