//! Relaxed JSON, as people write templates and the Azure command line forwards them: with comments, trailing commas,
//! multi-line texts, and names without quotes.

use std::iter::Peekable;
use std::str::Chars;

use serde_json::Value;

use crate::{ArmError, read_body};

/// Parses the body of a request with a template.
///
/// # Errors
/// Fails if it is not an object, even in relaxed JSON.
///
/// ```
/// let body = "{\"properties\": {template: {\"a\": 1, // one\n}}}";
/// let read = forewarn_azure::template::read(body.as_bytes())?;
/// assert_eq!(read["properties"]["template"]["a"], 1);
/// # Ok::<_, forewarn_azure::ArmError>(())
/// ```
pub fn read(body: &[u8]) -> Result<Value, ArmError> {
    let read = read_body(body).or_else(|problem| match str::from_utf8(body) {
        // Report the error of the strict parser, whose position matches the input.
        Ok(text) if problem.status == 400 => read_body(strict(text).as_bytes()).map_err(|_| problem),
        Ok(_) | Err(_) => Err(problem),
    });
    match read? {
        value @ Value::Object(_) => Ok(value),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ArmError::new(400, "InvalidRequestContent", "The request content is not a JSON object."))
        }
    }
}

/// Converts relaxed JSON to strict JSON, as far as possible.
fn strict(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '"' => quoted(&mut rest, &mut out),
            '/' if rest.peek() == Some(&'/') => while rest.next_if(|letter| *letter != '\n').is_some() {},
            '/' if rest.peek() == Some(&'*') => comment(&mut rest),
            '}' | ']' => {
                let end = out.trim_end().len();
                if out[..end].ends_with(',') {
                    out.truncate(end - 1);
                }
                out.push(letter);
            }
            _ if letter.is_ascii_alphabetic() || letter == '_' || letter == '$' => {
                let mut word = String::from(letter);
                while let Some(more) = rest.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                {
                    word.push(more);
                }
                let is_value = matches!(word.as_str(), "true" | "false" | "null");
                // The `e` of a number is not a name.
                let is_number = out.ends_with(|before: char| before.is_ascii_digit() || before == '.');
                out.push_str(&if is_value || is_number { word } else { format!("\"{word}\"") });
            }
            _ => out.push(letter),
        }
    }
    out
}

/// A text, which may span lines.
fn quoted(rest: &mut Peekable<Chars<'_>>, out: &mut String) {
    out.push('"');
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => {
                out.push(letter);
                out.extend(rest.next());
            }
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '"' => {
                out.push(letter);
                return;
            }
            _ => out.push(letter),
        }
    }
}

fn comment(rest: &mut Peekable<Chars<'_>>) {
    let mut before = ' ';
    rest.next();
    for letter in rest.by_ref() {
        if before == '*' && letter == '/' {
            return;
        }
        before = letter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn relaxed_json_is_read() {
        for (text, expected) in [
            (r#"{"a": 1}"#, json!({ "a": 1 })),
            (r#"{"a": {}, template:{ "$schema": "x" }}"#, json!({ "a": {}, "template": { "$schema": "x" } })),
            ("{\"a\": 1, // one, \"two\"\n \"b\": [1, 2,\n ], }", json!({ "a": 1, "b": [1, 2] })),
            ("{/* a: } */ \"a\": /**/ true /* , */}", json!({ "a": true })),
            (
                "{\"a\": \"one\n\ttwo // three /* \\\" four,]\"}",
                json!({ "a": "one\n\ttwo // three /* \" four,]" }),
            ),
            ("{a: 1e3, b_2: null, $c: -1.5E+2}", json!({ "a": 1e3, "b_2": null, "$c": -150.0 })),
            ("\u{feff}{}", json!({})),
        ] {
            assert_eq!(read(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn only_objects_are_accepted() {
        for text in [
            "",
            "[]",
            "1",
            "{",
            "{\"a\"",
            "{\"a\": \"",
            "{/*",
            "{//",
            "{a}",
            "{\"a\": b c}",
            "}",
            ",]",
            "\u{e9}",
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err().code, "InvalidRequestContent", "{text}");
        }
        assert!(read(b"{\"a\": \"\xff\"}").is_err());
        let problem = read(b"{\"a\": ]").unwrap_err();
        assert!(problem.message.contains("line 1 column 7"), "{problem}");
    }
}
