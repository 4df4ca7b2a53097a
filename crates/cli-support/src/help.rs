//! Layout of `--help`: examples stand above the options, and lines wrap at the width of the terminal.

use clap::{Command, CommandFactory, FromArgMatches};

/// The layout of every command: description, usage, examples (`before_help`), arguments.
const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// Columns of the text if the terminal is wider, or if there is none.
const WIDTH_MAX: usize = 100;

/// Reads the command line. Prints the help and exits if the command line asks for it, or is invalid.
#[must_use]
pub fn parse<T: CommandFactory + FromArgMatches>() -> T {
    let mut command = with_layout(T::command());
    let matches = command.get_matches_mut();
    T::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
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
