//! Request heads: parsed whole and strictly, or rejected.
//!
//! Heads that two parsers could read differently are rejected: bare line feeds, folded lines, two lengths, two hosts, a
//! length with chunks. So are requests that a proxy or a web page has forwarded.

use std::mem::MaybeUninit;

use forewarn_imds::{RequestError, UnwantedHeader};
use forewarn_url::OwnHosts;

use crate::target::Target;

/// Maximum length of the target.
const TARGET_BYTES_MAX: usize = 2 * 1024;

/// Maximum length of the request line: target, method and version.
const LINE_BYTES_MAX: usize = TARGET_BYTES_MAX + 64;

/// Maximum number of header fields.
const HEADERS_MAX: usize = 32;

/// Maximum length of all header fields.
const HEADERS_BYTES_MAX: usize = 8 * 1024;

/// Head of a request.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub method: Method,
    pub target: Target<'a>,
    /// True if it has `Metadata: true` exactly once.
    pub metadata: bool,
    pub connection_mode: ConnectionMode,
    /// True if the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    pub known: KnownIncarnations,
    pub body: Body,
    /// Length of the head.
    pub bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Post,
    Other,
}

/// State of the connection after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionMode {
    KeepAlive,
    Close,
}

/// Length of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Bytes(u64),
    Chunked,
}

impl Body {
    pub(crate) const NONE: Self = Self::Bytes(0);
}

/// Incarnations that the client already has (`If-None-Match`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownIncarnations {
    any: bool,
    incarnations: Vec<u64>,
}

impl KnownIncarnations {
    pub(crate) fn has(&self, incarnation: u64) -> bool {
        self.any || self.incarnations.contains(&incarnation)
    }

    /// Adds entity tags: quoted or not, weak or not. Other text matches nothing.
    fn add(&mut self, list: &str) {
        for entry in list.split(',').map(str::trim) {
            let tag = entry.strip_prefix("W/").or(entry.strip_prefix("w/")).unwrap_or(entry);
            self.any |= tag == "*";
            self.incarnations.extend(tag.trim_matches('"').parse::<u64>());
        }
    }
}

/// Parses the head at the start of a buffer; `None` if it is incomplete.
pub(crate) fn read<'a>(buffer: &'a [u8], hosts: &OwnHosts) -> Result<Option<Head<'a>>, RequestError> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut []);
    let bytes = match request.parse_with_uninit_headers(buffer, &mut headers) {
        Ok(httparse::Status::Complete(bytes)) => bytes,
        Ok(httparse::Status::Partial) => return check_size(buffer).map(|()| None),
        Err(httparse::Error::TooManyHeaders) => return Err(RequestError::HeadersTooLarge),
        Err(_) => return Err(check_size(buffer).err().unwrap_or(RequestError::Malformed)),
    };
    check_size(&buffer[..bytes])?;
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(RequestError::Malformed);
    };
    if target.len() > TARGET_BYTES_MAX {
        return Err(RequestError::UriTooLong);
    }
    if !is_strict(&buffer[..bytes]) {
        return Err(RequestError::Malformed);
    }
    let mut fields = Fields::default();
    request.headers.iter().try_for_each(|header| fields.add(header))?;
    Ok(Some(fields.head(method, target, version, bytes, hosts)?))
}

/// Checks the size limits of a head, complete or not.
fn check_size(head: &[u8]) -> Result<(), RequestError> {
    if head.len() <= LINE_BYTES_MAX.min(HEADERS_BYTES_MAX) {
        // Shorter than every limit.
        return Ok(());
    }
    let line_start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(head.len());
    let line = head[line_start..].iter().position(|byte| *byte == b'\n');
    match line {
        None if head.len() > LINE_BYTES_MAX => Err(RequestError::UriTooLong),
        Some(line) if line > LINE_BYTES_MAX => Err(RequestError::UriTooLong),
        Some(line) if head.len() - line_start - line > HEADERS_BYTES_MAX => {
            Err(RequestError::HeadersTooLarge)
        }
        None | Some(_) => Ok(()),
    }
}

