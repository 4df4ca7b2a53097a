//! One route: what is asked for, by whom, with what, and what is answered.
//!
//! Written once, in [`super::table`]. The router, the document for programs (`/v1/openapi.json`), the table for people and
//! the checks before a handler are made of it, so none of them can tell of something else than the others.

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use forewarn_control::shared::Role;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::Api;
use super::fault::Kind;
use super::guard::{self, Expected};
use super::header::Header;
use super::needs::Needs;
use super::visit::Which;

/// What a route is about: its heading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    Fleet,
    Work,
    Trail,
    Clock,
    Server,
}

/// Makes the schema of a type, or of a part of a request.
pub(super) type Describe = fn(&mut SchemaGenerator) -> Schema;

/// A part of the path that stands for something.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) schema: Describe,
}

/// Members of a query: the properties of a type.
pub(super) struct Members {
    pub(super) schema: Describe,
}

/// The body of a request: an object, as JSON.
pub(super) struct Body {
    pub(super) schema: Describe,
    pub(super) bytes_max: usize,
}

/// What is answered when all is well.
pub(super) enum Answer {
    /// One JSON value.
    Json(Describe),
    /// Bytes of another kind: of which, and what they say.
    Other(&'static str, &'static str),
}

/// Place of the first work that a command made, in its answer.
pub(super) const FIRST_WORK: &str = concat!("$response.body#/", "work/0");

/// What may be asked for next, by what was answered.
pub(super) struct Link {
    pub(super) to: &'static str,
    pub(super) about: &'static str,
    /// A parameter, and where in the request or the answer its value is.
    pub(super) parameters: Vec<(&'static str, &'static str)>,
    pub(super) body: Option<Value>,
}

impl Link {
    pub(super) fn to(operation: &'static str, about: &'static str) -> Self {
        Self { to: operation, about, parameters: Vec::new(), body: None }
    }

    /// A link to the next page of a list.
    pub(super) fn next_page(list: &'static str) -> Self {
        Self::to(list, "What follows.").with("after", "$response.body#/next")
    }

    pub(super) fn with(mut self, parameter: &'static str, value: &'static str) -> Self {
        self.parameters.push((parameter, value));
        self
    }

    /// Only if it is still what was answered.
    pub(super) fn unchanged(self) -> Self {
        self.with("If-Match", "$response.header.ETag")
    }

    /// Only if it is something else than what was answered.
    pub(super) fn changed(self) -> Self {
        self.with("If-None-Match", "$response.header.ETag")
    }

    pub(super) fn sending(self, body: Value) -> Self {
        Self { body: Some(body), ..self }
    }
}

/// One route.
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: &'static str,
    /// What programs call it.
    pub(super) id: &'static str,
    /// What it is, in a line.
    pub(super) summary: &'static str,
    pub(super) subject: Subject,
    /// What whoever uses it needs.
    pub(super) needs: Needs,
    pub(super) parts: Vec<Part>,
    pub(super) query: Vec<Members>,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Body>,
    pub(super) answer: Answer,
    /// The problems that it may have besides those that all have.
    pub(super) problems: Vec<Kind>,
    pub(super) links: Vec<Link>,
    handler: MethodRouter<Api>,
}

/// Bytes in the body of a request that says nothing else.
const BODY_BYTES_MAX: usize = 64 * 1024;

impl Route {
    pub(super) fn get<H, T>(path: &'static str, id: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        Self::new(Method::GET, path, id, summary, on(MethodFilter::GET, handler))
            .needs(Needs::OfTenants(Role::Viewer))
    }

