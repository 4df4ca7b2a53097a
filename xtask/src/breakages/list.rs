//! The list of breakages: blocks of `key: value` lines with an empty line between them.

use anyhow::{Context, Result, bail};

/// One way to break a rule, and the test that must notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breakage {
    /// The first line of its block, counted from 1.
    pub(crate) line: usize,
    /// The file that is changed.
    pub(crate) file: String,
    /// Part of one line; it occurs once.
    pub(super) find: String,
    /// What takes its place.
    pub(super) replace: String,
    /// `control::rules::name` is `name` in `crates/control/tests/it/rules.rs`; with `lib` or `bin` for the module, it lies beside
    /// the code. Without a package, it is a test of the rules: `invariants::name`.
    pub(super) test: String,
    /// What it breaks.
    pub(super) why: String,
}

pub(crate) fn parse(text: &str) -> Result<Vec<Breakage>> {
    let mut blocks = vec![Vec::new()];
    for (place, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            blocks.push(Vec::new());
        } else if !line.starts_with('#') {
            blocks.last_mut().expect("there is always one").push((place + 1, line));
        }
    }
    blocks.into_iter().filter(|block| !block.is_empty()).map(|block| parse_block(&block)).collect()
}

fn parse_block(block: &[(usize, &str)]) -> Result<Breakage> {
    let mut breakage = [const { None }; KEYS.len()];
    for (line, text) in block {
        let (key, value) =
            text.split_once(':').with_context(|| format!("line {line}: not `key: value`: {text}"))?;
        let place = KEYS.iter().position(|known| *known == key);
        let place = place.with_context(|| format!("line {line}: unknown key: {key}"))?;
        if breakage[place].replace(value.trim().to_owned()).is_some() {
            bail!("line {line}: a key given twice: {key}\n  hint: an empty line between two breakages");
        }
    }
    let (first, _) = block[0];
    let mut take = |place: usize| {
        breakage[place].take().with_context(|| format!("line {first}: a key is missing: {}", KEYS[place]))
    };
    Ok(Breakage {
        line: first,
        file: take(0)?,
        find: take(1)?,
        replace: take(2)?,
        test: take(3)?,
        why: take(4)?,
    })
}

const KEYS: [&str; 5] = ["file", "find", "replace", "test", "why"];

impl Breakage {
    /// The text with the rule broken.
    pub(crate) fn apply(&self, text: &str) -> Result<String> {
        let (file, find) = (&self.file, &self.find);
        match text.matches(find.as_str()).count() {
            1 if !find.is_empty() => Ok(text.replacen(find.as_str(), &self.replace, 1)),
            count => bail!("occurs {count} times in {file}, and not once: {find}"),
        }
    }

    /// The words occur in its file, its test or its explanation.
    pub(super) fn names(&self, words: &str) -> bool {
        [&self.file, &self.test, &self.why].iter().any(|text| text.contains(words))
    }

    /// The test, taken apart. `is_package` knows the directories below `crates`.
    pub(crate) fn target(&self, is_package: impl Fn(&str) -> bool) -> Result<Target<'_>> {
        let hint = || format!("not a test: {}\n  hint: `control::rules::name`", self.test);
        let (first, rest) = self.test.split_once("::").with_context(hint)?;
        let (package, rest) = if is_package(first) { (first, rest) } else { (RULES, self.test.as_str()) };
        let (first, beside) = rest.split_once("::").with_context(hint)?;
        let (program, name) =
            if BESIDE_CODE.contains(&first) { (first, beside) } else { (INTEGRATION_TESTS, rest) };
        Ok(Target { package, program, name })
    }
}

/// The integration tests of every package.
const INTEGRATION_TESTS: &str = "it";
/// What stands for tests beside the code of a library or a program.
const BESIDE_CODE: [&str; 2] = ["lib", "bin"];
/// The package whose tests are named without it.
const RULES: &str = "lifecycle";

/// One test of one package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// The directory below `crates`.
    pub(crate) package: &'a str,
    /// `lib`, `bin` or `it`.
    program: &'a str,
    /// The path of the test in its program.
    pub(crate) name: &'a str,
}

impl Target<'_> {
    /// The words for cargo that choose the program of the test.
    pub(super) fn words(&self) -> Vec<String> {
        let package = match self.package {
            "forewarn" => "forewarn".to_owned(),
            other => format!("forewarn-{other}"),
        };
        let program = match self.program {
            "lib" => vec!["--lib".to_owned()],
            "bin" => vec!["--bin".to_owned(), package.clone()],
            file => vec!["--test".to_owned(), file.to_owned()],
        };
        ["--package".to_owned(), package].into_iter().chain(program).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# How it is written.\n\n\
        file: a.rs\nfind: x < y\nreplace: x <= y\ntest: invariants::never_early\nwhy: starts a moment too early\n\n\
        # Nothing takes its place.\n\
        file: b.rs\nfind: check()?;\nreplace:\ntest: lib::tests::checked\nwhy: no check: none at all\n";

    #[test]
    fn a_list_is_read_block_by_block() {
        let breakages = parse(LIST).unwrap();
        assert_eq!(breakages.len(), 2);
        assert_eq!(breakages[0].apply("if x < y {").unwrap(), "if x <= y {");
        assert_eq!(breakages[1].apply("check()?;").unwrap(), "");
        assert_eq!(breakages[1].why, "no check: none at all");
        assert_eq!((breakages[0].line, breakages[1].line), (3, 10));
        assert!(parse("# only a comment\n\n").unwrap().is_empty());
    }

    #[test]
    fn a_test_may_be_one_of_any_package() {
        let target = |test: &str| {
            let breakage = Breakage { test: test.to_owned(), ..parse(LIST).unwrap().remove(0) };
            let target = breakage.target(|name| ["control", "forewarn"].contains(&name)).unwrap();
            format!("{} {}", target.words().join(" "), target.name)
        };
        assert_eq!(target("invariants::a"), "--package forewarn-lifecycle --test it invariants::a");
        assert_eq!(target("lib::a::b"), "--package forewarn-lifecycle --lib a::b");
        assert_eq!(target("control::rules::a::b"), "--package forewarn-control --test it rules::a::b");
        assert_eq!(target("control::lib::a::b"), "--package forewarn-control --lib a::b");
        assert_eq!(target("forewarn::bin::a::b"), "--package forewarn --bin forewarn a::b");
        let wrong = Breakage { test: "control::a".to_owned(), ..parse(LIST).unwrap().remove(0) };
        assert!(wrong.target(|name| name == "control").unwrap_err().to_string().starts_with("not a test"));
    }

    #[test]
    fn what_is_found_occurs_once() {
        let breakage = &parse(LIST).unwrap()[0];
        assert!(breakage.apply("x > y").unwrap_err().to_string().starts_with("occurs 0 times in a.rs"));
        assert!(breakage.apply("x < y, x < y").unwrap_err().to_string().starts_with("occurs 2 times"));
    }

    #[test]
    fn a_wrong_list_is_refused_with_its_line() {
        for (text, problem) in [
            ("file: a\nwhat: b\n", "line 2: unknown key: what"),
            ("file: a\nfile: b\n", "line 2: a key given twice: file"),
            ("file: a\nfind: b\n", "line 1: a key is missing: replace"),
            ("file\n", "line 1: not `key: value`: file"),
        ] {
            assert!(parse(text).unwrap_err().to_string().starts_with(problem), "{text}");
        }
    }
}
