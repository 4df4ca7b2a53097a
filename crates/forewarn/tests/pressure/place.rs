//! A server with every kind of listener, and its first token.

use std::fs;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::harness::Server;
use crate::harness::server::program;

const FLEET: &str = "host = [{ name = 'h1' }]\n\
                     vm = [{ name = 'solo', host = 'h1', addresses = ['127.0.0.1', '::1'] }]\n";

/// A directory for the files of one server.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::write(place.path("fleet.toml"), FLEET).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Writes settings: an address and a socket for operators, `more` tables, and no limits for machines.
    pub(crate) fn settings(&self, api: &str, more: &str) -> String {
        let text = format!(
            "in_memory = true\nfleet = {:?}\n[metadata]\nlisten = [{{ address = '127.0.0.1:0' }}]\n\
             limits = {{ enabled = false }}\n[hands]\nkind = 'pretend'\n[api]\nsocket = {:?}\n{api}\n{more}\n",
            self.path("fleet.toml"),
            self.path("api.sock"),
        );
        fs::write(self.path("serve.toml"), text).unwrap();
        self.path("serve.toml")
    }

    /// `forewarn serve`, ready to be started.
    pub(crate) fn serve(&self, api: &str, more: &str) -> Command {
        let mut command = self.forewarn();
        command.args(["serve", "--config", &self.settings(api, more)]);
        command
    }

    /// Starts a server whose operators come by an address and by the socket.
    pub(crate) fn start(&self, more: &str) -> Server {
        Server::spawn(self.serve("listen = '127.0.0.1:0'", more))
    }

    /// The program, without the environment of its user.
    pub(crate) fn forewarn(&self) -> Command {
        let mut command = Command::new(program());
        for name in ["FOREWARN_API", "FOREWARN_TOKEN", "FOREWARN_CA"] {
            command.env_remove(name);
        }
        command.env("XDG_STATE_HOME", self.path("state")).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// A command of an operator through the socket.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        let api = format!("unix:{}", self.path("api.sock"));
        self.forewarn().args(["--api", &api]).args(words).output().unwrap()
    }

    /// The text of a new token.
    pub(crate) fn token(&self) -> String {
        let output = self.run(&["token", "create", "ops", "--role", "admin"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}
