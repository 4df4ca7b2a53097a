//! Declaration of one route: method, path, parameters, permit, response and problems.
//!
//! Routes are declared in [`super::routes`]. The router, the OpenAPI document, the reference page and the validation of
//! requests are generated from them, so they cannot disagree.

use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};
use forewarn_control::shared::Role;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::Api;
use super::context::{ClusterQuery, NoticeQuery};
use super::header::Header;
use super::problem::ProblemKind;
use super::required_permit::RequiredPermit;
use super::validate::{self, RouteRules};

/// OpenAPI tag of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RouteTag {
    Fleet,
    Work,
    Audit,
    Clock,
    Server,
}

/// Generates the schema of a type.
pub(super) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// A path parameter.
pub(super) struct PathParameter {
    pub(super) name: &'static str,
    pub(super) schema: SchemaFn,
}

/// Query parameters: the properties of a type.
pub(super) struct QueryParameters {
    pub(super) schema: SchemaFn,
}

/// The body of a request: an object, as JSON.
pub(super) struct RouteBody {
    pub(super) schema: SchemaFn,
    pub(super) bytes_max: usize,
}

/// The success response.
pub(super) enum RouteResponse {
    /// One JSON value.
    Json(SchemaFn),
    /// Another content type, with a description.
    Other(&'static str, &'static str),
}

/// OpenAPI expression for the first work of a command's response.
pub(super) const FIRST_WORK: &str = concat!("$response.body#/", "work/0");

/// OpenAPI link to a following request.
pub(super) struct Link {
    pub(super) to: &'static str,
    pub(super) about: &'static str,
    /// Parameters, and OpenAPI expressions for their values.
    pub(super) parameters: Vec<(&'static str, &'static str)>,
    pub(super) body: Option<Value>,
}

impl Link {
    pub(super) fn to(operation: &'static str, about: &'static str) -> Self {
        Self { to: operation, about, parameters: Vec::new(), body: None }
    }

    /// A link to the next page of a list.
    pub(super) fn next_page(list: &'static str) -> Self {
        Self::to(list, "Next page.").with("after", "$response.body#/next")
    }

    pub(super) fn with(mut self, parameter: &'static str, value: &'static str) -> Self {
        self.parameters.push((parameter, value));
        self
    }

    /// Sends `If-Match`.
    pub(super) fn unchanged(self) -> Self {
        self.with("If-Match", "$response.header.ETag")
    }

    /// Sends `If-None-Match`.
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
    /// OpenAPI operation id.
    pub(super) id: &'static str,
    /// One-line summary.
    pub(super) summary: &'static str,
    pub(super) tag: RouteTag,
    /// Permit that the caller needs.
    pub(super) requires: RequiredPermit,
    pub(super) path_parameters: Vec<PathParameter>,
    pub(super) query: Vec<QueryParameters>,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<RouteBody>,
    pub(super) response: RouteResponse,
    /// Problems besides those of all routes.
    pub(super) problems: Vec<ProblemKind>,
    pub(super) links: Vec<Link>,
    handler: MethodRouter<Api>,
}

/// Default maximum size of a body.
const BODY_BYTES_MAX: usize = 64 * 1024;

impl Route {
    pub(super) fn get<H, T>(path: &'static str, id: &'static str, summary: &'static str, handler: H) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        Self::new(Method::GET, path, id, summary, on(MethodFilter::GET, handler))
            .requires(RequiredPermit::Tenants(Role::Viewer))
    }

    /// A route that changes something; `B` is the type of its body.
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

