//! A directory of format 1, as the last server of that format left it: nothing of it is lost, and this version answers as that
//! one did.
//!
//! | what | where |
//! |---|---|
//! | the fixture, its answers, and how it was made | `tests/format-1`, `make` |
//! | answers, and what may differ between two versions | `answers` |
//! | nothing is lost | `kept` |
//! | everything goes on | `goes_on` |

mod answers;
mod goes_on;
mod kept;
mod make;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use forewarn_testkit::server::dev;
use forewarn_testkit::webhook_receiver::WebhookReceiver;
use forewarn_testkit::{TestDir, TestServer, clean_command};

/// The addresses of the webhooks: nothing else listens there.
const OPS: &str = "127.83.1.1:18401";
const PAGER: &str = "127.83.1.2:18401";
const NOBODY: &str = "127.83.1.3:18401";

/// The files of a directory that hold its content.
const FILES: [&str; 4] = ["journal.db", "journal.db-wal", "journal.reach", "lock"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format-1").join(name)
}

/// Copies the content of a data directory.
fn copy(source: &Path, target: &Path) {
    for name in FILES {
        if source.join(name).exists() {
            fs::copy(source.join(name), target.join(name)).unwrap();
        }
    }
}

/// A copy of a data directory, below a directory of the test.
fn copied(source: &Path, files: &TestDir, name: &str) -> PathBuf {
    let data = files.file(name);
    fs::create_dir(&data).unwrap();
    copy(source, &data);
    data
}

/// The format of the journal in a directory: the user version in the header of an SQLite file.
pub(super) fn format_of(data: &Path) -> u32 {
    let bytes = fs::read(data.join("journal.db")).unwrap();
    u32::from_be_bytes(bytes[60..64].try_into().unwrap())
}

fn command(data: &Path, more: &[&str]) -> Command {
    let mut command = clean_command(crate::program());
    dev(&mut command, &["--clock", "frozen", "--metadata-threads", "1", "--data-dir"]);
    command.arg(data).args(more);
    command
}

fn start(data: &Path, more: &[&str]) -> TestServer {
    TestServer::spawn(crate::program(), command(data, more))
}

/// A copy of the fixture. One test at a time has one: the servers of all copies have the same webhooks.
struct OldData {
    files: TestDir,
    data: PathBuf,
    is_killed: bool,
    _turn: Turn,
}

impl OldData {
    /// The directory after a clean stop.
    fn stopped() -> Self {
        let (turn, files) = (Turn::take(), TestDir::new());
        let data = copied(&fixture("stopped"), &files, "data");
        Self { files, data, is_killed: false, _turn: turn }
    }

    /// The same directory after a few more commits and a kill: the last commits are in the log.
    fn killed() -> Self {
        let mut old = Self::stopped();
        copy(&fixture("killed"), &old.data);
        old.is_killed = true;
        old
    }
}

/// The turn of a test, over all processes that run tests on this computer.
struct Turn(#[expect(dead_code, reason = "it is unlocked when it is closed")] File);

impl Turn {
    fn take() -> Self {
        let file = File::create(std::env::temp_dir().join("forewarn-format-1.lock")).unwrap();
        file.lock().unwrap();
        Self(file)
    }
}

/// Receivers at the addresses of two webhooks, for as long as the test has its turn.
struct Receivers {
    ops: WebhookReceiver,
    pager: WebhookReceiver,
}

impl Receivers {
    fn start(_: &OldData) -> Self {
        Self { ops: WebhookReceiver::start_at(OPS), pager: WebhookReceiver::start_at(PAGER) }
    }
}

impl Drop for Receivers {
    fn drop(&mut self) {
        self.ops.stop();
        self.pager.stop();
    }
}

/// The export of the audit log, as the server of the fixture wrote it.
fn exported() -> String {
    fs::read_to_string(fixture("answers/audit.ndjson")).unwrap()
}

/// Ids and tokens that no answer shows.
fn more() -> Value {
    serde_json::from_slice(&fs::read(fixture("answers/more.json")).unwrap()).unwrap()
}

/// Sends a request again under its key; gives the status and the body.
fn repeat(server: &TestServer, request: &Value) -> (u16, Value) {
    let text = |member: &str| request[member].as_str().unwrap();
    let key = format!("Idempotency-Key: {}\r\n", text("key"));
    let answer = answers::send(server, text("line"), &key, text("body"));
    (answer.status(), serde_json::from_str(&answer.body).unwrap())
}
