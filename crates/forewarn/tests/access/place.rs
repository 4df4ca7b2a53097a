//! A server with two clusters of the same names, its tokens, and a way to ask it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::server::program;
use crate::harness::{Answer, NEWEST, Server, ask, get};

/// Two tenants, which share a host.
const FLEET: &str = r#"
host = [{ name = "h1" }, { name = "h2" }, { name = "h3" }]
scale_set = [{ name = "front" }]
availability_set = [
    { name = "web", machine = [{ name = "web_0", host = "h1" }, { name = "web_1", host = "h2" }] },
    { name = "db", machine = [{ name = "db_0", host = "h3" }, { name = "db_1", host = "h2" }] },
]
"#;

/// Somewhere to keep things. What is there outlives the servers on it.
pub(crate) struct Place(TempDir);

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
        let place = Self(TempDir::new().unwrap());
        fs::write(place.path("fleet.toml"), FLEET).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// `forewarn serve` on a socket and an address.
    pub(crate) fn start(&self) -> Server {
        let socket = self.path("api.sock");
        self.start_with(&format!("listen = '127.0.0.1:0'\nsocket = {socket:?}"), "")
    }

    /// With those settings of the API, and more.
    pub(crate) fn start_with(&self, api: &str, more: &str) -> Server {
        let text = format!(
            "data_dir = {:?}\nfleet = {:?}\n[api]\n{api}\n[hands]\nkind = 'pretend'\n{more}\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'web_0'\n\
             [[metadata.listen]]\nsocket = {:?}\nmachine = 'db_0'\n",
            self.path("data"),
            self.path("fleet.toml"),
            self.path("db.sock"),
        );
        fs::write(self.path("config.toml"), text).unwrap();
        let mut command = Command::new(program());
        command.args(["serve", "--config", &self.path("config.toml")]);
        Server::spawn(command)
    }

    /// A cluster `west` with the same fleet.
    pub(crate) fn add_west(&self) {
        self.out(&["cluster", "create", "west"]);
        self.out(&["--cluster", "west", "fleet", "apply", &self.path("fleet.toml")]);
    }

    /// A command through the socket, which has to succeed. Gives what it prints.
    pub(crate) fn out(&self, words: &[&str]) -> String {
        let output = self.run(words);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?} failed: {err}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let api = format!("unix:{}", self.path("api.sock"));
        forewarn().args(["--api", &api]).args(words).output().unwrap()
    }

    /// Issues a token, by the words that follow `token create`.
    pub(crate) fn token(&self, words: &str) -> String {
        let words: Vec<_> = ["token", "create"].into_iter().chain(words.split(' ')).collect();
        let text = self.out(&words).trim_end().to_owned();
        assert!(text.starts_with("fwt_") && !text.contains('\n'), "the text and nothing else: {text}");
        text
    }

    /// Makes both tenants of the first cluster be told of events.
    pub(crate) fn enrol(&self, server: &Server) {
        server.say(&get(NEWEST));
        let mut stream = UnixStream::connect(self.path("db.sock")).unwrap();
        stream.write_all(get(NEWEST).as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}

/// The program, without what is in the environment.
pub(crate) fn forewarn() -> Command {
    let mut command = Command::new(program());
    for name in ["FOREWARN_API", "FOREWARN_TOKEN", "FOREWARN_CA", "FOREWARN_CLUSTER"] {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").stdin(Stdio::null());
    command
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

    pub(crate) fn send(&self, server: &Server) -> Answer {
        ask(server.api(), &self.bytes()).unwrap_or_else(|problem| panic!("{}: {problem}", self.line))
    }
}

/// What is at a path, for the holder of a token.
pub(crate) fn read(server: &Server, token: &str, target: &str) -> Answer {
    Request { line: &format!("GET {target}"), token: Some(token), ..Request::default() }.send(server)
}

/// What comes of a command.
pub(crate) fn order(server: &Server, token: &str, body: &str) -> Answer {
    Request { line: "POST /v1/commands", token: Some(token), body, ..Request::default() }.send(server)
}

pub(crate) fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|problem| panic!("{problem}: {answer:?}"))
}
