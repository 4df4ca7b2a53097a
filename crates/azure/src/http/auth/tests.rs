//! Public routes, login, and authentication by the tokens that it issues.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, StatusCode};
use forewarn_control::request::{Administration, RequestContext};
use forewarn_control::shared::Role;
use forewarn_lifecycle::{Name, Seed, Timestamp};
use forewarn_server::tls::{Source, Tls};
use forewarn_server::{Clock, Speed, issue_token};
use forewarn_url::OwnHosts;
use serde_json::Value;

use super::*;
use crate::http::ArmPlan;

const DIRECTORY: &str = "f0e4a14d-0000-4000-8000-000000000000";
const PORT: u16 = 4_711;

/// The endpoints of one server.
struct TestServer {
    control: ControlHandle,
    listener: ArmEndpoint,
    operators: ArmEndpoint,
    _files: tempfile::TempDir,
}

impl TestServer {
    fn new(credentials: Credentials) -> Self {
        let control =
            ControlHandle::simulated(Seed([7; 16]), Clock::virtual_at(Timestamp::from_millis(0), Speed(0)));
        let files = tempfile::tempdir().unwrap();
        let directory = files.path().to_owned();
        let tls = Tls::open(Source::SelfSigned { directory, names: Vec::new(), address: None }).unwrap();
        let plan = ArmPlan {
            listen: None,
            hosts: OwnHosts::default(),
            credentials,
            key_dir: None,
            directory: DIRECTORY.to_owned(),
        };
        let login = Arc::new(plan.login(Some(TlsListener { port: PORT, tls }), None).unwrap());
        let names =
            HostNames::new(OwnHosts { names: vec!["forewarn.internal".to_owned()], ..OwnHosts::default() });
        let own = ExtensionMount::Own { host_names: names.clone() };
        let listener = ArmEndpoint::new(&control, own, &login);
        let access = credentials.access();
        let operators = ExtensionMount::Operators { scheme: Scheme::Http, access, host_names: names };
        let operators = ArmEndpoint::new(&control, operators, &login);
        Self { control, listener, operators, _files: files }
    }

    async fn issue(&self, name: &str, role: Role) -> String {
        issue_token(&self.control, Name::new(name).unwrap(), role).await.unwrap()
    }

    /// The response to a form.
    async fn post(&self, path: &str, form: &str) -> (StatusCode, Value) {
        let request = Request::builder().method(Method::POST).uri(path).header(header::HOST, "localhost:1");
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let response = self.listener.handle(request.body(Body::from(form.to_owned())).unwrap()).await;
        let (status, _, body) = read(response).await;
        (status, body)
    }

    /// The permit for a bearer token.
    fn permit(&self, bearer: &str) -> Result<Permit, TokenError> {
        let request = Request::builder().header(header::AUTHORIZATION, format!("Bearer {bearer}"));
        self.listener.admit(&request.body(Body::empty()).unwrap())
    }
}

