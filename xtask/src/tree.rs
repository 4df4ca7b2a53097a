//! The files of the repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Directories to skip where git is not available.
const NOT_OURS: [&str; 3] = ["target", ".git", "mutants.out"];

/// Files by their path from the root, with `/` between the parts.
pub(crate) struct Tree {
    root: PathBuf,
    paths: BTreeSet<String>,
}

/// The directory of the workspace.
pub(crate) fn root() -> Result<PathBuf> {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = manifest.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    here.parent().map(Path::to_owned).context("the package has no directory above it")
}

impl Tree {
    /// The files that git tracks; without git, all files except build results. A tracked file may be missing on disk.
    pub(crate) fn load() -> Result<Self> {
        let root = root()?;
        let mut paths = match tracked(&root) {
            Some(paths) => paths,
            None => walked(&root)?,
        };
        paths.retain(|path| root.join(path).is_file());
        Ok(Self { root, paths })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// True for a file only.
    pub(crate) fn has_file(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// True for a file, and for a directory that contains files.
    pub(crate) fn has(&self, path: &str) -> bool {
        has(&self.paths, path)
    }

    /// The text of a file. None if it is not UTF-8.
    pub(crate) fn text(&self, path: &str) -> Result<Option<String>> {
        let bytes = std::fs::read(self.root.join(path)).with_context(|| format!("cannot read: {path}"))?;
        Ok(String::from_utf8(bytes).ok())
    }
}

fn has(paths: &BTreeSet<String>, path: &str) -> bool {
    let directory = format!("{path}/");
    path.is_empty()
        || paths.contains(path)
        || paths.range(directory.clone()..).next().is_some_and(|next| next.starts_with(&directory))
}

fn tracked(root: &Path) -> Option<BTreeSet<String>> {
    let output = Command::new("git").current_dir(root).args(["ls-files", "-z"]).output().ok()?;
    let list = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let paths: BTreeSet<_> = list.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    (!paths.is_empty()).then_some(paths)
}

/// The files below a directory, except build results.
pub(crate) fn walked(root: &Path) -> Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        let entries =
            root.join(&directory).read_dir().with_context(|| format!("cannot read: {directory}"))?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_file() {
                paths.insert(path);
            } else if kind.is_dir() && !NOT_OURS.contains(&name.as_str()) {
                directories.push(path);
            }
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_there_when_a_file_is_in_it() {
        let paths = BTreeSet::from(["docs.md".to_owned(), "docs/a/b.md".to_owned()]);
        for present in ["docs.md", "docs/a/b.md", "docs/a", "docs", ""] {
            assert!(has(&paths, present), "{present}");
        }
        for absent in ["doc", "docs/a/b", "docs/a/b.md/c", "a"] {
            assert!(!has(&paths, absent), "{absent}");
        }
    }

    #[test]
    fn a_walk_finds_this_file() {
        assert!(walked(&root().unwrap()).unwrap().contains("xtask/src/tree.rs"));
    }
}
