//! The specification: every promise names a test that keeps it.
//!
//! A promise is a bullet that begins with `- **P`. It names tests in backticks: `lifecycle::invariants::name` is a test
//! function of that name in `crates/lifecycle`, `story:name` is the file `stories/name.story`.

use std::collections::{BTreeMap, BTreeSet};

use super::{Problem, Texts};

const SPECIFICATION: &str = "SPECIFICATION.md";
/// Packages that do not lie under `crates`.
const BESIDE_CRATES: [&str; 3] = ["xtask", "bench", "fuzz"];

/// The names of test functions, by the directory of their package.
pub(super) type Tests<'a> = BTreeMap<String, BTreeSet<&'a str>>;

pub(super) fn check_specification(texts: &Texts) -> Vec<Problem> {
    let Some(specification) = texts.get(SPECIFICATION) else {
        return vec![Problem::new(SPECIFICATION, 0, "the file is missing")];
    };
    let tests = tests(texts);
    let mut problems = Vec::new();
    for (place, promise) in promises(specification) {
        let references: Vec<_> = references(&promise).collect();
        if references.is_empty() {
            problems.push(Problem::new(SPECIFICATION, place, "a promise without a test"));
        }
        for reference in references {
            if !resolves(reference, texts, &tests) {
                problems.push(Problem::new(SPECIFICATION, place, format!("no such test: {reference}")));
            }
        }
    }
    problems
}

/// Each promise with its place: the line of the bullet, and the indented lines below it.
fn promises(specification: &str) -> Vec<(usize, String)> {
    let mut promises = Vec::<(usize, String)>::new();
    let mut goes_on = false;
    for (place, line) in specification.lines().enumerate() {
        if line.starts_with("- **P") {
            promises.push((place, line.to_owned()));
            goes_on = true;
        } else if goes_on && line.starts_with("  ") && !line.trim().is_empty() {
            if let Some((_, promise)) = promises.last_mut() {
                promise.push('\n');
                promise.push_str(line);
            }
        } else {
            goes_on = false;
        }
    }
    promises
}

fn references(promise: &str) -> impl Iterator<Item = &str> {
    promise.split('`').skip(1).step_by(2).filter(|code| is_reference(code))
}

/// Tests are named in small letters; `Phase::Started` is not one. Names of packages may have hyphens.
fn is_reference(code: &str) -> bool {
    let is_small = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_name = |part: &str| !part.is_empty() && part.chars().all(is_small);
    let is_test =
        |(package, rest): (&str, &str)| is_name(&package.replace('-', "_")) && rest.split("::").all(is_name);
    story_name(code).is_some() || code.split_once("::").is_some_and(is_test)
}

/// The name in `story:name`; `story::tests::name` is a test of the package `crates/story`.
fn story_name(code: &str) -> Option<&str> {
    code.strip_prefix("story:").filter(|name| !name.starts_with(':'))
}

fn resolves(reference: &str, texts: &Texts, tests: &Tests<'_>) -> bool {
    if let Some(story) = story_name(reference) {
        return texts.contains_key(&format!("stories/{story}.story"));
    }
    let Some((package, rest)) = reference.split_once("::") else { return false };
    let directory =
        if BESIDE_CRATES.contains(&package) { package.to_owned() } else { format!("crates/{package}") };
    let name = rest.rsplit("::").next().unwrap_or(rest);
    tests.get(&directory).is_some_and(|names| names.contains(name))
}

/// The test functions of every package.
pub(super) fn tests(texts: &Texts) -> Tests<'_> {
    let mut tests = Tests::new();
    for (path, text) in texts.iter().filter(|(path, _)| path.ends_with(".rs")) {
        let depth = if path.starts_with("crates/") { 2 } else { 1 };
        let directory = path.split('/').take(depth).collect::<Vec<_>>().join("/");
        tests.entry(directory).or_default().extend(test_functions(text));
    }
    tests
}

/// The functions with a test attribute, in plain code and inside `proptest!`.
fn test_functions(text: &str) -> impl Iterator<Item = &str> {
    let mut attributed = false;
    text.lines().map(str::trim).filter_map(move |line| {
        if line.starts_with("#[") {
            attributed |= is_test_attribute(line);
            return None;
        }
        if line.starts_with("//") {
            return None;
        }
        let function = line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn "));
        let was_attributed = std::mem::take(&mut attributed);
        function.and_then(|rest| rest.split(['(', '<']).next()).filter(|_| was_attributed)
    })
}

fn is_test_attribute(line: &str) -> bool {
    line == "#[test]" || line.starts_with("#[tokio::test")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "
        proptest! {
            /// No early start.
            #[test]
            fn no_early_start(steps in steps()) {}
        }
        #[test]
        #[should_panic]
        fn late() {}
        fn helper() {}
    ";

    fn problems(specification: &str) -> Vec<String> {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file(SPECIFICATION, specification),
            file("crates/lifecycle/tests/invariants.rs", RULES),
            file("xtask/src/a.rs", "#[test]\nfn tidy_is_tidy() {}\n"),
            file("crates/story/tests/language.rs", "#[test]\nfn a_story_has_limits() {}\n"),
            file("stories/one-host.story", ""),
        ]);
        check_specification(&texts).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_promise_names_tests_that_exist() {
        let kept = "- **P1** x (`lifecycle::invariants::no_early_start`, `story:one-host`)\n\
                    - **P2** `Phase::Started` goes on,\n  (`lifecycle::late`)\n\n- **P3** `xtask::tidy_is_tidy`\n\
                    - **P4** `story::language::a_story_has_limits`\n";
        assert_eq!(problems(kept), Vec::<String>::new());
    }

    #[test]
    fn a_promise_without_a_test_is_a_problem() {
        let text = "# Promises\n- **P1** none\n\n  `lifecycle::late` is too late\n- a bullet\n";
        assert_eq!(problems(text), ["SPECIFICATION.md:2: a promise without a test"]);
    }

    #[test]
    fn a_test_that_does_not_exist_is_a_problem() {
        for wrong in ["lifecycle::helper", "lifecycle::invariants::gone", "wire::late", "story:two-hosts"] {
            let expected = format!("SPECIFICATION.md:1: no such test: {wrong}");
            assert_eq!(problems(&format!("- **P1** x `{wrong}`")), [expected]);
        }
    }

    #[test]
    fn there_is_a_specification() {
        assert_eq!(check_specification(&Texts::new())[0].message, "the file is missing");
    }
}