async fn read(response: Response) -> (StatusCode, HeaderMap, Value) {
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, headers, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn get(endpoint: &ArmEndpoint, host: &str, path: &str) -> (StatusCode, HeaderMap, Value) {
    let request = Request::builder().uri(path).header(header::HOST, host);
    read(endpoint.handle(request.body(Body::empty()).unwrap()).await).await
}

/// promise: Z5
#[tokio::test]
async fn addresses_are_those_by_which_the_server_was_called() {
    let server = TestServer::new(Credentials::Tokens);
    let path = "/metadata/endpoints?api-version=2022-09-01";
    for (host, base) in [
        ("localhost:1339", "https://localhost:4711"),
        ("127.0.0.1", "https://127.0.0.1:4711"),
        ("[::1]:1339", "https://[::1]:4711"),
        ("[::1]", "https://[::1]:4711"),
        ("::1", "https://[::1]:4711"),
        ("forewarn.internal:80", "https://forewarn.internal:4711"),
    ] {
        let (status, _, body) = get(&server.operators, host, path).await;
        assert_eq!((status, &body["resourceManager"]), (StatusCode::OK, &Value::from(base)), "{host}");
        let (_, _, body) = get(&server.listener, host, path).await;
        assert_eq!(
            body["resourceManager"],
            format!("https://{host}"),
            "its own port is the one that was called"
        );
        let (_, _, body) = get(&server.operators, host, "/a/v2.0/.well-known/openid-configuration").await;
        assert_eq!(body["token_endpoint"], format!("{base}/a/oauth2/v2.0/token"));
    }
    let (_, _, adfs) = get(&server.listener, "h:1", "/adfs/.well-known/openid-configuration").await;
    assert_eq!(adfs["token_endpoint"], "https://h:1/adfs/oauth2/token");
    assert_eq!(adfs["issuer"], "https://h:1/adfs");
    let other = "22222222-2222-2222-2222-222222222222";
    for (tenant, id) in [("organizations", DIRECTORY), ("forewarn.localhost", DIRECTORY), (other, other)] {
        let path = format!("/{tenant}/v2.0/.well-known/openid-configuration");
        let (_, _, found) = get(&server.listener, "h:1", &path).await;
        assert_eq!(found["issuer"], format!("https://h:1/{id}/v2.0"));
        assert_eq!(found["token_endpoint"], format!("https://h:1/{tenant}/oauth2/v2.0/token"));
    }
    let (_, _, found) = get(&server.listener, "h:1", "/common/discovery/instance?api-version=1.1").await;
    assert_eq!(
        found["tenant_discovery_endpoint"],
        "https://h:1/common/v2.0/.well-known/openid-configuration"
    );
}

/// promise: S1, Z5
#[tokio::test]
async fn unauthenticated_clients_reach_public_routes_only() {
    let server = TestServer::new(Credentials::Tokens);
    for endpoint in [&server.listener, &server.operators] {
        for path in
            ["/ca.pem", "/_local/ca.pem", "/aliases.json", "/common/userrealm/a", "/x/discovery/v2.0/keys"]
        {
            assert_eq!(get(endpoint, "localhost", path).await.0, StatusCode::OK, "{path}");
        }
        for path in ["/subscriptions?api-version=2022-12-01", "/tenants", "/providers/x", "/", "/nothing"] {
            let (status, headers, body) = get(endpoint, "localhost:1", path).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(body["error"]["code"], "InvalidAuthenticationToken", "{path}");
            let port = if endpoint.kind == ListenerKind::Own { 1 } else { PORT };
            let challenge = format!("Bearer authorization_uri=\"https://localhost:{port}/{DIRECTORY}\"");
            assert!(
                headers[header::WWW_AUTHENTICATE].to_str().unwrap().starts_with(&challenge),
                "{headers:?}"
            );
        }
        let (status, _, _) = get(endpoint, "localhost", "/metadata/identity/oauth2/token").await;
        assert_eq!(status, StatusCode::NOT_FOUND, "no unsigned tokens here");
        let (status, _, body) = get(endpoint, "localhost", "/x/oauth2/v2.0/token").await;
        assert_eq!(
            (status, &body["error"]["code"]),
            (StatusCode::METHOD_NOT_ALLOWED, &"MethodNotAllowed".into())
        );
        for host in ["evil.example", "localhost.evil.example:1340", ""] {
            for path in ["/metadata/endpoints?api-version=2019-05-01", "/subscriptions"] {
                let (status, _, body) = get(endpoint, host, path).await;
                assert_eq!((status, &body["error"]["code"]), (StatusCode::FORBIDDEN, &"Forbidden".into()));
            }
        }
    }
    let page = Request::builder()
        .uri("/ca.pem")
        .header(header::HOST, "localhost")
        .header(header::ORIGIN, "http://x");
    let (status, _, _) = read(server.listener.handle(page.body(Body::empty()).unwrap()).await).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "not for web pages");
}

/// promise: Z5
#[tokio::test]
async fn in_dev_every_client_gets_a_token_and_needs_none() {
    let server = TestServer::new(Credentials::Anyone);
    for form in [
        "grant_type=client_credentials&client_id=app&client_secret=x&scope=https%3A%2F%2Fm%2F%2F.default",
        "grant_type=client_credentials&client_id=app&client_assertion=x",
        "grant_type=password&username=me&password=x&client_id=app",
        "grant_type=refresh_token&refresh_token=x",
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&device_code=forewarn",
    ] {
        let (status, body) = server.post("/organizations/oauth2/v2.0/token?client-request-id=1", form).await;
        assert_eq!(
            (status, &body["token_type"], &body["expires_in"]),
            (StatusCode::OK, &"Bearer".into(), &3_600.into())
        );
        let claims = body["access_token"].as_str().unwrap().split('.').nth(1).unwrap();
        let claims: Value =
            serde_json::from_slice(&forewarn_types::base64url::decode(claims).unwrap()).unwrap();
        assert_eq!(claims["tid"], DIRECTORY, "{form}");
        let is_person = !form.contains("client_credentials");
        for member in ["id_token", "refresh_token", "client_info"] {
            assert_eq!(body[member].is_string(), is_person, "{form}: {member}");
        }
    }
    let (status, body) = server.post("/organizations/oauth2/v2.0/devicecode", "client_id=az").await;
    assert_eq!((status, &body["device_code"]), (StatusCode::OK, &"forewarn".into()));
    assert_eq!(server.permit("whatever").unwrap(), Permit::unlimited("anyone"));
    let path = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://r/";
    let (status, _, body) = get(&server.operators, "localhost", path).await;
    assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &"invalid_request".into()));
    let request = Request::builder().uri(path).header(header::HOST, "localhost").header("Metadata", "True");
    let (status, _, body) = read(server.operators.handle(request.body(Body::empty()).unwrap()).await).await;
    assert_eq!((status, &body["resource"]), (StatusCode::OK, &"https://r/".into()));
}

