//! Routes that need no token: discovery and login.

use axum::http::Method;

/// Characters of the name of a directory.
const TENANT_CHARS_MAX: usize = 100;

/// A route that needs no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PublicRoute {
    /// Endpoints of the cloud.
    Endpoints,
    /// Certificate of the server's authority.
    Authority,
    Aliases,
    /// OpenID configuration of a directory.
    OpenId(String),
    Instance,
    /// Signing keys of a directory.
    Keys,
    /// Realm of a user.
    Realm,
    /// Token endpoint of a directory.
    Token(String),
    /// Device code endpoint of a directory.
    DeviceCode(String),
    /// Managed identity token, as machines get it.
    ManagedIdentity,
}

/// First segments of the routes that need a token.
const REST: [&str; 3] = ["subscriptions", "tenants", "providers"];

impl PublicRoute {
    /// The route of a path. Case and empty segments make no difference; percent signs are not decoded.
    pub(super) fn at(path: &str) -> Option<Self> {
        let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let lower: Vec<_> = segments.iter().map(|segment| segment.to_ascii_lowercase()).collect();
        let lower: Vec<_> = lower.iter().map(String::as_str).collect();
        let tenant = || segments.first().filter(|name| is_tenant(name)).map(|name| (*name).to_owned());
        match lower.as_slice() {
            ["metadata", "endpoints"] => Some(Self::Endpoints),
            ["metadata", "identity", "oauth2", "token"] => Some(Self::ManagedIdentity),
            ["ca.pem"] | ["_local", "ca.pem"] => Some(Self::Authority),
            ["aliases.json"] => Some(Self::Aliases),
            ["common", "discovery", "instance"] => Some(Self::Instance),
            ["common", "userrealm", _] => Some(Self::Realm),
            [_, ".well-known", "openid-configuration"]
            | [_, "v2.0", ".well-known", "openid-configuration"] => tenant().map(Self::OpenId),
            // `az` checks here that the directory exists.
            ["adfs", _, ".well-known", "openid-configuration"]
            | ["adfs", _, "v2.0", ".well-known", "openid-configuration"] => tenant().map(Self::OpenId),
            [_, "discovery", "keys"] | [_, "discovery", "v2.0", "keys"] => tenant().map(|_| Self::Keys),
            [_, "oauth2", "token"] | [_, "oauth2", "v2.0", "token"] => tenant().map(Self::Token),
            [_, "oauth2", "devicecode"] | [_, "oauth2", "v2.0", "devicecode"] => {
                tenant().map(Self::DeviceCode)
            }
            _ => None,
        }
    }

    pub(super) fn method(&self) -> Method {
        match self {
            Self::Token(_) | Self::DeviceCode(_) => Method::POST,
            Self::Endpoints
            | Self::Authority
            | Self::Aliases
            | Self::OpenId(_)
            | Self::Instance
            | Self::Keys
            | Self::Realm
            | Self::ManagedIdentity => Method::GET,
        }
    }
}

/// A path of Azure Resource Manager, public or not.
pub(crate) fn is_path(path: &str) -> bool {
    let first = path.split('/').find(|segment| !segment.is_empty()).unwrap_or_default();
    REST.iter().any(|word| first.eq_ignore_ascii_case(word)) || PublicRoute::at(path).is_some()
}

fn is_tenant(name: &str) -> bool {
    name.len() <= TENANT_CHARS_MAX
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_asked_in_any_spelling() {
        let tenant = "f0e4a14d-0000-4000-8000-000000000000";
        let token = Some(PublicRoute::Token(tenant.to_owned()));
        for path in ["oauth2/v2.0/token", "OAuth2//V2.0/token/", "oauth2/token"] {
            assert_eq!(PublicRoute::at(&format!("/{tenant}/{path}")), token, "{path}");
        }
        assert_eq!(
            PublicRoute::at("/adfs/.well-known/openid-configuration"),
            Some(PublicRoute::OpenId("adfs".to_owned()))
        );
        assert_eq!(
            PublicRoute::at("/adfs/any/v2.0/.well-known/openid-configuration"),
            Some(PublicRoute::OpenId("adfs".to_owned()))
        );
        let older = "/adfs/adfs/.well-known/openid-configuration";
        assert_eq!(PublicRoute::at(older), Some(PublicRoute::OpenId("adfs".to_owned())));
        for path in ["/v2.0/token", "/a%2Fb/oauth2/token", "/a\"b/oauth2/token", "/a/b/oauth2/token", "/"] {
            assert_eq!(PublicRoute::at(path), None, "{path}");
        }
    }

    #[test]
    fn the_paths_of_operators_are_not_taken_for_those_of_clients() {
        for path in ["/subscriptions", "//Subscriptions/s", "/tenants", "/providers/x", "/ca.pem"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["/", "/v1/server", "/metrics", "/healthz", "/metadata/instance", "/subscriptionsx"] {
            assert!(!is_path(path), "{path}");
        }
    }
}
