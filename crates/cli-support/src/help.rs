//! Layout of `--help`: examples stand above the options, and lines wrap at the width of the terminal.

use std::ffi::{OsStr, OsString};

use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use crate::expected_value::{add_tip, with_expected_value};

/// The layout of every command: description, usage, examples (`before_help`), arguments.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// Columns of the text if the terminal is wider, or if there is none.
const WIDTH_MAX: usize = 100;

/// Reads the command line. Prints the help and exits if the command line asks for it, or is invalid.
#[must_use]
pub fn parse<T: CommandFactory + FromArgMatches>() -> T {
    let mut command = with_layout(T::command());
    let words: Vec<_> = std::env::args_os().collect();
    let matches = matches(&mut command, &words).unwrap_or_else(|error| error.exit());
    T::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// Reads a command line.
///
/// # Errors
/// Returns an error if the command line is invalid, or asks for help. An error about a value says what is expected.
pub fn matches(command: &mut Command, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    command.try_get_matches_from_mut(words).map_err(|error| {
        let mut error = with_expected_value(error, command);
        name_variable(command, &mut error, words, |name| std::env::var_os(name));
        error
    })
}

/// Gives an option the environment variable of its name after a prefix. A variable that is empty counts as unset; that of
/// a flag is `true` or `false`, or another usual word for them, such as `1`.
#[must_use]
pub fn with_variable(prefix: &str, option: Arg) -> Arg {
    let Some(long) = option.get_long() else { return option };
    let name = format!("{prefix}{}", long.replace('-', "_").to_uppercase());
    if std::env::var_os(&name).is_some_and(|value| value.is_empty()) {
        return option;
    }
    // A few names for the life of the process.
    let name: &'static str = Box::leak(name.into_boxed_str());
    let option = match option.get_action().takes_values() {
        true => option,
        false => option.value_parser(BoolishValueParser::new()),
    };
    option.env(name).hide_env_values(true)
}

/// Adds the name of the environment variable to an error about its value: the command line does not show it.
fn name_variable(
    command: &Command,
    error: &mut clap::Error,
    words: &[OsString],
    value_of: impl Fn(&OsStr) -> Option<OsString>,
) {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(_) | None => None,
    };
    let (Some(shown), Some(value)) = (context(ContextKind::InvalidArg), context(ContextKind::InvalidValue))
    else {
        return;
    };
    let Some(option) = find_option(command, &shown) else { return };
    let is_on_line = option.get_long().is_some_and(|long| {
        let long = format!("--{long}");
        words.iter().any(|word| word.to_string_lossy().split('=').next() == Some(long.as_str()))
    });
    if let Some(variable) = option.get_env().filter(|_| !is_on_line)
        && value_of(variable).is_some_and(|found| found.to_string_lossy() == value)
    {
        let name = variable.to_string_lossy();
        add_tip(error, format!("the value is that of the environment variable {name}"));
    }
}

/// The option with a variable that error messages show so.
fn find_option<'a>(command: &'a Command, shown: &str) -> Option<&'a Arg> {
    let long = shown.strip_prefix("--").and_then(|rest| rest.split([' ', '=']).next());
    let is_shown = |one: &&Arg| one.get_env().is_some() && one.get_long().is_some() && one.get_long() == long;
    let own = command.get_arguments().find(is_shown);
    own.or_else(|| command.get_subcommands().find_map(|below| find_option(below, shown)))
}

/// The command and its subcommands, with the common layout.
#[must_use]
pub fn with_layout(command: Command) -> Command {
    command.help_template(TEMPLATE).max_term_width(WIDTH_MAX).mut_subcommands(with_layout)
}

/// The command as manual pages need it: they show only the text after the options.
#[must_use]
pub fn for_manual(command: Command) -> Command {
    let command = match command.get_before_help().cloned() {
        Some(examples) => command.after_help(examples),
        None => command,
    };
    command.mut_subcommands(for_manual)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_variable_is_refused_with_the_name_of_the_variable() {
        let option = Arg::new("n").long("n").value_name("N").env("X_N").value_parser(clap::value_parser!(u8));
        let command = || Command::new("x").subcommand(Command::new("y").arg(option.clone()));
        let message = |words: &[&str], in_variable: &str| {
            let mut command = command();
            let words: Vec<_> = words.iter().map(OsString::from).collect();
            let mut error = command.try_get_matches_from_mut(&words).unwrap_err();
            name_variable(&command, &mut error, &words, |_| Some(in_variable.into()));
            error.to_string()
        };
        assert!(message(&["x", "y", "--n", "many"], "many").contains("invalid value 'many'"));
        for line in [["--n", "many"].as_slice(), &["--n=many"]] {
            let words = [&["x", "y"], line].concat();
            assert!(!message(&words, "many").contains("X_N"), "it is on the command line");
        }
    }

    #[test]
    fn examples_stand_above_the_options() {
        let command = Command::new("x")
            .about("Do it")
            .before_help("Examples:\n  x --a")
            .arg(clap::Arg::new("a").long("a").help("Letter"));
        let text = with_layout(command).render_help().to_string();
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(
            at("Do it") < at("Usage:") && at("Usage:") < at("Examples:") && at("Examples:") < at("Options:"),
            "{text}"
        );
    }
}
