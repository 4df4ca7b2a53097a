//! `cargo xtask dashboard`: the dashboard in a real browser, against the program.
//!
//! With `--pictures` it takes pictures of the pages instead. The tests are in `crates/dashboard/tests`: those of single modules, which only need node, and those in `browser`,
//! which drive Chromium. Here the browser and its tools are only installed and named. A test that fails saves a picture
//! of the page in `target/dashboard`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::environments::{AZURE_CLI, BROWSER_TOOLS};
use crate::packages::{self, BROWSER, Readiness};
use crate::steps::{Outcome, built_program, cargo, status};
use crate::tree;
use crate::words::Words;

/// The variables by which the tests find the program, the browser, its tools, `az`, and the directory for pictures.
const PROGRAM: &str = "FOREWARN_PROGRAM";
const CHROMIUM: &str = "FOREWARN_CHROMIUM";
const TOOLS: &str = "FOREWARN_BROWSER_TOOLS";
const AZ: &str = "FOREWARN_AZ";
const PICTURES: &str = "FOREWARN_PICTURES";

const TESTS: [&str; 2] = ["crates/dashboard/tests", "crates/dashboard/tests/browser"];

/// The build of the program that is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    Tests,
    Release,
}

/// The pictures of the guide are in the tree; those for a review are not.
const PICTURE_SCRIPT: &str = "crates/dashboard/tests/pictures.mjs";
const GUIDE_PICTURES: &str = "docs/guides";
const REVIEW_PICTURES: &str = "target/dashboard/review";

pub(crate) fn command(mut words: Words) -> Result<Outcome> {
    let pictures = words.take_option("--pictures");
    words.done()?;
    if pictures { take_pictures() } else { test() }
}

/// Pictures for the guide, and of every page in every state for a person who looks at them.
fn take_pictures() -> Result<Outcome> {
    match node(Profile::Tests)? {
        Ok(mut node) => status(node.args([PICTURE_SCRIPT, GUIDE_PICTURES, REVIEW_PICTURES])),
        Err(skipped) => Ok(skipped),
    }
}

pub(crate) fn test() -> Result<Outcome> {
    let root = tree::root()?;
    let mut node = match node(Profile::Tests)? {
        Ok(node) => node,
        Err(skipped) => return Ok(skipped),
    };
    status(node.arg("--test").arg("--test-concurrency=2").args(test_files(&root)?))
}

/// Node with the variables of the tests, or the reason why something is missing.
pub(crate) fn node(profile: Profile) -> Result<Result<Command, Outcome>> {
    for readiness in [packages::prepare_programs(&BROWSER), packages::prepare_python()] {
        match readiness {
            Readiness::Ready => {}
            Readiness::Lacking(why) => return Ok(Err(Outcome::Skipped(why))),
        }
    }
    if !packages::has_npm() {
        return Ok(Err(Outcome::Skipped("npm is not on the path".to_owned())));
    }
    let found = BROWSER_TOOLS.find_or_install().and_then(|tools| Ok((tools, AZURE_CLI.find_or_install()?)));
    let (tools, az) = match found {
        Ok(found) => found,
        Err(problem) => return Ok(Err(Outcome::Skipped(format!("{problem:#}")))),
    };
    let root = tree::root()?;
    let mut node = Command::new("node");
    node.current_dir(&root).env(PROGRAM, program(&root, profile)?).env(CHROMIUM, "chromium");
    node.env(TOOLS, tools).env(AZ, az.join("bin/az")).env(PICTURES, root.join("target/dashboard"));
    Ok(Ok(node))
}

/// The program with the pages of this tree.
fn program(root: &Path, profile: Profile) -> Result<PathBuf> {
    let mut build = cargo();
    build.current_dir(root).args(["build", "--package", "forewarn", "--bin", "forewarn", "--locked"]);
    match profile {
        Profile::Tests => {}
        Profile::Release => drop(build.arg("--release")),
    }
    built_program(&mut build)
}

fn test_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for directory in TESTS {
        let entries = root.join(directory).read_dir().with_context(|| format!("cannot read: {directory}"))?;
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        files.extend(paths.filter(|path| path.to_string_lossy().ends_with(".test.mjs")));
    }
    files.sort();
    Ok(files)
}
