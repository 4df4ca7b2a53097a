//! The tested server: two clusters with the same fleet, and pending work.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::steps::{Outcome, status};
use crate::tree;

const READY_TIME_MAX: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The fleet of `forewarn dev`.
const FLEET: &str = "crates/forewarn/src/server/demo.toml";

/// VMs that poll once, so that Scheduled Events are enabled for their tenants.
const ENROLLED: [&str; 4] = ["solo", "web_0", "db-0", "batch_0"];

/// The VM of the metadata listener of `forewarn serve`.
const ONLY: &str = "solo";

/// The second cluster, which the settings of schemathesis name too.
const OTHER_CLUSTER: &str = "west";

/// The pending work. The brake holds it, however far the clock is set.
const UNDER_WAY: [&[&str]; 4] = [
    &["brake", "on"],
    &["vm", "restart", "solo"],
    &["host", "update", "h1", "h2", "h3"],
    &["host", "migrate", "h4", "h5"],
];

/// The file of the first token of `forewarn serve`.
const TOKEN_FILE: &str = "first.token";

/// A running server, killed on drop.
pub(super) struct ApiServer {
    child: Child,
    pub(super) api: String,
    metadata: String,
    /// The token to send. None if the server needs none.
    pub(super) token: Option<String>,
    pub(super) directory: TempDir,
    program: PathBuf,
}

impl ApiServer {
    /// `forewarn dev`, without authentication, on a frozen clock.
    pub(super) fn dev(program: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "off"]);
        command.args(["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z", "--seed", "7"]);
        let server = Self::start(program, command, tempfile::tempdir().context("no temporary directory")?)?;
        for machine in ENROLLED {
            server.poll(machine, &format!("/vm/{machine}"))?;
        }
        server.prepare()?;
        Ok(server)
    }

    /// `forewarn serve`, with a token, on the real clock.
    pub(super) fn serve(program: &Path) -> Result<Self> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let settings = directory.path().join("settings.toml");
        let text = format!(
            "in_memory = true\nfleet = {:?}\napi.listen = '127.0.0.1:0'\ndriver.kind = 'simulated'\n\
             api.first_token_file = {:?}\n\
             metadata.listen = [{{ address = '127.0.0.1:0', machine = '{ONLY}' }}]\n",
            tree::root()?.join(FLEET),
            directory.path().join(TOKEN_FILE),
        );
        fs::write(&settings, text)?;
        let mut command = Command::new(program);
        command.arg("serve").arg("--config").arg(settings);
        let mut server = Self::start(program, command, directory)?;
        // The file exists before anything listens.
        let token = fs::read_to_string(server.directory.path().join(TOKEN_FILE))?;
        server.token = Some(token.trim_end().to_owned());
        server.poll(ONLY, "")?;
        server.prepare()?;
        Ok(server)
    }

    fn start(program: &Path, mut command: Command, directory: TempDir) -> Result<Self> {
        let file = directory.path().join("addresses.json");
        command.arg("--addresses-file").arg(&file);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.context("cannot run forewarn")?;
        let (api, metadata, program) = (String::new(), String::new(), program.to_owned());
        let mut server = Self { child, api, metadata, token: None, directory, program };
        // The file appears when everything listens.
        let addresses: Value = server
            .wait_for(|| fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str(&text).ok()))?;
        let address = |of: &str| addresses[of].as_str().map(str::to_owned).context("no address");
        (server.api, server.metadata) = (address("api")?, address("metadata")?);
        Ok(server)
    }

    fn wait_for<T>(&mut self, look: impl Fn() -> Option<T>) -> Result<T> {
        let begin = Instant::now();
        while begin.elapsed() < READY_TIME_MAX {
            if let Some(found) = look() {
                return Ok(found);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("forewarn has ended: {status}");
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        bail!("forewarn does not get ready")
    }

    /// Creates the second cluster and the pending work.
    fn prepare(&self) -> Result<()> {
        let fleet = tree::root()?.join(FLEET).display().to_string();
        self.operate(&["cluster", "create", OTHER_CLUSTER])?;
        self.operate(&["--cluster", OTHER_CLUSTER, "fleet", "apply", &fleet])?;
        UNDER_WAY.iter().try_for_each(|words| self.operate(words))
    }

    /// Runs a command of the operator, which must succeed.
    pub(super) fn operate(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(words).args(["--api", &self.api]).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(token) = &self.token {
            command.env("FOREWARN_TOKEN", token);
        }
        let outcome = status(&mut command)?;
        ensure!(outcome == Outcome::Passed, "forewarn {}: {outcome:?}", words.join(" "));
        Ok(())
    }

    fn poll(&self, machine: &str, prefix: &str) -> Result<()> {
        let address = self.metadata.trim_start_matches("http://").trim_end_matches('/');
        let at: SocketAddr = address.parse().context("not an address")?;
        let mut stream = TcpStream::connect_timeout(&at, READY_TIME_MAX)?;
        let path = format!("{prefix}/metadata/scheduledevents?api-version=2020-07-01");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\nMetadata: true\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(64 * 1024).read_to_string(&mut answer)?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{machine} got another response: {answer}");
        Ok(())
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
