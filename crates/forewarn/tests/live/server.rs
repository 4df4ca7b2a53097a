//! The program itself, as a stage: started for one story and ended with it.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::patience::until;

/// What makes a server a stage.
pub(crate) const STAGE: [&str; 6] =
    ["--fleet", "none", "--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z"];

/// A running `forewarn dev`.
pub(crate) struct Server {
    child: Child,
    api: String,
    _directory: TempDir,
}

fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_forewarn"));
    program.env_remove("FOREWARN_API");
    program
}

impl Server {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("addresses.json");
        let mut command = program();
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "off"]);
        command.args(arguments).arg("--addresses-file").arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().unwrap();
        let api = address_in(&file);
        Self { child, api, _directory: directory }
    }

    /// Plays a story on this server.
    pub(crate) fn play(&self, story: &str) -> Output {
        play(story, &["--live", "--api", &self.api])
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// `forewarn story run` with that story on standard input.
pub(crate) fn play(story: &str, arguments: &[&str]) -> Output {
    let mut command = program();
    command.args(["story", "run", "-"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(story.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// The file is there, and whole, once the server listens.
fn address_in(file: &Path) -> String {
    until("the server listens", || {
        let text = fs::read_to_string(file).unwrap_or_default();
        let addresses = serde_json::from_str::<serde_json::Value>(&text).ok()?;
        Some(addresses["api"].as_str().unwrap().to_owned())
    })
}
