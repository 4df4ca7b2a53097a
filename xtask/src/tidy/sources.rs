//! Source files: each begins with its purpose and has a limited length.

use super::{Problem, Texts};

/// Without the tests at its end.
const LINES_MAX: usize = 500;
/// In a directory of tests, where a file is read from case to case.
const TEST_LINES_MAX: usize = 800;
const FUNCTION_LINES: &str = "too-many-lines-threshold = 70";

pub(super) fn check_source(path: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        problems.push(Problem::new(path, 0, "no header\n  hint: begin with `//!` and what the file is for"));
    }
    let in_tests = path.split('/').any(|part| part == "tests");
    let (lines, max) =
        if in_tests { (text.lines().count(), TEST_LINES_MAX) } else { (lines_before_tests(text), LINES_MAX) };
    if lines > max {
        problems.push(Problem::new(path, max, format!("too long: {lines} lines\n  hint: at most {max}")));
    }
    problems
}

/// The length of a file without the tests at its end.
pub(super) fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<_> = text.lines().collect();
    let begins_tests =
        |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    lines.windows(2).position(begins_tests).unwrap_or(lines.len())
}

/// A `clippy.toml` beside a package hides the one at the root, so each says how long a function may be.
pub(super) fn check_clippy(texts: &Texts) -> Vec<Problem> {
    let mut problems = Vec::new();
    if !texts.contains_key("clippy.toml") {
        problems.push(Problem::new("clippy.toml", 0, "the file is missing"));
    }
    let is_clippy = |path: &str| path == "clippy.toml" || path.ends_with("/clippy.toml");
    for (path, text) in texts.iter().filter(|(path, _)| is_clippy(path)) {
        if !text.lines().any(|line| line.trim() == FUNCTION_LINES) {
            problems.push(Problem::new(
                path,
                0,
                format!("no limit for functions\n  hint: add `{FUNCTION_LINES}`"),
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(problems: &[Problem]) -> Vec<String> {
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_source_begins_with_its_header() {
        assert!(check_source("src/a.rs", "//! A.\n").is_empty());
        let problems = check_source("src/a.rs", "use b;\n//! A.\n");
        assert!(messages(&problems)[0].starts_with("src/a.rs:1: no header"), "{problems:?}");
    }

    #[test]
    fn a_source_has_a_length_limit_and_its_tests_do_not_count() {
        let long = |lines: usize| format!("//! A.\n{}", "x\n".repeat(lines - 1));
        assert!(check_source("src/a.rs", &long(500)).is_empty());
        assert!(
            messages(&check_source("src/a.rs", &long(501)))[0].starts_with("src/a.rs:501: too long: 501")
        );
        let tested = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", long(500), "x\n".repeat(400));
        assert!(check_source("src/a.rs", &tested).is_empty());
        assert!(check_source("crates/a/tests/b.rs", &long(800)).is_empty());
        assert_eq!(check_source("crates/a/tests/b.rs", &long(801)).len(), 1);
        let helper = format!("//! A.\n#[cfg(test)]\nfn f() {{}}\n{}", "x\n".repeat(600));
        assert_eq!(check_source("src/a.rs", &helper).len(), 1);
    }

    #[test]
    fn every_clippy_file_limits_functions() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let limit = "a = 1\ntoo-many-lines-threshold = 70\n";
        let texts = Texts::from([file("clippy.toml", limit), file("crates/a/clippy.toml", limit)]);
        assert!(check_clippy(&texts).is_empty());
        let texts = Texts::from([file("crates/a/clippy.toml", "too-many-lines-threshold = 700\n")]);
        let problems = messages(&check_clippy(&texts));
        assert_eq!(problems[0], "clippy.toml:1: the file is missing");
        assert!(problems[1].starts_with("crates/a/clippy.toml:1: no limit for functions"));
    }
}
