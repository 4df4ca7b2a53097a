//! A server with two clusters of the same names, its tokens, and requests to it.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use forewarn_testkit::{NEWEST, RawResponse, ServeDir, TestServer, ask, clean_command, get, serve_dir};
use serde_json::Value;

/// Two tenants, which share a host.
const FLEET: &str = r#"
host = [{ name = "h1" }, { name = "h2" }, { name = "h3" }]
scale_set = [{ name = "front" }]
availability_set = [
    { name = "web", machine = [{ name = "web_0", host = "h1" }, { name = "web_1", host = "h2" }] },
    { name = "db", machine = [{ name = "db_0", host = "h3" }, { name = "db_1", host = "h2" }] },
]
"#;

serve_dir!(Place);

/// A request of an operator.
#[derive(Clone, Copy, Default)]
pub(crate) struct Request<'a> {
    pub(crate) line: &'a str,
    pub(crate) token: Option<&'a str>,
    /// Whole lines.
    pub(crate) headers: &'a str,
    pub(crate) body: &'a str,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(ServeDir::new(crate::program(), FLEET))
    }

    /// `forewarn serve` on a socket and an address.
    pub(crate) fn start(&self) -> TestServer {
        self.start_with("listen = '127.0.0.1:0'\nsocket = 'DIR/api.sock'", "")
    }

    /// With those settings of the API, and more.
    pub(crate) fn start_with(&self, api: &str, more: &str) -> TestServer {
        self.0.start(&format!(
            "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\n[api]\n{api}\n[driver]\nkind = 'simulated'\n{more}\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'web_0'\n\
             [[metadata.listen]]\nsocket = 'DIR/db.sock'\nmachine = 'db_0'\n"
        ))
    }

    /// A cluster `west` with the same fleet.
    pub(crate) fn add_west(&self) {
        self.out(&["cluster", "create", "west"]);
        self.out(&["--cluster", "west", "fleet", "apply", &self.path("fleet.toml")]);
    }

    /// Enrols both tenants of the first cluster.
    pub(crate) fn enrol(&self, server: &TestServer) {
        server.say(&get(NEWEST));
        let mut stream = UnixStream::connect(self.path("db.sock")).unwrap();
        stream.write_all(get(NEWEST).as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}

pub(crate) fn forewarn() -> Command {
    clean_command(crate::program())
}

impl Request<'_> {
    pub(crate) fn bytes(&self) -> String {
        let Self { line, token, headers, body } = self;
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
        };
        format!("{line} HTTP/1.1\r\nHost: localhost\r\n{token}{headers}{length}\r\n{body}")
    }

    pub(crate) fn send(&self, server: &TestServer) -> RawResponse {
        ask(server.api(), &self.bytes()).unwrap_or_else(|problem| panic!("{}: {problem}", self.line))
    }
}

/// The response to a GET with a token.
pub(crate) fn read(server: &TestServer, token: &str, target: &str) -> RawResponse {
    Request { line: &format!("GET {target}"), token: Some(token), ..Request::default() }.send(server)
}

/// The response to a command with a token.
pub(crate) fn order(server: &TestServer, token: &str, body: &str) -> RawResponse {
    Request { line: "POST /v1/commands", token: Some(token), body, ..Request::default() }.send(server)
}

pub(crate) fn json(answer: &RawResponse) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|problem| panic!("{problem}: {answer:?}"))
}
