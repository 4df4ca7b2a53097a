//! Checks that `docs/reference/agent.md` and the manual page mention every command and every option.

use clap::CommandFactory;

use super::AgentArgs;

const DOCUMENT: &str = include_str!("../../../../docs/reference/agent.md");

#[test]
fn every_command_and_every_option_is_in_the_reference() {
    let code: Vec<_> = DOCUMENT.split('`').skip(1).step_by(2).collect();
    let has =
        |word: &str| code.iter().any(|piece| piece.split([' ', '[', ']', '|']).any(|part| part == word));
    let program = AgentArgs::command();
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("forewarn-agent {}", command.get_name());
        assert!(code.iter().any(|piece| piece.starts_with(&name)), "docs/reference/agent.md: {name}");
        for option in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(has(&format!("--{option}")), "docs/reference/agent.md: {name}: --{option}");
        }
    }
    for option in program.get_arguments().filter_map(clap::Arg::get_long) {
        let is_usual = ["help", "version"].contains(&option);
        assert!(is_usual || has(&format!("--{option}")), "docs/reference/agent.md: --{option}");
    }
}

const MANUAL: &str = include_str!("../../../../deploy/deb-agent/forewarn-agent.1");

#[test]
fn every_command_and_every_option_is_in_the_manual_page() {
    let text = MANUAL.replace("\\-", "-");
    let has = |word: &str| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        text.split(|c| !is_word(c)).any(|part| part == word)
    };
    let program = AgentArgs::command();
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        assert!(has(command.get_name()), "forewarn-agent.1: {}", command.get_name());
        for option in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(has(&format!("--{option}")), "forewarn-agent.1: {}: --{option}", command.get_name());
        }
    }
    for option in program.get_arguments().filter_map(clap::Arg::get_long) {
        assert!(has(&format!("--{option}")), "forewarn-agent.1: --{option}");
    }
}
