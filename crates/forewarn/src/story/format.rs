//! `forewarn story fmt`: stories in the usual layout.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::read_file;
use crate::operator::{OutputFormat, names, print, print_data, visible};

#[derive(Args)]
pub(crate) struct FmtArgs {
    /// Story files; `-` reads standard input and writes standard output
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; list files with another layout, and fail if there are any
    #[arg(long)]
    check: bool,
}

pub(super) fn command(arguments: &FmtArgs, output: OutputFormat) -> Result<()> {
    let FmtArgs { files, check } = arguments;
    let (mut invalid, mut different) = (0, Vec::new());
    for file in files {
        let text = read_file(file)?;
        match forewarn_story::format(&text) {
            Ok(usual) if *check => {
                if usual != text {
                    different.push(file.display().to_string());
                }
            }
            Ok(usual) => write(file, &text, &usual)?,
            Err(error) => {
                invalid += 1;
                eprintln!("forewarn: {}", visible(&format!("{}: {error}", file.display())));
            }
        }
    }
    match output {
        OutputFormat::Text(_) => {
            different.iter().try_for_each(|name| print(&visible(&format!("{name}\n"))))?;
        }
        OutputFormat::Data(format) if *check => {
            let stories: Vec<_> = different.iter().map(|name| json!({ "name": name })).collect();
            print_data(format, &json!({ "stories": stories }), names)?;
        }
        OutputFormat::Data(_) => {}
    }
    match (invalid, different.len()) {
        (0, 0) => Ok(()),
        (0, different) => {
            bail!("{different} of {} stories have another layout\n  hint: forewarn story fmt", files.len())
        }
        (_, _) => bail!("{invalid} of {} stories are invalid", files.len()),
    }
}

/// Writes a file that changes. Standard input goes to standard output.
fn write(file: &Path, text: &str, usual: &str) -> Result<()> {
    if file.to_str() == Some("-") {
        return print(usual);
    }
    if usual == text {
        return Ok(());
    }
    fs::write(file, usual).with_context(|| format!("cannot write the story: {}", file.display()))
}