/// Returns true if every line ends with CRLF and every byte is ASCII.
fn is_strict(head: &[u8]) -> bool {
    // Checks every byte without an early exit, so that the compiler can vectorise the loop.
    let pairs = head.iter().zip(&head[1..]);
    let is_torn = pairs.fold(false, |torn, (byte, next)| torn | ((*byte == b'\r') != (*next == b'\n')));
    head.is_ascii() && head[0] != b'\n' && !is_torn
}

/// The header fields that the endpoint reads.
#[derive(Default)]
struct Fields<'a> {
    host: Option<&'a str>,
    metadata: Option<bool>,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    expects_continue: bool,
    known: KnownIncarnations,
}

impl<'a> Fields<'a> {
    fn add(&mut self, header: &httparse::Header<'a>) -> Result<(), RequestError> {
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        let value = header.value.trim_ascii();
        if is("host") {
            return once(&mut self.host, text(value)?);
        } else if is("metadata") {
            // A repeated header counts as absent.
            self.metadata = Some(self.metadata.is_none() && value.eq_ignore_ascii_case(b"true"));
        } else if is("content-length") {
            return once(&mut self.length, length(text(value)?)?);
        } else if is("transfer-encoding") {
            if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(RequestError::Malformed);
            }
            self.chunked = true;
        } else if is("connection") {
            self.close |= value
                .split(|byte| *byte == b',')
                .any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"));
        } else if is("expect") {
            if !value.eq_ignore_ascii_case(b"100-continue") {
                return Err(RequestError::Malformed);
            }
            self.expects_continue = true;
        } else if is("if-none-match") {
            self.known.add(text(value)?);
        } else if let Some(unwanted) = unwanted(header.name) {
            return Err(RequestError::UnwantedHeader(unwanted));
        }
        Ok(())
    }

    fn head(
        self,
        method: &str,
        target: &'a str,
        version: u8,
        bytes: usize,
        hosts: &OwnHosts,
    ) -> Result<Head<'a>, RequestError> {
        let is_old = version == 0;
        match self.host {
            Some(host) if !hosts.admits(host) => {
                return Err(RequestError::ForeignHost { advice: hosts.advice });
            }
            None if !is_old => return Err(RequestError::Malformed),
            Some(_) | None => {}
        }
        let method = match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            _ => Method::Other,
        };
        Ok(Head {
            method,
            target: Target::read(origin_form(target, self.host))?,
            metadata: self.metadata == Some(true),
            connection_mode: if self.close || is_old {
                ConnectionMode::Close
            } else {
                ConnectionMode::KeepAlive
            },
            expects_continue: self.expects_continue && !is_old,
            body: self.body(method, is_old)?,
            known: self.known,
            bytes,
        })
    }

    fn body(&self, method: Method, is_old: bool) -> Result<Body, RequestError> {
        let body = match (self.length, self.chunked) {
            (Some(_), true) => return Err(RequestError::Malformed),
            (None, true) if is_old => return Err(RequestError::Malformed),
            (None, true) => Body::Chunked,
            (length, false) => Body::Bytes(length.unwrap_or(0)),
        };
        match method {
            Method::Get | Method::Head if body != Body::NONE => Err(RequestError::Malformed),
            Method::Get | Method::Head | Method::Post | Method::Other => Ok(body),
        }
    }
}

/// A header value as text.
fn text(value: &[u8]) -> Result<&str, RequestError> {
    str::from_utf8(value).map_err(|_| RequestError::Malformed)
}

fn once<T>(field: &mut Option<T>, value: T) -> Result<(), RequestError> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(RequestError::Malformed),
    }
}

fn length(value: &str) -> Result<u64, RequestError> {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    value.parse().ok().filter(|_| is_number).ok_or(RequestError::Malformed)
}

/// Some proxies treat `_` and `-` alike.
fn unwanted(name: &str) -> Option<UnwantedHeader> {
    if name.contains('_') {
        UnwantedHeader::named(&name.replace('_', "-"))
    } else {
        UnwantedHeader::named(name)
    }
}

