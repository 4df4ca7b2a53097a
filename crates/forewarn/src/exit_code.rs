//! Exit codes of the program, and the errors that have one of their own.

use std::io;
use std::process::ExitCode;

use crate::client::InvalidServerUrl;

/// An invalid command line.
pub(crate) const USAGE: u8 = 2;

/// A wait that ended without what it waited for.
pub(crate) const TIMEOUT: u8 = 3;

/// A program that was not found, or cannot be executed: the codes of shells.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// An error with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ExitError {
    code: u8,
    message: String,
}

impl ExitError {
    /// A wait that ended without what it waited for.
    pub(crate) fn timeout(message: impl Into<String>) -> Self {
        Self { code: TIMEOUT, message: message.into() }
    }

    /// A contradiction on the command line, or in a file that it names.
    #[expect(clippy::needless_pass_by_value, reason = "it replaces the error")]
    pub(crate) fn usage(error: anyhow::Error) -> Self {
        Self { code: USAGE, message: format!("{error:#}") }
    }

    /// A command that cannot be started.
    pub(crate) fn unstarted(program: &str, error: &io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        Self { code, message: format!("cannot start the command: {program}: {error}") }
    }
}

/// The exit code of an error: 1, unless the error has another one.
pub(crate) fn of(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<ExitError>() {
        Some(ExitError { code, .. }) => ExitCode::from(*code),
        None if error.is::<InvalidServerUrl>() => ExitCode::from(USAGE),
        None => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn an_error_keeps_its_exit_code_under_a_context() {
        let timeout: anyhow::Result<()> = Err(ExitError::timeout("nothing happened").into());
        assert_eq!(of(&timeout.context("while waiting").unwrap_err()), ExitCode::from(3));
        assert_eq!(of(&anyhow::anyhow!("other")), ExitCode::FAILURE);
        let address = crate::client::Client::new("nowhere").map(drop).unwrap_err();
        assert_eq!(of(&address), ExitCode::from(2));
    }
}
