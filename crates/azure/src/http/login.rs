//! Login: the OAuth endpoints at which clients get their tokens.
//!
//! In `forewarn dev` every client gets one. Elsewhere the secret, or password, is the text of an operator's token, and
//! the signed token stands for that one.

use std::time::SystemTime;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forewarn_control::shared::{SharedState, Token};
use forewarn_lifecycle::Timestamp;
use forewarn_server::operator::{Access, TokenError, find_token};
use forewarn_server::{ControlHandle, TlsListener};
use forewarn_types::base64url::encode;
use serde_json::{Map, Value, json};

use super::signing::{Purpose, Signer};

/// Characters of a client's text that a response repeats.
const REPEATED_CHARS_MAX: usize = 256;

/// Audience of a token, unless the client names one.
const AUDIENCE: &str = "https://management.core.windows.net/";

/// Grant type of the device code flow.
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Seconds for which a device code is valid, and between two polls.
const CODE_SECONDS: u32 = 900;
const CODE_LOOK_SECONDS: u32 = 1;

/// Members of a form.
pub(super) type FormFields = Vec<(String, String)>;

/// Credentials that clients need to log in, and to use the listener with TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    Anyone,
    /// The token of an operator.
    Tokens,
}

/// Facts about logging in that all listeners share.
#[derive(Debug)]
pub(super) struct Login {
    pub(super) directory: String,
    pub(super) credentials: Credentials,
    pub(super) signer: Signer,
    /// The listener with TLS.
    pub(super) listener: Option<TlsListener>,
}

/// A directory in the path of a request: `/TENANT/…`, `/adfs/…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoginDirectory {
    /// Its URL: `https://HOST:PORT/TENANT`.
    pub(super) url: String,
    /// Its name in the path.
    pub(super) tenant: String,
}

/// An OAuth error response.
#[derive(Debug, PartialEq, Eq)]
struct OAuthError {
    status: StatusCode,
    error: &'static str,
    why: String,
}

/// Subject of a token to be issued.
struct TokenGrant<'a> {
    /// The operator's token that it stands for; none where clients need no credentials.
    token: Option<&'a Token>,
    /// Name of a person; none for a service principal.
    person: Option<String>,
}

impl Credentials {
    /// Access to the listener with TLS.
    pub(super) fn access(self) -> Access {
        match self {
            Self::Anyone => Access::Open("anyone"),
            Self::Tokens => Access::Tokens,
        }
    }
}

impl LoginDirectory {
    /// The OpenID configuration. Active Directory Federation Services have other paths. The issuer contains the
    /// directory id: clients read it there.
    pub(super) fn offers(&self, usual: &str) -> Value {
        let url = &self.url;
        let is_adfs = self.tenant.eq_ignore_ascii_case("adfs");
        let version = if is_adfs { "" } else { "/v2.0" };
        let issuer = match url.strip_suffix(&self.tenant) {
            Some(base) if !is_adfs => format!("{base}{}{version}", self.id(usual)),
            Some(_) | None => url.clone(),
        };
        json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{url}/oauth2{version}/authorize"),
            "token_endpoint": format!("{url}/oauth2{version}/token"),
            "device_authorization_endpoint": format!("{url}/oauth2{version}/devicecode"),
            "jwks_uri": format!("{url}/discovery{version}/keys"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["pairwise"],
            "scopes_supported": ["openid", "profile", "offline_access"],
            "id_token_signing_alg_values_supported": ["HS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        })
    }

    /// The instance discovery document.
    pub(super) fn discovery(&self) -> Value {
        let host = self.url.trim_start_matches("https://").split('/').next().unwrap_or_default();
        json!({
            "tenant_discovery_endpoint": format!("{}/v2.0/.well-known/openid-configuration", self.url),
            "api-version": "1.1",
            "metadata": [{ "preferred_network": host, "preferred_cache": host, "aliases": [host] }],
        })
    }

    /// Its id: the name, if that is a UUID.
    fn id<'a>(&'a self, usual: &'a str) -> &'a str {
        let is_hexadecimal = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parts = self.tenant.split('-').map(|part| if is_hexadecimal(part) { part.len() } else { 0 });
        if parts.eq([8, 4, 4, 4, 12]) { &self.tenant } else { usual }
    }
}

/// A device code. It need not be entered anywhere.
pub(super) fn device_code(login: &Login, directory: &LoginDirectory) -> Response {
    match login.credentials {
        Credentials::Tokens => no_codes().into_response(),
        Credentials::Anyone => no_store(json!({
            "user_code": "FOREWARN",
            "device_code": "forewarn",
            "verification_uri": directory.url,
            "expires_in": CODE_SECONDS,
            "interval": CODE_LOOK_SECONDS,
            "message": "No code is needed: forewarn dev accepts every client.",
        })),
    }
}

/// Issues tokens for a form with valid credentials.
pub(super) fn token(
    login: &Login,
    control: &ControlHandle,
    directory: &LoginDirectory,
    form: &FormFields,
) -> Response {
    let (now, wall) = (SystemTime::now(), control.clock().now().wall);
    let shared = control.shared();
    match (TokenRequest { login, shared: &shared, form, times: (now, wall) }).grant() {
        Ok(granted) => no_store(issue(login, directory, form, &granted, now)),
        Err(refused) => refused.into_response(),
    }
}

/// A request for a token.
struct TokenRequest<'a> {
    login: &'a Login,
    shared: &'a SharedState,
    form: &'a FormFields,
    /// The real time, and the time of the server's clock.
    times: (SystemTime, Timestamp),
}

impl<'a> TokenRequest<'a> {
    fn grant(&self) -> Result<TokenGrant<'a>, OAuthError> {
        match member(self.form, "grant_type") {
            Some("client_credentials") => {
                Ok(TokenGrant { token: self.by_text("client_secret")?, person: None })
            }
            Some("password") => Ok(self.person(self.by_text("password")?)),
            Some("refresh_token") => Ok(self.person(self.by_refresh()?)),
            Some(DEVICE_CODE | "device_code") => match self.login.credentials {
                Credentials::Anyone => Ok(self.person(None)),
                Credentials::Tokens => Err(no_codes()),
            },
            Some(_) | None => Err(OAuthError {
                status: StatusCode::BAD_REQUEST,
                error: "unsupported_grant_type",
                why: "grant_type is client_credentials, password, refresh_token or device_code".to_owned(),
            }),
        }
    }

