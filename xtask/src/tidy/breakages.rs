//! The list of breakages: each finds its line exactly once and names an existing test.

use super::test_functions::test_names;
use super::{Problem, Texts};
use crate::breakages::{LIST, parse};

pub(super) fn check(texts: &Texts) -> Vec<Problem> {
    let breakages = match texts.get(LIST).map(|list| parse(list)) {
        Some(Ok(breakages)) => breakages,
        Some(Err(problem)) => return vec![Problem::new(LIST, 0, format!("{problem:#}"))],
        None => return vec![Problem::new(LIST, 0, "the file is missing")],
    };
    let tests = test_names(texts);
    let mut problems = Vec::new();
    for breakage in breakages {
        let mut add = |message: String| problems.push(Problem::new(LIST, breakage.line - 1, message));
        match texts.get(&breakage.file) {
            None => add(format!("no such file: {}", breakage.file)),
            Some(text) => {
                if let Err(problem) = breakage.apply(text) {
                    add(problem.to_string());
                }
            }
        }
        match breakage.target(|name| texts.contains_key(&format!("crates/{name}/Cargo.toml"))) {
            Err(problem) => add(problem.to_string()),
            Ok(target) => {
                let name = target.name.rsplit("::").next().unwrap_or_default();
                let package = format!("crates/{}", target.package);
                if !tests.get(&package).is_some_and(|names| names.contains(name)) {
                    add(format!("no such test in {package}: {}", target.name));
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakage_finds_its_line_once_and_its_test() {
        let block = |file: &str, find: &str, test: &str| {
            format!("file: {file}\nfind: {find}\nreplace: z\ntest: {test}\nwhy: w\n\n")
        };
        let list = [
            block("crates/control/src/lib.rs", "a < b", "control::rules::checked"),
            block("crates/control/src/lib.rs", "b", "control::lib::tests::beside"),
            block("crates/control/src/gone.rs", "a", "invariants::checked"),
        ];
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file(LIST, &list.concat()),
            file("crates/control/Cargo.toml", ""),
            file("crates/control/src/lib.rs", "a < b; b\n#[test]\nfn beside() {}\n"),
            file("crates/control/tests/it/rules.rs", "#[test]\nfn checked() {}\n"),
        ]);
        let problems: Vec<_> = check(&texts).iter().map(ToString::to_string).collect();
        let expected = [
            "xtask/breakages.txt:7: occurs 3 times in crates/control/src/lib.rs, and not once: b",
            "xtask/breakages.txt:13: no such file: crates/control/src/gone.rs",
            "xtask/breakages.txt:13: no such test in crates/lifecycle: invariants::checked",
        ];
        assert_eq!(problems, expected);
    }
}
