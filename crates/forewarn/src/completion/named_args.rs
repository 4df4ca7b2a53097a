//! Arguments that are names on a server, with the kind of each.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use clap::{Arg, Command, ValueHint};
use clap_complete::ArgValueCompleter;

use super::names::NameKind;

/// The command, with names of a server for its arguments and for those of the commands below it.
///
/// `path` has the words of the command, without the program; `line` has the words that are typed.
pub(super) fn with_names(command: Command, path: &[&str], line: &Arc<[OsString]>) -> Command {
    let mut positionals = 0;
    let command = command.mut_args(|argument| {
        if argument.is_positional() {
            positionals += 1;
        }
        match kind_of(path, &argument, positionals) {
            Some(kind) => argument.add(completer(kind, Arc::clone(line))),
            None if argument.get_long() == Some("ca") => argument.value_hint(ValueHint::FilePath),
            None => argument,
        }
    });
    command.mut_subcommands(|below| {
        let name = below.get_name().to_owned();
        with_names(below, &[path, &[&name]].concat(), line)
    })
}

fn completer(kind: NameKind, line: Arc<[OsString]>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        typed.to_str().and_then(|typed| kind.beginning_with(typed, &line)).unwrap_or_default()
    })
}

/// The kind of name that an argument takes. A positional argument has its place, from 1.
fn kind_of(path: &[&str], argument: &Arg, place: usize) -> Option<NameKind> {
    match argument.get_long() {
        Some(option) => kind_of_option(path, option),
        None if argument.is_positional() => kind_of_positional(path, place),
        None => None,
    }
}

fn kind_of_option(path: &[&str], option: &str) -> Option<NameKind> {
    match (path, option) {
        // Their names are not those of a server.
        (["driver" | "conformance" | "test" | "dev" | "serve" | "story", ..], option)
            if option != "cluster" =>
        {
            None
        }
        (_, "tenant" | "enrolled") => Some(NameKind::Tenant),
        (_, "host" | "hosts") | (["rollout", _], "add" | "remove") => Some(NameKind::Host),
        (_, "cluster") => Some(NameKind::Cluster),
        (["cluster", "move"], "to") => Some(NameKind::Server),
        (_, "machine") => Some(NameKind::Machine),
        (_, "webhook") => Some(NameKind::Webhook),
        (_, "rollout") => Some(NameKind::Rollout),
        (_, "approved") | (["audit", _], "event") => Some(NameKind::Event),
        (_, _) => None,
    }
}

fn kind_of_positional(path: &[&str], place: usize) -> Option<NameKind> {
    match (path, place) {
        (["fault", "create" | "clear"], 1) => Some(NameKind::Machine),
        // The name of a new resource.
        ([_, "create"], _) | (["webhook", "add"], _) => None,
        (["vm", _], 1) => Some(NameKind::Machine),
        (["host", _] | ["host", "maintenance", _] | ["rollout", "start" | "preview"], 1) => {
            Some(NameKind::Host)
        }
        (["tenant", _], 1) => Some(NameKind::Tenant),
        (["scaleset", _], 1) => Some(NameKind::ScaleSet),
        (["scaleset", "upgrade" | "delete-instances"], 2) => Some(NameKind::Machine),
        (["availabilityset", _], 1) => Some(NameKind::AvailabilitySet),
        (["cloudservice", _], 1) => Some(NameKind::CloudService),
        (["event", _], 1) => Some(NameKind::Event),
        (["rollout", _], 1) => Some(NameKind::Rollout),
        (["cluster", _], 1) => Some(NameKind::Cluster),
        (["server", _], 1) => Some(NameKind::Server),
        (["token", _], 1) => Some(NameKind::Token),
        (["webhook", _], 1) => Some(NameKind::Webhook),
        (["fault", "show" | "delete"], 1) => Some(NameKind::Fault),
        (_, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    const NOUNS: [&str; 13] = [
        "vm",
        "host",
        "tenant",
        "scaleset",
        "availabilityset",
        "cloudservice",
        "event",
        "rollout",
        "cluster",
        "server",
        "token",
        "webhook",
        "fault",
    ];

    /// Positional arguments of these nouns that are not completed: names of new resources, and numbers.
    const NEW: [&str; 13] = [
        "availabilityset add-vm <VM>",
        "availabilityset create <NAME>",
        "cloudservice add-instance <VM>",
        "cloudservice create <NAME>",
        "cluster create <NAME>",
        "cluster rename <NEW>",
        "host create <HOST>",
        "scaleset create <NAME>",
        "scaleset scale <N>",
        "token create <NAME>",
        "vm create <NAME>",
        "webhook create <NAME>",
        "webhook create [URL]",
    ];

    fn uncompleted(command: &Command, path: &str, found: &mut Vec<String>) {
        for argument in command.get_positionals() {
            if argument.get::<ArgValueCompleter>().is_none() {
                found.push(format!("{path} {argument}"));
            }
        }
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            uncompleted(below, format!("{path} {}", below.get_name()).trim(), found);
        }
    }

    #[test]
    fn every_name_of_a_resource_is_completed() {
        let mut command = with_names(Cli::command(), &[], &Vec::new().into());
        command.build();
        let mut found = Vec::new();
        for noun in command.get_subcommands().filter(|command| NOUNS.contains(&command.get_name())) {
            uncompleted(noun, noun.get_name(), &mut found);
        }
        found.retain(|argument| !NEW.contains(&argument.as_str()));
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn options_have_the_names_of_their_kind() {
        let kinds = [
            (&["vm", "create"][..], "host", Some(NameKind::Host)),
            (&["event", "ls"], "tenant", Some(NameKind::Tenant)),
            (&[], "cluster", Some(NameKind::Cluster)),
            (&["rollout", "set"], "add", Some(NameKind::Host)),
            (&["cluster", "move"], "to", Some(NameKind::Server)),
            (&["audit", "ls"], "event", Some(NameKind::Event)),
            (&["wait"], "event", None),
            (&["driver", "check"], "host", None),
        ];
        for (path, option, kind) in kinds {
            assert_eq!(kind_of_option(path, option), kind, "{path:?} --{option}");
        }
    }
}
