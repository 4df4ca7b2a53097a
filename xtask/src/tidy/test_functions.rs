//! Test functions in source text, with the guarantees that the lines above them name.
//!
//! A test is a function with `#[test]` or `#[tokio::test]`, in plain code or inside `proptest!`. The line `/// promise:
//! N1, E3` among its doc comments and attributes names the guarantees of SPECIFICATION.md that the test proves.

use std::collections::{BTreeMap, BTreeSet};

use super::Texts;

/// Begins a line that names guarantees.
const PROMISE: &str = "/// promise:";

/// Names of test functions by the directory of their package.
pub(super) type TestNames<'a> = BTreeMap<String, BTreeSet<&'a str>>;

/// A test function of one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TestFunction<'a> {
    pub(super) name: &'a str,
    pub(super) promises: Vec<PromiseLine<'a>>,
}

/// A line that names guarantees.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PromiseLine<'a> {
    /// The line, counted from 0.
    pub(super) place: usize,
    /// The text after the colon.
    pub(super) ids: &'a str,
}

impl<'a> PromiseLine<'a> {
    pub(super) fn ids(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.ids.split(',').map(str::trim)
    }
}

/// The tests of a file, and the promise lines that are not above a test.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileTests<'a> {
    pub(super) tests: Vec<TestFunction<'a>>,
    pub(super) stray: Vec<PromiseLine<'a>>,
}

/// Reads the lines of a source file from top to bottom.
pub(super) fn file_tests(text: &str) -> FileTests<'_> {
    let mut found = FileTests::default();
    let mut promises = Vec::new();
    let mut is_test = false;
    let mut in_attribute = false;
    for (place, line) in text.lines().map(str::trim).enumerate() {
        if let Some(ids) = line.strip_prefix(PROMISE) {
            promises.push(PromiseLine { place, ids });
        } else if in_attribute || line.starts_with("#[") {
            is_test |= is_test_attribute(line);
            in_attribute = !line.ends_with(']');
        } else if !line.starts_with("//") {
            let promises = std::mem::take(&mut promises);
            match function_name(line).filter(|_| is_test) {
                Some(name) => found.tests.push(TestFunction { name, promises }),
                None => found.stray.extend(promises),
            }
            is_test = false;
        }
    }
    found.stray.extend(promises);
    found
}

/// The names of all test functions.
pub(super) fn test_names(texts: &Texts) -> TestNames<'_> {
    let mut names = TestNames::new();
    for (path, text) in texts.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let depth = if path.starts_with("crates/") { 2 } else { 1 };
        let directory = path.split('/').take(depth).collect::<Vec<_>>().join("/");
        let tests = file_tests(text).tests;
        names.entry(directory).or_default().extend(tests.iter().map(|test| test.name));
    }
    names
}

/// The module path of a file, as a test runner prints it: `crates/store/tests/it/power.rs` is `store::power`.
///
/// The directory `it` of a single test binary and the file names `main`, `lib` and `mod` are not part of it.
pub(super) fn module_path(path: &str) -> String {
    let stem = path.trim_end_matches(".rs");
    let mut parts: Vec<_> = stem.split('/').collect();
    if parts.first() == Some(&"crates") {
        parts.remove(0);
    }
    if matches!(parts.get(1), Some(&("tests" | "src"))) {
        let is_tests = parts.remove(1) == "tests";
        if is_tests && parts.len() > 2 && parts[1] == "it" {
            parts.remove(1);
        }
    }
    if parts.len() > 1 && matches!(parts.last(), Some(&("main" | "lib" | "mod"))) {
        parts.pop();
    }
    parts.join("::")
}

fn is_test_attribute(line: &str) -> bool {
    line == "#[test]" || line.starts_with("#[tokio::test")
}

fn function_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "))?;
    rest.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&str> {
        file_tests(text).tests.iter().map(|test| test.name).collect()
    }

    #[test]
    fn tests_are_functions_with_an_attribute() {
        let text = "proptest! {\n    /// No early start.\n    #[test]\n    fn early(a in b()) {}\n}\n#[test]\n#[should_panic]\n\
                    fn late() {}\nfn helper() {}\n#[tokio::test(flavor = \"x\")]\n#[allow(\n    a\n)]\nasync fn slow() {}\n";
        assert_eq!(names(text), ["early", "late", "slow"]);
    }

    #[test]
    fn a_promise_line_belongs_to_the_test_below_it() {
        let text = "/// Doc.\n/// promise: N1, E3\n#[test]\nfn a() {}\n#[test]\n/// promise: D1\nfn b() {}\n";
        let tests = file_tests(text).tests;
        let ids: Vec<Vec<_>> =
            tests.iter().map(|test| test.promises.iter().flat_map(PromiseLine::ids).collect()).collect();
        assert_eq!(ids, [vec!["N1", "E3"], vec!["D1"]]);
        assert_eq!((tests[0].promises[0].place, tests[1].promises[0].place), (1, 5));
    }

    #[test]
    fn a_promise_line_above_other_code_is_stray() {
        let found = file_tests("/// promise: N1\nfn helper() {}\n/// promise: N2\n");
        assert!(found.tests.is_empty());
        assert_eq!(found.stray.iter().map(|line| line.place).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn a_module_path_has_no_directories_of_the_build() {
        for (path, expected) in [
            ("crates/store/tests/power.rs", "store::power"),
            ("crates/store/tests/durability/power.rs", "store::durability::power"),
            ("crates/store/tests/it/durability/power.rs", "store::durability::power"),
            ("crates/store/tests/it/main.rs", "store"),
            ("crates/store/tests/it.rs", "store::it"),
            ("crates/agent/src/hooks/command/tests.rs", "agent::hooks::command::tests"),
            ("crates/agent/src/hooks/mod.rs", "agent::hooks"),
            ("crates/url/src/lib.rs", "url"),
            ("xtask/src/ports.rs", "xtask::ports"),
            ("fuzz/tests/corpus.rs", "fuzz::corpus"),
        ] {
            assert_eq!(module_path(path), expected, "{path}");
        }
    }
}
