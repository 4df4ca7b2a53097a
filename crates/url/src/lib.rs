//! URLs of HTTP servers: `http://HOST[:PORT]/PATH[?QUERY]`, or the same with `https`.
//!
//! A URL is parsed once, when it is configured, so that two parsers cannot disagree about it. The query is often a
//! secret, and is never displayed; `Debug` does not display the path either.

mod host;
pub mod percent;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize, Serializer};

pub use host::{BadHostName, ContainerNames, OwnHosts, parse_host_name};

/// Maximum length of a URL.
pub const URL_BYTES_MAX: usize = 2_048;

/// A URL. Its JSON form includes the query: for messages between servers, never for a view.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Url {
    text: String,
    scheme: Scheme,
    /// Offsets of the host and the path in the text; and the port, explicit or default.
    host: (usize, usize),
    path: usize,
    port: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    /// Encrypted, with a server certificate.
    Https,
}

/// The reason why a text is not a usable URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    /// Longer than [`URL_BYTES_MAX`].
    #[error("a URL has at most {URL_BYTES_MAX} characters")]
    TooLong,
    /// Neither `http` nor `https`.
    #[error("a URL must begin with http:// or https://")]
    Scheme,
    /// A space, a control character, a letter that has to be escaped, or a backslash.
    #[error("a URL must consist of visible ASCII characters without backslash\n  hint: escape others as %XX")]
    Character,
    /// `USER:PASSWORD@`.
    #[error("a URL must not contain a user name or password")]
    UserInfo,
    /// `#…`.
    #[error("a URL must not have a fragment (#)")]
    Fragment,
    /// The host is missing or invalid.
    #[error("a URL needs a host: a name, an IPv4 address, or an IPv6 address in brackets")]
    Host,
    /// The port is missing after the colon, 0, or greater than 65535.
    #[error("a port must be a number from 1 to 65535")]
    Port,
}

/// Maximum length of a host.
const HOST_BYTES_MAX: usize = 253;

impl Url {
    /// Parses a URL.
    ///
    /// ```
    /// use forewarn_url::Url;
    /// let url = Url::parse("https://hooks.example/forewarn?code=s3cret").unwrap();
    /// assert_eq!((url.host(), url.port()), ("hooks.example", 443));
    /// assert_eq!(url.target(), "/forewarn?code=s3cret");
    /// assert_eq!(url.redacted(), "https://hooks.example/forewarn?…");
    /// ```
    ///
    /// # Errors
    /// The text is not a URL, or not one for requests.
    pub fn parse(text: &str) -> Result<Self, BadUrl> {
        if text.len() > URL_BYTES_MAX {
            return Err(BadUrl::TooLong);
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(BadUrl::Character);
        }
        let (scheme, begin) = scheme(text).ok_or(BadUrl::Scheme)?;
        if text.contains('#') {
            return Err(BadUrl::Fragment);
        }
        let path = text[begin..].find(['/', '?']).map_or(text.len(), |at| begin + at);
        let authority = &text[begin..path];
        if authority.contains('@') {
            return Err(BadUrl::UserInfo);
        }
        let (host, port) = split(authority)?;
        check_host(host)?;
        let host = (begin, begin + host.len());
        Ok(Self { text: text.to_owned(), scheme, host, path, port: port.unwrap_or(scheme.usual_port()) })
    }

    /// The URL of an address: `http`, default port.
    #[must_use]
    pub fn at(address: IpAddr) -> Self {
        let scheme = Scheme::Http;
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let text = format!("http://{host}");
        let end = text.len();
        Self { host: (end - host.len(), end), path: end, port: scheme.usual_port(), scheme, text }
    }

    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// A name or an address; one of version 6 without its brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = &self.text[self.host.0..self.host.1];
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The port, explicit or default.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as they were given: the value of the header `Host`.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.text[self.host.0..self.path]
    }

    /// Path and query: the target of a request.
    #[must_use]
    pub fn target(&self) -> String {
        let target = &self.text[self.path..];
        if target.starts_with('/') { target.to_owned() } else { format!("/{target}") }
    }

    /// The complete text with its secret, for the journal only.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The text without its query, which may be a secret.
    #[must_use]
    pub fn redacted(&self) -> String {
        match self.text.split_once('?') {
            Some((before, "")) => format!("{before}?"),
            Some((before, _)) => format!("{before}?…"),
            None => self.text.clone(),
        }
    }

    /// Scheme, host and port: nothing else of the text, whose path may be a secret too.
    ///
    /// ```
    /// let url = forewarn_url::Url::parse("https://hooks.example/services/s3cret").unwrap();
    /// assert_eq!(url.redacted_to_host(), "https://hooks.example/…");
    /// ```
    #[must_use]
    pub fn redacted_to_host(&self) -> String {
        let is_all = matches!(&self.text[self.path..], "" | "/");
        format!("{}{}", &self.text[..self.path], if is_all { "/" } else { "/…" })
    }

    /// Returns true if requests are encrypted or stay on this computer.
    #[must_use]
    pub fn is_private(&self) -> bool {
        let is_here = match self.host().parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => self.host().eq_ignore_ascii_case("localhost"),
        };
        self.scheme == Scheme::Https || is_here
    }
}

impl TryFrom<String> for Url {
    type Error = BadUrl;

    fn try_from(text: String) -> Result<Self, BadUrl> {
        Self::parse(&text)
    }
}

impl Serialize for Url {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.reveal())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.redacted_to_host(), out)
    }
}

