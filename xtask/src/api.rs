//! `cargo xtask api`: requests that nobody thought of, put to the operator API by what its own document says.
//!
//! schemathesis reads `/v1/openapi.json` of a server that was started for it, makes requests that are right, wrong and nearly
//! right, follows the links from one to the next, and holds every answer against the document: no failure of the server, no
//! answer that is not documented, nothing wrong accepted, nothing right refused.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::steps::{Outcome, built_program, cargo, status};
use crate::tools::find_or_install_schemathesis;
use crate::tree;

/// Where the settings of the program are.
const SETTINGS: &str = "xtask/api";

/// Cases of each operation; ways along the links, at most.
const CASES: &str = "30";
const WAYS: &str = "100";

/// Each seed takes other ways.
const SEED: &str = "7";
const SEEDS_OF_WAYS: [&str; 6] = ["7", "8", "9", "10", "11", "12"];

/// One run, however slow the computer is; usually it takes some twenty seconds.
const RUN_TIME_MAX: Duration = Duration::from_secs(180);
const READY_TIME_MAX: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_millis(10);

/// Machines that ask once, so that their tenants are told of events.
const ENROLLED: [&str; 4] = ["solo", "web_0", "db-0", "batch_0"];

/// What is under way when it begins. The brake holds it, however far the clock is set.
const UNDER_WAY: [&[&str]; 4] = [
    &["brake", "on"],
    &["vm", "restart", "solo"],
    &["host", "update", "h1", "h2", "h3"],
    &["host", "migrate", "h4", "h5"],
];

pub(crate) fn command() -> Result<Outcome> {
    let schemathesis = match find_or_install_schemathesis() {
        Ok(program) => program,
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let mut build = cargo();
    build.current_dir(tree::root()?).args([
        "build",
        "--package",
        "forewarn",
        "--bin",
        "forewarn",
        "--locked",
    ]);
    let program = built_program(&mut build)?;
    let attempt = |phases, examples, seed| {
        // One of its own: what was tried before may have left nothing of the fleet.
        let server = Server::start(&program)?;
        server.prepare(&program)?;
        let settings = tree::root()?.join(SETTINGS);
        let mut run = Command::new(&schemathesis);
        run.arg("--config-file").arg(settings.join("schemathesis.toml"));
        run.args(["run", &format!("{}/v1/openapi.json", server.api), "--checks", "all", "--no-color"]);
        run.args(["--phases", phases, "--max-examples", examples, "--seed", seed]);
        run.args(["--generation-database", "none", "--warnings", "off"]);
        if phases == "stateful" {
            run.env("PYTHONPATH", settings)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env("SCHEMATHESIS_HOOKS", phases);
        }
        status_in_time(run.current_dir(server.directory.path()).stdin(Stdio::null()))
    };
    let mut outcome = attempt("coverage,fuzzing", CASES, SEED)?;
    for seed in SEEDS_OF_WAYS {
        if outcome == Outcome::Passed {
            outcome = attempt("stateful", WAYS, seed)?;
        }
    }
    Ok(outcome)
}

/// Runs a program to its end, or to the end of patience.
fn status_in_time(command: &mut Command) -> Result<Outcome> {
    let mut child = command.spawn().context("cannot run schemathesis")?;
    let begin = Instant::now();
    while begin.elapsed() < RUN_TIME_MAX {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(Outcome::Passed),
            Some(status) => return Ok(Outcome::Failed(status.to_string())),
            None => std::thread::sleep(PATIENCE),
        }
    }
    child.kill().and_then(|()| child.wait()).context("cannot end schemathesis")?;
    Ok(Outcome::Failed(format!("not over after {} seconds", RUN_TIME_MAX.as_secs())))
}

/// A server with the demo fleet, on a clock that stands still; it ends with this.
struct Server {
    child: Child,
    api: String,
    metadata: String,
    directory: TempDir,
}

impl Server {
    fn start(program: &Path) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let file = directory.path().join("addresses.json");
        let mut command = Command::new(program);
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z", "--seed", "7"]);
        command.arg("--addresses-file").arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot run forewarn")?;
        let mut server = Self { child, api: String::new(), metadata: String::new(), directory };
        (server.api, server.metadata) = server.addresses(&file)?;
        Ok(server)
    }

    /// The file appears when everything listens.
    fn addresses(&mut self, file: &Path) -> Result<(String, String)> {
        let begin = Instant::now();
        while begin.elapsed() < READY_TIME_MAX {
            if let Ok(text) = std::fs::read_to_string(file) {
                let addresses: Value = serde_json::from_str(&text)?;
                let address = |of: &str| addresses[of].as_str().map(str::to_owned).context("no address");
                return Ok((address("api")?, address("metadata")?));
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("forewarn has ended: {status}");
            }
            std::thread::sleep(PATIENCE);
        }
        bail!("forewarn does not get ready")
    }

    /// Something to find: tenants that are enrolled, and work that is announced.
    fn prepare(&self, program: &Path) -> Result<()> {
        for machine in ENROLLED {
            self.poll(machine)?;
        }
        for words in UNDER_WAY {
            let mut command = Command::new(program);
            command.args(words).args(["--api", &self.api]).stdout(Stdio::null()).stderr(Stdio::null());
            let outcome = status(&mut command)?;
            ensure!(outcome == Outcome::Passed, "forewarn {}: {outcome:?}", words.join(" "));
        }
        Ok(())
    }

    fn poll(&self, machine: &str) -> Result<()> {
        let address = self.metadata.trim_start_matches("http://").trim_end_matches('/');
        let at: SocketAddr = address.parse().context("not an address")?;
        let mut stream = TcpStream::connect_timeout(&at, READY_TIME_MAX)?;
        let path = format!("/vm/{machine}/metadata/scheduledevents?api-version=2020-07-01");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\nMetadata: true\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(64 * 1024).read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{machine} is not answered: {answer}");
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nobody to stop.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
