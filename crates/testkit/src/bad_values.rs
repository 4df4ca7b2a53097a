//! Every option and every argument of a program, each with bad values: people can understand every error.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

/// Values, most of which an option rejects.
const BAD: [&str; 16] = [
    "",
    " ",
    "x",
    "-1",
    "0",
    "1.5",
    "99999999999999999999999",
    "1:2:3",
    "é",
    "{",
    "x=",
    "=x",
    "::",
    "http://",
    "a b",
    "\u{1}",
];

/// Values, one of which an argument accepts.
const GOOD: [&str; 8] = [
    "1",
    "x",
    "15m",
    "2026-01-01T00:00:00Z",
    "127.0.0.1:1",
    "http://h",
    "bash",
    "28512AF7-C957-4500-9BC4-842D6FB531E4",
];

/// Messages of the standard library and of parsers, which say what a programmer did wrong.
const FOR_PROGRAMMERS: [&str; 23] = [
    "..=",
    "invalid digit",
    "cannot parse integer",
    "cannot parse float",
    "number too large to fit",
    "number too small to fit",
    "number would be zero",
    "invalid float",
    "invalid socket address",
    "invalid IP address",
    "invalid IPv4 address",
    "invalid IPv6 address",
    "provided string was not",
    "invalid utf-8",
    "missing field",
    "unknown field",
    "unknown variant",
    "invalid type",
    "invalid value: ",
    "expected value at",
    "EOF while parsing",
    "relative URL",
    "Error(",
];

/// Words of which an error about a value contains one: it says which value is expected.
const HELPFUL: [&str; 14] = [
    " needs ",
    " must be ",
    " must end with ",
    "such as",
    "hint:",
    "tip:",
    "possible values",
    "write ",
    "expected ",
    " is not in ",
    "a value is required",
    "not an event type: Freeze, Reboot",
    "as `audit verify` prints it",
    "the command is empty",
];

/// Reads a command line, and gives the error that people see.
type Read = fn(&mut Command, &[OsString]) -> Option<clap::Error>;

/// A program, and what it said to bad values.
struct Trial {
    program: Command,
    read: Read,
    unhelpful: Vec<String>,
    errors: usize,
}

/// Gives the errors that do not help, and the number of all errors.
pub fn check(program: &Command, read: Read) -> (Vec<String>, usize) {
    let mut program = program.clone();
    program.build();
    let mut trial = Trial { program: program.clone(), read, unhelpful: Vec::new(), errors: 0 };
    trial.walk(&program, &[program.get_name().to_owned()]);
    (trial.unhelpful, trial.errors)
}

impl Trial {
    fn error(&mut self, words: &[String]) -> Option<clap::Error> {
        (self.read)(&mut self.program, &words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    fn try_bad_values(&mut self, before: &[String], word: impl Fn(&str) -> String) {
        for bad in BAD {
            let words = [before, &[word(bad)]].concat();
            let Some(error) = self.error(&words) else { continue };
            self.errors += 1;
            let shown = error.to_string();
            let is_plain = FOR_PROGRAMMERS.iter().all(|phrase| !shown.contains(phrase));
            let helps = HELPFUL.iter().any(|word| shown.contains(word));
            if !is_plain || (is_about_a_value(&error) && !helps) {
                self.unhelpful.push(format!("{words:?}: {shown}"));
            }
        }
    }

    fn walk(&mut self, command: &Command, path: &[String]) {
        let with_value = command.get_arguments().filter(|option| option.get_action().takes_values());
        // Options of every command are tried once.
        let with_value = with_value.filter(|option| path.len() == 1 || !option.is_global_set());
        let (positional, options): (Vec<_>, Vec<_>) = with_value.partition(|option| option.is_positional());
        for option in options {
            let name = option.get_long().map(|long| format!("--{long}"));
            let name =
                name.or_else(|| option.get_short().map(|short| format!("-{short}"))).expect("an option");
            self.try_bad_values(path, |bad| format!("{name}={bad}"));
        }
        // An argument is reached if those before it are accepted.
        let mut before = [path, &["--".to_owned()]].concat();
        for argument in positional {
            self.try_bad_values(&before, str::to_owned);
            let accepted = GOOD.into_iter().find(|good| {
                let error = self.error(&[before.as_slice(), &[(*good).to_owned()]].concat());
                error.is_none_or(|error| !is_about(&error, argument))
            });
            before.push(accepted.unwrap_or("x").to_owned());
        }
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            self.walk(below, &[path, &[below.get_name().to_owned()]].concat());
        }
    }
}

fn is_about_a_value(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue)
}

/// True if an error is about the value of that argument.
fn is_about(error: &clap::Error, argument: &Arg) -> bool {
    let shown = argument.to_string();
    is_about_a_value(error)
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(name)) if *name == shown)
}