impl Scheme {
    /// The default port of the scheme.
    #[must_use]
    pub fn usual_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The scheme, and the offset of the rest.
fn scheme(text: &str) -> Option<(Scheme, usize)> {
    let begins = |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    let schemes = [("http://", Scheme::Http), ("https://", Scheme::Https)];
    schemes.into_iter().find(|(word, _)| begins(word)).map(|(word, scheme)| (scheme, word.len()))
}

/// Splits an authority into host and port.
fn split(authority: &str) -> Result<(&str, Option<u16>), BadUrl> {
    let end = match authority.find(']') {
        Some(bracket) => bracket + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    if port.is_empty() {
        return Ok((host, None));
    }
    let digits = port.strip_prefix(':').ok_or(BadUrl::Host)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_number.then(|| digits.parse().ok()).flatten().filter(|port| *port > 0);
    number.map(|port| (host, Some(port))).ok_or(BadUrl::Port)
}

fn check_host(host: &str) -> Result<(), BadUrl> {
    if let Some(inside) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inside.parse::<Ipv6Addr>().map(drop).map_err(|_| BadUrl::Host);
    }
    let is_part_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let fits = (1..=HOST_BYTES_MAX).contains(&host.len());
    if fits && host.bytes().all(is_part_of_name) { Ok(()) } else { Err(BadUrl::Host) }
}

impl std::str::FromStr for Url {
    type Err = BadUrl;

    fn from_str(text: &str) -> Result<Self, BadUrl> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_url_is_parsed_into_its_parts() {
        let parts = |text: &str| {
            let url = Url::parse(text).unwrap();
            (url.host().to_owned(), url.port(), url.authority().to_owned(), url.target())
        };
        let expected = |host: &str, port, authority: &str, target: &str| {
            (host.to_owned(), port, authority.to_owned(), target.to_owned())
        };
        assert_eq!(parts("http://h"), expected("h", 80, "h", "/"));
        assert_eq!(
            parts("HTTPS://H.example:8443/a/b"),
            expected("H.example", 8443, "H.example:8443", "/a/b")
        );
        assert_eq!(parts("http://h?code=1"), expected("h", 80, "h", "/?code=1"));
        assert_eq!(parts("http://[::1]:80/x"), expected("::1", 80, "[::1]:80", "/x"));
        assert_eq!(parts("http://10.0.0.1/a@b:c"), expected("10.0.0.1", 80, "10.0.0.1", "/a@b:c"));
    }

    /// promise: W2
    #[test]
    fn invalid_urls_are_rejected() {
        for (wrong, why) in [
            ("", BadUrl::Scheme),
            ("h/x", BadUrl::Scheme),
            ("ftp://h", BadUrl::Scheme),
            ("unix:/run/x", BadUrl::Scheme),
            ("http://", BadUrl::Host),
            ("http:///x", BadUrl::Host),
            ("http://:80", BadUrl::Host),
            ("http://a%20b", BadUrl::Host),
            ("http://::1", BadUrl::Port),
            ("http://[::1", BadUrl::Port),
            ("http://[h]", BadUrl::Host),
            ("http://[::1]x", BadUrl::Host),
            ("http://h:", BadUrl::Port),
            ("http://h:0", BadUrl::Port),
            ("http://h:+1", BadUrl::Port),
            ("http://h:65536", BadUrl::Port),
            ("http://u:p@h", BadUrl::UserInfo),
            ("http://h/#x", BadUrl::Fragment),
            ("http://h/a b", BadUrl::Character),
            ("http://h\\@other/", BadUrl::Character),
            ("http://h/\r\nX: y", BadUrl::Character),
            ("http://ä", BadUrl::Character),
        ] {
            assert_eq!(Url::parse(wrong), Err(why), "{wrong:?}");
        }
        let long = |length: usize| format!("http://h/{}", "x".repeat(length - 9));
        assert!(Url::parse(&long(URL_BYTES_MAX)).is_ok());
        assert_eq!(Url::parse(&long(URL_BYTES_MAX + 1)), Err(BadUrl::TooLong));
    }

    /// promise: S4, W2
    #[test]
    fn the_query_is_redacted() {
        let url = Url::parse("https://h/x?code=s3cret&b=1").unwrap();
        assert_eq!(
            (url.redacted().as_str(), format!("{url:?}").as_str()),
            ("https://h/x?…", "\"https://h/…\"")
        );
        assert_eq!(url.reveal(), "https://h/x?code=s3cret&b=1");
        assert_eq!(Url::parse("http://h/x?").unwrap().redacted(), "http://h/x?");
    }

    #[test]
    fn a_url_in_json_is_complete_and_validated() {
        let url = Url::parse("https://h/x?code=s3cret").unwrap();
        let json = serde_json::to_string(&url).unwrap();
        assert_eq!(json, "\"https://h/x?code=s3cret\"");
        assert_eq!(serde_json::from_str::<Url>(&json).unwrap(), url);
        let address = Url::at("::1".parse().unwrap());
        assert_eq!(serde_json::from_str::<Url>(&serde_json::to_string(&address).unwrap()).unwrap(), address);
        let problem = serde_json::from_str::<Url>("\"http://h/#s3cret\"").unwrap_err().to_string();
        assert!(problem.starts_with("a URL must not have a fragment (#)"), "{problem}");
    }

    #[test]
    fn https_and_loopback_are_private() {
        for (url, is_private) in [
            ("https://h", true),
            ("http://127.0.0.9:1", true),
            ("http://[::1]:1", true),
            ("http://LOCALHOST", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://h", false),
            ("http://10.0.0.1", false),
            ("http://localhost.example", false),
        ] {
            assert_eq!(Url::parse(url).unwrap().is_private(), is_private, "{url}");
        }
    }

    proptest! {
        #[test]
        fn parsing_a_url_never_panics(text in "(http://)?[\\[\\]:/?#@a-z0-9é]{0,20}") {
            if let Ok(url) = Url::parse(&text) {
                prop_assert!(!url.host().is_empty() && url.target().starts_with('/'));
            }
        }
    }
}
