//! Clients of others, unmodified, at the address that is written into them.
//!
//! Every test makes network namespaces of its own: one for the program, which listens on 169.254.169.254 port 80 there, and one
//! for each machine. That takes root, `ip` and packages of Debian, so these tests are ignored unless they are asked for;
//! `cargo xtask test` installs what they need and asks for them, or says why it cannot.

mod curl;
pub(crate) mod pacemaker;
mod python;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use crate::program;
use forewarn_testkit::network::{METADATA, Network, address};
use forewarn_testkit::{TestServer, wait_until};

/// A data centre on the real clock: `db-0` and `db-1` are an availability set, `solo` is alone. What is done to a machine is
/// done when the test says so.
struct Centre {
    /// Ends before the network it is in.
    server: TestServer,
    network: Network,
    files: TempDir,
}

/// The numbers of the machines in the network.
const DB_0: usize = 0;
const DB_1: usize = 1;
const SOLO: usize = 2;
/// In the network, but not in the fleet.
const STRANGER: usize = 3;

impl Centre {
    fn start() -> Self {
        Self::start_answering("now")
    }

    fn start_answering(first_answer: &str) -> Self {
        let network = Network::of(4);
        let files = TempDir::new().unwrap();
        let write = |name: &str, text: String| {
            let file = files.path().join(name);
            fs::write(&file, text).unwrap();
            file
        };
        let fleet = write("fleet.toml", fleet_text());
        let hands = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/endpoint/real_clients/hands");
        let config = format!(
            "fleet = {fleet:?}\n\
             metadata = {{ listen = [{{ address = \"{METADATA}:80\" }}], first_answer = \"{first_answer}\" }}\n\
             api = {{ socket = {:?} }}\n\
             in_memory = true\n\
             driver = {{ kind = \"program\", program = {hands:?} }}\n",
            files.path().join("api.sock"),
        );
        let mut command = network.host().command(program());
        command.arg("serve").arg("--config").arg(write("config.toml", config));
        command.env("HANDS", files.path());
        let server = TestServer::spawn(crate::program(), command);
        Self { server, network, files }
    }

    /// A line for the shell, inside a machine.
    fn shell(&self, machine: usize, line: &str) -> String {
        self.network.machine(machine).shell(line)
    }

    fn command(&self, machine: usize, program: impl AsRef<OsStr>) -> Command {
        self.network.machine(machine).command(program)
    }

    /// Where the event that names a machine stands, asked in one go: it may be over a moment later. Nobody is enrolled by it.
    fn event_status(&self, machine: &str) -> String {
        let events = self.server.json(&["event", "ls"]);
        let mut events = events["items"].as_array().expect("a list").iter();
        let event = events.find(|event| event["resources"] == json!([machine]));
        event.map_or("gone", |event| event["status"].as_str().expect("a status")).to_owned()
    }

    /// Lets what is being done to a machine come to its end.
    fn finish(&self, machine: &str) {
        assert_eq!(self.event_status(machine), "Started");
        File::create(self.files.path().join(machine)).unwrap();
        wait_until("the event is over", || (self.event_status(machine) == "gone").then_some(()));
    }
}

fn fleet_text() -> String {
    let [db_0, db_1, solo] = [0, 1, 2].map(address);
    format!(
        r#"
host = [{{ name = "h1" }}, {{ name = "h2" }}, {{ name = "h3" }}, {{ name = "h4" }}]
vm = [{{ name = "solo", host = "h3", addresses = ["{solo}"] }}]

[[availability_set]]
name = "db"
machine = [
    {{ name = "db-0", host = "h1", update_domain = 0, addresses = ["{db_0}"] }},
    {{ name = "db-1", host = "h2", update_domain = 1, addresses = ["{db_1}"] }},
]
"#
    )
}
