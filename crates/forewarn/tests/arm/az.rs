//! The real `az`, as a user runs it after `eval "$(forewarn az env)"`: with a home of its own, and nothing else of this machine.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::harness::patience::until_for;
use crate::harness::server::program;
use crate::place::{GROUP, Place, SUBSCRIPTION};

/// Much longer than any command takes that waits for nobody.
const PATIENCE: Duration = Duration::from_secs(180);

/// A server, and a user who has typed the line that points `az` at it.
pub(crate) struct Az {
    pub(crate) place: Place,
    exports: Vec<(String, String)>,
}

/// What came of a command.
pub(crate) struct Ran {
    line: String,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A command that runs beside the test.
pub(crate) struct Running {
    line: String,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// Where a client is that `cargo xtask azure` has installed.
pub(crate) fn client(name: &str) -> OsString {
    std::env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run `cargo xtask azure`"))
}

/// The variables that the line of a user sets, as the shell understands them.
pub(crate) fn exports(place: &Place) -> Vec<(String, String)> {
    let mut shell = place.program("sh");
    shell.args(["-c", r#"unset PWD OLDPWD SHLVL _; eval "$("$0" az env --api "$1")" && exec env -0"#]);
    shell.arg(program()).arg(place.server.api_url());
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
    pub(crate) fn start() -> Self {
        let az = Self::point_at(Place::start());
        az.ok("login --identity");
        az.ok(&format!("group create --name {GROUP} --location eastus"));
        az
    }

    /// Not logged in.
    pub(crate) fn point_at(place: Place) -> Self {
        let exports = exports(&place);
        Self { place, exports }
    }

    /// The same user, at a server that was killed and started again.
    pub(crate) fn kill_and_start(self) -> Self {
        Self { place: self.place.kill_and_start(), exports: self.exports }
    }

    /// A client of Azure that a user of this server runs.
    pub(crate) fn program(&self, program: OsString) -> Command {
        let mut command = self.place.program(program);
        command.env("AZURE_CONFIG_DIR", self.place.directory().join("azure"));
        command.env("AZURE_CORE_COLLECT_TELEMETRY", "no").env("AZURE_CORE_NO_COLOR", "true");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        // What the user has typed has the last word.
        command.envs(self.exports.iter().cloned());
        command
    }

    /// Begins a command. A word is what is between spaces; `'…'` is one word, too.
    pub(crate) fn begin(&self, line: &str) -> Running {
        let mut command = self.program(client("FOREWARN_AZ"));
        command.args(words(line));
        self.spawn(line, command)
    }

    /// Begins a program whose output is kept.
    pub(crate) fn spawn(&self, line: &str, mut command: Command) -> Running {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = |what: &str| self.place.directory().join(format!("{what}-{number}"));
        let (out, err) = (file("out"), file("err"));
        command.stdin(Stdio::null()).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let child = command.spawn().unwrap_or_else(|problem| panic!("{line}: {problem}"));
        Running { line: line.to_owned(), child, out, err }
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        self.begin(line).end()
    }

    /// What a command prints that has to succeed; nothing, if it prints nothing.
    pub(crate) fn ok(&self, line: &str) -> Value {
        self.run(line).value()
    }

    /// What a command says that has to fail.
    pub(crate) fn refused(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.err
    }
}

impl Running {
    /// Whether it has ended by itself.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until it ends.
    pub(crate) fn end(mut self) -> Ran {
        let code = until_for(PATIENCE, &self.line, || self.child.try_wait().unwrap()).code();
        let ran = Ran { line: self.line.clone(), code, out: read(&self.out), err: read(&self.err) };
        // Whatever it is told, a client does not break.
        for word in ["Traceback", "unexpected error", "az feedback"] {
            assert!(!ran.err.contains(word), "{ran:?}");
        }
        ran
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl fmt::Debug for Ran {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, code, out: printed, err } = self;
        write!(out, "{line}: {code:?}\n{printed}{err}")
    }
}

impl Ran {
    /// What it printed, if it has succeeded.
    pub(crate) fn value(&self) -> Value {
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
pub(crate) fn id(kind: &str, name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/{kind}/{name}")
}
