//! The OpenAPI document of the operator API, generated from the route table.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};

use super::header::Header;
use super::problem::{ProblemDocument, ProblemKind};
use super::required_permit::RequiredPermit;
use super::route::{Link, QueryParameters, Route, RouteResponse, RouteTag};
use super::schemas::Schemas;
use super::{Access, Api};

/// Version of OpenAPI.
const OPENAPI: &str = "3.1.0";

const ABOUT: &str = "Operator API of Forewarn. Every error is a \
    problem document (RFC 9457). Unknown members and parameters are rejected, and so are requests of web pages \
    other than the dashboard. A path that is not listed returns 404, a method that is not listed 405.";

/// Name of the query parameter for the cluster.
const CLUSTER: &str = "cluster";

/// Name of the security scheme.
const SCHEME: &str = "bearer";

pub(super) async fn show(State(api): State<Api>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], api.openapi())
}

/// Generates the document.
pub(super) fn document(routes: &[Route], access: &Access) -> Value {
    let is_of_cluster = |route: &&Route| route.query_names().iter().any(|name| name == CLUSTER);
    let of_cluster = routes.iter().filter(is_of_cluster).map(|route| route.id).collect();
    let mut writer = DocumentWriter { schemas: Schemas::new(), access, of_cluster };
    let mut paths = Map::new();
    for route in routes {
        let operation = writer.operation(route);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let problem = writer.schemas.responses.subschema_for::<ProblemDocument>();
    let responses: Map<_, _> =
        ProblemKind::ALL.into_iter().map(|kind| (name(kind), response(kind, problem.as_value()))).collect();
    let tags: Vec<_> =
        RouteTag::ALL.map(|tag| json!({ "name": tag.word(), "description": tag.description() })).into();
    let mut document = json!({
        "openapi": OPENAPI,
        "info": {
            "title": "Forewarn",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "components": {
            "responses": responses,
            "securitySchemes": { SCHEME: { "type": "http", "scheme": "bearer" } },
        },
    });
    let schemas = writer.schemas.finish(&mut document);
    document["components"]["schemas"] = schemas.into();
    document
}

struct DocumentWriter<'a> {
    schemas: Schemas,
    access: &'a Access,
    /// Operations with the cluster parameter.
    of_cluster: BTreeSet<&'static str>,
}

impl DocumentWriter<'_> {
    fn operation(&mut self, route: &Route) -> Value {
        let mut operation = json!({
            "operationId": route.id,
            "summary": route.summary,
            "tags": [route.tag.word()],
            "security": self.security(route.requires),
            "parameters": self.parameters(route),
            "responses": self.responses(route),
        });
        if let Some(body) = &route.body {
            let schema = (body.schema)(&mut self.schemas.requests);
            operation["requestBody"] = json!({
                "description": format!("{} bytes at most.", body.bytes_max),
                "required": true,
                "content": { "application/json": { "schema": schema } },
            });
        }
        operation
    }

    /// An open listener ignores tokens.
    fn security(&self, requires: RequiredPermit) -> Value {
        match (self.access, requires) {
            (_, RequiredPermit::None) => json!([]),
            (Access::Open(_), _) => json!([{}, { SCHEME: [requires.word()] }]),
            (Access::Tokens, _) => json!([{ SCHEME: [requires.word()] }]),
        }
    }

    fn parameters(&mut self, route: &Route) -> Vec<Value> {
        let parts = route.path_parameters.iter().map(|part| {
            let schema = (part.schema)(&mut self.schemas.requests);
            json!({ "name": part.name, "in": "path", "required": true, "schema": schema })
        });
        let mut all: Vec<_> = parts.collect();
        for QueryParameters { schema } in &route.query {
            let mut schema = (schema)(&mut self.schemas.requests);
            let members = schema.ensure_object().remove("properties");
            for (name, schema) in members.iter().filter_map(Value::as_object).flatten() {
                all.push(parameter(name, schema.clone()));
            }
        }
        all.extend(route.headers.iter().copied().map(header_parameter));
        all
    }

    fn responses(&mut self, route: &Route) -> Value {
        let mut success = match &route.response {
            RouteResponse::Json(schema) => {
                let schema = schema(&mut self.schemas.responses);
                json!({ "description": route.summary, "content": { "application/json": { "schema": schema } } })
            }
            RouteResponse::Other(content_type, about) => {
                let content_type = content_type.split(';').next().unwrap_or(content_type);
                json!({ "description": about, "content": { content_type: {} } })
            }
        };
        if !route.links.is_empty() {
            let links = route.links.iter().enumerate();
            let written = links.map(|(number, to)| (format!("{}{number}", to.to), self.link(route, to)));
            success["links"] = written.collect::<Map<_, _>>().into();
        }
        if route.is_tagged() {
            success["headers"] = etag();
        }
        let mut responses = json!({ "200": success });
        if route.is_tagged() {
            responses["304"] = json!({ "description": "The resource has not changed.", "headers": etag() });
        }
        for kind in route.all_problems() {
            let is_open = *self.access != Access::Tokens;
            if !(is_open && kind == ProblemKind::Unauthorized) {
                let reference = format!("#/components/responses/{}", name(kind));
                responses[kind.status().as_str()] = json!({ "$ref": reference });
            }
        }
        responses
    }

    /// A link leads to the same cluster, unless it names another.
    fn link(&self, from: &Route, link: &Link) -> Value {
        let mut value = json!({ "operationId": link.to, "description": link.about });
        let said = link.parameters.iter().map(|(name, from)| ((*name).to_owned(), (*from).into()));
        let mut parameters: Map<String, Value> = said.collect();
        if [from.id, link.to].iter().all(|id| self.of_cluster.contains(id)) {
            parameters.entry(CLUSTER).or_insert_with(|| format!("$request.query.{CLUSTER}").into());
        }
        if !parameters.is_empty() {
            value["parameters"] = parameters.into();
        }
        if let Some(body) = &link.body {
            value["requestBody"] = body.clone();
            // The body replaces the generated one.
            value["x-schemathesis"] = json!({ "merge_body": false });
        }
        value
    }
}

