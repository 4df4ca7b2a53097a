//! Tests that `docs/reference/cli.md` describes every command and every option.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};

use crate::Cli;

const DOCUMENT: &str = include_str!("../../../docs/reference/cli.md");

/// A section of the document: the words of each of its code spans.
struct Section(Vec<Vec<&'static str>>);

impl Section {
    fn new(text: &'static str) -> Self {
        let inline = text.split('`').skip(1).step_by(2);
        let pieces = inline.flat_map(str::lines).map(|piece| {
            let words = piece.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            words.filter(|word| !word.is_empty()).collect()
        });
        Self(pieces.collect())
    }

    /// True if a code span contains these words in this order.
    fn has(&self, words: &[&str]) -> bool {
        self.0.iter().any(|piece| {
            let mut rest = piece.iter();
            words.iter().all(|word| rest.any(|found| found == word))
        })
    }
}

/// Collects undocumented commands, and undocumented options with their commands.
fn find_missing(sections: &[Section], path: &[&str], command: &Command, missing: &mut BTreeSet<String>) {
    let documented: Vec<_> = sections.iter().filter(|section| section.has(path)).collect();
    if !path.is_empty() && documented.is_empty() {
        missing.insert(path.join(" "));
        return;
    }
    let options = command.get_arguments().filter(|option| !option.is_global_set() || path.is_empty());
    let options = options.filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long);
    for option in options.filter(|option| !["help", "version"].contains(option)) {
        let word = format!("--{option}");
        if !documented.iter().any(|section| section.has(&[&word])) {
            missing.insert([path, &[&word]].concat().join(" "));
        }
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        find_missing(sections, &[path, &[below.get_name()]].concat(), below, missing);
    }
}

fn sections(document: &'static str) -> Vec<Section> {
    document.split("\n## ").map(Section::new).collect()
}

/// promise: X2
#[test]
fn every_command_and_every_option_is_in_the_reference() {
    let mut missing = BTreeSet::new();
    find_missing(&sections(DOCUMENT), &[], &Cli::command(), &mut missing);
    let list: Vec<_> = missing.iter().map(|words| format!("  {words}")).collect();
    assert!(
        missing.is_empty(),
        "docs/reference/cli.md does not describe:\n{}\n  hint: write a command as code, with its words in order; an option as \
         code in the same section",
        list.join("\n")
    );
}

/// The keys of a table of a fleet file, from the error about an unknown one.
fn keys(table: &str) -> Vec<String> {
    let error = forewarn_control::Fleet::parse(&table.replace("UNKNOWN", "unknown_key = 1")).unwrap_err();
    let error = error.to_string();
    let (_, expected) = error.split_once("expected").unwrap_or_else(|| panic!("{table}: {error}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_key_of_a_fleet_file_is_in_its_reference() {
    let document = include_str!("../../../docs/reference/fleet.md");
    let code = document.split('`').skip(1).step_by(2);
    let words = code.flat_map(|code| code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let documented: BTreeSet<_> = words.collect();
    for table in [
        "UNKNOWN",
        "[site]\nUNKNOWN",
        "[[host]]\nUNKNOWN",
        "[[vm]]\nUNKNOWN",
        "[[vm]]\nname = 'a'\nhost = 'h'\n[vm.policy]\nUNKNOWN",
        "[[availability_set]]\nUNKNOWN",
        "[[availability_set]]\nname = 'a'\nmachine = [{ UNKNOWN }]",
        "[[cloud_service]]\nUNKNOWN",
        "[[scale_set]]\nUNKNOWN",
        "[[scale_set]]\nname = 'a'\ninstance = [{ UNKNOWN }]",
        "[[scale_set]]\nname = 'a'\nplacement = { UNKNOWN }",
    ] {
        let keys = keys(table);
        assert!(!keys.is_empty(), "{table}");
        let missing: Vec<_> = keys.iter().filter(|key| !documented.contains(key.as_str())).collect();
        assert!(missing.is_empty(), "docs/reference/fleet.md does not describe {missing:?} of {table:?}");
    }
}

#[test]
fn the_fleet_of_the_package_is_valid() {
    let fleet = forewarn_control::Fleet::parse(include_str!("../../../deploy/deb/fleet.toml")).unwrap();
    assert_eq!((fleet.hosts.len(), fleet.vms.len(), fleet.scale_sets.len()), (2, 1, 1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(forewarn_server::control_with_fleet(&fleet)).expect("the rules accept it");
}

#[test]
fn missing_commands_and_options_are_named() {
    let document =
        "a `--api` b\n## X\n`vm ls [--tenant T]`, `vm stop|start NAME…`\n## Y\n`host ls`, `--wait`\n";
    let command = Command::new("f")
        .arg(clap::Arg::new("api").long("api"))
        .subcommand(Command::new("host").subcommand(Command::new("ls")).subcommand(Command::new("gone")))
        .subcommand(
            Command::new("vm")
                .subcommand(Command::new("ls").arg(clap::Arg::new("tenant").long("tenant")))
                .subcommand(Command::new("start").arg(clap::Arg::new("wait").long("wait"))),
        );
    let mut missing = BTreeSet::new();
    find_missing(&sections(document), &[], &command, &mut missing);
    assert_eq!(missing.into_iter().collect::<Vec<_>>(), ["host gone", "vm start --wait"]);
}
