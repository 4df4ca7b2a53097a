//! The address of a Scheduled Events endpoint: `http://HOST[:PORT][/PREFIX]`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use crate::http::{BadUrl, Scheme, Url};

/// The address of a Scheduled Events endpoint.
///
/// ```
/// use forewarn_client::Endpoint;
/// assert_eq!(Endpoint::parse("http://169.254.169.254/").unwrap(), Endpoint::well_known());
/// assert_eq!(Endpoint::parse("10.0.0.1:8080").unwrap().to_string(), "http://10.0.0.1:8080");
/// assert_eq!(Endpoint::parse("http://127.0.0.1:4080/vm/web_0").unwrap().to_string(), "http://127.0.0.1:4080/vm/web_0");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: Url,
    /// The path before `/metadata`, without a trailing slash.
    prefix: String,
}

/// The reason why a text is not a valid endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEndpoint {
    /// The text is not a URL.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// The URL uses TLS.
    #[error("an endpoint does not use TLS\n  hint: write http://")]
    Encrypted,
    /// The URL has more than a prefix.
    #[error("an endpoint URL ends before /metadata and has no query\n  hint: write http://169.254.169.254")]
    TooMuch,
}

impl Endpoint {
    /// Parses an endpoint: a URL, or a host with an optional port.
    ///
    /// # Errors
    /// [`BadEndpoint`] if the text is not a valid endpoint.
    pub fn parse(text: &str) -> Result<Self, BadEndpoint> {
        let text = text.trim();
        let full = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let url = Url::parse(&full)?;
        if url.scheme() == Scheme::Https {
            return Err(BadEndpoint::Encrypted);
        }
        let target = url.target();
        let prefix = target.trim_end_matches('/');
        if prefix.contains('?') || prefix.split('/').any(|part| part.eq_ignore_ascii_case("metadata")) {
            return Err(BadEndpoint::TooMuch);
        }
        let url = Url::parse(&format!("http://{}{prefix}", url.authority()))?;
        Ok(Self { prefix: prefix.to_owned(), url })
    }

    /// The endpoint at an address, on port 80.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        Self { url: Url::at(address), prefix: String::new() }
    }

    /// The well-known endpoint: `169.254.169.254`.
    #[must_use]
    pub fn well_known() -> Self {
        Self::at(Ipv4Addr::new(169, 254, 169, 254).into())
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// The request target for a path.
    pub(crate) fn target(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Self, BadEndpoint> {
        Self::parse(text)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "http://{}{}", self.url.authority(), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_read_as_it_is_written() {
        for (text, shown, target) in [
            ("http://169.254.169.254", "http://169.254.169.254", "/metadata/x"),
            (" 168.63.129.16 ", "http://168.63.129.16", "/metadata/x"),
            ("localhost:4080", "http://localhost:4080", "/metadata/x"),
            ("[::1]:80", "http://[::1]:80", "/metadata/x"),
            ("http://h/vm/web_0//", "http://h/vm/web_0", "/vm/web_0/metadata/x"),
        ] {
            let endpoint = Endpoint::parse(text).unwrap();
            assert_eq!(endpoint.to_string(), shown);
            assert_eq!(endpoint.target("/metadata/x"), target);
            assert_eq!(Endpoint::parse(shown), Ok(endpoint));
        }
        let well_known = Endpoint::parse("169.254.169.254").unwrap();
        assert_eq!(well_known, Endpoint::well_known());
        assert_eq!(Endpoint::parse("[fe80::1]"), Ok(Endpoint::at("fe80::1".parse().unwrap())));
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_a_hint() {
        assert_eq!(Endpoint::parse("https://h"), Err(BadEndpoint::Encrypted));
        for much in ["http://h/metadata/scheduledevents", "http://h/Metadata", "h/x?y=1"] {
            assert_eq!(Endpoint::parse(much), Err(BadEndpoint::TooMuch), "{much}");
        }
        for wrong in ["", "http://", "ftp://h", "1.2.3.4:99999", "a b"] {
            assert!(matches!(Endpoint::parse(wrong), Err(BadEndpoint::Url(_))), "{wrong}");
        }
    }
}