    /// A route that changes the whole state, without a body.
    pub(super) fn command<H, T>(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: H,
    ) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        Self::changing(Method::POST, path, id, summary, on(MethodFilter::POST, handler)).unconditional()
    }

    /// A route that replaces a resource; `B` is the type of its body.
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

    /// A route that changes members of a resource; `B` is the type of its body.
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

    /// A route that deletes a resource.
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

    /// Routes that change something take an idempotency key.
    fn changing(
        method: Method,
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        handler: MethodRouter<Api>,
    ) -> Self {
        let mut route = Self::new(method, path, id, summary, handler);
        route.headers.push(Header::IdempotencyKey);
        route.requires(RequiredPermit::Tenants(Role::Operator)).may_fail_with(&[ProblemKind::KeyUsed])
    }

    fn taking<B: JsonSchema>(self) -> Self {
        Self { body: Some(RouteBody { schema: subschema::<B>, bytes_max: BODY_BYTES_MAX }), ..self }
    }

    /// Adds `If-Match`.
    pub(super) fn edited(mut self) -> Self {
        self.headers.push(Header::IfMatch);
        self.may_fail_with(&[ProblemKind::Changed])
    }

    /// Removes the idempotency key of a route that only reads.
    pub(super) fn changing_nothing(mut self) -> Self {
        self.headers.retain(|header| *header != Header::IdempotencyKey);
        self.problems.retain(|problem| *problem != ProblemKind::KeyUsed);
        self
    }

    /// Removes the idempotency key and `If-Match` of a route that changes nothing that is stored.
    pub(super) fn storing_nothing(mut self) -> Self {
        self.headers.retain(|header| *header != Header::IfMatch);
        self.problems.retain(|problem| *problem != ProblemKind::Changed);
        self.changing_nothing()
    }

    /// Removes the idempotency key and `If-Match` of a route that replaces the whole state: neither would outlive it.
    pub(super) fn unconditional(mut self) -> Self {
        self.headers.retain(|header| !matches!(header, Header::IdempotencyKey | Header::IfMatch));
        self.problems.retain(|problem| !matches!(problem, ProblemKind::KeyUsed | ProblemKind::Changed));
        self
    }

    /// Adds an `ETag` to the response, and `If-None-Match`.
    pub(super) fn tagged(mut self) -> Self {
        self.headers.push(Header::IfNoneMatch);
        self
    }

    /// Adds `Last-Event-ID`.
    pub(super) fn resumed(mut self) -> Self {
        self.headers.push(Header::LastEventId);
        self
    }

    /// Returns true if the response has an `ETag`.
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
            tag: RouteTag::Server,
            requires: RequiredPermit::Server(Role::Admin),
            path_parameters: Vec::new(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            response: RouteResponse::Other("text/plain", "Empty."),
            problems: Vec::new(),
            links: Vec::new(),
            handler,
        }
    }

    pub(super) fn tag(self, tag: RouteTag) -> Self {
        Self { tag, ..self }
    }

    pub(super) fn requires(self, requires: RequiredPermit) -> Self {
        Self { requires, ..self }
    }

    /// Adds the cluster parameter.
    pub(super) fn of_cluster(self) -> Self {
        self.query::<ClusterQuery>().may_fail_with(&[ProblemKind::NotFound])
    }

    /// Adds a path parameter.
    pub(super) fn path_parameter<T: JsonSchema>(mut self, name: &'static str) -> Self {
        self.path_parameters.push(PathParameter { name, schema: subschema::<T> });
        self.may_fail_with(&[ProblemKind::NotFound])
    }

    /// Adds query parameters: the properties of a type.
    pub(super) fn query<T: JsonSchema>(mut self) -> Self {
        self.query.push(QueryParameters { schema: T::json_schema });
        self
    }

    pub(super) fn body_bytes_max(mut self, bytes_max: usize) -> Self {
        if let Some(body) = &mut self.body {
            body.bytes_max = bytes_max;
        }
        self
    }

    /// A route whose requests may require that a machine is notified.
    pub(super) fn announcing(self) -> Self {
        self.query::<NoticeQuery>().may_fail_with(&[ProblemKind::NoNotice])
    }

    pub(super) fn json<T: JsonSchema>(self) -> Self {
        Self { response: RouteResponse::Json(subschema::<T>), ..self }
    }

    pub(super) fn other(self, content_type: &'static str, about: &'static str) -> Self {
        Self { response: RouteResponse::Other(content_type, about), ..self }
    }

    /// Adds problems that do not follow from other properties.
    pub(super) fn may_fail_with(mut self, problems: &[ProblemKind]) -> Self {
        self.problems.extend(problems);
        self
    }

    pub(super) fn link(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }

    /// Every kind of problem that the route may return.
    pub(super) fn all_problems(&self) -> Vec<ProblemKind> {
        let mut all = self.problems.clone();
        all.extend([ProblemKind::InvalidRequest, ProblemKind::Foreign]);
        if self.requires != RequiredPermit::None {
            all.extend([ProblemKind::Unauthorized, ProblemKind::Denied]);
        }
        if self.body.is_some() {
            all.extend([ProblemKind::TooLong, ProblemKind::NotJson]);
        }
        if all.contains(&ProblemKind::Unavailable) {
            all.push(ProblemKind::ClusterFailed);
        }
        all.sort();
        all.dedup();
        all
    }

    /// Names of the query parameters.
    pub(super) fn query_names(&self) -> Vec<String> {
        let schemas = self.query.iter().map(|members| (members.schema)(&mut SchemaGenerator::default()));
        let names = |schema: Schema| {
            let members = schema.get("properties").and_then(Value::as_object);
            members.map(|members| members.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
        };
        schemas.flat_map(names).collect()
    }

    /// The path, and the handler behind its validation.
    pub(super) fn validated(self) -> (&'static str, MethodRouter<Api>) {
        let (query, has_body) = (self.query_names(), self.body.is_some());
        let expected = RouteRules { query, headers: self.headers, has_body, requires: self.requires };
        let bytes_max = self.body.map_or(0, |body| body.bytes_max);
        let handler = self.handler.route_layer(DefaultBodyLimit::max(bytes_max));
        (self.path, handler.route_layer(from_fn_with_state(expected.into(), validate::check)))
    }
}

fn subschema<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl RouteTag {
    pub(super) const ALL: [Self; 5] = [Self::Fleet, Self::Work, Self::Audit, Self::Clock, Self::Server];

    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Fleet => "fleet",
            Self::Work => "work",
            Self::Audit => "audit",
            Self::Clock => "clock",
            Self::Server => "server",
        }
    }

    pub(super) const fn description(self) -> &'static str {
        match self {
            Self::Fleet => "Hosts, tenants and their machines.",
            Self::Work => "Maintenance of machines, and its events.",
            Self::Audit => "Audit log and explanations.",
            Self::Clock => "The clock.",
            Self::Server => "The server itself.",
        }
    }
}
