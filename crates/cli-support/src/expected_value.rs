//! Errors about values of the command line that only a programmer understands, in words for people.
//!
//! The parsers of the standard library say "invalid digit found in string". Types of this project have messages of their
//! own, which stay as they are.

use std::error::Error as _;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::str::ParseBoolError;

use clap::Command;
use clap::error::{ContextKind, ContextValue};

/// Replaces the message of the standard library by the expected value.
pub(crate) fn with_expected_value(error: clap::Error, command: &Command) -> clap::Error {
    let Some(expected) = expected(&error) else { return error };
    let mut readable = clap::Error::new(error.kind()).with_cmd(command);
    for (kind, value) in error.context() {
        readable.insert(kind, value.clone());
    }
    add_tip(&mut readable, format!("write {expected}"));
    readable
}

/// Adds a line below the message.
pub(crate) fn add_tip(error: &mut clap::Error, tip: String) {
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        Some(_) | None => Vec::new(),
    };
    tips.push(tip.into());
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
}

/// The value that an option expects. `None` if the message tells it.
fn expected(error: &clap::Error) -> Option<String> {
    let source = error.source()?;
    kind_of(source).map(str::to_owned).or_else(|| range_in(&source.to_string()))
}

/// The range of `7 is not in 1..=5`, in words.
fn range_in(message: &str) -> Option<String> {
    let (_, range) = message.split_once(" is not in ")?;
    let (low, high) = range.split_once("..")?;
    Some(match high.strip_prefix('=') {
        Some(high) => format!("a number from {low} to {high}"),
        None if high.is_empty() => format!("a number from {low}"),
        None => format!("a number from {low} to less than {high}"),
    })
}

fn kind_of(source: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(number) = source.downcast_ref::<ParseIntError>() {
        let is = |kinds: &[IntErrorKind]| kinds.contains(number.kind());
        return Some(if is(&[IntErrorKind::PosOverflow]) {
            "a smaller number, such as 3"
        } else if is(&[IntErrorKind::NegOverflow, IntErrorKind::Zero]) {
            "a larger number, such as 3"
        } else {
            "a whole number, such as 3"
        });
    }
    if source.is::<AddrParseError>() {
        return Some("an IP address, such as 10.0.0.4");
    }
    if source.is::<ParseFloatError>() {
        return Some("a number, such as 1.5");
    }
    // The second is the parser for environment variables of flags, which has no type of its own.
    let is_flag = source.is::<ParseBoolError>() || source.to_string() == "value was not a boolean";
    is_flag.then_some("true or false")
}

#[cfg(test)]
mod tests {
    use clap::{Arg, value_parser};

    use super::*;

    #[test]
    fn a_bad_value_is_answered_with_an_expected_one() {
        let options = [
            Arg::new("n").long("n").value_name("N").value_parser(value_parser!(u16)),
            Arg::new("some").long("some").value_parser(value_parser!(std::num::NonZeroU16)),
            Arg::new("at").long("at").value_parser(value_parser!(std::net::IpAddr)),
            Arg::new("part").long("part").value_parser(value_parser!(f64)),
            Arg::new("is").long("is").value_parser(|text: &str| text.parse::<bool>()),
        ];
        let mut command = Command::new("x").args(options);
        let cases = [
            ("--n=many", "invalid value 'many' for '--n <N>'\n\n  tip: write a whole number, such as 3\n"),
            ("--n=-1", "invalid value '-1' for '--n <N>'\n\n  tip: write a number from 0 to 65535\n"),
            ("--n=70000", "tip: write a number from 0 to 65535\n"),
            ("--n=99999999999999999999", "tip: write a smaller number, such as 3\n"),
            ("--some=0", "tip: write a larger number, such as 3\n"),
            ("--at=here", "tip: write an IP address, such as 10.0.0.4\n"),
            ("--part=half", "tip: write a number, such as 1.5\n"),
            ("--is=so", "tip: write true or false\n"),
        ];
        for (word, expected) in cases {
            let error = command.try_get_matches_from_mut(["x", word]).expect_err(word);
            let shown = with_expected_value(error, &command).to_string();
            assert!(shown.contains(expected) && shown.contains("--help"), "{word}: {shown}");
        }
    }
}