/// A target in absolute form must name the same host as the `Host` header.
fn origin_form<'a>(target: &'a str, host: Option<&str>) -> &'a str {
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let (Some(_), Some(host)) = (scheme, host) else { return target };
    let after = &target[7..];
    let authority_ends = after.find(['/', '?', '#']).unwrap_or(after.len());
    let (authority, rest) = after.split_at(authority_ends);
    if authority.eq_ignore_ascii_case(host) { rest } else { target }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rejection(request: &str) -> Option<RequestError> {
        read(request.as_bytes(), &OwnHosts::default()).err()
    }

    #[test]
    fn known_incarnations_are_read_leniently() {
        let has = |list: &str, incarnation| {
            let mut known = KnownIncarnations::default();
            known.add(list);
            known.has(incarnation)
        };
        for list in ["7", "\"7\"", "W/\"7\"", "w/7", "\"1\", \"7\"", "x,7", "*"] {
            assert!(has(list, 7), "{list}");
        }
        for list in ["", "0", "\"77\"", "seven", "-7", "7.0"] {
            assert!(!has(list, 7), "{list}");
        }
    }

    #[test]
    fn a_head_is_complete_or_waited_for_at_every_byte() {
        let whole =
            "POST /metadata/x?a=b HTTP/1.1\r\nHost: h\r\nMetadata: TRUE\r\nContent-Length: 3\r\n\r\nabc";
        let head_bytes = whole.len() - 3;
        for end in 0..head_bytes {
            assert!(matches!(read(&whole.as_bytes()[..end], &OwnHosts::default()), Ok(None)), "{end}");
        }
        let head = read(whole.as_bytes(), &OwnHosts::default()).expect("well-formed").expect("complete");
        assert_eq!((head.bytes, head.method, head.body), (head_bytes, Method::Post, Body::Bytes(3)));
        assert!(head.metadata && head.connection_mode == ConnectionMode::KeepAlive);
    }

    #[test]
    fn an_absolute_target_names_its_host_twice() {
        let own = "GET http://h/metadata?a=b HTTP/1.1\r\nHost: H\r\n\r\n";
        let head = read(own.as_bytes(), &OwnHosts::default()).expect("well-formed").expect("complete");
        assert_eq!((head.target.path.as_ref(), head.target.parameter("a")), ("/metadata", Some("b")));
        let other = "GET http://evil/metadata HTTP/1.1\r\nHost: h\r\n\r\n";
        assert_eq!(rejection(other), Some(RequestError::Malformed));
    }

    #[test]
    fn each_limit_has_its_error() {
        let line = |length: usize| format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(length - 1));
        assert_eq!(rejection(&line(TARGET_BYTES_MAX)), None);
        assert_eq!(rejection(&line(TARGET_BYTES_MAX + 1)), Some(RequestError::UriTooLong));
        assert_eq!(rejection(&"G".repeat(LINE_BYTES_MAX + 1)), Some(RequestError::UriTooLong));
        let many = |count| format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(count));
        assert_eq!(rejection(&many(HEADERS_MAX - 1)), None);
        assert_eq!(rejection(&many(HEADERS_MAX)), Some(RequestError::HeadersTooLarge));
        let long = format!("GET / HTTP/1.1\r\nHost: h\r\nA: {}", "b".repeat(HEADERS_BYTES_MAX));
        assert_eq!(rejection(&long), Some(RequestError::HeadersTooLarge));
        assert_eq!(rejection(&format!("{long}\r\n\r\n")), Some(RequestError::HeadersTooLarge));
    }
    const WHOLE: &str = "POST /metadata/scheduledevents%3Fapi-version=2020-07-01 HTTP/1.1\r\nHost: 169.254.169.254\r\n\
                         Metadata: true\r\nExpect: 100-continue\r\nIf-None-Match: W/\"1\", *\r\nContent-Length: 3\r\n\r\n";

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            drop(read(&bytes, &OwnHosts::default()));
        }

        #[test]
        fn a_head_that_was_tampered_with_is_read_or_refused_whole(
            at in 0..WHOLE.len(),
            with in proptest::collection::vec(any::<u8>(), 0..4),
            cut in 0..4_usize,
        ) {
            let mut bytes = WHOLE.as_bytes().to_vec();
            bytes.splice(at..(at + cut).min(WHOLE.len()), with);
            if let Ok(Some(head)) = read(&bytes, &OwnHosts::default()) {
                prop_assert!(bytes[..head.bytes].ends_with(b"\r\n\r\n"));
                prop_assert!(head.target.path.starts_with('/') && !head.target.path.contains('\0'));
            }
        }
    }
}
