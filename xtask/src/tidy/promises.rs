//! The guarantees of SPECIFICATION.md and the index of their tests.
//!
//! A guarantee is a bullet that begins with `- **N1**`. A test names it in a line `/// promise: N1` above its
//! attribute, a story in a line `# promise: N1`. The index `docs/reference/promises.md` is generated from these lines.

use std::collections::{BTreeMap, BTreeSet};

use super::test_functions::{PromiseLine, file_tests, module_path};
use super::{Problem, Texts};

const SPECIFICATION: &str = "SPECIFICATION.md";
/// The generated index.
pub(super) const INDEX: &str = "docs/reference/promises.md";
/// The specification stays short enough to be read in ten minutes.
const GUARANTEES_MAX: usize = 60;
const SPECIFICATION_BYTES_MAX: usize = 40_000;

/// Begins a line of a story that names guarantees.
const STORY_PROMISE: &str = "# promise:";
const STORIES: &str = "stories/";
const HEAD: &str = "# Tests of the guarantees\n\n\
    The tests of each guarantee of [SPECIFICATION.md](../../SPECIFICATION.md). `cargo xtask tidy --write` generates this\n\
    page from the lines `/// promise: ID` above tests and `# promise: ID` in stories. Do not edit it.\n";

/// A guarantee of the specification.
struct Guarantee<'a> {
    id: &'a str,
    section: &'a str,
    /// The line, counted from 0.
    place: usize,
}

/// A test or a story, and one line of it that names guarantees.
struct Proof<'a> {
    path: &'a str,
    /// None for a story.
    test: Option<&'a str>,
    line: PromiseLine<'a>,
}

pub(super) fn check_specification(texts: &Texts) -> Vec<Problem> {
    let Some(specification) = texts.get(SPECIFICATION) else {
        return vec![Problem::new(SPECIFICATION, 0, "the file is missing")];
    };
    let guarantees = guarantees(specification);
    let mut problems = check_size(specification, &guarantees);
    let (proofs, stray) = proofs(texts);
    problems.extend(stray);
    let mut proven = BTreeSet::new();
    let known: BTreeSet<_> = guarantees.iter().map(|guarantee| guarantee.id).collect();
    for Proof { path, line, .. } in &proofs {
        for id in line.ids() {
            if !known.contains(id) {
                problems.push(Problem::new(path, line.place, format!("unknown guarantee: {id:?}")));
            }
            proven.insert(id);
        }
    }
    let unproven = guarantees.iter().filter(|guarantee| !proven.contains(guarantee.id));
    problems.extend(unproven.map(|Guarantee { id, place, .. }| {
        let hint = format!("hint: write `/// promise: {id}` above a test");
        Problem::new(SPECIFICATION, *place, format!("guarantee without a test: {id}\n  {hint}"))
    }));
    problems.extend(check_index(texts));
    problems
}

fn check_size(specification: &str, guarantees: &[Guarantee<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    if specification.len() > SPECIFICATION_BYTES_MAX {
        let message = format!("{} bytes, at most {SPECIFICATION_BYTES_MAX}", specification.len());
        problems.push(Problem::new(SPECIFICATION, 0, message));
    }
    if let Some(beyond) = guarantees.get(GUARANTEES_MAX) {
        let message = format!("{} guarantees, at most {GUARANTEES_MAX}", guarantees.len());
        problems.push(Problem::new(SPECIFICATION, beyond.place, message));
    }
    let mut seen = BTreeSet::new();
    for Guarantee { id, place, .. } in guarantees {
        if !seen.insert(id) {
            problems.push(Problem::new(SPECIFICATION, *place, format!("guarantee defined twice: {id}")));
        }
    }
    problems
}

fn check_index(texts: &Texts) -> Option<Problem> {
    let wanted = index(texts)?;
    let found = texts.get(INDEX).map(String::as_str).unwrap_or_default();
    if found == wanted {
        return None;
    }
    let place = found.lines().zip(wanted.lines()).take_while(|(is, should)| is == should).count();
    Some(Problem::new(INDEX, place, "the index of tests is out of date\n  hint: cargo xtask tidy --write"))
}

fn guarantees(specification: &str) -> Vec<Guarantee<'_>> {
    let mut section = "";
    let mut guarantees = Vec::new();
    for (place, line) in specification.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title;
        }
        let id = line.strip_prefix("- **").and_then(|rest| rest.split_once("**")).map(|(id, _)| id);
        guarantees.extend(id.filter(|id| is_id(id)).map(|id| Guarantee { id, section, place }));
    }
    guarantees
}