    /// A route that changes something; its body is of that type.
    pub(super) fn post<B, H, T>(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        B: JsonSchema,
        H: Handler<T, Api>,
        T: 'static,
    {
        Self::changing(Method::POST, path, id, summary, on(MethodFilter::POST, handler)).taking::<B>()
    }

    /// A route that puts one thing in place of another; its body is of that type.
    pub(super) fn put<B, H, T>(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        B: JsonSchema,
        H: Handler<T, Api>,
        T: 'static,
    {
        Self::changing(Method::PUT, path, id, summary, on(MethodFilter::PUT, handler)).taking::<B>().edited()
    }

    /// A route that changes some of what there is; its body is of that type.
    pub(super) fn patch<B, H, T>(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        B: JsonSchema,
        H: Handler<T, Api>,
        T: 'static,
    {
        Self::changing(Method::PATCH, path, id, summary, on(MethodFilter::PATCH, handler))
            .taking::<B>()
            .edited()
    }

    /// A route that removes something.
    pub(super) fn delete<H, T>(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        Self::changing(Method::DELETE, path, id, summary, on(MethodFilter::DELETE, handler)).edited()
    }

    /// Whatever changes something may be repeated under a key.
    fn changing(
        method: Method,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: MethodRouter<Api>,
    ) -> Self {
        let mut route = Self::new(method, path, id, summary, handler);
        route.headers.push(Header::IdempotencyKey);
        route.needs(Needs::OfTenants(Role::Operator)).may_be(&[Kind::KeyUsed])
    }

    fn taking<B: JsonSchema>(self) -> Self {
        Self { body: Some(Body { schema: subschema::<B>, bytes_max: BODY_BYTES_MAX }), ..self }
    }

    /// It changes what may have been read before.
    pub(super) fn edited(mut self) -> Self {
        self.headers.push(Header::IfMatch);
        self.may_be(&[Kind::Changed])
    }

    /// It has a body, and only asks something.
    pub(super) fn changing_nothing(mut self) -> Self {
        self.headers.retain(|header| *header != Header::IdempotencyKey);
        self.problems.retain(|problem| *problem != Kind::KeyUsed);
        self
    }

    /// It shows one thing, with a tag.
    pub(super) fn tagged(mut self) -> Self {
        self.headers.push(Header::IfNoneMatch);
        self
    }

    /// It tells of what happens, and goes on where it was left.
    pub(super) fn resumed(mut self) -> Self {
        self.headers.push(Header::LastEventId);
        self
    }

    /// Whether what is shown has a tag.
    pub(super) fn is_tagged(&self) -> bool {
        self.headers.contains(&Header::IfNoneMatch)
    }

    fn new(
        method: Method,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: MethodRouter<Api>,
    ) -> Self {
        Self {
            method,
            path,
            id,
            summary,
            subject: Subject::Server,
            needs: Needs::OfServer(Role::Admin),
            parts: Vec::new(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            answer: Answer::Other("text/plain", "Nothing."),
            problems: Vec::new(),
            links: Vec::new(),
            handler,
        }
    }

    pub(super) fn about(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }

    pub(super) fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// It is about one cluster.
    pub(super) fn of_cluster(self) -> Self {
        self.query::<Which>().may_be(&[Kind::NotFound])
    }

    /// What a part of the path looks like.
    pub(super) fn part<T: JsonSchema>(mut self, name: &'static str) -> Self {
        self.parts.push(Part { name, schema: subschema::<T> });
        self.may_be(&[Kind::NotFound])
    }

    /// What may be in the query: the members of a type.
    pub(super) fn query<T: JsonSchema>(mut self) -> Self {
        self.query.push(Members { schema: T::json_schema });
        self
    }

    pub(super) fn body_bytes_max(mut self, bytes_max: usize) -> Self {
        if let Some(body) = &mut self.body {
            body.bytes_max = bytes_max;
        }
        self
    }

    pub(super) fn json<T: JsonSchema>(self) -> Self {
        Self { answer: Answer::Json(subschema::<T>), ..self }
    }

    pub(super) fn other(self, content_type: &'static str, about: &'static str) -> Self {
        Self { answer: Answer::Other(content_type, about), ..self }
    }

    /// The problems that it may have, besides those that follow from the rest.
    pub(super) fn may_be(mut self, problems: &[Kind]) -> Self {
        self.problems.extend(problems);
        self
    }

    pub(super) fn link(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }

    /// Every kind of problem that it may answer, whoever asks.
    pub(super) fn all_problems(&self) -> Vec<Kind> {
        let mut all = self.problems.clone();
        all.extend([Kind::NotUnderstood, Kind::Foreign]);
        if self.needs != Needs::Nothing {
            all.extend([Kind::Unauthorized, Kind::Denied]);
        }
        if self.body.is_some() {
            all.extend([Kind::TooLong, Kind::NotJson]);
        }
        all.sort();
        all.dedup();
        all
    }

    /// The names of what may be in the query.
    pub(super) fn query_names(&self) -> Vec<String> {
        let schemas = self.query.iter().map(|members| (members.schema)(&mut SchemaGenerator::default()));
        let names = |schema: Schema| {
            let members = schema.get("properties").and_then(Value::as_object);
            members.map(|members| members.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
        };
        schemas.flat_map(names).collect()
    }

    /// The handler, behind the checks that follow from the rest.
    pub(super) fn guarded(self) -> (&'static str, MethodRouter<Api>) {
        let (query, has_body) = (self.query_names(), self.body.is_some());
        let expected = Expected { query, headers: self.headers, has_body, needs: self.needs };
        let bytes_max = self.body.map_or(0, |body| body.bytes_max);
        let handler = self.handler.route_layer(DefaultBodyLimit::max(bytes_max));
        (self.path, handler.route_layer(from_fn_with_state(expected.into(), guard::check)))
    }
}

fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Subject {
    pub(super) const ALL: [Self; 5] = [Self::Fleet, Self::Work, Self::Trail, Self::Clock, Self::Server];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::Work => "work",
            Self::Trail => "trail",
            Self::Clock => "clock",
            Self::Server => "server",
        }
    }

    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::Fleet => "Hosts, tenants and their machines.",
            Self::Work => "What is done to them, and what is announced of it.",
            Self::Trail => "What was asked for and what has happened, and explanations of it.",
            Self::Clock => "The time.",
            Self::Server => "The server itself.",
        }
    }
}
