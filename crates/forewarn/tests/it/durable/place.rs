//! A data directory, and servers on it: one after the other.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::program;
use forewarn_testkit::command::output_of;
use forewarn_testkit::server::dev;
use forewarn_testkit::{TestDir, TestServer};

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
    files: TestDir,
    data: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let files = TestDir::new();
        let data = files.file("data");
        Self::with(files, data)
    }

    /// With a data directory that is somewhere else.
    pub(crate) fn at(data: PathBuf) -> Self {
        Self::with(TestDir::new(), data)
    }

    fn with(files: TestDir, data: PathBuf) -> Self {
        files.write("fleet.toml", FLEET);
        Self { files, data }
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// A file beside the data directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.files.file(name)
    }

    /// `forewarn dev` on this directory, with a clock that stands still unless something else is said.
    pub(crate) fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(program());
        self.say(&mut command, more);
        command
    }

    /// The words of that command, for one that starts it in its own way.
    pub(crate) fn say(&self, command: &mut Command, more: &[&str]) {
        dev(command, &["--metadata-threads", "2"]);
        command.arg("--fleet").arg(self.file("fleet.toml")).arg("--data-dir").arg(&self.data);
        if !more.contains(&"--clock") {
            command.args(["--clock", "frozen", "--clock-start", START]);
        }
        command.args(more);
    }

    pub(crate) fn start(&self) -> TestServer {
        self.start_with(&[])
    }

    pub(crate) fn start_with(&self, more: &[&str]) -> TestServer {
        TestServer::spawn(crate::program(), self.command(more))
    }

    /// Starts it, and does not wait for anything.
    pub(crate) fn launch(&self, more: &[&str]) -> Child {
        let mut command = self.command(more);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the program starts")
    }

    /// Starts it where it cannot go on; gives what it said. A server that runs all the same is ended.
    pub(crate) fn fail(&self) -> Output {
        output_of(&mut self.command(&[]))
    }
}
