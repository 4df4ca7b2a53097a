//! A disk that takes nothing: writes stop, reads go on, and the server goes on by itself when it can.
//!
//! Where nobody is root, the disk is made to fail by a limit on the size of files. A disk that is really full is a small one in
//! memory; only root can mount it, so those tests are ignored unless they are asked for.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;
use tempfile::TempDir;

use crate::durable::place::{MACHINES, Place};
use crate::program;
use forewarn_testkit::operator::{machine, read, write};
use forewarn_testkit::{NEWEST, TestServer, approve, get, wait_until};

/// Starts a server that is told when a file would become too long, and is not ended for it.
pub(super) fn start_limited(place: &Place) -> TestServer {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(program());
    place.say(&mut command, &[]);
    TestServer::spawn(crate::program(), command)
}

/// No file of the server's may be longer from now on: not one byte is written anywhere.
pub(super) fn limit(server: &TestServer, bytes: Option<u64>) {
    let id = Pid::from_raw(i32::try_from(server.id()).unwrap());
    prlimit(id, Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
}

/// Notes something of a machine.
fn tag(server: &TestServer, number: u64) -> u16 {
    let tags = json!({"written": number.to_string()});
    let command = json!({"command": "describe", "machine": "vm-3", "addresses": ["10.0.0.13"], "tags": tags});
    let answer = write(server.api(), "/v1/commands", &command).unwrap();
    if answer.status() == 503 {
        assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    }
    answer.status()
}

/// Nothing can be written, and everything else is as it was.
fn check_stopped(server: &TestServer, id: &str, documents: &[String]) {
    let refused = server.post("vm-0", &approve(&[id]));
    assert_eq!((refused.status(), refused.header("Retry-After")), (503, Some("1")), "{refused:?}");
    assert_eq!(documents_of(server), documents);
    let ready = read(server.api(), "/readyz").unwrap();
    assert!(ready.status() == 503 && ready.body.contains("the journal cannot be written"), "{ready:?}");
    assert_eq!(read(server.api(), "/healthz").unwrap().status(), 200);
    assert_eq!(tag(server, 999), 503);
    let shown = read(server.api(), "/v1/hosts").unwrap();
    assert_eq!((shown.status(), shown.header("forewarn-stale")), (200, Some("true")), "{shown:?}");
}

fn documents_of(server: &TestServer) -> Vec<String> {
    let read = |machine: &&str| server.say(&get(&format!("/vm/{machine}{NEWEST}"))).body;
    MACHINES.iter().map(read).collect()
}

/// It goes on by itself, with everything that was answered.
fn check_going_on(server: &TestServer, id: &str, answered: u64) {
    wait_until("it goes on", || (server.post("vm-0", &approve(&[id])).status() == 200).then_some(()));
    assert_eq!(server.status("vm-0"), "Started");
    assert_eq!(machine(server, "vm-3")["tags"]["written"], answered.to_string());
    assert_eq!(read(server.api(), "/readyz").unwrap().status(), 200);
    assert_eq!(read(server.api(), "/v1/hosts").unwrap().header("forewarn-stale"), None);
    assert_eq!(tag(server, answered + 1), 200);
}

/// A server on which an event waits, and something was noted; what it shows.
fn prepare(server: &TestServer) -> (String, Vec<String>) {
    server.enrol(&MACHINES);
    let id = server.restart("vm-0");
    assert_eq!(tag(server, 1), 200);
    (id, documents_of(server))
}

/// In that time a server tries several times to write again.
const SEVERAL_TRIES: Duration = Duration::from_millis(1_000);

fn stays_stopped(server: &TestServer, id: &str, documents: &[String]) {
    let begin = Instant::now();
    while begin.elapsed() < SEVERAL_TRIES {
        check_stopped(server, id, documents);
    }
}

/// promise: D3
#[test]
fn a_disk_that_fails_stops_writes_and_not_reads_and_is_gone_on_with() {
    let place = Place::new();
    let server = start_limited(&place);
    let (id, documents) = prepare(&server);
    for bytes in [0, PAGE as u64] {
        limit(&server, Some(bytes));
        assert_eq!(tag(&server, 999), 503);
        stays_stopped(&server, &id, &documents);
        limit(&server, None);
        wait_until("it goes on", || (tag(&server, 1) == 200).then_some(()));
    }
    check_going_on(&server, &id, 1);
    server.kill();
    check_after_restart(&place);
}

fn check_after_restart(place: &Place) {
    let server = place.start();
    assert_eq!(server.status("vm-0"), "Started");
    assert_eq!(machine(&server, "vm-3")["tags"]["written"], "2");
}

/// promise: D3
#[test]
fn a_disk_that_is_taken_away_is_waited_for_and_nothing_begins_anew() {
    let place = Place::new();
    let server = start_limited(&place);
    let (id, documents) = prepare(&server);
    limit(&server, Some(0));
    assert_eq!(tag(&server, 999), 503);
    let away = place.file("away");
    fs::rename(place.data(), &away).unwrap();
    limit(&server, None);
    stays_stopped(&server, &id, &documents);
    assert!(!place.data().exists(), "another journal was made");
    fs::rename(&away, place.data()).unwrap();
    check_going_on(&server, &id, 1);
}

/// A disk of a megabyte.
pub(super) struct SmallDisk {
    at: PathBuf,
    /// Removed once nothing is mounted there.
    _own: Option<TempDir>,
}

impl SmallDisk {
    fn mount() -> Self {
        let own = tempfile::tempdir().unwrap();
        Self::mounted(own.path().to_owned(), Some(own))
    }

    /// Mounts it on a directory.
    pub(super) fn mount_at(at: PathBuf) -> Self {
        Self::mounted(at, None)
    }

    fn mounted(at: PathBuf, own: Option<TempDir>) -> Self {
        run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"]).arg(&at));
        Self { at, _own: own }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    /// Removes everything that has filled it.
    pub(super) fn make_room(&self) {
        fs::remove_file(self.file("filler")).unwrap();
    }

    /// Leaves that many bytes free, as far as there are as many.
    pub(super) fn fill_but(&self, bytes: usize) {
        let mut filler = File::create(self.file("filler")).unwrap();
        while filler.write_all(&[1; PAGE]).is_ok() {}
        let length = filler.metadata().unwrap().len();
        filler.set_len(length.saturating_sub(bytes as u64)).unwrap();
    }
}

const PAGE: usize = 4_096;

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a server that a failed test has left may still be there.
        drop(Command::new("umount").arg("--lazy").arg(&self.at).status());
    }
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// promise: D3
#[test]
#[ignore = "needs root; `cargo xtask test` runs it"]
fn a_full_disk_stops_writes_and_not_reads_and_is_gone_on_with() {
    // The disk gets full at another write each time.
    for pages in 0..12 {
        let disk = SmallDisk::mount();
        let place = Place::at(disk.file("data"));
        let server = place.start();
        let (id, documents) = prepare(&server);
        disk.fill_but(pages * PAGE);
        let mut answered = 1;
        while tag(&server, answered + 1) == 200 {
            answered += 1;
            assert!(answered < 5_000, "the disk does not get full");
        }
        check_full(&server, &documents);
        disk.make_room();
        check_going_on(&server, &id, answered);
        server.kill();
        let server = place.start();
        assert_eq!(server.status("vm-0"), "Started");
        assert_eq!(machine(&server, "vm-3")["tags"]["written"], (answered + 1).to_string());
    }
}

/// It says why it cannot write, unless it can again: what was opened anew is tidied up, and that may have made room.
fn check_full(server: &TestServer, documents: &[String]) {
    let begin = Instant::now();
    while begin.elapsed() < SEVERAL_TRIES / 4 {
        assert_eq!(documents_of(server), documents);
        let ready = read(server.api(), "/readyz").unwrap();
        assert!(ready.status() == 200 || ready.body.contains("the disk is full"), "{ready:?}");
    }
}

/// promise: D4
#[test]
#[ignore = "needs root; `cargo xtask test` runs it"]
fn a_directory_that_cannot_be_written_is_refused_at_the_start() {
    let disk = SmallDisk::mount();
    let place = Place::at(disk.file("data"));
    place.start().kill();
    run(Command::new("mount").args(["-o", "remount,ro"]).arg(&disk.at));
    let output = place.fail();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("hint: the directory must belong to the user of the server"), "{said}");
}
