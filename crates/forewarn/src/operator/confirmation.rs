//! Confirmation of commands that destroy machines or their data.
//!
//! Simulated machines need no confirmation.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use anyhow::{Result, bail};
use clap::Args;
use forewarn_control::{DriverKind, ServerView};

use super::session::Session;
use super::visible;

/// Characters of the operator's reply that are read.
const REPLY_CHARS_MAX: u64 = 64;

/// Confirmation of a destructive command.
#[derive(Args, Clone, Copy)]
pub(crate) struct ConfirmationArgs {
    /// Skip the confirmation; required without a terminal if the driver acts on real machines
    #[arg(long)]
    yes: bool,
}

/// The way to prompt the operator.
enum Prompt {
    /// A terminal.
    Terminal,
    /// No terminal.
    Impossible,
}

impl ConfirmationArgs {
    /// Prompts the operator to confirm `what`, such as `deletion of web_0`, unless machines are simulated.
    ///
    /// # Errors
    /// If the operator does not confirm, or there is no terminal.
    pub(super) fn obtain(self, session: &Session, what: &str) -> Result<()> {
        self.obtain_if(session, what, || Ok(true))
    }

    /// Like [`Self::obtain`] for a command that is destructive only if `is_destructive` returns true.
    ///
    /// # Errors
    /// If the operator does not confirm, or there is no terminal.
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
            DriverKind::Simulated => return Ok(()),
            DriverKind::Program if !is_destructive()? => return Ok(()),
            DriverKind::Program => {}
        }
        prompt_for(what, "the driver of this server acts on real machines")
    }

    /// Prompts the operator to confirm the work of a driver program that no server runs.
    ///
    /// # Errors
    /// If the operator does not confirm, or there is no terminal.
    pub(crate) fn obtain_without_server(self, what: &str) -> Result<()> {
        if self.yes { Ok(()) } else { prompt_for(what, "the driver program acts on real machines") }
    }
}

/// Prompts the operator to confirm `what` for some reason.
///
/// # Errors
/// If the operator does not confirm, or there is no terminal.
pub(crate) fn prompt_for(what: &str, reason: &str) -> Result<()> {
    let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let prompt = if is_terminal { Prompt::Terminal } else { Prompt::Impossible };
    confirm(what, reason, &prompt, &mut io::stdin().lock(), &mut io::stderr().lock())
}

fn confirm(
    what: &str,
    reason: &str,
    prompt: &Prompt,
    input: &mut impl BufRead,
    out: &mut impl Write,
) -> Result<()> {
    let what = visible(what);
    match prompt {
        Prompt::Impossible => {
            bail!("confirmation is required: {what}\n  hint: {reason}; add --yes to confirm")
        }
        Prompt::Terminal => {}
    }
    write!(out, "{what}: {reason}. Continue? [y/N] ")?;
    out.flush()?;
    let mut reply = String::new();
    input.take(REPLY_CHARS_MAX).read_line(&mut reply)?;
    match reply.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("not confirmed, nothing changed: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompted(reply: &str) -> (bool, String) {
        let mut out = Vec::new();
        let reason = "the driver of this server acts on real machines";
        let confirmed =
            confirm("deletion of web_0", reason, &Prompt::Terminal, &mut reply.as_bytes(), &mut out);
        (confirmed.is_ok(), String::from_utf8(out).unwrap())
    }

    /// promise: X2
    #[test]
    fn only_y_or_yes_confirms() {
        for reply in ["y\n", "Y\n", " yes \n", "YES"] {
            assert!(prompted(reply).0, "{reply:?}");
        }
        for reply in ["", "\n", "n\n", "no\n", "yess\n", "web_0\n"] {
            assert!(!prompted(reply).0, "{reply:?}");
        }
        let text = prompted("n\n").1;
        assert_eq!(
            text,
            "deletion of web_0: the driver of this server acts on real machines. Continue? [y/N] "
        );
    }

    /// promise: X2
    #[test]
    fn without_a_terminal_the_error_names_the_option() {
        let mut out = Vec::new();
        let problem = confirm(
            "deletion of web_0",
            "real machines",
            &Prompt::Impossible,
            &mut "y\n".as_bytes(),
            &mut out,
        );
        let error = problem.unwrap_err().to_string();
        assert!(error.starts_with("confirmation is required: deletion of web_0\n  hint: "), "{error}");
        assert!(error.contains("--yes") && out.is_empty(), "{error}");
    }
}
