//! Rewrites decoder errors for clients.
//!
//! serde's messages are precise but use Rust names of types. Only those are replaced.

use forewarn_control::similar;

/// Found types: serde's names, and ours.
const FOUND: [(&str, &str); 4] =
    [("sequence", "a list"), ("map", "an object"), ("unit value", "nothing"), ("null", "nothing")];

/// Expected types: serde's names, and ours.
const EXPECTED: [(&str, &str); 8] = [
    ("a sequence", "a list"),
    ("a map", "an object"),
    ("a boolean", "true or false"),
    ("u16", "a number from 0 to 65535"),
    ("u32", "a number from 0 to 4294967295"),
    ("u64", "a whole number"),
    ("usize", "a whole number"),
    ("variant identifier", "a word"),
];

/// Maximum alternatives in a hint.
const LISTED_MAX: usize = 8;

/// Rewrites a decoder's message.
pub(super) fn plain(said: &str) -> String {
    let (what, position) = said.split_at(said.rfind(" at line ").unwrap_or(said.len()));
    if let Some((word, expected)) = quoted(what, "unknown variant ") {
        return unknown(word, expected, position);
    }
    if let Some((member, "")) = quoted(what, "missing field ") {
        return format!("{member} is missing{position}");
    }
    match what.split_once(", expected ") {
        Some((found, expected)) => {
            format!("{}, expected {}{position}", type_found(found), type_expected(expected))
        }
        None => said.to_owned(),
    }
}

/// Splits ``unknown variant `fly`, expected …`` into `fly` and the rest.
fn quoted<'a>(said: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    said.strip_prefix(kind)?.strip_prefix('`')?.split_once('`')
}

/// Message about an unknown enum variant.
fn unknown(word: &str, expected: &str, position: &str) -> String {
    let known: Vec<_> = expected.split('`').skip(1).step_by(2).collect();
    let hint = match similar(word, known.iter().copied()) {
        Some(similar) => format!("\n  hint: did you mean {similar}?"),
        None if known.len() <= LISTED_MAX => format!("\n  hint: write {}", known.join(", ")),
        None => {
            format!("\n  hint: {} values are known, such as {}", known.len(), known[..LISTED_MAX].join(", "))
        }
    };
    format!("unknown value: {word:?}{position}{hint}")
}

fn type_found(said: &str) -> String {
    let (kind, found) = said.split_once(": ").unwrap_or(("", said));
    match FOUND.iter().find(|(theirs, _)| *theirs == found) {
        Some((_, ours)) => format!("{kind}: {ours}"),
        None => said.to_owned(),
    }
}

fn type_expected(said: &str) -> &str {
    if ["struct ", "tuple struct ", "internally tagged enum ", "adjacently tagged enum "]
        .iter()
        .any(|kind| said.starts_with(kind))
    {
        return "an object";
    }
    EXPECTED.iter().find(|(theirs, _)| *theirs == said).map_or(said, |(_, ours)| ours)
}

#[cfg(test)]
mod tests {
    use forewarn_control::{ClockChange, Fleet, NamedCommand};
    use serde::de::DeserializeOwned;

    use super::*;

    fn decode_error<T: DeserializeOwned>(json: &str) -> String {
        let problem = serde_json::from_str::<T>(json).err().expect("it is wrong");
        plain(&problem.to_string())
    }

    #[test]
    fn no_type_of_this_program_is_named() {
        let command = decode_error::<NamedCommand>;
        assert_eq!(command("7"), "invalid type: integer `7`, expected an object at line 1 column 1");
        assert_eq!(command("{}"), "command is missing at line 1 column 2");
        assert_eq!(command(r#"{"command":"restart"}"#), "machine is missing");
        assert_eq!(
            command(r#"{"command":"restart","machine":["web_0"]}"#),
            "invalid type: a list, expected a string"
        );
        assert_eq!(
            command(r#"{"command":"change_settings","user_operations_max":-1}"#),
            "invalid value: integer `-1`, expected a number from 0 to 65535"
        );
        assert_eq!(
            decode_error::<ClockChange>(r#"{"clock":"scale","speed":true}"#),
            "invalid type: boolean `true`, expected a number from 0 to 4294967295"
        );
        let host = decode_error::<Fleet>(r#"{"host":[7]}"#);
        assert!(host.starts_with("invalid type: integer `7`, expected an object"), "{host}");
    }

    #[test]
    fn an_unknown_value_comes_with_the_known_ones() {
        assert_eq!(
            decode_error::<NamedCommand>(r#"{"command":"restrat","machine":"web_0"}"#),
            "unknown value: \"restrat\" at line 1 column 20\n  hint: did you mean restart?"
        );
        let far = decode_error::<NamedCommand>(r#"{"command":"fly"}"#);
        assert!(far.contains("\n  hint: 60 values are known, such as admit_host, "), "{far}");
        assert_eq!(
            decode_error::<ClockChange>(r#"{"clock":"stop"}"#),
            "unknown value: \"stop\" at line 1 column 15\n  hint: write freeze, scale, advance, until, next"
        );
    }

    #[test]
    fn other_messages_stay_unchanged() {
        for plain in ["length limit exceeded", "EOF while parsing an object at line 1 column 1"] {
            assert_eq!(super::plain(plain), plain);
        }
    }
}
