//! Where clients get their tokens: what they take for the directory of their cloud.
//!
//! In `forewarn dev` whoever asks gets one. Elsewhere the secret, or password, is the text of an operator's token, and what they
//! get stands for that one.

use std::time::SystemTime;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use forewarn_control::shared::Token;
use forewarn_lifecycle::Timestamp;
use serde_json::{Map, Value, json};

use super::door::Door;
use super::entrance::Credentials;
use super::signing::Purpose;
use crate::base64url::encode;
use crate::operator::{NotAdmitted, find_token};
use crate::roster::Roster;

/// Characters that are repeated of what a client sends.
const REPEATED_CHARS_MAX: usize = 256;

/// For whom a token is, if nobody says.
const AUDIENCE: &str = "https://management.core.windows.net/";

/// How a client says that it waits for a code to be entered elsewhere.
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Seconds for which a code could be entered, and between two looks whether it was.
const CODE_SECONDS: u32 = 900;
const CODE_LOOK_SECONDS: u32 = 1;

/// The members of a form.
pub(super) type Form = Vec<(String, String)>;

/// A directory as it is asked for: `/TENANT/…`, `/adfs/…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// Where it is: `https://HOST:PORT/TENANT`.
    pub(super) url: String,
    /// What it is called.
    pub(super) tenant: String,
}

/// Why there is no token, as OAuth says it.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    status: StatusCode,
    error: &'static str,
    why: String,
}

/// For whom a token is made.
struct Granted<'a> {
    /// The token of an operator's that it stands for, where it has to.
    token: Option<&'a Token>,
    /// The name of a person; a program has none.
    person: Option<String>,
}

impl Directory {
    /// What it offers, and where. One of Active Directory Federation Services has other paths. Who issues is named by the id:
    /// that is how clients learn it.
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

    /// Where to ask what it offers.
    pub(super) fn discovery(&self) -> Value {
        let host = self.url.trim_start_matches("https://").split('/').next().unwrap_or_default();
        json!({
            "tenant_discovery_endpoint": format!("{}/v2.0/.well-known/openid-configuration", self.url),
            "api-version": "1.1",
            "metadata": [{ "preferred_network": host, "preferred_cache": host, "aliases": [host] }],
        })
    }

    /// Its id: the name, where that is one.
    fn id<'a>(&'a self, usual: &'a str) -> &'a str {
        let is_hexadecimal = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parts = self.tenant.split('-').map(|part| if is_hexadecimal(part) { part.len() } else { 0 });
        if parts.eq([8, 4, 4, 4, 12]) { &self.tenant } else { usual }
    }
}

/// A code that could be entered elsewhere; nobody has to.
pub(super) fn device_code(door: &Door, directory: &Directory) -> Response {
    match door.entrance.credentials {
        Credentials::Tokens => no_codes().into_response(),
        Credentials::Anyone => no_store(json!({
            "user_code": "FOREWARN",
            "device_code": "forewarn",
            "verification_uri": directory.url,
            "expires_in": CODE_SECONDS,
            "interval": CODE_LOOK_SECONDS,
            "message": "Nothing has to be entered anywhere: forewarn dev lets everybody in.",
        })),
    }
}

/// A token for whoever shows that they may have one.
pub(super) fn token(door: &Door, directory: &Directory, form: &Form) -> Response {
    let (now, wall) = (SystemTime::now(), door.arm.engine.clock().now().wall);
    let roster = door.arm.engine.roster();
    match (Applicant { door, roster: &roster, form, times: (now, wall) }).grant() {
        Ok(granted) => no_store(issue(door, directory, form, &granted, now)),
        Err(refused) => refused.into_response(),
    }
}

/// Somebody who wants a token.
struct Applicant<'a> {
    door: &'a Door,
    roster: &'a Roster,
    form: &'a Form,
    /// The real time, and that of the operators' tokens.
    times: (SystemTime, Timestamp),
}