#[tokio::test]
async fn elsewhere_the_secret_is_a_token_of_an_operators_and_what_it_gets_stands_for_that() {
    let server = TestServer::new(Credentials::Tokens);
    let text = server.issue("ci", Role::Operator).await;
    let path = format!("/{DIRECTORY}/oauth2/v2.0/token");
    let (_, body) =
        server.post(&path, &format!("grant_type=client_credentials&client_id=a&client_secret={text}")).await;
    let access = body["access_token"].as_str().unwrap().to_owned();
    for bearer in [&access, &text] {
        let permit = server.permit(bearer).unwrap();
        assert_eq!((permit.by.as_str(), permit.role), ("token ci", Role::Operator));
    }
    let (_, body) = server.post(&path, &format!("grant_type=password&username=me&password={text}")).await;
    let refresh = body["refresh_token"].as_str().unwrap().to_owned();
    let id_token = body["id_token"].as_str().unwrap();
    for not_access in [refresh.as_str(), id_token, "", "x", "a.b.c", &format!("{access}A")] {
        assert_eq!(server.permit(not_access), Err(TokenError::Invalid), "{not_access}");
    }
    let again = format!("grant_type=refresh_token&refresh_token={refresh}");
    let (_, body) = server.post(&path, &again).await;
    assert_eq!(server.permit(body["access_token"].as_str().unwrap()).unwrap().by, "token ci");
    server
        .control
        .administer(Administration::RevokeToken(Name::new("ci").unwrap()), RequestContext::default())
        .await
        .unwrap();
    assert_eq!(server.permit(&access), Err(TokenError::Invalid), "at once");
    assert_eq!(server.post(&path, &again).await.0, StatusCode::UNAUTHORIZED);
}

/// promise: Z5
#[tokio::test]
async fn nothing_else_gets_a_token() {
    let server = TestServer::new(Credentials::Tokens);
    let text = server.issue("ci", Role::Viewer).await;
    let wrong = format!("{}0", &text[..text.len() - 1]);
    let wrong = if wrong == text { format!("{}1", &text[..text.len() - 1]) } else { wrong };
    for (form, error) in [
        ("", "unsupported_grant_type"),
        ("grant_type=implicit", "unsupported_grant_type"),
        ("grant_type=client_credentials", "invalid_client"),
        ("grant_type=client_credentials&client_secret=", "invalid_client"),
        (&format!("grant_type=client_credentials&client_secret={wrong}"), "invalid_client"),
        (
            &format!("grant_type=client_credentials&client_secret={text}&client_secret={text}"),
            "invalid_client",
        ),
        (&format!("grant_type=client_credentials&client_assertion={text}"), "invalid_client"),
        ("grant_type=password&username=a&password=b", "invalid_client"),
        ("grant_type=refresh_token&refresh_token=a.b.c", "invalid_client"),
        ("grant_type=device_code&device_code=forewarn", "unauthorized_client"),
    ] {
        let (status, body) = server.post("/x/oauth2/token", form).await;
        assert_eq!(body["error"], error, "{form}");
        assert!(status.is_client_error() && body["error_description"].is_string(), "{form}");
        assert!(body.get("access_token").is_none(), "{form}");
    }
    assert_eq!(server.post("/x/oauth2/devicecode", "").await.1["error"], "unauthorized_client");
    let long = format!("grant_type={}", "x".repeat(FORM_BYTES_MAX));
    assert_eq!(server.post("/x/oauth2/token", &long).await.1["error"]["code"], "BadRequest");
}

#[tokio::test]
async fn without_a_tls_listener_no_client_is_redirected() {
    let server = TestServer::new(Credentials::Anyone);
    let plan = ArmPlan {
        listen: None,
        hosts: OwnHosts::default(),
        credentials: Credentials::Anyone,
        key_dir: None,
        directory: DIRECTORY.to_owned(),
    };
    let login = Arc::new(plan.login(None, None).unwrap());
    let access = Access::Open("anyone");
    let mount = ExtensionMount::Operators { scheme: Scheme::Http, access, host_names: HostNames::default() };
    let endpoint = ArmEndpoint::new(&server.control, mount, &login);
    for path in
        ["/metadata/endpoints?api-version=2022-09-01", "/ca.pem", "/x/.well-known/openid-configuration"]
    {
        assert_eq!(get(&endpoint, "localhost", path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
}
