//! `az` of several ages, on a computer from which nothing can be reached: each logs in with the commands that `forewarn az env`
//! prints for it.

use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::program;
use forewarn_testkit::TestServer;
use forewarn_testkit::az::client;
use forewarn_testkit::network::{METADATA, Network};

/// Variables that name the versions of `az` which `cargo xtask azure` has installed.
const AZ_2_50: &str = "FOREWARN_AZ_2_50";
const AZ_2_72: &str = "FOREWARN_AZ_2_72";
const NEWEST: &str = "FOREWARN_AZ";

/// Seconds for one command of `az`, which imports hundreds of modules when it runs for the first time.
const SECONDS_MAX: &str = "600";

/// `forewarn dev` in a network namespace that has loopback and nothing else.
struct Offline {
    server: TestServer,
    directory: TempDir,
    network: Network,
}

impl Offline {
    fn start() -> Self {
        let (network, directory) = (Network::of(0), TempDir::new().unwrap());
        network.host().shell(&format!("ip addr del {METADATA}/32 dev lo"));
        let mut command = network.host().command(program());
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "127.0.0.1:0", "--clock", "frozen", "--seed", "7"]);
        at_home(&mut command, &directory);
        let server = TestServer::spawn(crate::program(), command).inside(network.host().name());
        Self { server, directory, network }
    }

    /// The lines of `forewarn az env`.
    fn lines(&self, more: &[&str]) -> String {
        let mut command = self.network.host().command(program());
        command.args(["--api", self.server.api_url(), "az", "env"]).args(more);
        at_home(&mut command, &self.directory);
        let Output { status, stdout, stderr } = command.output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    /// Evaluates lines in a shell that has this `az`, then logs in and shows the account. Each call has a directory of its own
    /// for what `az` remembers.
    fn log_in(&self, az: &str, lines: &str, login: &str) -> Output {
        let own = self.directory.path().join(az);
        std::fs::create_dir_all(own.join("bin")).unwrap();
        std::os::unix::fs::symlink(client(az), own.join("bin/az")).unwrap();
        let script = "eval \"$LINES\"; export AZURE_CONFIG_DIR=\"$OWN/config\" PATH=\"$OWN/bin:$PATH\"\n\
                      eval \"$LOGIN\" >&2 && exec az account show --query name --output tsv";
        let mut command = self.network.host().command("timeout");
        command.args([SECONDS_MAX, "sh", "-c", script]).env("OWN", &own);
        command.env("LINES", lines).env("LOGIN", login).stdin(Stdio::null());
        at_home(&mut command, &self.directory);
        command.output().unwrap()
    }

    fn logs_in(&self, az: &str, lines: &str, login: &str) {
        let Output { status, stdout, stderr } = self.log_in(az, lines, login);
        let said = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{az}: {login}: {said}");
        assert_eq!(String::from_utf8(stdout).unwrap(), "Forewarn\n", "{az}: {login}: {said}");
    }
}

/// A home of the test's, and no proxy.
fn at_home(command: &mut Command, directory: &TempDir) {
    command.env("HOME", directory.path().join("home")).env("XDG_STATE_HOME", directory.path().join("state"));
    for name in ["HTTPS_PROXY", "https_proxy", "FOREWARN_API", "FOREWARN_TOKEN", "FOREWARN_CA"] {
        command.env_remove(name);
    }
}

/// The commands that follow these words in the last lines of `forewarn az env`.
fn commands<'a>(lines: &'a str, words: &str) -> &'a str {
    let line = lines.lines().find_map(|line| line.strip_prefix(words)).unwrap_or_else(|| panic!("{lines}"));
    line.trim()
}

/// promise: Z6
#[test]
#[ignore = "needs root and az; `cargo xtask azure` installs it"]
fn every_version_logs_in_as_a_service_principal() {
    let offline = Offline::start();
    let lines = offline.lines(&["--service-principal"]);
    offline.logs_in(AZ_2_50, &lines, commands(&lines, "# then, az 2.53 and earlier: "));
    for az in [AZ_2_72, NEWEST] {
        offline.logs_in(az, &lines, commands(&lines, "# then, az 2.54 and later: "));
    }
}

/// promise: Z6
#[test]
#[ignore = "needs root and az; `cargo xtask azure` installs it"]
fn versions_that_can_be_told_where_the_identity_is_log_in_with_it() {
    let offline = Offline::start();
    let lines = offline.lines(&[]);
    for az in [AZ_2_72, NEWEST] {
        offline.logs_in(az, &lines, commands(&lines, "# then: "));
    }
}
