//! Requests of a browser, as bytes over any stream, and a running `forewarn dashboard`.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::ops::Deref;
use std::process::Command;
use std::time::Instant;

use forewarn_testkit::{DEADLINE, RunningCommand};
use serde_json::Value;

/// The header of the page.
pub(crate) const MARK: &str = "Forewarn-Dashboard: 1\r\n";

/// A request. `fields` are whole lines.
#[derive(Clone, Copy, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) line: &'a str,
    pub(crate) host: &'a str,
    pub(crate) fields: &'a str,
    pub(crate) body: &'a str,
}

/// A whole response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Ask<'_> {
    pub(crate) fn bytes(&self) -> String {
        let Self { line, host, fields, body } = self;
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
        };
        format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}{length}\r\n{body}")
    }

    /// Sends it; reads the response to its end.
    pub(crate) fn over(&self, mut stream: impl Read + Write) -> Answer {
        stream.write_all(self.bytes().as_bytes()).unwrap();
        Answer::read(stream)
    }
}

impl Answer {
    /// Reads a response to the end of its connection.
    pub(crate) fn read(mut stream: impl Read) -> Self {
        let mut bytes = Vec::new();
        match stream.read_to_end(&mut bytes) {
            Ok(_) => {}
            // TLS may end without a word.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            Err(error) => panic!("the response does not end: {error}"),
        }
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The cookie that it sets, as a browser sends it.
    pub(crate) fn cookie(&self) -> String {
        let cookie = self.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {}", self.head));
        format!("Cookie: {}\r\n", cookie.split(';').next().unwrap())
    }
}

pub(crate) fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Reads a stream until it contains that. The comments of a stream without events do not prolong the time.
pub(crate) fn read_until(stream: &mut impl Read, wanted: &str) -> String {
    let begin = Instant::now();
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains(wanted) {
        assert!(begin.elapsed() < DEADLINE, "{wanted:?} does not arrive after {text}");
        match stream.read(&mut piece).unwrap_or_else(|error| panic!("{wanted:?}: {error} after {text}")) {
            0 => panic!("{wanted:?}: the stream has ended after {text}"),
            bytes => text += &String::from_utf8_lossy(&piece[..bytes]),
        }
    }
    text
}

/// Reads a stream to its end. The comments of a stream without events do not prolong the time.
pub(crate) fn read_rest(stream: &mut impl Read) {
    let begin = Instant::now();
    let mut text = String::new();
    let mut piece = [0; 4096];
    loop {
        assert!(begin.elapsed() < DEADLINE, "the stream does not end after {text}");
        match stream.read(&mut piece).unwrap_or_else(|error| panic!("{error} after {text}")) {
            0 => break,
            bytes => text += &String::from_utf8_lossy(&piece[..bytes]),
        }
    }
}

/// A running `forewarn dashboard`, with the browser of its user.
pub(crate) struct Dashboard {
    pub(crate) running: RunningCommand,
    pub(crate) code: String,
    pub(crate) browser: Browser,
}

/// A browser that shows the page of a port of this computer.
pub(crate) struct Browser {
    pub(crate) port: u16,
    /// The header with the cookie of the session; empty before.
    pub(crate) cookie: String,
}

impl Dashboard {
    /// Starts it without a browser.
    pub(crate) fn start(command: &mut Command) -> Self {
        let running = RunningCommand::start(command.args(["dashboard", "--no-browser"]));
        let (port, code) = parts(&running.line());
        Self { running, code, browser: Browser { port, cookie: String::new() } }
    }

    /// Starts it, and logs the browser in.
    pub(crate) fn open(command: &mut Command) -> Self {
        let mut dashboard = Self::start(command);
        let answer = dashboard.log_in(&dashboard.code);
        assert_eq!(answer.status, 204, "{answer:?}");
        dashboard.browser.cookie = answer.cookie();
        dashboard
    }
}

impl Deref for Dashboard {
    type Target = Browser;

    fn deref(&self) -> &Browser {
        &self.browser
    }
}

impl Browser {
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn connect(&self) -> TcpStream {
        connect(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))
    }

    /// A request of the page.
    pub(crate) fn ask(&self, line: &str, body: &str) -> Answer {
        self.ask_with(line, &format!("{MARK}Sec-Fetch-Site: same-origin\r\n{}", self.cookie), body)
    }

    /// A request with those header fields.
    pub(crate) fn ask_with(&self, line: &str, fields: &str, body: &str) -> Answer {
        Ask { line, host: &self.host(), fields, body }.over(self.connect())
    }

    pub(crate) fn log_in(&self, code: &str) -> Answer {
        self.ask_with("POST /session", MARK, &format!(r#"{{"code":"{code}"}}"#))
    }
}

/// The port and the code of an address.
pub(crate) fn parts(url: &str) -> (u16, String) {
    let rest = url.strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{url}"));
    let (port, code) = rest.split_once("/#code=").unwrap_or_else(|| panic!("{url}"));
    assert!(code.len() == 64 && code.bytes().all(|byte| byte.is_ascii_hexdigit()), "{url}");
    (port.parse().unwrap(), code.to_owned())
}
