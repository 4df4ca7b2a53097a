//! HTTP as bytes. An HTTP library would hide what the tests are about.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::DEADLINE;

/// The path of the events in the newest edition.
pub const NEWEST: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// A TCP connection.
pub struct RawConnection(TcpStream);

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub struct RawResponse {
    /// Status line and header fields.
    pub head: String,
    pub body: String,
}

/// A request without a body. `fields` are whole lines.
pub fn request(line: &str, fields: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: 169.254.169.254\r\n{fields}\r\n")
}

/// A proper GET.
pub fn get(target: &str) -> String {
    request(&format!("GET {target}"), "Metadata: true\r\n")
}

/// A proper POST.
pub fn post(target: &str, body: &str) -> String {
    let fields = format!("Metadata: true\r\nContent-Length: {}\r\n", body.len());
    request(&format!("POST {target}"), &fields) + body
}

/// The body that approves these events.
pub fn approve(ids: &[&str]) -> String {
    let ids: Vec<_> = ids.iter().map(|id| format!(r#"{{"EventId":"{id}"}}"#)).collect();
    format!(r#"{{"StartRequests":[{}]}}"#, ids.join(","))
}

/// Sends bytes over a new connection; gives the response, or the error if the server ends meanwhile.
pub fn ask(at: SocketAddr, bytes: &str) -> io::Result<RawResponse> {
    let mut line = RawConnection::try_connect(at)?;
    line.0.write_all(bytes.as_bytes())?;
    line.try_answer()
}

impl RawConnection {
    pub fn connect(at: SocketAddr) -> Self {
        Self::try_connect(at).expect("the port is open")
    }

    fn try_connect(at: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }

    pub fn send(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).expect("the connection is open");
    }

    /// Says that nothing more will be sent.
    pub fn end(&mut self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }

    /// One answer, and not a byte more.
    pub fn answer(&mut self) -> RawResponse {
        self.try_answer().unwrap_or_else(|problem| panic!("no answer: {problem}"))
    }

    fn try_answer(&mut self) -> io::Result<RawResponse> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            let read = self.0.read_exact(&mut byte);
            read.map_err(|problem| {
                let read = String::from_utf8_lossy(&head);
                io::Error::new(problem.kind(), format!("{problem} after {read:?}"))
            })?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let mut body = vec![0; length(&head)];
        self.0.read_exact(&mut body)?;
        Ok(RawResponse { head, body: String::from_utf8(body).unwrap() })
    }

    /// Whatever comes until the connection is closed.
    pub fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A closed connection may also be reset; one that stays open is a failure.
        if let Err(problem) = self.0.read_to_end(&mut rest) {
            assert_eq!(problem.kind(), std::io::ErrorKind::ConnectionReset, "the connection stays open");
        }
        String::from_utf8(rest).unwrap()
    }
}

fn length(head: &str) -> usize {
    let fields = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("Content-Length"));
    lengths.next().map_or(0, |(_, length)| length.parse().unwrap())
}

impl RawResponse {
    pub fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// Status and body.
    pub fn short(&self) -> (u16, &str) {
        (self.status(), &self.body)
    }
}
