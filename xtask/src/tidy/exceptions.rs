//! Known exceptions to the rules for modules and dependencies: `xtask/exceptions.txt`.
//!
//! The list may only get shorter. A problem that is not listed is a problem, and so is an exception that is no longer
//! needed.

use std::collections::BTreeSet;

use super::Problem;

pub(super) const LIST: &str = "xtask/exceptions.txt";

/// A known violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// `cycle: server::arm: call place`: modules of a folder that import each other.
    Cycle { folder: String, modules: BTreeSet<String> },
    /// `dependency: imds -> lifecycle`: a dependency that does not go to a lower layer.
    Dependency { from: String, to: String },
    /// `reach: agent -> lifecycle`: a crate that is compiled into another, and must not be.
    Reach { from: String, to: String },
}

#[derive(Debug)]
pub(super) struct Exceptions {
    listed: Vec<Listed>,
    problems: Vec<Problem>,
}

#[derive(Debug)]
struct Listed {
    /// Counted from 0.
    line: usize,
    text: String,
    known: Known,
    is_used: bool,
}

impl Exceptions {
    pub(super) fn parse(list: &str) -> Self {
        let mut exceptions = Self { listed: Vec::new(), problems: Vec::new() };
        for (line, text) in list.lines().enumerate().map(|(line, text)| (line, text.trim())) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match parse_line(text) {
                Some(known) => {
                    exceptions.listed.push(Listed { line, text: text.to_owned(), known, is_used: false });
                }
                None => {
                    exceptions.problems.push(Problem::new(LIST, line, format!("not an exception: {text}")));
                }
            }
        }
        exceptions
    }

    /// Finds an exception and marks it as needed.
    pub(super) fn permits(&mut self, known: &Known) -> bool {
        let found = self.listed.iter_mut().find(|listed| listed.known == *known);
        found.is_some_and(|listed| {
            listed.is_used = true;
            true
        })
    }

    /// The invalid lines, and those that no check has needed.
    pub(super) fn unused(self) -> Vec<Problem> {
        let unused = self.listed.into_iter().filter(|listed| !listed.is_used);
        let unused = unused.map(|Listed { line, text, .. }| {
            Problem::new(LIST, line, format!("no longer needed: {text}\n  hint: remove the line"))
        });
        self.problems.into_iter().chain(unused).collect()
    }
}

fn parse_line(text: &str) -> Option<Known> {
    let (rule, rest) = text.split_once(": ")?;
    let arrow = || rest.split_once(" -> ").map(|(from, to)| (from.trim().to_owned(), to.trim().to_owned()));
    match rule {
        "cycle" => {
            let (folder, modules) = rest.split_once(": ")?;
            let modules = modules.split_whitespace().map(str::to_owned).collect();
            Some(Known::Cycle { folder: folder.to_owned(), modules })
        }
        "dependency" => arrow().map(|(from, to)| Known::Dependency { from, to }),
        "reach" => arrow().map(|(from, to)| Known::Reach { from, to }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_used_or_a_problem() {
        let list = "# Known.\n\ncycle: a::b: d c\ndependency: x -> y\nreach: x -> z\nwhat: a\n";
        let mut exceptions = Exceptions::parse(list);
        let modules = BTreeSet::from(["c".to_owned(), "d".to_owned()]);
        assert!(exceptions.permits(&Known::Cycle { folder: "a::b".to_owned(), modules }));
        let (from, to) = ("x".to_owned(), "y".to_owned());
        assert!(exceptions.permits(&Known::Dependency { from: from.clone(), to: to.clone() }));
        assert!(!exceptions.permits(&Known::Reach { from, to }));
        let problems: Vec<_> = exceptions.unused().iter().map(ToString::to_string).collect();
        assert_eq!(problems[0], "xtask/exceptions.txt:6: not an exception: what: a");
        assert!(problems[1].starts_with("xtask/exceptions.txt:5: no longer needed: reach: x -> z"));
    }
}
