//! Clients of others, unmodified, at the address that is written into them.
//!
//! Every test makes network namespaces of its own: one for the program, which listens on 169.254.169.254 port 80 there, and one
//! for each machine. That takes root, `ip` and packages of Debian, so these tests are ignored unless they are asked for;
//! `cargo xtask test` installs what they need and asks for them, or says why it cannot.

mod curl;
mod network;
mod pacemaker;
mod python;

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::Server;
use crate::harness::server::{FROZEN, program};
use network::{METADATA, Network, address};

/// A data centre: `db-0` and `db-1` are an availability set, `solo` is alone.
struct Centre {
    /// Ends before the network it is in.
    server: Server,
    network: Network,
    _files: TempDir,
}

/// The numbers of the machines in the network.
const DB_0: usize = 0;
const DB_1: usize = 1;
const SOLO: usize = 2;
/// In the network, but not in the fleet.
const STRANGER: usize = 3;

impl Centre {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(more: &[&str]) -> Self {
        let network = Network::of(4);
        let files = TempDir::new().unwrap();
        let fleet = files.path().join("fleet.toml");
        fs::write(&fleet, fleet_text()).unwrap();
        let mut command = network.host().command(program());
        command.args(["dev", "--metadata-listen", &format!("{METADATA}:80"), "--api-listen", "127.0.0.1:0"]);
        command.arg("--i-know-this-is-open").arg("--fleet").arg(&fleet).args(FROZEN).args(more);
        let server = Server::spawn_in(command, network.host().prefix());
        Self { server, network, _files: files }
    }

    /// A line for the shell, inside a machine.
    fn shell(&self, machine: usize, line: &str) -> String {
        self.network.machine(machine).shell(line)
    }

    fn command(&self, machine: usize, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.network.machine(machine).command(program)
    }
}

fn fleet_text() -> String {
    let [db_0, db_1, solo] = [0, 1, 2].map(address);
    format!(
        r#"
host = [{{ name = "h1" }}, {{ name = "h2" }}, {{ name = "h3" }}]
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
