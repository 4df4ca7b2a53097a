//! A directory with everything that a server needs, and the program itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::authority::Leaf;

const FLEET: &str = "host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]\n";

pub(crate) struct Place(TempDir);

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        place.write("fleet.toml", FLEET);
        place
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// From now on, that is what the server finds.
    pub(crate) fn certificate(&self, leaf: &Leaf) {
        self.write("certificate.pem", &leaf.certificate);
        self.write("key.pem", &leaf.key);
        fs::set_permissions(self.path("key.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Settings that name that certificate.
    pub(crate) fn tls(&self, listen: &str) -> String {
        let (certificate, key) = (self.path("certificate.pem"), self.path("key.pem"));
        format!("listen = '{listen}'\ntls = {{ certificate = {certificate:?}, key = {key:?} }}")
    }

    /// Writes settings; gives their file.
    pub(crate) fn config(&self, api: &str, more: &str) -> String {
        let text = format!(
            "data_dir = {:?}\nfleet = {:?}\n[api]\n{api}\n[hands]\nkind = 'pretend'\n{more}\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n",
            self.path("data"),
            self.path("fleet.toml"),
        );
        self.write("config.toml", &text);
        self.path("config.toml")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forewarn"));
        for name in ["FOREWARN_API", "FOREWARN_TOKEN", "FOREWARN_CA"] {
            command.env_remove(name);
        }
        command.env("NO_COLOR", "1").stdin(Stdio::null()).current_dir(self.0.path());
        command
    }

    pub(crate) fn forewarn(&self, words: &[&str]) -> Ran {
        let output = self.command().args(words).output().unwrap();
        Ran { code: output.status.code(), err: String::from_utf8(output.stderr).unwrap() }
    }
}
