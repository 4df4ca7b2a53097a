//! Connections of a client that means no good, and requests of one that does.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use forewarn_testkit::DEADLINE;

/// A header that never ends.
pub(crate) const INCOMPLETE: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";

/// A stream that an attack holds.
pub(crate) trait Held: Read + Write {}
impl<T: Read + Write> Held for T {}

/// Lets this process have as many connections as an attack needs.
pub(crate) fn take_descriptors() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// Connections that each have sent those bytes. One that the server closes meanwhile is kept all the same.
pub(crate) fn hold(at: SocketAddr, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    take_descriptors();
    let open = |_| {
        let mut stream = connect(at);
        stream.write_all(bytes).ok();
        stream
    };
    (0..count).map(open).collect()
}

/// The same through a Unix socket.
pub(crate) fn hold_socket(path: &str, count: usize, bytes: &[u8]) -> Vec<UnixStream> {
    take_descriptors();
    let open = |_| {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.write_all(bytes).ok();
        stream
    };
    (0..count).map(open).collect()
}

pub(crate) fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// A request of an operator, with a token.
pub(crate) fn request(target: &str, token: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n")
}

/// The next answer on a stream: its head and its body.
pub(crate) fn answer(stream: &mut dyn Held) -> io::Result<(String, String)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok((head, String::from_utf8(body).unwrap()))
}

/// The status of the response to a request, on a connection of its own.
pub(crate) fn ask(at: SocketAddr, bytes: &str) -> u16 {
    forewarn_testkit::ask(at, bytes).unwrap().status()
}

pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The value of a metric, added up over all of its labels that contain a text.
pub(crate) fn metric(at: SocketAddr, token: &str, name: &str, labels: &str) -> f64 {
    let text = forewarn_testkit::ask(at, &request("/metrics", token)).unwrap().body;
    let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(labels));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}
