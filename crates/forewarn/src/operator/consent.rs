//! Confirmation of commands that destroy machines or their data.
//!
//! Only a driver that acts on real machines makes them dangerous: a server whose machines pretend is not asked for more.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Result, bail};
use clap::Args;
use forewarn_control::{DriverKind, ServerView};

use super::session::Session;
use super::visible;

/// Characters of an answer that are read.
const ANSWER_CHARS_MAX: u64 = 64;

/// Consent to a destructive command.
#[derive(Args, Clone, Copy)]
pub(crate) struct Consent {
    /// Do it without asking. Outside of a terminal it is required where a driver acts on real machines.
    #[arg(long)]
    yes: bool,
}

/// A way to ask an operator.
enum Asking {
    /// On the terminal.
    Terminal,
    /// There is none.
    Impossible,
}

impl Consent {
    /// Asks the operator to confirm `what`, such as `delete of web_0`, unless machines pretend.
    ///
    /// # Errors
    /// When the operator does not confirm it, or cannot be asked.
    pub(super) fn obtain(self, session: &Session, what: &str) -> Result<()> {
        self.obtain_if(session, what, || Ok(true))
    }

    /// Does the same for a command that is destructive only sometimes; `is_destructive` is asked where machines are real.
    ///
    /// # Errors
    /// When the operator does not confirm it, or cannot be asked.
    pub(super) fn obtain_if(
        self,
        session: &Session,
        what: &str,
        is_destructive: impl FnOnce() -> Result<bool>,
    ) -> Result<()> {
        if self.yes {
            return Ok(());
        }
        match session.get::<ServerView>("/v1/server")?.driver {
            DriverKind::Pretend => return Ok(()),
            DriverKind::Program if !is_destructive()? => return Ok(()),
            DriverKind::Program => {}
        }
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let asking = if is_terminal { Asking::Terminal } else { Asking::Impossible };
        confirm(what, &asking, &mut io::stdin().lock(), &mut io::stderr().lock())
    }
}

fn confirm(what: &str, asking: &Asking, input: &mut impl BufRead, out: &mut impl Write) -> Result<()> {
    let what = visible(what);
    match asking {
        Asking::Impossible => bail!(
            "confirmation is required: {what}\n  hint: the driver of this server acts on real machines; add --yes if that is intended"
        ),
        Asking::Terminal => {}
    }
    write!(out, "{what}: the driver of this server acts on real machines. Go on? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    input.take(ANSWER_CHARS_MAX).read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("not confirmed, nothing is done: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(answer: &str) -> (bool, String) {
        let mut out = Vec::new();
        let confirmed = confirm("delete of web_0", &Asking::Terminal, &mut answer.as_bytes(), &mut out);
        (confirmed.is_ok(), String::from_utf8(out).unwrap())
    }

    #[test]
    fn only_a_clear_yes_confirms() {
        for answer in ["y\n", "Y\n", " yes \n", "YES"] {
            assert!(asked(answer).0, "{answer:?}");
        }
        for answer in ["", "\n", "n\n", "no\n", "yess\n", "web_0\n"] {
            assert!(!asked(answer).0, "{answer:?}");
        }
        let said = asked("n\n").1;
        assert_eq!(said, "delete of web_0: the driver of this server acts on real machines. Go on? [y/N] ");
    }

    #[test]
    fn an_operator_who_cannot_be_asked_is_told_of_the_option() {
        let mut out = Vec::new();
        let problem = confirm("delete of web_0", &Asking::Impossible, &mut "y\n".as_bytes(), &mut out);
        let said = problem.unwrap_err().to_string();
        assert!(said.starts_with("confirmation is required: delete of web_0\n  hint: "), "{said}");
        assert!(said.contains("--yes") && out.is_empty(), "{said}");
    }
}