/// True for a capital letter and a number: `N1`, `C12`.
fn is_id(text: &str) -> bool {
    let number = text.strip_prefix(|letter: char| letter.is_ascii_uppercase()).unwrap_or_default();
    number.starts_with(|digit: char| digit.is_ascii_digit() && digit != '0')
        && number.chars().all(|digit| digit.is_ascii_digit())
}

/// Every line of a test or a story that names guarantees, and a problem for each such line that is above no test.
fn proofs(texts: &Texts) -> (Vec<Proof<'_>>, Vec<Problem>) {
    let mut proofs = Vec::new();
    let mut problems = Vec::new();
    for (path, text) in texts {
        if path.ends_with(".rs") {
            let found = file_tests(text);
            problems.extend(found.stray.iter().map(|line| {
                Problem::new(path, line.place, "a line `/// promise:` that is not above a test")
            }));
            for test in found.tests {
                let test_proofs =
                    test.promises.into_iter().map(|line| Proof { path, test: Some(test.name), line });
                proofs.extend(test_proofs);
            }
        } else if path.starts_with(STORIES) && path.ends_with(".story") {
            let lines = text.lines().enumerate();
            let lines =
                lines.filter_map(|(place, line)| line.strip_prefix(STORY_PROMISE).map(|ids| (place, ids)));
            proofs.extend(lines.map(|(place, ids)| Proof {
                path,
                test: None,
                line: PromiseLine { place, ids },
            }));
        }
    }
    (proofs, problems)
}

/// The index of tests, from the sources. None without a specification.
pub(super) fn index(texts: &Texts) -> Option<String> {
    let specification = texts.get(SPECIFICATION)?;
    let (proofs, _) = proofs(texts);
    // Guarantee, then file (empty for stories), then the tests of that file.
    let mut rows = BTreeMap::<&str, BTreeMap<&str, BTreeSet<String>>>::new();
    for Proof { path, test, line } in &proofs {
        for id in line.ids() {
            let files = rows.entry(id).or_default();
            match test {
                Some(name) => files.entry(path).or_default().insert(format!("`{name}`")),
                None => files.entry("").or_default().insert(story_link(path)),
            };
        }
    }
    let mut text = HEAD.to_owned();
    let mut section = "";
    for guarantee in guarantees(specification) {
        if guarantee.section != section {
            section = guarantee.section;
            text.push_str(&format!("\n## {section}\n\n| guarantee | file | tests |\n|---|---|---|\n"));
        }
        for (path, tests) in rows.get(guarantee.id).into_iter().flatten() {
            let file = match *path {
                "" => "stories".to_owned(),
                path => format!("[{}](../../{path})", module_path(path)),
            };
            let tests = tests.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            text.push_str(&format!("| {} | {file} | {tests} |\n", guarantee.id));
        }
    }
    Some(text)
}

