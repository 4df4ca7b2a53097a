//! The guide *In CI*, followed from top to bottom: files are written as they are shown, and commands are typed.
//!
//! A block ```` ```python NAME ```` is the file `NAME`. In a block `console`, each line after `$` is run; the lines below it
//! are parts of what it prints, in that order. `…` in such a line stands for anything.

use std::fs;
use std::path::Path;

use super::{Workplace, both_streams};

/// The guide, or a part of it.
pub(super) struct Page {
    text: String,
}

impl Page {
    pub(super) fn read() -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/in-ci.md");
        Self { text: fs::read_to_string(file).unwrap() }
    }

    /// The part below a heading of the second level.
    pub(super) fn section(&self, heading: &str) -> Self {
        let (_, rest) =
            self.text.split_once(&format!("\n## {heading}\n")).expect("the guide has this heading");
        Self { text: rest.split("\n## ").next().unwrap().to_owned() }
    }

    /// Does all that the part says, and compares what is printed.
    pub(super) fn follow(&self, place: &Workplace) {
        let mut commands = 0;
        for (head, text) in self.blocks() {
            match head.split_once(' ') {
                Some((_, name)) => write(&place.path().join(name), text),
                None if head == "console" => {
                    for (command, shown) in typed(text) {
                        commands += 1;
                        check(place, command, &shown);
                    }
                }
                None => {}
            }
        }
        assert!(commands > 0, "nothing was run");
    }

    /// Writes all files of the part; of one that is shown twice, the second.
    pub(super) fn write_files(&self, place: &Workplace) {
        let files = self.blocks().filter_map(|(head, text)| Some((head.split_once(' ')?.1, text)));
        files.for_each(|(name, text)| write(&place.path().join(name), text));
    }

    /// The blocks, each with the words behind its fence.
    fn blocks(&self) -> impl Iterator<Item = (&str, &str)> {
        let blocks = self.text.split("\n```").skip(1).step_by(2);
        blocks.map(|block| block.split_once('\n').unwrap_or((block, "")))
    }
}

fn write(file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, format!("{text}\n")).unwrap();
}

/// The commands of a block, each with the lines below it.
fn typed(block: &str) -> Vec<(&str, Vec<&str>)> {
    let mut typed = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), typed.last_mut()) {
            (Some(command), _) => typed.push((command, Vec::new())),
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("a block begins with a command: {line}"),
        }
    }
    typed
}

fn check(place: &Workplace, command: &str, shown: &[&str]) {
    // Nothing in the guide takes long, and what never ends is not waited for.
    let output =
        place.command("timeout").args(["60", "sh", "-c", command]).output().expect("there is a shell");
    let printed = both_streams(&output);
    let mut rest = printed.lines();
    for line in shown.iter().filter(|line| !line.trim().is_empty()) {
        assert!(
            rest.any(|found| matches(line.trim(), found.trim())),
            "{command}\nshows no {line}\n{printed}"
        );
    }
    assert_ne!(output.status.code(), Some(124), "{command}: still running\n{printed}");
}

/// True if the parts between `…` stand in that order on the line.
fn matches(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split('…').peekable();
    let Some(mut rest) = parts.next().and_then(|first| printed.strip_prefix(first)) else { return false };
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[test]
fn a_line_with_an_ellipsis_matches_anything_there() {
    assert!(matches("a … c", "a b c") && matches("…", "") && matches("a…", "ab") && matches("…b…", "abc"));
    assert!(matches("a", "a") && !matches("a", "ab") && !matches("a … d", "a b c") && !matches("…b", "abc"));
}
