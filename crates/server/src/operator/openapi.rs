//! The operator API for programs: one OpenAPI document, made of the table of routes.

use std::collections::BTreeSet;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Map, Value, json};

use super::fault::{Kind, ProblemDocument};
use super::header::Header;
use super::needs::Needs;
use super::route::{Answer, Link, Members, Route, Subject};
use super::schemas::Schemas;
use super::{Access, Api};

/// The edition of OpenAPI that the document is written in.
const OPENAPI: &str = "3.1.0";

const ABOUT: &str = "What people and their tools ask of Forewarn. Whatever is wrong with a request, the answer is a \
    problem document (RFC 9457). Members and parameters that mean nothing are refused, requests of web pages too. A path \
    that is not listed is answered with 404, a method that is not listed with 405.";

/// The parameter that says which cluster is meant.
const CLUSTER: &str = "cluster";

/// The name of the only way to say who one is.
const SCHEME: &str = "bearer";

pub(super) async fn show(State(api): State<Api>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], api.openapi())
}

/// The document.
pub(super) fn document(routes: &[Route], access: &Access) -> Value {
    let is_of_cluster = |route: &&Route| route.query_names().iter().any(|name| name == CLUSTER);
    let of_cluster = routes.iter().filter(is_of_cluster).map(|route| route.id).collect();
    let mut writer = Writer { schemas: Schemas::new(), access, of_cluster };
    let mut paths = Map::new();
    for route in routes {
        let operation = writer.operation(route);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let problem = writer.schemas.answers.subschema_for::<ProblemDocument>();
    let responses: Map<_, _> =
        Kind::ALL.into_iter().map(|kind| (name(kind), response(kind, problem.as_value()))).collect();
    let tags: Vec<_> =
        Subject::ALL.map(|subject| json!({ "name": subject.word(), "description": subject.about() })).into();
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

struct Writer<'a> {
    schemas: Schemas,
    access: &'a Access,
    /// The operations that are about one cluster.
    of_cluster: BTreeSet<&'static str>,
}

impl Writer<'_> {
    fn operation(&mut self, route: &Route) -> Value {
        let mut operation = json!({
            "operationId": route.id,
            "summary": route.summary,
            "tags": [route.subject.word()],
            "security": self.security(route.needs),
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

    /// Where the door is open, a key is not looked at.
    fn security(&self, needs: Needs) -> Value {
        match (self.access, needs) {
            (_, Needs::Nothing) => json!([]),
            (Access::Open(_), _) => json!([{}, { SCHEME: [needs.word()] }]),
            (Access::Tokens, _) => json!([{ SCHEME: [needs.word()] }]),
        }
    }

    fn parameters(&mut self, route: &Route) -> Vec<Value> {
        let parts = route.parts.iter().map(|part| {
            let schema = (part.schema)(&mut self.schemas.requests);
            json!({ "name": part.name, "in": "path", "required": true, "schema": schema })
        });
        let mut all: Vec<_> = parts.collect();
        for Members { schema } in &route.query {
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
        let mut success = match &route.answer {
            Answer::Json(schema) => {
                let schema = schema(&mut self.schemas.answers);
                json!({ "description": route.summary, "content": { "application/json": { "schema": schema } } })
            }
            Answer::Other(content_type, about) => {
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
            responses["304"] = json!({ "description": "It is what was read before.", "headers": etag() });
        }
        for kind in route.all_problems() {
            let is_open = *self.access != Access::Tokens;
            if !(is_open && kind == Kind::Unauthorized) {
                let reference = format!("#/components/responses/{}", name(kind));
                responses[kind.status().as_str()] = json!({ "$ref": reference });
            }
        }
        responses
    }

    /// Where a link leads, unless it says otherwise, is in the cluster where it begins.
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
            // It is the whole body, and not only a part of one.
            value["x-schemathesis"] = json!({ "merge_body": false });
        }
        value
    }
}

/// A parameter is never `null`: it is there, or it is not.
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
        "description": header.about(),
        "schema": header.schema(),
    })
}

fn etag() -> Value {
    json!({ "ETag": {
        "description": "Another one, when something else is shown.",
        "required": true,
        "schema": { "type": "string" },
    } })
}

fn response(kind: Kind, problem: &Value) -> Value {
    let mut response = json!({
        "description": kind.title(),
        "content": { "application/problem+json": { "schema": problem } },
    });
    let header = match kind {
        Kind::Unauthorized => "WWW-Authenticate",
        Kind::WrongMethod => "Allow",
        Kind::Unavailable | Kind::Busy => "Retry-After",
        Kind::NotUnderstood
        | Kind::Foreign
        | Kind::Denied
        | Kind::NotFound
        | Kind::Refused
        | Kind::Ambiguous
        | Kind::Changed
        | Kind::TooLong
        | Kind::NotJson
        | Kind::KeyUsed
        | Kind::TooSlow
        | Kind::Broken => return response,
    };
    response["headers"] = json!({ header: { "required": true, "schema": { "type": "string" } } });
    response
}

/// What a response is called among the components: problems of one status are one.
fn name(kind: Kind) -> String {
    let reason = kind.status().canonical_reason().unwrap_or_default();
    reason.split_whitespace().collect()
}
