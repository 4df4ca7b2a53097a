//! Requests of operators as bytes, over the socket of a server, and polls of guests, each on its own connection with a
//! time limit.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time after which an operator tries another server. One that is stopped does not answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Time for long answers.
const LONG_ANSWER_TIME: Duration = Duration::from_secs(30);

/// The same for a guest: longer than a running server needs on a busy computer.
const POLL_TIME: Duration = Duration::from_secs(10);

/// The largest answer.
const ANSWER_MAX: u64 = 64 << 20;

#[derive(Clone, Debug)]
pub(crate) struct ApiRequest {
    bytes: String,
}

#[derive(Debug)]
pub(crate) struct ApiAnswer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl ApiRequest {
    pub(crate) fn get(target: &str) -> Self {
        Self { bytes: format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") }
    }

    /// A command about a host or a machine. Its key is that of its subject: it is carried out once, however often it is
    /// sent.
    pub(crate) fn command(name: &str, subject: &str) -> Self {
        Self::keyed_command(name, subject, &format!("{name}-{subject}"))
    }

    pub(crate) fn keyed_command(name: &str, subject: &str, key: &str) -> Self {
        let member = match name {
            "admit_host" => "name",
            "remove_host" => "host",
            _ => "machine",
        };
        let body = format!(r#"{{"command":"{name}","{member}":"{subject}"}}"#);
        let length = body.len();
        Self {
            bytes: format!(
                "POST /v1/commands HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nIdempotency-Key: {key}\r\n\
                 Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            ),
        }
    }
}

/// Sends a request of an operator to a server.
pub(crate) fn ask(socket: &Path, request: &ApiRequest) -> io::Result<ApiAnswer> {
    ask_for(ANSWER_TIME, socket, request)
}

/// The same for a long answer.
pub(crate) fn ask_patiently(socket: &Path, request: &ApiRequest) -> io::Result<ApiAnswer> {
    ask_for(LONG_ANSWER_TIME, socket, request)
}

fn ask_for(time: Duration, socket: &Path, request: &ApiRequest) -> io::Result<ApiAnswer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(time))?;
    stream.set_write_timeout(Some(time))?;
    exchange(stream, &request.bytes)
}

/// Sends the request of a guest.
pub(crate) fn ask_metadata(at: SocketAddr, request: &str) -> io::Result<ApiAnswer> {
    let stream = TcpStream::connect_timeout(&at, POLL_TIME)?;
    stream.set_read_timeout(Some(POLL_TIME))?;
    exchange(stream, request)
}

fn exchange(mut stream: impl Read + Write, request: &str) -> io::Result<ApiAnswer> {
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut bytes)?;
    parse(&bytes).ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "not a whole answer"))
}

/// None if the connection has ended before the answer.
fn parse(bytes: &[u8]) -> Option<ApiAnswer> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let body = &bytes[end + 4..];
    let field = |wanted: &str| {
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
    };
    let body = match field("transfer-encoding") {
        Some(_) => unchunked(body)?,
        None => {
            let length = field("content-length").map_or(Some(0), |length| length.parse().ok())?;
            body.get(..length)?.to_vec()
        }
    };
    Some(ApiAnswer { status, body: String::from_utf8(body).ok()? })
}

/// The body of an answer in chunks; none if the last one is missing.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.extend(rest.get(end + 2..end + 2 + length)?);
        rest = rest.get(end + 2 + length + 2..)?;
    }
}
