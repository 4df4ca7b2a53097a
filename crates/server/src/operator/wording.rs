//! What is said of a request that is not understood: for people, who need not know in what language this is written.
//!
//! The decoders beneath say precisely what is wrong, but in names of this program's own. Only those are replaced.

use forewarn_control::similar;

/// What a decoder has found, and what people call it.
const FOUND: [(&str, &str); 4] =
    [("sequence", "a list"), ("map", "an object"), ("unit value", "nothing"), ("null", "nothing")];

/// What a decoder expects, and what people call it.
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

/// Words that are listed where one of them is expected; of more, a similar one is shown.
const LISTED_MAX: usize = 8;

/// What a decoder says, in words for people.
pub(super) fn plain(said: &str) -> String {
    let (what, place) = said.split_at(said.rfind(" at line ").unwrap_or(said.len()));
    if let Some((word, expected)) = quoted(what, "unknown variant ") {
        return unknown(word, expected, place);
    }
    if let Some((member, "")) = quoted(what, "missing field ") {
        return format!("{member} is missing{place}");
    }
    match what.split_once(", expected ") {
        Some((found, expected)) => {
            format!("{}, expected {}{place}", type_found(found), type_expected(expected))
        }
        None => said.to_owned(),
    }
}

/// Splits ``unknown variant `fly`, expected …`` into `fly` and the rest.
fn quoted<'a>(said: &'a str, kind: &str) -> Option<(&'a str, &'a str)> {
    said.strip_prefix(kind)?.strip_prefix('`')?.split_once('`')
}

/// A word that means nothing where one of a few others does.
fn unknown(word: &str, expected: &str, place: &str) -> String {
    let known: Vec<_> = expected.split('`').skip(1).step_by(2).collect();
    let hint = match similar(word, known.iter().copied()) {
        Some(similar) => format!("\n  hint: did you mean {similar}?"),
        None if known.len() <= LISTED_MAX => format!("\n  hint: write {}", known.join(", ")),
        None => format!("\n  hint: {} are known, such as {}", known.len(), known[..LISTED_MAX].join(", ")),
    };
    format!("this word is not known: {word:?}{place}{hint}")
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
    use forewarn_control::{ClockOrder, Fleet, NamedCommand};
    use serde::de::DeserializeOwned;

    use super::*;

    fn said<T: DeserializeOwned>(json: &str) -> String {
        let problem = serde_json::from_str::<T>(json).err().expect("it is wrong");
        plain(&problem.to_string())
    }

    #[test]
    fn no_type_of_this_program_is_named() {
        let command = said::<NamedCommand>;
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
            said::<ClockOrder>(r#"{"clock":"scale","speed":true}"#),
            "invalid type: boolean `true`, expected a number from 0 to 4294967295"
        );
        let host = said::<Fleet>(r#"{"host":[7]}"#);
        assert!(host.starts_with("invalid type: integer `7`, expected an object"), "{host}");
    }

    #[test]
    fn a_word_that_is_not_known_is_told_with_those_that_are() {
        assert_eq!(
            said::<NamedCommand>(r#"{"command":"restrat","machine":"web_0"}"#),
            "this word is not known: \"restrat\" at line 1 column 20\n  hint: did you mean restart?"
        );
        let far = said::<NamedCommand>(r#"{"command":"fly"}"#);
        assert!(far.contains("\n  hint: 48 are known, such as admit_host, "), "{far}");
        assert_eq!(
            said::<ClockOrder>(r#"{"clock":"stop"}"#),
            "this word is not known: \"stop\" at line 1 column 15\n  hint: write freeze, scale, advance, next"
        );
    }

    #[test]
    fn what_is_plain_already_stays() {
        for plain in ["length limit exceeded", "EOF while parsing an object at line 1 column 1"] {
            assert_eq!(super::plain(plain), plain);
        }
    }
}
