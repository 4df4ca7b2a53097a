//! What is shown with a tag, so that somebody can say later what they have seen of it: `ETag`, `If-None-Match`.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::visit::{Tags, tag_of};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// One thing that is shown.
#[derive(Clone, Debug)]
pub(super) struct Tagged<T> {
    shown: T,
    /// What whoever asks has seen already.
    seen: Option<Tags>,
}

impl<T: Serialize> Tagged<T> {
    pub(super) fn new(shown: T, seen: Option<Tags>) -> Self {
        Self { shown, seen }
    }
}

impl<T: Serialize> IntoResponse for Tagged<T> {
    fn into_response(self) -> Response {
        // Whatever is shown can be written; once is enough.
        let bytes = serde_json::to_vec(&self.shown).unwrap_or_default();
        let tag = tag_of(&bytes);
        let is_known = self.seen.is_some_and(|seen| seen.fits(&tag));
        let tag = HeaderValue::try_from(tag).ok().map(|tag| [(header::ETAG, tag)]);
        if is_known {
            return (StatusCode::NOT_MODIFIED, tag, ()).into_response();
        }
        (tag, [(header::CONTENT_TYPE, JSON)], bytes).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_already_is_not_shown_again() {
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
