//! The real `az`, as a user runs it after `eval "$(forewarn az env)"`: with a home of its own, and nothing else of this machine.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::arm::{ArmServer, GROUP, SUBSCRIPTION};
use crate::wait_until_for;

/// Much longer than any command takes that waits for nobody.
const COMMAND_DEADLINE: Duration = Duration::from_secs(180);

/// A server, and a user who has typed the line that points `az` at it.
pub struct Az {
    pub server: ArmServer,
    exports: Vec<(String, String)>,
}

/// What came of a command.
pub struct AzResult {
    line: String,
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// A command that runs beside the test.
pub struct RunningAz {
    line: String,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// Where a client is that `cargo xtask azure` has installed.
pub fn client(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run `cargo xtask azure`"))
}

/// The variables that the line of a user sets, as the shell understands them.
pub fn exports(server: &ArmServer) -> Vec<(String, String)> {
    let mut shell = server.program("sh");
    shell.args(["-c", r#"unset PWD OLDPWD SHLVL _; eval "$("$0" az env --api "$1")" && exec env -0"#]);
    shell.arg(server.forewarn()).arg(server.server.api_url());
    let output = shell.stdin(Stdio::null()).output().expect("there is a shell");
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "forewarn az env: {err}");
    let ours = ["PATH", "HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "PWD", "OLDPWD", "SHLVL", "_"];
    let set =
        out.split('\0').filter_map(|line| line.split_once('=')).filter(|(name, _)| !ours.contains(name));
    set.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Az {
    /// Logged in, with the group of the documentation.
    pub fn start(program: OsString) -> Self {
        let az = Self::point_at(ArmServer::start(program));
        az.ok("login --identity");
        az.ok(&format!("group create --name {GROUP} --location eastus"));
        az
    }

    /// Not logged in.
    pub fn point_at(server: ArmServer) -> Self {
        let exports = exports(&server);
        Self { server, exports }
    }

    /// The same user, at a server that was killed and started again.
    pub fn kill_and_start(self) -> Self {
        Self { server: self.server.kill_and_start(), exports: self.exports }
    }

    /// A client of Azure that a user of this server runs.
    pub fn program(&self, program: OsString) -> Command {
        let mut command = self.server.program(program);
        command.env("AZURE_CONFIG_DIR", self.server.directory().join("azure"));
        command.env("AZURE_CORE_COLLECT_TELEMETRY", "no").env("AZURE_CORE_NO_COLOR", "true");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        // What the user has typed has the last word.
        command.envs(self.exports.iter().cloned());
        command
    }

    /// Begins a command. A word is what is between spaces; `'…'` is one word, too.
    pub fn begin(&self, line: &str) -> RunningAz {
        let mut command = self.program(client("FOREWARN_AZ"));
        command.args(words(line));
        self.spawn(line, command)
    }

    /// Begins a program whose output is kept.
    pub fn spawn(&self, line: &str, mut command: Command) -> RunningAz {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = |what: &str| self.server.directory().join(format!("{what}-{number}"));
        let (out, err) = (file("out"), file("err"));
        command.stdin(Stdio::null()).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let child = command.spawn().unwrap_or_else(|problem| panic!("{line}: {problem}"));
        RunningAz { line: line.to_owned(), child, out, err }
    }

    pub fn run(&self, line: &str) -> AzResult {
        self.begin(line).end()
    }

    /// What a command prints that has to succeed; nothing, if it prints nothing.
    pub fn ok(&self, line: &str) -> Value {
        self.run(line).value()
    }

    /// What a command says that has to fail.
    pub fn refused(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.err
    }
}

impl RunningAz {
    /// Whether it has ended by itself.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it ends.
    pub fn end(mut self) -> AzResult {
        let code = wait_until_for(COMMAND_DEADLINE, &self.line, || self.child.try_wait().unwrap()).code();
        let ran = AzResult { line: self.line.clone(), code, out: read(&self.out), err: read(&self.err) };
        // Whatever it is told, a client does not break.
        for word in ["Traceback", "unexpected error", "az feedback"] {
            assert!(!ran.err.contains(word), "{ran:?}");
        }
        ran
    }
}

impl Drop for RunningAz {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl fmt::Debug for AzResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, code, out: printed, err } = self;
        write!(out, "{line}: {code:?}\n{printed}{err}")
    }
}

impl AzResult {
    /// What it printed, if it has succeeded.
    pub fn value(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        if self.out.trim().is_empty() {
            return Value::Null;
        }
        serde_json::from_str(&self.out).unwrap_or_else(|problem| panic!("{problem}: {self:?}"))
    }
}

fn read(file: &PathBuf) -> String {
    let mut bytes = Vec::new();
    File::open(file).unwrap().read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The words of a line.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        if place % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The id of something in the group of the documentation.
pub fn id(kind: &str, name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/{kind}/{name}")
}
