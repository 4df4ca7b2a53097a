//! Why an expression has no value: it is wrong, or not yet known.

use std::fmt::Display;

use crate::ArmError;

/// Characters of a template that are repeated in a message.
const QUOTED_CHARS_MAX: usize = 120;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is known once a resource is there.
    Later,
    /// It is wrong.
    Refused(ArmError),
}

impl From<ArmError> for Trouble {
    fn from(error: ArmError) -> Self {
        Self::Refused(error)
    }
}

impl Trouble {
    /// The same as a refusal, where nothing can be waited for.
    pub(super) fn here(self, place: &str) -> ArmError {
        match self {
            Self::Refused(error) => error,
            Self::Later => refusal(format!(
                "the template function 'reference' is not expected at this location: {place}"
            )),
        }
    }

    /// The same, with the place where it is.
    pub(super) fn at(self, place: &str) -> Self {
        match self {
            Self::Later => Self::Later,
            Self::Refused(mut error) => {
                if error.target.is_none() {
                    error.target = Some(clipped(place));
                }
                Self::Refused(error)
            }
        }
    }
}

/// A template that is wrong, in the words that clients know.
pub(super) fn refusal(message: impl Display) -> ArmError {
    ArmError::new(400, "InvalidTemplate", format!("Deployment template validation failed: '{message}'."))
}

/// A template that is wrong.
pub(super) fn bad(message: impl Display) -> Trouble {
    Trouble::Refused(refusal(message))
}

/// A piece of the template, in quotes and not too long. Never a value: it could be a secret.
pub(super) fn quoted(piece: &impl ToString) -> String {
    format!("'{}'", clipped(&piece.to_string()))
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
