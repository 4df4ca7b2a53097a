//! Extensions that are served, on listeners of their own and behind those of operators.
//!
//! ```text
//!   own listener (TLS) ─────────────────────────────▶ router of the extension
//!   operator listener ──▶ path of an extension? ─yes─▶ router of the extension
//!                              └─no──▶ operator API
//! ```
//!
//! An extension is bound before the operator listeners open, because these show the port of its listener, and opened
//! after them. Its listener has limits, metrics and a graceful stop like every other.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

use crate::api_listener::{BoundListener, RunningListener};
use crate::clients::{ListenerContext, RefusalFormat};
use crate::control_handle::ControlHandle;
use crate::extension::{ExtensionMount, ExtensionRoutesRef, HttpExtension, TlsListener};
use crate::operator::HostNames;
use crate::stale::mark_stale;
use crate::start_error::StartError;
use crate::tls::Tls;

/// An extension whose address is bound; it accepts no connection yet.
pub(crate) struct BoundExtension {
    name: &'static str,
    host_names: HostNames,
    refusals: RefusalFormat,
    routes: ExtensionRoutesRef,
    bound: Option<(BoundListener, Arc<Tls>)>,
}

/// An extension that is served.
#[derive(Debug)]
pub(crate) struct OpenExtension {
    pub(crate) name: &'static str,
    pub(crate) host_names: HostNames,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) opened: Option<RunningListener>,
}

impl BoundExtension {
    /// Binds the address of an extension and prepares its API, with its secret in a realm.
    pub(crate) fn bind(extension: HttpExtension, secret: Option<&[u8]>) -> Result<Self, StartError> {
        let HttpExtension { name, clients, listen, hosts, refusals, api } = extension;
        let bound = match listen {
            None => None,
            Some((address, source)) => {
                let tls = Tls::open(source)?;
                let failed = |source| StartError::ExtensionListener { clients, address, source };
                Some((BoundListener::at(address).map_err(failed)?, tls))
            }
        };
        let listener = bound
            .as_ref()
            .map(|(bound, tls)| TlsListener { port: bound.address.port(), tls: Arc::clone(tls) });
        let routes = api.open(listener, secret).map_err(StartError::Extension)?;
        Ok(Self { name, host_names: HostNames::new(hosts), refusals, routes, bound })
    }

    /// Name of its listener.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// URL of its own listener: `https://ADDRESS`.
    pub(crate) fn url(&self) -> Option<String> {
        self.bound.as_ref().map(|(bound, _)| format!("https://{}", bound.address))
    }

    /// Adds the extension to the router of an operator listener.
    pub(crate) fn add_to(&self, router: Router, control: &ControlHandle, mount: ExtensionMount) -> Router {
        let own = Dispatch {
            routes: Arc::clone(&self.routes),
            router: mark_stale(self.routes.router(control, mount), control),
        };
        router.layer(axum::middleware::from_fn_with_state(own, dispatch))
    }

    /// Starts its own listener, if it has one.
    pub(crate) fn open(self, control: &ControlHandle, context: ListenerContext) -> OpenExtension {
        let Self { name, host_names, refusals, routes, bound } = self;
        let Some((bound, tls)) = bound else {
            return OpenExtension { name, host_names, tls: None, opened: None };
        };
        let router = routes.router(control, ExtensionMount::Own { host_names: host_names.clone() });
        let router = mark_stale(router, control);
        let opened = bound.open(name, refusals, Some(&tls), router, context);
        OpenExtension { name, host_names, tls: Some(tls), opened: Some(opened) }
    }
}

/// An extension behind an operator listener.
#[derive(Clone, Debug)]
struct Dispatch {
    routes: ExtensionRoutesRef,
    router: Router,
}

/// Hands requests for the paths of an extension to its router, which authenticates them itself.
async fn dispatch(State(own): State<Dispatch>, request: Request, next: Next) -> Response {
    if !own.routes.owns(request.uri().path()) {
        return next.run(request).await;
    }
    match TowerToHyperService::new(own.router).call(request).await {
        Ok(response) => response,
        Err(never) => match never as Infallible {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Speed};
    use crate::extension::{ExtensionApi, ExtensionError, ExtensionRoutes};
    use crate::operator::{Access, PROBLEM_REFUSALS};
    use crate::scheme::Scheme;
    use crate::tls::Source;
    use axum::body::{Body, to_bytes};
    use forewarn_lifecycle::{Seed, Timestamp};
    use forewarn_url::OwnHosts;
    use tower::ServiceExt;

    #[derive(Debug)]
    struct TestApi;

    impl ExtensionApi for TestApi {
        fn open(
            self: Box<Self>,
            _: Option<TlsListener>,
            _: Option<&[u8]>,
        ) -> Result<ExtensionRoutesRef, ExtensionError> {
            Ok(Arc::new(*self))
        }
    }

    impl ExtensionRoutes for TestApi {
        fn owns(&self, path: &str) -> bool {
            path.starts_with("/extension/")
        }

        fn router(&self, _: &ControlHandle, _: ExtensionMount) -> Router {
            Router::new().fallback(async || "extension")
        }
    }

    fn extension() -> HttpExtension {
        HttpExtension {
            name: "test",
            clients: "tests",
            listen: None,
            hosts: OwnHosts::default(),
            refusals: PROBLEM_REFUSALS,
            api: Box::new(TestApi),
        }
    }

    #[tokio::test]
    async fn an_operator_listener_hands_an_extension_its_paths() {
        let extension = BoundExtension::bind(extension(), None).unwrap();
        assert_eq!(extension.url(), None);
        let clock = Clock::virtual_at(Timestamp::from_millis(0), Speed(0));
        let (control, host_names) = (ControlHandle::simulated(Seed([0; 16]), clock), HostNames::default());
        let mount = ExtensionMount::Operators { scheme: Scheme::Http, access: Access::Tokens, host_names };
        let router = extension.add_to(Router::new().fallback(async || "operators"), &control, mount);
        for (path, expected) in [("/extension/1", "extension"), ("/v1/extension/1", "operators")] {
            let request = Request::builder().uri(path).body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(to_bytes(response.into_body(), 100).await.unwrap(), expected, "{path}");
        }
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_named() {
        let files = tempfile::tempdir().unwrap();
        let directory = files.path().to_owned();
        let source = Source::SelfSigned { directory, names: Vec::new(), address: None };
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let bound = HttpExtension { listen: Some((address, source)), ..extension() };
        let bound = BoundExtension::bind(bound, None);
        let problem = bound.err().map(|problem| problem.to_string());
        assert_eq!(problem, Some(format!("cannot listen for tests: {address}")));
    }
}
