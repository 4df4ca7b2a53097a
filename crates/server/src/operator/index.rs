//! The index of the API: its collections and other reads without parameters, for a client that knows only the address.

use std::collections::BTreeMap;

use axum::Json;
use schemars::JsonSchema;
use serde::Serialize;

use super::context::OperatorRequest;
use super::realm::is_of_a_realm;

/// Path of the index.
pub(super) const PATH: &str = "/v1";

/// Index of the operator API.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct IndexView {
    /// Version of the server.
    version: String,
    /// Path of the OpenAPI document, which describes every request.
    openapi: String,
    /// Reference page of the API in the documentation.
    documentation: String,
    /// Paths to read, by name: as far as the caller may read them.
    links: BTreeMap<String, String>,
}

/// The index. Its links come from the route table, and their permits are checked for the caller.
pub(super) async fn index(request: OperatorRequest) -> Json<IndexView> {
    let is_available = |path: &str| request.control.realm_name().is_some() || !is_of_a_realm(path);
    let is_link = |path: &str| path != PATH && !path.contains('{') && is_available(path);
    let paths = request.api.readable_paths();
    let readable = paths
        .into_iter()
        .filter(|(path, requires)| is_link(path) && requires.check(Some(&request.permit)).is_ok());
    let link = |path: &str| (name(path).to_owned(), path.to_owned());
    Json(IndexView {
        version: request.api.about.version.clone(),
        openapi: "/v1/openapi.json".to_owned(),
        documentation: "docs/reference/operator-api.md".to_owned(),
        links: readable.map(|(path, _)| link(path)).collect(),
    })
}

/// The name of a path: `hosts` of `/v1/hosts`.
fn name(path: &str) -> &str {
    path.strip_prefix("/v1/").unwrap_or(path).trim_start_matches('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_named_after_its_path() {
        assert_eq!(name("/v1/hosts"), "hosts");
        assert_eq!(name("/v1/audit/export"), "audit/export");
        assert_eq!(name("/metrics"), "metrics");
    }
}
