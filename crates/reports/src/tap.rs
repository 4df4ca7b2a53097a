//! The Test Anything Protocol, version 13.

use std::fmt::Write as _;

use crate::{CaseOutcome, Suite};

/// The suite in TAP. Failures have a diagnostic block, which consumers show as it is.
#[must_use]
pub fn tap(suite: &Suite) -> String {
    let mut text = format!("TAP version 13\n1..{}\n", suite.cases.len());
    for (number, case) in (1..).zip(&suite.cases) {
        let name = description(&case.name);
        // Writing to a text cannot fail.
        match &case.outcome {
            CaseOutcome::Passed => writeln!(text, "ok {number} - {name}"),
            CaseOutcome::Failed { message, details } => {
                let lines = [message.as_str()].into_iter().chain(details.lines());
                let lines = lines.map(|line| format!("# {}\n", printable(line))).collect::<String>();
                write!(text, "not ok {number} - {name}\n{lines}")
            }
            CaseOutcome::Skipped { message } => {
                writeln!(text, "ok {number} - {name} # SKIP {}", printable(message))
            }
        }
        .ok();
    }
    text
}

/// The name of a test: `#` would begin a directive.
fn description(name: &str) -> String {
    printable(name).replace('\\', "\\\\").replace('#', "\\#")
}

/// A text on one line.
fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Case;

    #[test]
    fn each_test_has_a_line_and_a_failure_its_diagnostics() {
        let failed = CaseOutcome::Failed { message: "no".to_owned(), details: "one\ntwo\u{7}".to_owned() };
        let skipped = CaseOutcome::Skipped { message: "not\nhere".to_owned() };
        let cases = vec![
            Case::new("c", "a #1 \\ b", CaseOutcome::Passed),
            Case::new("c", "b", failed),
            Case::new("c", "c", skipped),
        ];
        let expected = "TAP version 13\n1..3\nok 1 - a \\#1 \\\\ b\nnot ok 2 - b\n# no\n# one\n# two \n\
                        ok 3 - c # SKIP not here\n";
        assert_eq!(tap(&Suite { name: "s".to_owned(), cases }), expected);
    }
}
