//! Integration tests: programs that are linked for them, and helper code.

use std::collections::BTreeMap;

use super::Measure;
use crate::tidy::Texts;
use crate::tidy::manifests::Package;

/// The largest number of test programs of a delivered package.
pub(super) fn programs(texts: &Texts, packages: &[Package]) -> Measure {
    let mut programs = BTreeMap::<&str, usize>::new();
    for package in packages.iter().filter(|package| package.directory.starts_with("crates/")) {
        let directory = format!("{}/tests/", package.directory);
        let count =
            texts.keys().filter_map(|path| path.strip_prefix(&directory)).filter(|file| is_root(file));
        programs.insert(&package.name, count.count());
    }
    let most = programs.values().copied().max().unwrap_or_default();
    let several = programs.iter().filter(|(_, count)| **count > 1);
    Measure {
        details: several.map(|(name, count)| format!("{count:>6}  {name}")).collect(),
        ..Measure::new("test programs of a package, at most", most, Some(1))
    }
}

/// A file of `tests/` that cargo makes a program of.
fn is_root(file: &str) -> bool {
    match file.split_once('/') {
        None => file.ends_with(".rs"),
        Some((_, rest)) => rest == "main.rs",
    }
}

/// Lines of the files in the tests of `forewarn` that contain neither tests nor only declarations of modules.
pub(super) fn harness_lines(texts: &Texts) -> Measure {
    const TESTS: &str = "crates/forewarn/tests/";
    let sources = texts.iter().filter(|(path, _)| path.starts_with(TESTS) && path.ends_with(".rs"));
    let has_tests = |text: &str| text.contains("#[test]") || text.contains("#[tokio::test");
    let harness = sources.filter(|(_, text)| !has_tests(text) && !only_declares_modules(text));
    let mut details: Vec<_> =
        harness.map(|(path, text)| (text.lines().count(), &path[TESTS.len()..])).collect();
    details.sort_by(|a, b| b.cmp(a));
    let sum = details.iter().map(|(lines, _)| lines).sum();
    Measure {
        details: details.iter().map(|(lines, path)| format!("{lines:>6}  {path}")).collect(),
        ..Measure::new("lines of helpers in the tests of forewarn", sum, Some(1_000))
    }
}

fn only_declares_modules(text: &str) -> bool {
    let is_declaration = |line: &str| {
        let starts = ["//", "#", "mod ", "pub(crate) mod "];
        line.is_empty() || starts.iter().any(|start| line.starts_with(start))
    };
    text.lines().all(is_declaration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::manifests::packages;

    #[test]
    fn programs_and_helpers_of_tests_are_counted() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file("crates/forewarn/Cargo.toml", "[package]\nname = \"forewarn\"\n"),
            file("crates/forewarn/src/main.rs", "fn main() {}\n"),
            file("crates/forewarn/tests/a.rs", "#[test]\nfn a() {}\n"),
            file("crates/forewarn/tests/b/main.rs", "//! B.\n\nmod c;\npub(crate) mod d;\n"),
            file("crates/forewarn/tests/b/c.rs", "#[test]\nfn c() {}\n"),
            file("crates/forewarn/tests/b/d.rs", "fn d() {}\n"),
        ]);
        assert_eq!(programs(&texts, &packages(&texts).unwrap()).value, 2);
        let harness = harness_lines(&texts);
        assert_eq!((harness.value, harness.details[0].as_str()), (1, "     1  b/d.rs"));
    }
}
