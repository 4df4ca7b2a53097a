//! `forewarn serve` in a directory, on the real clock, with machines in the hands of a program.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;

use crate::program;
use forewarn_testkit::{NEWEST, ServeDir, TestServer, get, serve_dir};

/// One host that carries two machines of one tenant: one event, two effects.
const FLEET: &str = r#"
host = [{ name = "h1" }]

[[cloud_service]]
name = "shop"
machine = [{ name = "front", host = "h1", update_domain = 0 }, { name = "back", host = "h1", update_domain = 0 }]
"#;

const CONFIG: &str = "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\napi = { socket = 'DIR/api.sock' }\n\
    metadata = { listen = [{ address = '127.0.0.1:0', machine = 'front' }], limits = { enabled = false } }\n\
    driver = { kind = 'program', program = 'DIR/hands' }\n";

/// Both of them.
pub(crate) const MACHINES: [&str; 2] = ["front", "back"];

serve_dir!(Site);

impl Site {
    pub(crate) fn new() -> Self {
        Self::with_fleet(FLEET, MACHINES[0])
    }

    /// A server with that fleet, and a listener for that machine.
    pub(crate) fn with_fleet(fleet: &str, machine: &str) -> Self {
        let site = Self(ServeDir::new(program(), fleet));
        site.0.configure("config.toml", &CONFIG.replace("'front'", &format!("'{machine}'")));
        site
    }

    /// Installs the driver program.
    pub(crate) fn bring_hands(&self) {
        let hands = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/durable/hands");
        symlink(hands, self.file("hands")).unwrap();
    }

    /// Installs a driver program: a shell script without its first line.
    pub(crate) fn bring_program(&self, script: &str) {
        self.script("hands", script);
    }

    /// Adds settings.
    pub(crate) fn configure(&self, more: &str) {
        self.write("config.toml", &(self.read("config.toml") + more));
    }

    /// Removes the driver program.
    pub(crate) fn take_hands(&self) {
        fs::remove_file(self.file("hands")).unwrap();
    }

    pub(crate) fn start(&self) -> TestServer {
        self.start_through(&[])
    }

    /// Starts it by means of another command.
    pub(crate) fn start_through(&self, words: &[&str]) -> TestServer {
        let mut words: Vec<_> = words.iter().map(OsString::from).chain([program()]).collect();
        let mut command = Command::new(words.remove(0));
        command.args(words).arg("serve").arg("--config").arg(self.file("config.toml"));
        command.env("HANDS", self.root());
        TestServer::spawn(crate::program(), command)
    }
}

/// The document of the tenant.
pub(crate) fn document(server: &TestServer) -> Value {
    let answer = server.say(&get(NEWEST));
    assert_eq!(answer.status(), 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("a document is JSON")
}
