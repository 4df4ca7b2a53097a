//! Pagination.
//!
//! A page starts after the last item of the previous one, found by its number: a page costs what it returns, and items
//! that are added or removed meanwhile cause neither duplicates nor gaps.

use std::borrow::Cow;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use forewarn_control::Items;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

/// Default and maximum items of a page.
const LIMIT: u16 = 100;
const LIMIT_MAX: u16 = 1_000;

/// Query parameters of a page.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct Paging {
    /// Maximum number of items.
    #[serde(default)]
    limit: PageLimit,
    /// Cursor: `next` of the previous page.
    after: Option<Cursor>,
}

/// Maximum number of items of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u16")]
struct PageLimit(u16);

/// Position of an item in its list, opaque to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Cursor(pub(super) u128);

/// A requested page, and the URI of the request.
#[derive(Clone, Debug)]
pub(super) struct Page {
    paging: Paging,
    uri: Uri,
}

/// A page with its items.
#[derive(Debug)]
pub(super) struct PageResponse<T> {
    items: Items<T>,
    link: Option<HeaderValue>,
}

impl Page {
    /// Cursor of the first possible item.
    pub(super) fn first(&self) -> Cursor {
        Cursor(self.paging.after.map_or(0, |Cursor(last)| last.saturating_add(1)))
    }

    /// Number of the first possible item; `largest` if it exceeds the type.
    pub(super) fn first_number<N: TryFrom<u128> + Default>(&self, largest: N) -> N {
        N::try_from(self.first().0).unwrap_or(largest)
    }

    /// Number of items to read: one more than the page has, to know if more follow.
    pub(super) fn wanted(&self) -> usize {
        usize::from(self.paging.limit.0) + 1
    }

    /// Fills the page with the items from [`Self::first`] on.
    pub(super) fn fill<T>(self, entries: impl Iterator<Item = (Cursor, T)>) -> PageResponse<T> {
        let mut entries = entries.skip_while(|(cursor, _)| *cursor < self.first()).peekable();
        let PageLimit(limit) = self.paging.limit;
        let mut items = Vec::new();
        let mut last = Cursor(0);
        for (cursor, item) in entries.by_ref().take(limit.into()) {
            last = cursor;
            items.push(item);
        }
        let next = entries.peek().map(|_| format!("{:x}", last.0));
        let link = next.as_deref().and_then(|next| link(&self.uri, next));
        PageResponse { items: Items { items, next }, link }
    }
}

/// Link header of the next page (RFC 8288).
fn link(uri: &Uri, next: &str) -> Option<HeaderValue> {
    let parameters = uri.query().unwrap_or_default().split('&');
    let mut query: Vec<_> = parameters.filter(|one| !one.is_empty() && !one.starts_with("after=")).collect();
    let after = format!("after={next}");
    query.push(&after);
    HeaderValue::from_str(&format!("<{}?{}>; rel=\"next\"", uri.path(), query.join("&"))).ok()
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = QueryRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, QueryRejection> {
        let Query(paging) = Query::from_request_parts(parts, state).await?;
        Ok(Self { paging, uri: parts.uri.clone() })
    }
}

impl<T: serde::Serialize> IntoResponse for PageResponse<T> {
    fn into_response(self) -> Response {
        let link = self.link.map(|link| [(header::LINK, link)]);
        (link, Json(self.items)).into_response()
    }
}

impl Default for PageLimit {
    fn default() -> Self {
        Self(LIMIT)
    }
}

impl TryFrom<u16> for PageLimit {
    type Error = String;

    fn try_from(limit: u16) -> Result<Self, String> {
        if (1..=LIMIT_MAX).contains(&limit) {
            Ok(Self(limit))
        } else {
            Err(format!("invalid limit: {limit}; a page has 1 to {LIMIT_MAX} items"))
        }
    }
}

impl TryFrom<String> for Cursor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_own = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let cursor = u128::from_str_radix(&text, 16).ok().filter(|_| is_own);
        cursor.map(Self).ok_or_else(|| format!("invalid cursor: {text:?}"))
    }
}

impl JsonSchema for PageLimit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT })
    }
}

impl JsonSchema for Cursor {
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Opaque cursor: `next` of a page. It does not expire.",
            "type": "string",
            "pattern": "^[0-9a-f]{1,32}$",
        })
    }
}
