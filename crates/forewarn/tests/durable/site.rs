//! `forewarn serve` in a directory, on the real clock, with machines in the hands of a program.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::server::program;
use crate::harness::{NEWEST, Server, get};

/// One host that carries two machines of one tenant: one event, two effects.
const FLEET: &str = r#"
host = [{ name = "h1" }]

[[cloud_service]]
name = "shop"
machine = [{ name = "front", host = "h1", update_domain = 0 }, { name = "back", host = "h1", update_domain = 0 }]
"#;

/// Both of them.
pub(crate) const MACHINES: [&str; 2] = ["front", "back"];

/// Where the server keeps everything, and the program its effects.
pub(crate) struct Site {
    files: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let site = Self { files: TempDir::new().unwrap() };
        fs::write(site.file("fleet.toml"), FLEET).unwrap();
        let config = format!(
            "data_dir = {:?}\nfleet = {:?}\napi = {{ socket = {:?} }}\n\
             metadata = {{ listen = [{{ address = \"127.0.0.1:0\", machine = \"front\" }}], limits = {{ enabled = false }} }}\n\
             hands = {{ kind = \"program\", program = {:?} }}\n",
            site.file("data"),
            site.file("fleet.toml"),
            site.file("api.sock"),
            site.file("hands"),
        );
        fs::write(site.file("config.toml"), config).unwrap();
        site
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// From now on there are hands.
    pub(crate) fn bring_hands(&self) {
        let hands = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/durable/hands");
        symlink(hands, self.file("hands")).unwrap();
    }

    /// Installs a driver program: a shell script without its first line.
    pub(crate) fn bring_program(&self, script: &str) {
        let path = self.file("hands");
        fs::write(&path, format!("#!/bin/sh\n{script}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Adds settings to the file of settings.
    pub(crate) fn configure(&self, more: &str) {
        let config = fs::read_to_string(self.file("config.toml")).unwrap();
        fs::write(self.file("config.toml"), config + more).unwrap();
    }

    /// From now on there are none.
    pub(crate) fn take_hands(&self) {
        fs::remove_file(self.file("hands")).unwrap();
    }

    pub(crate) fn start(&self) -> Server {
        self.start_through(&[])
    }

    /// Starts it by means of another command.
    pub(crate) fn start_through(&self, words: &[&str]) -> Server {
        let mut words: Vec<_> = words.iter().map(OsString::from).chain([program()]).collect();
        let mut command = Command::new(words.remove(0));
        command.args(words).arg("serve").arg("--config").arg(self.file("config.toml"));
        command.env("HANDS", self.files.path());
        Server::spawn(command)
    }
}

/// The document of the tenant.
pub(crate) fn document(server: &Server) -> Value {
    let answer = server.say(&get(NEWEST));
    assert_eq!(answer.status(), 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("a document is JSON")
}
