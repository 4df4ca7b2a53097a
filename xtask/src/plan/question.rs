//! The question on a terminal: whether to install.

use std::io::{BufRead, Write};

use anyhow::{Result, bail};

use crate::installs::OPTION;

/// The answer of a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Install,
    Skip,
}

pub(super) fn ask(input: &mut impl BufRead, output: &mut impl Write) -> Result<Answer> {
    loop {
        write!(output, "Install these? [Y/n; n runs without them] ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            bail!("no answer, nothing was run\n  hint: {OPTION} runs without installing");
        }
        match line.trim().to_ascii_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(Answer::Install),
            "n" | "no" => return Ok(Answer::Skip),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(typed: &str) -> (Option<Answer>, usize) {
        let mut shown = Vec::new();
        let answer = ask(&mut typed.as_bytes(), &mut shown).ok();
        (answer, String::from_utf8(shown).unwrap().matches("Install these?").count())
    }

    #[test]
    fn enter_installs_and_n_runs_without() {
        for yes in ["\n", "y\n", "Yes\n", " yes \n"] {
            assert_eq!(answer(yes), (Some(Answer::Install), 1), "{yes:?}");
        }
        for no in ["n\n", "NO\n", "n"] {
            assert_eq!(answer(no), (Some(Answer::Skip), 1), "{no:?}");
        }
    }

    #[test]
    fn another_answer_is_asked_for_again_and_no_answer_ends_the_run() {
        assert_eq!(answer("what?\nmaybe\nn\n"), (Some(Answer::Skip), 3));
        assert_eq!(answer(""), (None, 1));
        assert_eq!(answer("what?\n"), (None, 2));
    }
}