impl<'a> Applicant<'a> {
    fn grant(&self) -> Result<Granted<'a>, Refused> {
        match member(self.form, "grant_type") {
            Some("client_credentials") => Ok(Granted { token: self.by_text("client_secret")?, person: None }),
            Some("password") => Ok(self.person(self.by_text("password")?)),
            Some("refresh_token") => Ok(self.person(self.by_refresh()?)),
            Some(DEVICE_CODE | "device_code") => match self.door.entrance.credentials {
                Credentials::Anyone => Ok(self.person(None)),
                Credentials::Tokens => Err(no_codes()),
            },
            Some(_) | None => Err(Refused {
                status: StatusCode::BAD_REQUEST,
                error: "unsupported_grant_type",
                why: "grant_type is client_credentials, password, refresh_token or device_code".to_owned(),
            }),
        }
    }

    /// The token whose text a member of the form is; where everybody is let in, nobody looks.
    fn by_text(&self, name: &str) -> Result<Option<&'a Token>, Refused> {
        match self.door.entrance.credentials {
            Credentials::Anyone => Ok(None),
            Credentials::Tokens => {
                let text = member(self.form, name).unwrap_or_default();
                Ok(Some(find_token(self.roster, text, self.times.1)?))
            }
        }
    }

    /// The token that a signed one stands for, which is good for getting others.
    fn by_refresh(&self) -> Result<Option<&'a Token>, Refused> {
        match self.door.entrance.credentials {
            Credentials::Anyone => Ok(None),
            Credentials::Tokens => {
                let text = member(self.form, "refresh_token").unwrap_or_default();
                let signer = &self.door.entrance.signer;
                Ok(Some(signer.admit(self.roster, text, Purpose::Refresh, self.times)?))
            }
        }
    }

    fn person(&self, token: Option<&'a Token>) -> Granted<'a> {
        let name = match token {
            Some(token) => token.name.to_string(),
            None => member(self.form, "username").map_or_else(|| "dev@forewarn".to_owned(), shortened),
        };
        Granted { token, person: Some(name) }
    }
}

fn issue(door: &Door, directory: &Directory, form: &Form, granted: &Granted<'_>, now: SystemTime) -> Value {
    let signer = &door.entrance.signer;
    let tid = directory.id(&door.entrance.directory);
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
        // Who it is, for the client to show; nothing is let in by it.
        body["id_token"] = json!(signer.sign(claims(&client), Purpose::Access, None, now));
        body["refresh_token"] = json!(signer.sign(Map::new(), Purpose::Refresh, granted.token, now));
        body["client_info"] = json!(encode(json!({ "uid": oid, "utid": tid }).to_string().as_bytes()));
    }
    body
}

/// For whom the token is to be: `resource`, or the one of the scopes that is no matter of this directory.
fn audience(form: &Form) -> String {
    let scopes = member(form, "scope").unwrap_or_default().split(' ');
    let scope = scopes.filter_map(|scope| scope.strip_suffix("/.default")).next();
    shortened(member(form, "resource").or(scope).unwrap_or(AUDIENCE))
}

/// The value of a member that is there once.
fn member<'a>(form: &'a Form, name: &str) -> Option<&'a str> {
    let mut values = form.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
    values.next().filter(|_| values.next().is_none())
}

fn shortened(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(REPEATED_CHARS_MAX).collect()
}

fn no_codes() -> Refused {
    Refused {
        status: StatusCode::BAD_REQUEST,
        error: "unauthorized_client",
        why: "there is nowhere to enter a code; log in as a service principal, with a token of this server as its secret"
            .to_owned(),
    }
}

/// Nobody on the way keeps it.
pub(super) fn no_store(body: Value) -> Response {
    let mut response = Json(body).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl From<NotAdmitted> for Refused {
    fn from(why: NotAdmitted) -> Self {
        let why = match why {
            NotAdmitted::Wrong => {
                "the secret has to be the text of a token of this server: `forewarn token create`".to_owned()
            }
            NotAdmitted::Expired(name) => format!("the token has expired: {name}"),
        };
        Self { status: StatusCode::UNAUTHORIZED, error: "invalid_client", why }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = no_store(json!({ "error": self.error, "error_description": self.why }));
        *response.status_mut() = self.status;
        response
    }
}
