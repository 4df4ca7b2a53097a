//! The header `Host` of a request: names that another domain cannot have pointed to this server.
//!
//! A web page can send requests to any address to which its own name resolves. An IP address, `localhost` and a single
//! label are not public domain names; a name with dots is accepted only if it is in the settings, or if it is a name of a
//! container network and the server accepts these.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Characters in one label of a name.
const LABEL_CHARS_MAX: usize = 63;

/// Characters in a whole name.
const NAME_CHARS_MAX: usize = 253;

/// Domains that only container networks resolve: nobody can register a public name in them.
const CONTAINER_DOMAINS: [&str; 3] = [".docker.internal", ".svc", ".svc.cluster.local"];

/// The names that `Host` may have, besides addresses, `localhost` and single labels.
///
/// ```
/// use forewarn_url::OwnHosts;
/// let hosts = OwnHosts { names: vec!["metadata.example.com".to_owned()], ..OwnHosts::default() };
/// assert!(hosts.admits("169.254.169.254") && hosts.admits("Metadata.Example.com:80"));
/// assert!(!hosts.admits("example.com"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnHosts {
    /// Names with dots.
    pub names: Vec<String>,
    pub container_names: ContainerNames,
    /// The way to add a name, for error messages. `None` if there is none.
    pub advice: Option<&'static str>,
}

/// Names of container networks: `*.docker.internal`, `*.svc` and `*.svc.cluster.local`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerNames {
    #[default]
    Rejected,
    Accepted,
}

/// A text that is not a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a host name without a port, such as metadata.example.com")]
pub struct BadHostName;

impl OwnHosts {
    /// Returns true if `Host`, with a port or without, is an address, a single label, or one of these names.
    #[must_use]
    pub fn admits(&self, host: &str) -> bool {
        if let Some(rest) = host.strip_prefix('[') {
            let Some((address, port)) = rest.split_once(']') else { return false };
            return address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port));
        }
        // Some clients leave out the brackets.
        if host.parse::<Ipv6Addr>().is_ok() {
            return true;
        }
        let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
        (port.is_empty() || is_port(port)) && (name.parse::<Ipv4Addr>().is_ok() || self.has(name))
    }

    fn has(&self, name: &str) -> bool {
        let is_container = || match self.container_names {
            ContainerNames::Rejected => false,
            ContainerNames::Accepted => {
                is_name(name) && CONTAINER_DOMAINS.iter().any(|end| ends_with(name, end))
            }
        };
        is_label(name) || self.names.iter().any(|known| known.eq_ignore_ascii_case(name)) || is_container()
    }
}

/// Reads a host name for [`OwnHosts`].
///
/// # Errors
/// Returns an error for a text that no client could send as a name.
pub fn parse_host_name(text: &str) -> Result<String, BadHostName> {
    if is_name(text) { Ok(text.to_owned()) } else { Err(BadHostName) }
}

/// Compares the end of a name in any case. Something must stand before it.
fn ends_with(name: &str, end: &str) -> bool {
    let tail =
        name.len().checked_sub(end.len()).filter(|start| *start > 0).and_then(|start| name.get(start..));
    tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_CHARS_MAX && name.split('.').all(is_label)
}

fn is_port(port: &str) -> bool {
    let digits = port.strip_prefix(':').unwrap_or_default();
    digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
}

fn is_label(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LABEL_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> OwnHosts {
        OwnHosts { names: vec![name.to_owned()], ..OwnHosts::default() }
    }

    #[test]
    fn addresses_and_single_labels_are_own_hosts() {
        let hosts = named("metadata.example.com");
        for host in [
            "169.254.169.254",
            "127.0.0.1:8080",
            "[::1]",
            "::1",
            "[fe80::1]:80",
            "localhost",
            "LOCALHOST:1",
            "imds",
            "my_box",
            "my-box:1",
            "Metadata.Example.com:80",
        ] {
            assert!(hosts.admits(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.com",
            "localhost.",
            "localhost.evil.example",
            "evil.com:80",
            "169.254.169.254.evil.com",
            "a@b",
            "[::1",
            "[::1]x",
            "[1.2.3.4]",
            "localhost:",
            "localhost:99999",
            "localhost:+1",
            "x:y",
            "a b",
            &"a".repeat(LABEL_CHARS_MAX + 1),
        ] {
            assert!(!hosts.admits(host), "{host}");
        }
    }

    #[test]
    fn a_name_with_dots_has_to_be_in_the_settings() {
        let hosts = named("forewarn.internal");
        for known in ["forewarn.internal", "FOREWARN.internal:1339"] {
            assert!(hosts.admits(known), "{known}");
            assert!(!OwnHosts::default().admits(known), "{known}");
        }
        for other in ["x.forewarn.internal", "forewarn.internal:x", "forewarn.internal."] {
            assert!(!hosts.admits(other), "{other}");
        }
    }

    #[test]
    fn names_of_container_networks_are_accepted_on_demand() {
        let open = OwnHosts { container_names: ContainerNames::Accepted, ..OwnHosts::default() };
        for host in [
            "host.docker.internal",
            "Gateway.Docker.Internal:1338",
            "forewarn.default.svc",
            "forewarn.default.svc:1338",
            "forewarn.default.svc.cluster.local",
        ] {
            assert!(open.admits(host), "{host}");
            assert!(!OwnHosts::default().admits(host), "{host}");
        }
        for host in [
            ".docker.internal",
            "host.docker.internal.evil.example",
            "hostdocker.internal",
            "evilsvc.example",
            "svc.evil.example",
            "a..svc",
            "a@b.svc",
            "a.svc.",
            "a.svc:x",
            "a.cluster.local",
            "evil.example",
        ] {
            assert!(!open.admits(host), "{host}");
        }
    }

    #[test]
    fn a_host_name_has_no_port_and_no_pattern() {
        for name in ["metadata.example.com", "imds", "my_box.lan", "10.0.0.1"] {
            assert_eq!(parse_host_name(name).as_deref(), Ok(name));
        }
        for text in ["", "a.b:80", "*.svc", "http://a.b", "a b", "a..b", "a.b.", &"a.".repeat(130)] {
            assert_eq!(parse_host_name(text), Err(BadHostName), "{text}");
        }
    }
}
