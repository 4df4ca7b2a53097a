//! A data directory, and servers on it: one after the other.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use forewarn_types::Moment;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::server::program;
use crate::harness::{Answer, PATIENCE, Server, ask, request};

/// The machines of the fleet that are tenants of their own.
pub(crate) const MACHINES: [&str; 4] = ["vm-0", "vm-1", "vm-2", "vm-3"];

/// What the clock shows at first.
const START: &str = "2026-01-01T00:00:00Z";

/// More hosts than machines: whoever must leave has somewhere to go.
const FLEET: &str = r#"
host = [{ name = "h0" }, { name = "h1" }, { name = "h2" }, { name = "h3" }, { name = "h4" }, { name = "h5" }]
vm = [
    { name = "vm-0", host = "h0", addresses = ["10.0.0.10"], tags = { written = "0" } },
    { name = "vm-1", host = "h1", addresses = ["10.0.0.11"], tags = { written = "0" } },
    { name = "vm-2", host = "h2", addresses = ["10.0.0.12"], tags = { written = "0" } },
    { name = "vm-3", host = "h3", addresses = ["10.0.0.13"], tags = { written = "0" } },
]

[site]
location = "north"
subscription = "00000000-0000-0000-0000-000000000001"
resource_group = "durable"
"#;

/// Somewhere to keep things. What is there outlives the servers on it.
pub(crate) struct Place {
    files: TempDir,
    data: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let files = TempDir::new().unwrap();
        let data = files.path().join("data");
        Self::with(files, data)
    }

    /// With a data directory that is somewhere else.
    pub(crate) fn at(data: PathBuf) -> Self {
        Self::with(TempDir::new().unwrap(), data)
    }

    fn with(files: TempDir, data: PathBuf) -> Self {
        fs::write(files.path().join("fleet.toml"), FLEET).unwrap();
        Self { files, data }
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// A file beside the data directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// `forewarn dev` on this directory, with a clock that stands still unless something else is said.
    pub(crate) fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(program());
        self.say(&mut command, more);
        command
    }

    /// The words of that command, for one that starts it in its own way.
    pub(crate) fn say(&self, command: &mut Command, more: &[&str]) {
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "off", "--metadata-threads", "2"]);
        command.arg("--fleet").arg(self.file("fleet.toml")).arg("--data-dir").arg(&self.data);
        if !more.contains(&"--clock") {
            command.args(["--clock", "frozen", "--clock-start", START]);
        }
        command.args(more);
    }

    pub(crate) fn start(&self) -> Server {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, more: &[&str]) -> Server {
        Server::spawn(self.command(more))
    }

    /// Starts it, and does not wait for anything.
    pub(crate) fn launch(&self, more: &[&str]) -> Child {
        let mut command = self.command(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    }

    /// Starts it where it cannot go on; gives what it said. A server that runs all the same is ended.
    pub(crate) fn fail(&self) -> Output {
        let mut command = self.command(&[]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let begin = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if begin.elapsed() > PATIENCE {
                child.kill().unwrap();
                panic!("it runs: {:?}", child.wait_with_output());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.wait_with_output().unwrap()
    }
}

/// What an operator is answered by somebody who may be gone at any moment.
pub(crate) fn read(api: SocketAddr, path: &str) -> io::Result<Answer> {
    ask(api, &format!("GET {path} HTTP/1.1\r\nHost: {api}\r\n\r\n"))
}

/// What an operator is answered to JSON.
pub(crate) fn write(api: SocketAddr, path: &str, body: &Value) -> io::Result<Answer> {
    let body = body.to_string();
    let fields = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    ask(api, &(request(&format!("POST {path}"), &fields) + &body))
}

/// What an answer says, if it is a good one.
pub(crate) fn value(answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("JSON")
}

/// Milliseconds that a clock shows in an answer.
pub(crate) fn millis(clock: &Value) -> i64 {
    let Moment(now) = clock["now"].as_str().and_then(|text| text.parse().ok()).expect("a moment");
    now.millis()
}

/// Sets a clock forward that stands still; gives what it shows.
pub(crate) fn advance(server: &Server, span: &str) -> i64 {
    millis(&value(&write(server.api(), "/v1/clock", &json!({"clock": "advance", "by": span})).unwrap()))
}

pub(crate) fn clock(server: &Server) -> i64 {
    millis(&value(&read(server.api(), "/v1/clock").unwrap()))
}

/// A machine as operators see it.
pub(crate) fn machine(server: &Server, name: &str) -> Value {
    value(&read(server.api(), &format!("/v1/machines/{name}")).unwrap())
}
