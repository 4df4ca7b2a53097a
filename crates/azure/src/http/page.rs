//! Pages of lists: items until a page is full, and the token of the next page.
//!
//! A list has a stable order: by cluster, then by kind, then by the number of an object or the key of a resource.
//! Numbers are never used twice, so a token stays valid whatever comes or goes between two pages. A page also ends
//! after a number of objects were visited, because most of them may be outside the group or the permit of the request:
//! it then has fewer items, or none, and a link to the next page.

use axum::response::Response;
use forewarn_control::ClusterId;
use serde_json::{Value, json};

use super::request::ArmRequest;
use super::responses;
use crate::ArmError;

/// Items of one page.
pub(super) const PAGE_MAX: usize = 500;

/// Objects that are visited for one page.
pub(super) const VISITS_MAX: usize = 5_000;

/// Items of a page so far.
#[derive(Debug, Default)]
pub(super) struct PageItems {
    items: Vec<Value>,
    visits: usize,
}

impl PageItems {
    /// Visits an object. Returns false if the page has ended before it.
    pub(super) fn visit(&mut self) -> bool {
        let has_room = self.items.len() < PAGE_MAX && self.visits < VISITS_MAX;
        self.visits += usize::from(has_room);
        has_room
    }

    pub(super) fn push(&mut self, item: Value) {
        self.items.push(item);
    }

    /// Response with the items, and the URL of the next page.
    pub(super) fn response(self, request: &ArmRequest, next: Option<impl ToString>) -> Response {
        let mut body = json!({ "value": self.items });
        if let Some(next) = next {
            body["nextLink"] = json!(request.next_page(&next.to_string()));
        }
        responses::ok(body)
    }
}

/// The cluster in which a page begins, and the rest of its token; the first cluster and none for the first page.
pub(super) fn cluster_of_page(request: &ArmRequest) -> Result<(ClusterId, Option<&str>), ArmError> {
    let Some(token) = request.page() else { return Ok((ClusterId(0), None)) };
    let (cluster, rest) = token.split_once('-').ok_or_else(bad_token)?;
    Ok((ClusterId(number(cluster)?), Some(rest)))
}

/// The token of a page that begins in a cluster.
pub(super) fn token_of(cluster: ClusterId, rest: impl std::fmt::Display) -> String {
    format!("{}-{rest}", cluster.0)
}

/// Key of the first resource of a page: one below the prefix of the list, or the prefix itself.
pub(super) fn key_of_page(request: &ArmRequest, prefix: &str) -> Result<String, ArmError> {
    let Some(token) = request.page() else { return Ok(prefix.to_owned()) };
    Some(token.to_lowercase()).filter(|key| key.starts_with(prefix)).ok_or_else(bad_token)
}

/// A number in a token: as the server writes it.
pub(super) fn number(text: &str) -> Result<u32, ArmError> {
    text.parse().ok().filter(|number: &u32| number.to_string() == text).ok_or_else(bad_token)
}

pub(super) fn bad_token() -> ArmError {
    ArmError::invalid("$skiptoken", "The skip token is invalid.")
}
