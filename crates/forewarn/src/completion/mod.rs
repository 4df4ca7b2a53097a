//! Shell completion: the scripts, and the hidden command `complete` that they call.
//!
//! Subcommands, options and values come from the command line itself, names from the server. The answer comes within a
//! second, and is empty if the server cannot be reached: an error must not end up on the line of a user.

mod named_args;
mod names;
mod typed_line;

use std::ffi::OsString;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::Result;
use clap::{Args, Command, ValueEnum};
use clap_complete::{CompletionCandidate, Shell, engine};

use crate::operator;
use typed_line::TypedLine;

/// Candidates of one answer.
const CANDIDATES_MAX: usize = 1_000;

/// A request of a shell.
#[derive(Args)]
pub(crate) struct CompleteArgs {
    /// Shell that asks
    shell: AskingShell,
    /// Number of the current word, from 0 [default: the last one]
    #[arg(long)]
    index: Option<usize>,
    /// The line up to the cursor; only of bash, which splits words at `=` and `:`
    #[arg(long, allow_hyphen_values = true, default_value = "")]
    line: OsString,
    /// Words of the line
    #[arg(last = true)]
    words: Vec<OsString>,
}

/// A shell that asks the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AskingShell {
    Bash,
    Zsh,
    Fish,
}

/// The completion script of a shell. Elvish and `PowerShell` have scripts without names of a server.
pub(crate) fn script(shell: Shell, mut command: Command) -> String {
    match shell {
        Shell::Bash => include_str!("bash.bash").to_owned(),
        Shell::Zsh => include_str!("zsh.zsh").to_owned(),
        Shell::Fish => include_str!("fish.fish").to_owned(),
        Shell::Elvish | Shell::PowerShell | _ => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "forewarn", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    }
}

/// Prints the candidates for a line, one per line; nothing if they are not known in time.
pub(crate) fn answer(arguments: CompleteArgs, command: Command) -> Result<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(candidates(arguments, command)));
    match receiver.recv_timeout(names::DEADLINE) {
        Ok(Some(lines)) => operator::print(&lines),
        Ok(None) | Err(_) => Ok(()),
    }
}

fn candidates(arguments: CompleteArgs, command: Command) -> Option<String> {
    let CompleteArgs { shell, index, line, words } = arguments;
    let typed = match shell {
        AskingShell::Bash => TypedLine::of_bash(&words, index?, &line.to_string_lossy()),
        AskingShell::Zsh | AskingShell::Fish => TypedLine::whole(words, index),
    };
    let before: Arc<[OsString]> = typed.words.get(..typed.index)?.into();
    let mut command = named_args::with_names(command, &[], &before);
    let directory = std::env::current_dir().ok();
    let all = engine::complete(&mut command, typed.words.clone(), typed.index, directory.as_deref()).ok()?;
    let is_option =
        |candidate: &CompletionCandidate| candidate.get_value().to_string_lossy().starts_with('-');
    // Options are offered once a hyphen is typed, or where there is nothing else.
    let has_others = typed.current().is_empty() && !all.iter().all(is_option);
    let shown = all.iter().filter(|candidate| !(has_others && is_option(candidate)));
    Some(shown.filter_map(|candidate| shell.line(candidate, &typed)).take(CANDIDATES_MAX).collect())
}

impl AskingShell {
    /// The line for a candidate. None if a shell could not read it.
    fn line(self, candidate: &CompletionCandidate, typed: &TypedLine) -> Option<String> {
        let value = candidate.get_value().to_str().filter(|value| !value.contains(char::is_control))?;
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.lines().next().unwrap_or_default();
        Some(match self {
            Self::Bash => format!("{}\n", quoted(value.strip_prefix(&typed.kept).unwrap_or(value))),
            Self::Zsh if help.is_empty() => format!("{}\n", escaped(value)),
            Self::Zsh => format!("{}:{}\n", escaped(value), help.replace('\\', "\\\\")),
            Self::Fish if help.is_empty() => format!("{value}\n"),
            Self::Fish => format!("{value}\t{help}\n"),
        })
    }
}

/// A word for bash, which inserts it as it is.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,~".contains(c);
    let escape = |c: char| if is_plain(c) { String::from(c) } else { format!("\\{c}") };
    word.chars().map(escape).collect()
}

/// A word for `_describe` of zsh, where a colon ends it.
fn escaped(word: &str) -> String {
    word.replace('\\', "\\\\").replace(':', "\\:")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn completed(shell: AskingShell, line: &[&str]) -> Vec<String> {
        let words: Vec<_> = line.iter().map(OsString::from).collect();
        let index = Some(words.len() - 1);
        let arguments = CompleteArgs { shell, index, line: line.join(" ").into(), words };
        candidates(arguments, Cli::command()).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn commands_and_values_are_completed_without_a_server() {
        let bash = |line: &[&str]| completed(AskingShell::Bash, line);
        assert_eq!(bash(&["forewarn", "rol"]), ["rollout"]);
        assert_eq!(bash(&["forewarn", "vm", "reb"]), ["reboot"]);
        assert_eq!(bash(&["forewarn", "vm", "create", "x", "--spot", ""]), ["delete", "deallocate"]);
        assert_eq!(bash(&["forewarn", "vm", "restart", "--requ"]), ["--require-notice"]);
        let nouns = bash(&["forewarn", ""]);
        assert!(
            nouns.iter().any(|noun| noun == "vm") && !nouns.iter().any(|noun| noun == "complete"),
            "{nouns:?}"
        );
        assert!(!bash(&["forewarn", "host", ""]).iter().any(|verb| verb == "rm" || verb == "add"));
    }

    #[test]
    fn zsh_and_fish_get_descriptions() {
        assert_eq!(completed(AskingShell::Zsh, &["forewarn", "vm", "sho"]), ["show:Show a machine"],);
        assert_eq!(completed(AskingShell::Fish, &["forewarn", "vm", "sho"]), ["show\tShow a machine"]);
    }

    #[test]
    fn a_word_is_one_word_for_the_shell() {
        assert_eq!(quoted("a b$(id)"), r"a\ b\$\(id\)");
        assert_eq!(quoted("web_0"), "web_0");
        assert_eq!(escaped("web:1"), r"web\:1");
    }
}
