//! `cargo xtask texts`: prints all texts of the programs for proofreading: help, log messages, error messages.

mod errors;
mod help;

use anyhow::Result;

use crate::steps::Outcome;
use crate::tidy::log_lines::log_lines;
use crate::tree::Tree;
use crate::words::{Usage, Words};

/// The unit tests at the end of a source, whose texts are not part of the programs.
const TESTS: &str = "#[cfg(test)]\nmod tests {";

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    let kind = words.next().ok_or_else(|| Usage::new("missing kind of texts: help, logs or errors"))?;
    words.done()?;
    match kind.as_str() {
        "help" => help::print()?,
        "logs" => print_messages(logs)?,
        "errors" => print_messages(errors::errors)?,
        _ => return Err(Usage::unknown(&kind).into()),
    }
    Ok(Outcome::Passed)
}

/// Prints the messages of all sources with file and line. `messages` returns them with their lines, counted from 1.
fn print_messages(messages: impl Fn(&str) -> Vec<(usize, String)>) -> Result<()> {
    let tree = Tree::load()?;
    for path in tree.paths().filter(|path| is_source(path)) {
        let text = tree.text(path)?.unwrap_or_default();
        let code = text.split(TESTS).next().unwrap_or_default();
        messages(code).iter().for_each(|(line, message)| println!("{path}:{line}: {message}"));
    }
    Ok(())
}

/// True for a source of the programs, not of tests.
fn is_source(path: &str) -> bool {
    let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
    path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs") && !is_test
}

fn logs(code: &str) -> Vec<(usize, String)> {
    let lines = log_lines(code).into_iter().map(|line| {
        let fields =
            if line.fields.is_empty() { String::new() } else { format!(" [{}]", line.fields.join(", ")) };
        (line.number, format!("{}: {}{fields}", line.level, line.message))
    });
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_messages_have_their_lines_and_fields() {
        let code =
            "fn f() {\n    tracing::warn!(%error, \"disk full\");\n    tracing::info!(\"ready\");\n}\n";
        let expected = [(2, "warn: disk full [error]".to_owned()), (3, "info: ready".to_owned())];
        assert_eq!(logs(code), expected);
    }

    #[test]
    fn only_sources_of_the_programs_are_read() {
        assert!(is_source("crates/server/src/lib.rs"));
        for other in [
            "crates/server/tests/a.rs",
            "crates/server/src/tests.rs",
            "xtask/src/main.rs",
            "crates/a/src/b.toml",
        ] {
            assert!(!is_source(other), "{other}");
        }
    }
}