fn story_link(path: &str) -> String {
    let name = path.trim_start_matches(STORIES).trim_end_matches(".story");
    format!("[{name}](../../{path})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "crates/rules/tests/it/starts.rs";

    fn texts(files: &[(&str, &str)]) -> Texts {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    /// Problems of files whose index is up to date.
    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let mut texts = texts(files);
        texts.extend(index(&texts).map(|index| (INDEX.to_owned(), index)));
        check_specification(&texts).iter().map(ToString::to_string).collect()
    }

    fn test(ids: &str, name: &str) -> String {
        format!("/// promise: {ids}\n#[test]\nfn {name}() {{}}\n")
    }

    #[test]
    fn every_guarantee_has_a_test_or_a_story() {
        let specification = "- **N1** One.\n- **N2** Two\n  of them.\n- **N3** Three.\n- **not one** x\n";
        let files = [
            (SPECIFICATION, specification),
            (RULES, &test("N1", "early")),
            ("stories/brake.story", "# A brake.\n# promise: N2\nhost h1\n"),
        ];
        let expected = [
            "SPECIFICATION.md:4: guarantee without a test: N3\n  hint: write `/// promise: N3` above a test",
        ];
        assert_eq!(problems(&files), expected);
    }

    #[test]
    fn a_test_names_guarantees_that_exist() {
        let files = [(SPECIFICATION, "- **N1** One.\n"), (RULES, &test("N1, N9", "early"))];
        assert_eq!(problems(&files), ["crates/rules/tests/it/starts.rs:1: unknown guarantee: \"N9\""]);
        let files = [(SPECIFICATION, "- **N1** One.\n"), (RULES, &test("N1,", "early"))];
        assert_eq!(problems(&files), ["crates/rules/tests/it/starts.rs:1: unknown guarantee: \"\""]);
    }

    #[test]
    fn a_promise_line_is_above_a_test() {
        let source = test("N1", "early") + "/// promise: N1\nfn helper() {}\n";
        let files = [(SPECIFICATION, "- **N1** One.\n"), (RULES, source.as_str())];
        let expected = ["crates/rules/tests/it/starts.rs:4: a line `/// promise:` that is not above a test"];
        assert_eq!(problems(&files), expected);
    }

    #[test]
    fn the_specification_has_limits() {
        let numbers = 1..=GUARANTEES_MAX + 1;
        let bullets: Vec<_> = numbers.clone().map(|number| format!("- **N{number}** x\n")).collect();
        let ids: Vec<_> = numbers.map(|number| format!("N{number}")).collect();
        let source = test(&ids.join(", "), "all");
        let of = |specification: &str| problems(&[(SPECIFICATION, specification), (RULES, &source)]);
        assert_eq!(of(&bullets.concat()), ["SPECIFICATION.md:61: 61 guarantees, at most 60"]);
        let source = test("N1", "one");
        let of = |specification: &str| problems(&[(SPECIFICATION, specification), (RULES, &source)]);
        let long = |bytes: usize| format!("- **N1** {}", "x".repeat(bytes - 9));
        assert!(of(&long(40_000)).is_empty());
        assert_eq!(of(&long(40_001)), ["SPECIFICATION.md:1: 40001 bytes, at most 40000"]);
        assert_eq!(of("- **N1** x\n- **N1** y\n"), ["SPECIFICATION.md:2: guarantee defined twice: N1"]);
    }

    #[test]
    fn an_id_is_a_letter_and_a_number() {
        assert!(["N1", "C12"].into_iter().all(is_id));
        assert!(!["N", "N0", "N01", "n1", "NN1", "P1.2", "1"].into_iter().any(is_id));
    }

    #[test]
    fn the_index_is_generated_from_tests_and_stories() {
        let source = test("N1, E1", "early") + &test("N1", "late");
        let mut texts = texts(&[
            (SPECIFICATION, "## Notice\n- **N1** x\n## Events\n- **E1** y\n"),
            (RULES, &source),
            ("stories/brake.story", "# promise: E1\n"),
        ]);
        let expected = "\n## Notice\n\n| guarantee | file | tests |\n|---|---|---|\n\
            | N1 | [rules::starts](../../crates/rules/tests/it/starts.rs) | `early`, `late` |\n\
            \n## Events\n\n| guarantee | file | tests |\n|---|---|---|\n\
            | E1 | stories | [brake](../../stories/brake.story) |\n\
            | E1 | [rules::starts](../../crates/rules/tests/it/starts.rs) | `early` |\n";
        let index = index(&texts).unwrap();
        assert_eq!(index.strip_prefix(HEAD), Some(expected));
        let out_of_date = "the index of tests is out of date\n  hint: cargo xtask tidy --write";
        assert_eq!(check_specification(&texts)[0].message, out_of_date);
        texts.insert(INDEX.to_owned(), index.replace("`late`", "`later`"));
        assert_eq!(
            (check_specification(&texts)[0].line, check_specification(&texts)[0].message.as_str()),
            (10, out_of_date)
        );
        texts.insert(INDEX.to_owned(), index);
        assert!(check_specification(&texts).is_empty());
    }

    #[test]
    fn the_specification_exists() {
        assert_eq!(check_specification(&Texts::new())[0].message, "the file is missing");
    }
}
