//! Errors of expressions: an error, or a value that is not known yet.

use std::fmt::Display;

use crate::ArmError;

/// Characters of a template that a message repeats.
const QUOTED_CHARS_MAX: usize = 120;

/// Reason why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateError {
    /// The value depends on a resource that does not exist yet.
    Later,
    Refused(ArmError),
}

impl From<ArmError> for TemplateError {
    fn from(error: ArmError) -> Self {
        Self::Refused(error)
    }
}

impl TemplateError {
    /// Converts to an error, where a pending value is not allowed.
    pub(super) fn here(self, location: &str) -> ArmError {
        match self {
            Self::Refused(error) => error,
            Self::Later => refusal(format!(
                "the template function 'reference' is not expected at this location: {location}"
            )),
        }
    }

    pub(super) fn at(self, location: &str) -> Self {
        match self {
            Self::Later => Self::Later,
            Self::Refused(mut error) => {
                if error.target.is_none() {
                    error.target = Some(clipped(location));
                }
                Self::Refused(error)
            }
        }
    }
}

/// Error for an invalid template, in the form that clients know.
pub(super) fn refusal(message: impl Display) -> ArmError {
    ArmError::new(400, "InvalidTemplate", format!("Deployment template validation failed: '{message}'."))
}

/// The same as a [`TemplateError`].
pub(super) fn bad(message: impl Display) -> TemplateError {
    TemplateError::Refused(refusal(message))
}

/// A piece of the template, quoted and truncated. Never a value: it could be a secret.
pub(super) fn quoted(piece: &impl ToString) -> String {
    format!("'{}'", clipped(&piece.to_string()))
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
