//! The list of breakages: blocks of `key: value` lines with an empty line between them.

use anyhow::{Context, Result, bail};

/// One way to break a rule, and the test that must notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Breakage {
    /// The file that is changed.
    pub(super) file: String,
    /// Part of one line; it occurs once.
    pub(super) find: String,
    /// What takes its place.
    pub(super) replace: String,
    /// `invariants::name` is `name` in `tests/invariants.rs`; `lib::names::tests::name` lies beside the code.
    pub(super) test: String,
    /// What it breaks.
    pub(super) why: String,
}

pub(super) fn parse(text: &str) -> Result<Vec<Breakage>> {
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
    Ok(Breakage { file: take(0)?, find: take(1)?, replace: take(2)?, test: take(3)?, why: take(4)? })
}

const KEYS: [&str; 5] = ["file", "find", "replace", "test", "why"];

impl Breakage {
    /// The text with the rule broken.
    pub(super) fn apply(&self, text: &str) -> Result<String> {
        let (file, find) = (&self.file, &self.find);
        match text.matches(find.as_str()).count() {
            1 if !find.is_empty() => Ok(text.replacen(find.as_str(), &self.replace, 1)),
            count => bail!("occurs {count} times in {file}, and not once: {find}"),
        }
    }

    /// The words for cargo that choose the test's program, and the test's name in it.
    pub(super) fn target(&self) -> Result<(Vec<String>, &str)> {
        let (program, name) = self
            .test
            .split_once("::")
            .with_context(|| format!("not a test: {}\n  hint: `invariants::name`", self.test))?;
        let words = match program {
            "lib" => vec!["--lib".to_owned()],
            file => vec!["--test".to_owned(), file.to_owned()],
        };
        Ok((words, name))
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
        let words = vec!["--test".to_owned(), "invariants".to_owned()];
        assert_eq!(breakages[0].target().unwrap(), (words, "never_early"));
        assert_eq!(breakages[1].target().unwrap(), (vec!["--lib".to_owned()], "tests::checked"));
        assert!(parse("# only a comment\n\n").unwrap().is_empty());
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
