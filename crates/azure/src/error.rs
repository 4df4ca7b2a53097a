//! What is refused, in the envelope that every client of Azure reads.

use std::borrow::Cow;

use serde_json::{Value, json};

/// A refusal: a status, a code for programs, a message for people.
///
/// ```
/// use forewarn_azure::ArmError;
///
/// let error = ArmError::new(400, "InvalidParameter", "at most 15 minutes").at("notBeforeTimeout");
/// assert_eq!(
///     error.body().to_string(),
///     r#"{"error":{"code":"InvalidParameter","message":"at most 15 minutes","target":"notBeforeTimeout"}}"#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("({code}) {message}")]
pub struct ArmError {
    /// The status of the answer.
    pub status: u16,
    /// What it is, for programs: `ResourceNotFound`.
    pub code: Cow<'static, str>,
    /// What it is, for people.
    pub message: String,
    /// The property that it is about.
    pub target: Option<String>,
    /// What led to it.
    pub details: Vec<ArmError>,
}

impl ArmError {
    /// A refusal without a target.
    #[must_use]
    pub fn new(status: u16, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), target: None, details: Vec::new() }
    }

    /// The same, about a property.
    #[must_use]
    pub fn at(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    /// The same, because of these.
    #[must_use]
    pub fn because(mut self, details: Vec<ArmError>) -> Self {
        self.details = details;
        self
    }

    /// A parameter that is none.
    #[must_use]
    pub fn invalid(target: &str, message: impl Into<String>) -> Self {
        Self::new(400, "InvalidParameter", message).at(target)
    }

    /// The body of the answer.
    #[must_use]
    pub fn body(&self) -> Value {
        json!({ "error": self.inner() })
    }

    /// What is inside the envelope; also what a failed operation shows.
    #[must_use]
    pub fn inner(&self) -> Value {
        let mut inner = json!({ "code": self.code, "message": self.message });
        if let Some(target) = &self.target {
            inner["target"] = json!(target);
        }
        if !self.details.is_empty() {
            inner["details"] = self.details.iter().map(Self::inner).collect();
        }
        inner
    }
}