/// Removes `null` from the schema of a parameter: parameters are present or absent.
fn parameter(name: &str, mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        if let Some(Value::Array(kinds)) = members.get_mut("type") {
            kinds.retain(|kind| kind != "null");
            if let [only] = kinds.as_slice() {
                members["type"] = only.clone();
            }
        }
        if let Some(Value::Array(words)) = members.get_mut("enum") {
            words.retain(|word| !word.is_null());
        }
        if let Some(Value::Array(mut choices)) = members.remove("anyOf") {
            choices.retain(|choice| choice["type"] != "null");
            members.extend(choices.pop().as_ref().and_then(Value::as_object).cloned().unwrap_or_default());
        }
    }
    let about = schema.as_object_mut().and_then(|members| members.remove("description"));
    json!({ "name": name, "in": "query", "description": about.unwrap_or_default(), "schema": schema })
}

fn header_parameter(header: Header) -> Value {
    json!({
        "name": header.name(),
        "in": "header",
        "description": header.description(),
        "schema": header.schema(),
    })
}

fn etag() -> Value {
    json!({ "ETag": {
        "description": "Changes with the content of the response.",
        "required": true,
        "schema": { "type": "string" },
    } })
}

fn response(kind: ProblemKind, problem: &Value) -> Value {
    let mut response = json!({
        "description": kind.title(),
        "content": { "application/problem+json": { "schema": problem } },
    });
    let header = match kind {
        ProblemKind::Unauthorized => "WWW-Authenticate",
        ProblemKind::WrongMethod => "Allow",
        ProblemKind::Unavailable | ProblemKind::Busy => "Retry-After",
        ProblemKind::InvalidRequest
        | ProblemKind::Foreign
        | ProblemKind::Denied
        | ProblemKind::NotFound
        | ProblemKind::Refused
        | ProblemKind::NoNotice
        | ProblemKind::Ambiguous
        | ProblemKind::Changed
        | ProblemKind::TooLong
        | ProblemKind::NotJson
        | ProblemKind::KeyUsed
        | ProblemKind::TooSlow
        | ProblemKind::ClusterFailed
        | ProblemKind::Internal => return response,
    };
    // A cluster that has failed has the same status, and none.
    let is_required = kind != ProblemKind::Unavailable;
    response["headers"] = json!({ header: { "required": is_required, "schema": { "type": "string" } } });
    response
}

/// Name of the response component of a problem: one per status.
fn name(kind: ProblemKind) -> String {
    let reason = kind.status().canonical_reason().unwrap_or_default();
    reason.split_whitespace().collect()
}