    /// The operator's token whose text a member of the form is; none where clients need no credentials.
    fn by_text(&self, name: &str) -> Result<Option<&'a Token>, OAuthError> {
        match self.login.credentials {
            Credentials::Anyone => Ok(None),
            Credentials::Tokens => {
                let text = member(self.form, name).unwrap_or_default();
                Ok(Some(find_token(self.shared, text, self.times.1)?))
            }
        }
    }

    /// The operator's token behind a refresh token; none where clients need no credentials.
    fn by_refresh(&self) -> Result<Option<&'a Token>, OAuthError> {
        match self.login.credentials {
            Credentials::Anyone => Ok(None),
            Credentials::Tokens => {
                let text = member(self.form, "refresh_token").unwrap_or_default();
                let signer = &self.login.signer;
                Ok(Some(signer.admit(self.shared, text, Purpose::Refresh, self.times)?))
            }
        }
    }

    fn person(&self, token: Option<&'a Token>) -> TokenGrant<'a> {
        let name = match token {
            Some(token) => token.name.to_string(),
            None => member(self.form, "username").map_or_else(|| "dev@forewarn".to_owned(), shortened),
        };
        TokenGrant { token, person: Some(name) }
    }
}

fn issue(
    login: &Login,
    directory: &LoginDirectory,
    form: &FormFields,
    granted: &TokenGrant<'_>,
    now: SystemTime,
) -> Value {
    let signer = &login.signer;
    let tid = directory.id(&login.directory);
    let oid = format!("00000000-0000-4000-8000-{:012x}", granted.token.map_or(0, |token| token.number));
    let client = member(form, "client_id").map_or_else(|| oid.clone(), shortened);
    let claims = |audience: &str| {
        let mut claims = Map::new();
        let mut claim = |name: &str, value: &str| claims.insert(name.to_owned(), json!(value));
        claim("aud", audience);
        claim("iss", &format!("{}/", directory.url));
        claim("tid", tid);
        claim("oid", &oid);
        claim("sub", &oid);
        claim("appid", &client);
        if let Some(person) = &granted.person {
            claim("name", person);
            claim("preferred_username", person);
            claim("upn", person);
        }
        claims
    };
    let audience = audience(form);
    let life = Purpose::Access.life().as_secs();
    let mut body = json!({
        "token_type": "Bearer",
        "expires_in": life,
        "ext_expires_in": life,
        "resource": audience,
        "access_token": signer.sign(claims(&audience), Purpose::Access, granted.token, now),
    });
    if granted.person.is_some() {
        // For the client to show; it grants nothing.
        body["id_token"] = json!(signer.sign(claims(&client), Purpose::Access, None, now));
        body["refresh_token"] = json!(signer.sign(Map::new(), Purpose::Refresh, granted.token, now));
        body["client_info"] = json!(encode(json!({ "uid": oid, "utid": tid }).to_string().as_bytes()));
    }
    body
}

/// The requested audience: `resource`, or the scope that ends with `/.default`.
fn audience(form: &FormFields) -> String {
    let scopes = member(form, "scope").unwrap_or_default().split(' ');
    let scope = scopes.filter_map(|scope| scope.strip_suffix("/.default")).next();
    shortened(member(form, "resource").or(scope).unwrap_or(AUDIENCE))
}

/// Value of a member that occurs once.
fn member<'a>(form: &'a FormFields, name: &str) -> Option<&'a str> {
    let mut values = form.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    values.next().filter(|_| values.next().is_none())
}

fn shortened(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(REPEATED_CHARS_MAX).collect()
}

fn no_codes() -> OAuthError {
    OAuthError {
        status: StatusCode::BAD_REQUEST,
        error: "unauthorized_client",
        why: "device codes are not supported; log in as a service principal, with a token of this server as its secret"
            .to_owned(),
    }
}

/// 200 that must not be cached.
pub(super) fn no_store(body: Value) -> Response {
    let mut response = Json(body).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl From<TokenError> for OAuthError {
    fn from(why: TokenError) -> Self {
        let why = match why {
            TokenError::Invalid => {
                "the secret has to be the text of a token of this server: `forewarn token create`".to_owned()
            }
            TokenError::Expired(name) => format!("the token has expired: {name}"),
        };
        Self { status: StatusCode::UNAUTHORIZED, error: "invalid_client", why }
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        let mut response = no_store(json!({ "error": self.error, "error_description": self.why }));
        *response.status_mut() = self.status;
        response
    }
}
