//! What strangers may ask for: paths that need no token, because whoever asks is about to get one.

use axum::http::Method;

/// Characters of the name of a directory.
const TENANT_CHARS_MAX: usize = 100;

/// What strangers may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Free {
    /// Where everything is.
    Endpoints,
    /// Whom to believe.
    Authority,
    /// What images are called in short.
    Aliases,
    /// What a directory offers, by its name.
    OpenId(String),
    /// Where to ask what a directory offers.
    Instance,
    /// The keys of a directory.
    Keys,
    /// Whether somebody logs in here or elsewhere.
    Realm,
    /// A token of a directory.
    Token(String),
    /// A code for a device without a keyboard.
    DeviceCode(String),
    /// A token as machines get them.
    Machine,
}

/// What is behind the paths that are not free.
const REST: [&str; 3] = ["subscriptions", "tenants", "providers"];

impl Free {
    /// What is at a path, which is compared without case, without empty segments, and without percent signs.
    pub(super) fn at(path: &str) -> Option<Self> {
        let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let lower: Vec<_> = segments.iter().map(|segment| segment.to_ascii_lowercase()).collect();
        let lower: Vec<_> = lower.iter().map(String::as_str).collect();
        let tenant = || segments.first().filter(|name| is_tenant(name)).map(|name| (*name).to_owned());
        match lower.as_slice() {
            ["metadata", "endpoints"] => Some(Self::Endpoints),
            ["metadata", "identity", "oauth2", "token"] => Some(Self::Machine),
            ["ca.pem"] | ["_local", "ca.pem"] => Some(Self::Authority),
            ["aliases.json"] => Some(Self::Aliases),
            ["common", "discovery", "instance"] => Some(Self::Instance),
            ["common", "userrealm", _] => Some(Self::Realm),
            [_, ".well-known", "openid-configuration"]
            | [_, "v2.0", ".well-known", "openid-configuration"] => tenant().map(Self::OpenId),
            // `az` asks here whether there is a directory, and then forgets which.
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

    /// How it is asked for.
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
            | Self::Machine => Method::GET,
        }
    }
}

/// Whether a path is one that clients of Azure ask for, of strangers or not.
pub(crate) fn is_path(path: &str) -> bool {
    let first = path.split('/').find(|segment| !segment.is_empty()).unwrap_or_default();
    REST.iter().any(|word| first.eq_ignore_ascii_case(word)) || Free::at(path).is_some()
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
        let token = Some(Free::Token(tenant.to_owned()));
        for path in ["oauth2/v2.0/token", "OAuth2//V2.0/token/", "oauth2/token"] {
            assert_eq!(Free::at(&format!("/{tenant}/{path}")), token, "{path}");
        }
        assert_eq!(Free::at("/adfs/.well-known/openid-configuration"), Some(Free::OpenId("adfs".to_owned())));
        assert_eq!(
            Free::at("/adfs/any/v2.0/.well-known/openid-configuration"),
            Some(Free::OpenId("adfs".to_owned()))
        );
        let older = "/adfs/adfs/.well-known/openid-configuration";
        assert_eq!(Free::at(older), Some(Free::OpenId("adfs".to_owned())));
        for path in ["/v2.0/token", "/a%2Fb/oauth2/token", "/a\"b/oauth2/token", "/a/b/oauth2/token", "/"] {
            assert_eq!(Free::at(path), None, "{path}");
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
