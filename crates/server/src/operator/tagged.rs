//! Views with a tag, which a client can send back later: `ETag`, `If-Match`, `If-None-Match`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::header::tags;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A view, and the tags of those that the client has.
#[derive(Clone, Debug)]
pub(super) struct Tagged<T> {
    view: T,
    known: Option<Tags>,
}

impl<T: Serialize> Tagged<T> {
    pub(super) fn new(view: T, known: Option<Tags>) -> Self {
        Self { view, known }
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        // Views always serialize; one serialization serves the tag and the body.
        let bytes = serde_json::to_vec(&self.view).unwrap_or_default();
        let tag = tag_of(&bytes);
        let is_known = self.known.is_some_and(|known| known.fits(&tag));
        let tag = HeaderValue::try_from(tag).ok().map(|tag| [(header::ETAG, tag)]);
        if is_known {
            return (StatusCode::NOT_MODIFIED, tag, ()).into_response();
        }
        (tag, [(header::CONTENT_TYPE, JSON)], bytes).into_response()
    }
}

/// Tags that a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tags(String);

impl Tags {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// The tag is one of them, or they are `*`.
    pub(super) fn fits(&self, tag: &str) -> bool {
        self.0 == "*" || tags(&self.0).is_some_and(|known| known.contains(&tag))
    }
}

/// The tag of a view. Views that differ have different tags.
pub(super) fn tag(view: &impl Serialize) -> String {
    tag_of(&serde_json::to_vec(view).unwrap_or_default())
}

/// The tag of a view that is written as these bytes.
pub(super) fn tag_of(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let half: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{half}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_another_when_something_else_is_shown() {
        let one = tag(&serde_json::json!({"a": 1}));
        assert_eq!(one, tag(&serde_json::json!({"a": 1})));
        assert_ne!(one, tag(&serde_json::json!({"a": 2})));
        assert!(Tags("*".to_owned()).fits(&one));
        assert!(Tags(format!("\"x\", {one}")).fits(&one));
        assert!(!Tags("\"x\"".to_owned()).fits(&one));
    }

    #[test]
    fn a_known_view_is_not_sent_again() {
        let answer = |seen: Option<&str>| {
            let seen = seen.map(|text| Tags::new(text.to_owned()));
            Tagged::new("shown", seen).into_response()
        };
        let first = answer(None);
        assert_eq!(first.status(), StatusCode::OK);
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        let again = answer(Some(&tag));
        assert_eq!(
            (again.status(), &again.headers()[header::ETAG]),
            (StatusCode::NOT_MODIFIED, &first.headers()[header::ETAG])
        );
        assert_eq!(answer(Some(&format!("W/{tag}"))).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(answer(Some("\"another\"")).status(), StatusCode::OK);
    }
}
