//! The header `Host` of a request: names that another domain cannot have pointed to this server.
//!
//! A web page can send requests to any address to which its own name resolves. An IP address, `localhost` and a single
//! label are not public domain names; a name with dots is accepted only if it is in the settings.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Characters in one label of a name.
const LABEL_CHARS_MAX: usize = 63;

/// Returns true if `Host`, with a port or without, is an address, a single label, or one of the names in the settings.
///
/// ```
/// use forewarn_url::is_own_host;
/// let names = ["metadata.example.com".to_owned()];
/// assert!(is_own_host("169.254.169.254", &names) && is_own_host("Metadata.Example.com:80", &names));
/// assert!(!is_own_host("example.com", &names));
/// ```
#[must_use]
pub fn is_own_host(host: &str, names: &[String]) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok() && (port.is_empty() || is_port(port));
    }
    // Some clients leave out the brackets.
    if host.parse::<Ipv6Addr>().is_ok() {
        return true;
    }
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    (port.is_empty() || is_port(port))
        && (name.parse::<Ipv4Addr>().is_ok()
            || is_label(name)
            || names.iter().any(|known| known.eq_ignore_ascii_case(name)))
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

    #[test]
    fn addresses_and_single_labels_are_own_hosts() {
        let names = ["metadata.example.com".to_owned()];
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
            assert!(is_own_host(host, &names), "{host}");
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
            assert!(!is_own_host(host, &names), "{host}");
        }
    }

    #[test]
    fn a_name_with_dots_has_to_be_in_the_settings() {
        let names = ["forewarn.internal".to_owned()];
        for known in ["forewarn.internal", "FOREWARN.internal:1339"] {
            assert!(is_own_host(known, &names), "{known}");
            assert!(!is_own_host(known, &[]), "{known}");
        }
        for other in ["x.forewarn.internal", "forewarn.internal:x", "forewarn.internal."] {
            assert!(!is_own_host(other, &names), "{other}");
        }
    }
}
