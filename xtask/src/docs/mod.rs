//! `cargo xtask docs`: the documentation as a site with search, in `target/book`.
//!
//! ```text
//!   docs/, and what its links lead to ──▶ target/xtask/book ──▶ mdBook ──▶ target/book ──▶ checked
//! ```
//!
//! Nobody writes a table of contents: it is made from `docs/README.md`, which lists every page. Pages and files outside
//! of `docs/` that a page links to are part of the site, so that every link works there as it does in the repository.

mod check;
mod source;
mod summary;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::steps::{Outcome, cargo, status};
use crate::tools::{MDBOOK, PROGRAM_TESTS};
use crate::tree::{self, Tree};

use source::Source;

/// The directories below `target`.
const SOURCE: &str = "target/xtask/book";
const SITE: &str = "target/book";

/// Nothing is loaded from another host, and no code is sent to one.
const SETTINGS: &str = "\
[book]
title = \"Forewarn\"
src = \"src\"
language = \"en\"

[build]
use-default-preprocessors = false

[preprocessor.index]

[output.html]
no-section-label = true
input-404 = \"\"

[output.html.fold]
enable = true

[output.html.playground]
runnable = false

[output.html.print]
enable = false

[output.html.search]
enable = true
limit-results = 20
";

/// Builds the site, checks it, and runs the guides.
pub(crate) fn command() -> Result<Outcome> {
    let built = build()?;
    match built {
        Outcome::Passed => run_guides(),
        Outcome::Failed(_) | Outcome::Skipped(_) => Ok(built),
    }
}

/// Builds the site and checks it.
pub(crate) fn build() -> Result<Outcome> {
    let mut mdbook = match MDBOOK.find_or_install() {
        Ok(mdbook) => mdbook,
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let tree = Tree::load()?;
    let (source, site) = (tree.root().join(SOURCE), tree.root().join(SITE));
    let contents = Source::collect(&tree)?;
    for directory in [&source, &site] {
        empty(directory)?;
    }
    contents.write(&source.join("src"))?;
    std::fs::write(source.join("book.toml"), SETTINGS)?;
    let built = status(mdbook.arg("build").arg(&source).arg("--dest-dir").arg(&site))?;
    if built != Outcome::Passed {
        return Ok(built);
    }
    let problems = check::site(&site, &contents.page_urls())?;
    problems.iter().for_each(|problem| println!("{problem}"));
    if !problems.is_empty() {
        return Ok(Outcome::Failed(format!("{} problems of the site", problems.len())));
    }
    let index = site.join("index.html");
    eprintln!("{} pages, all links lead somewhere: {}", contents.page_urls().len(), index.display());
    Ok(Outcome::Passed)
}

fn empty(directory: &PathBuf) -> Result<()> {
    if directory.exists() {
        std::fs::remove_dir_all(directory)
            .with_context(|| format!("cannot remove: {}", directory.display()))?;
    }
    create(directory)
}

fn create(directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make: {}", directory.display()))
}

/// Runs every guide that needs nothing but the two programs, and the README.
fn run_guides() -> Result<Outcome> {
    let root = tree::root()?;
    let build = ["build", "--locked", "--package", "forewarn", "--package", "forewarn-agent"];
    let built = status(cargo().current_dir(&root).args(build))?;
    if built != Outcome::Passed {
        return Ok(built);
    }
    status(cargo().current_dir(&root).args(["test", "--locked"]).args(PROGRAM_TESTS).arg("guides::"))
}
