//! Errors in the envelope that every client of Azure reads.

use std::borrow::Cow;

use serde_json::{Value, json};

/// An error: status, code and message.
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
    pub status: u16,
    /// Error code, such as `ResourceNotFound`.
    pub code: Cow<'static, str>,
    pub message: String,
    /// Property that the error is about.
    pub target: Option<String>,
    pub details: Vec<ArmError>,
}

impl ArmError {
    /// An error without a target.
    #[must_use]
    pub fn new(status: u16, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { status, code: code.into(), message: message.into(), target: None, details: Vec::new() }
    }

    /// Sets the property that the error is about.
    #[must_use]
    pub fn at(mut self, target: impl Into<String>) -> Self {
        self.target = Some(target.into());
        self
    }

    #[must_use]
    pub fn because(mut self, details: Vec<ArmError>) -> Self {
        self.details = details;
        self
    }

    /// Error for an invalid parameter.
    #[must_use]
    pub fn invalid(target: &str, message: impl Into<String>) -> Self {
        Self::new(400, "InvalidParameter", message).at(target)
    }

    #[must_use]
    pub fn body(&self) -> Value {
        json!({ "error": self.inner() })
    }

    /// The content of the envelope; failed operations show it as well.
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
