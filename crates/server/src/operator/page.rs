//! Lists, page by page.
//!
//! A page goes on after the last thing of the one before, found by its number: it costs what it shows, however long the list
//! is, and what joins or leaves meanwhile makes nothing else appear twice or not at all.

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

/// Things on a page, unless said, and at most.
const LIMIT: u16 = 100;
const LIMIT_MAX: u16 = 1_000;

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(super) struct Paging {
    /// How many things at most.
    #[serde(default)]
    limit: Limit,
    /// Where to go on: `next` of the page before.
    after: Option<Cursor>,
}

/// How many things a page has at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u16")]
struct Limit(u16);

/// The place of something in its list. What it is made of is nobody else's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Cursor(pub(super) u128);

/// A page, and who asked for it.
#[derive(Clone, Debug)]
pub(super) struct Page {
    paging: Paging,
    uri: Uri,
}

/// A page with what is on it.
#[derive(Debug)]
pub(super) struct Shown<T> {
    items: Items<T>,
    link: Option<HeaderValue>,
}

impl Page {
    /// The first place that is wanted.
    pub(super) fn first(&self) -> Cursor {
        Cursor(self.paging.after.map_or(0, |Cursor(last)| last.saturating_add(1)))
    }

    /// The number of the first thing that is wanted, in a list whose places are numbers; larger than any, if none is.
    pub(super) fn first_number<N: TryFrom<u128> + Default>(&self, largest: N) -> N {
        N::try_from(self.first().0).unwrap_or(largest)
    }

    /// How many things have to be looked at to fill the page, and to know whether more follow.
    pub(super) fn wanted(&self) -> usize {
        usize::from(self.paging.limit.0) + 1
    }

    /// Fills the page with what comes from [`Self::first`] on.
    pub(super) fn fill<T>(self, places: impl Iterator<Item = (Cursor, T)>) -> Shown<T> {
        let mut places = places.skip_while(|(place, _)| *place < self.first()).peekable();
        let Limit(limit) = self.paging.limit;
        let mut items = Vec::new();
        let mut last = Cursor(0);
        for (place, item) in places.by_ref().take(limit.into()) {
            last = place;
            items.push(item);
        }
        let next = places.peek().map(|_| format!("{:x}", last.0));
        let link = next.as_deref().and_then(|next| link(&self.uri, next));
        Shown { items: Items { items, next }, link }
    }
}

/// The same request for the next page, as a header says it (RFC 8288).
fn link(uri: &Uri, next: &str) -> Option<HeaderValue> {
    let said = uri.query().unwrap_or_default().split('&');
    let mut query: Vec<_> = said.filter(|one| !one.is_empty() && !one.starts_with("after=")).collect();
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

impl<T: serde::Serialize> IntoResponse for Shown<T> {
    fn into_response(self) -> Response {
        let link = self.link.map(|link| [(header::LINK, link)]);
        (link, Json(self.items)).into_response()
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(LIMIT)
    }
}

impl TryFrom<u16> for Limit {
    type Error = String;

    fn try_from(limit: u16) -> Result<Self, String> {
        if (1..=LIMIT_MAX).contains(&limit) {
            Ok(Self(limit))
        } else {
            Err(format!("a page has 1 to {LIMIT_MAX} things, not {limit}"))
        }
    }
}

impl TryFrom<String> for Cursor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_own = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let place = u128::from_str_radix(&text, 16).ok().filter(|_| is_own);
        place.map(Self).ok_or_else(|| format!("not where a page ended: {text:?}"))
    }
}

impl JsonSchema for Limit {
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
            "description": "The end of a page: `next` of an answer. What is in it is nobody's business.",
            "type": "string",
            "pattern": "^[0-9a-f]{1,32}$",
        })
    }
}
