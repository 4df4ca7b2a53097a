//! The complete `--help` of the programs, from the built programs: each command, then its subcommands.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::steps::cargo;
use crate::tree;

const PROGRAMS: [&str; 2] = ["forewarn", "forewarn-agent"];

pub(super) fn print() -> Result<()> {
    let directory = build()?;
    PROGRAMS.iter().try_for_each(|name| print_command(&directory.join(name), &[name]))
}

/// Builds the programs. Returns the directory that contains them.
fn build() -> Result<PathBuf> {
    let root = tree::root()?;
    let mut build = cargo();
    build.args(["build", "--locked", "--quiet", "--bins"]).current_dir(&root);
    PROGRAMS.iter().for_each(|package| {
        build.args(["--package", package]);
    });
    ensure!(build.status().context("cannot run cargo")?.success(), "cannot build the programs");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join("debug"))
}

/// Prints the help of a command and of all its subcommands; `words` are the program and the names of the commands.
fn print_command(program: &Path, words: &[&str]) -> Result<()> {
    let title = words.join(" ");
    let output = Command::new(program).args(&words[1..]).arg("--help").output();
    let output = output.with_context(|| format!("cannot run: {}", program.display()))?;
    if !output.status.success() {
        bail!("no help: {title}");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    println!("==== {title}\n\n{}\n", text.trim_end());
    subcommands(&text).into_iter().try_for_each(|name| print_command(program, &[words, &[name]].concat()))
}

/// The names below the heading `Commands:`, except `help`.
fn subcommands(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
        let line = line.strip_prefix("  ")?;
        // A deeper indentation continues the description of the line above.
        line.split(' ').next().filter(|name| !name.is_empty())
    });
    names.filter(|name| *name != "help").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_read_from_the_help() {
        let help = "Do it\n\nCommands:\n  ls    List\n        all of it\n  show  Show\n  help  Print this\n\nOptions:\n  -h";
        assert_eq!(subcommands(help), ["ls", "show"]);
        assert!(subcommands("Options:\n  -h  Help\n").is_empty());
    }
}
