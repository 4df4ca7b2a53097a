//! Notice counts from the moment at which a VM can read its event, whatever the disk or the process does before.
//!
//! strace makes the disk slow: every sync of the server takes as long as a test wants.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forewarn_imds::parse_date;
use forewarn_lifecycle::Timestamp;
use forewarn_types::Moment;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::durable::place::Place;
use forewarn_testkit::operator::{advance, read, value, write};
use forewarn_testkit::webhook_receiver::{WebhookReceiver, add};
use forewarn_testkit::{NEWEST, RawResponse, TestServer, wait_until};

const FLEET: &str = r#"
host = [{ name = "h0" }]
vm = [{ name = "spot-0", host = "h0", spot = "deallocate" }, { name = "vm-0", host = "h0" }]
"#;

/// Sixty seconds a second: a notice of 30 s is half a second.
const SPEED: u32 = 60;

const NOTICE: Duration = Duration::from_secs(30);

fn place() -> Place {
    let place = Place::new();
    fs::write(place.file("fleet.toml"), FLEET).unwrap();
    place
}

/// A server whose syncs are slow, for as long as this lives.
struct SlowDisk(Child);

impl SlowDisk {
    fn under(server: &TestServer, delay: Duration) -> Self {
        let delay = format!("inject=fsync,fdatasync:delay_enter={}", delay.as_micros());
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-e", &delay, "-o", "/dev/null", "-p"]);
        strace.arg(server.id().to_string()).stdin(Stdio::null()).stderr(Stdio::null());
        let child = strace.spawn().expect("strace is there");
        let tracer = format!("TracerPid:\t{}\n", child.id());
        wait_until("every thread is traced", || {
            let tasks = fs::read_dir(format!("/proc/{}/task", server.id())).ok()?;
            let is_traced = |task: fs::DirEntry| {
                fs::read_to_string(task.path().join("status")).is_ok_and(|status| status.contains(&tracer))
            };
            tasks.map_while(Result::ok).all(is_traced).then_some(())
        });
        Self(child)
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        // In the middle of a delay it hears nothing else; whom it traced goes on.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until the thread that writes the journal is in the middle of a sync.
fn until_syncing(server: &TestServer) {
    wait_until("the journal is being synced", || {
        let tasks = fs::read_dir(format!("/proc/{}/task", server.id())).ok()?;
        let is_syncing = |task: fs::DirEntry| {
            let file = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            let syncs = [libc_number("fsync"), libc_number("fdatasync")];
            let call = file("syscall");
            file("comm").starts_with("forewarn-journ") && syncs.iter().any(|sync| call.starts_with(sync))
        };
        tasks.map_while(Result::ok).any(is_syncing).then_some(())
    });
}

/// The number of a system call, as `/proc` shows it.
fn libc_number(call: &str) -> &'static str {
    match (call, cfg!(target_arch = "x86_64")) {
        ("fsync", true) => "74 ",
        ("fdatasync", true) => "75 ",
        ("fsync", false) => "82 ",
        _ => "83 ",
    }
}

/// A moment that the clock of a server has shown at the latest by some instant.
struct Seen {
    shown: Timestamp,
    by: Instant,
}

impl Seen {
    fn now(server: &TestServer) -> Self {
        let answer = server.get("spot-0", NEWEST);
        Self { shown: parse_date(answer.header("Date").unwrap()).unwrap(), by: Instant::now() }
    }

    /// The clock shows at least this at that instant.
    fn at(&self, instant: Instant) -> Timestamp {
        self.shown.plus(instant.duration_since(self.by) * SPEED)
    }
}

fn evict(server: &TestServer) -> std::io::Result<RawResponse> {
    write(server.api(), "/v1/commands", &json!({"command": "evict", "machine": "spot-0"}))
}

/// The first event of the spot machine as its document shows it, and an instant at which it was not there yet.
fn first_seen(server: &TestServer, mut unseen: Instant) -> (Value, Instant) {
    let event = wait_until("the event is there", || {
        let asked = Instant::now();
        let event = server.document("spot-0")["Events"].get(0).cloned();
        if event.is_none() {
            unseen = asked;
        }
        event
    });
    (event, unseen)
}

fn not_before(event: &Value) -> Timestamp {
    parse_date(event["NotBefore"].as_str().unwrap()).unwrap()
}

/// promise: N3
#[test]
#[ignore = "needs strace; `cargo xtask test` runs it"]
fn a_slow_disk_takes_nothing_from_a_notice_and_everybody_is_told_the_same_time() {
    let place = place();
    let server = place.start_with(&["--clock", &format!("{SPEED}x")]);
    server.enrol(&["spot-0"]);
    let receiver = WebhookReceiver::start();
    add(&server, "ops", &receiver, &[]);
    let seen = Seen::now(&server);
    // Each commit takes longer than the notice: the second one, too.
    let disk = SlowDisk::under(&server, Duration::from_millis(700));
    let (answer, event, unseen) = std::thread::scope(|scope| {
        let answer = scope.spawn(|| evict(&server).unwrap());
        let (event, unseen) = first_seen(&server, Instant::now());
        (answer.join().unwrap(), event, unseen)
    });
    drop(disk);
    let time = not_before(&event);
    assert!(time >= seen.at(unseen).plus(NOTICE), "{time:?}, and it was not there at {:?}", seen.at(unseen));
    let shown = Moment(time).to_string();
    assert_eq!(value(&answer)["events"][0]["not_before"], shown, "the answer");
    let audit = value(&read(server.api(), "/v1/audit?kind=announced").unwrap());
    let told = audit["items"][0]["text"].as_str().unwrap();
    assert!(audit["items"].as_array().unwrap().len() == 1 && told.ends_with(&shown), "{audit}");
    wait_until("the webhook is told", || receiver.told().first().cloned());
    let pushed = &receiver.told()[0].body;
    assert!(pushed.contains(event["NotBefore"].as_str().unwrap()), "{pushed}");
}

/// promise: N3
#[test]
#[ignore = "needs strace; `cargo xtask test` runs it"]
fn a_process_that_is_stopped_for_longer_than_the_notice_before_it_publishes_moves_the_time() {
    let place = place();
    let server = place.start_with(&["--clock", &format!("{SPEED}x")]);
    server.enrol(&["spot-0"]);
    let seen = Seen::now(&server);
    let disk = SlowDisk::under(&server, Duration::from_millis(1_500));
    let (event, resumed) = std::thread::scope(|scope| {
        scope.spawn(|| evict(&server).unwrap());
        until_syncing(&server);
        server.signal(Signal::STOP);
        let end = seen.at(Instant::now()).plus(NOTICE * 2);
        wait_until("twice the notice is over on the clock of the server", || {
            (seen.at(Instant::now()) >= end).then_some(())
        });
        let resumed = Instant::now();
        server.signal(Signal::CONT);
        (first_seen(&server, resumed).0, resumed)
    });
    drop(disk);
    let time = not_before(&event);
    assert!(
        time >= seen.at(resumed).plus(NOTICE),
        "{time:?}, and it stood still until {:?}",
        seen.at(resumed)
    );
}

/// promise: N3
#[test]
#[ignore = "needs strace; `cargo xtask test` runs it"]
fn an_unapproved_start_of_the_last_batch_waits_for_a_whole_notice_after_a_kill() {
    let place = place();
    let server = place.start();
    server.enrol(&["spot-0", "vm-0"]);
    server.restart("vm-0");
    let disk = SlowDisk::under(&server, Duration::from_mins(10));
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| evict(&server));
        until_syncing(&server);
        server.signal(Signal::KILL);
        // As long as it is traced, a thread that has ended keeps its connections.
        drop(disk);
        assert!(answer.join().unwrap().is_err(), "nobody was answered");
    });
    server.end();
    // Both notices are over; only that of the last batch may have been read by no VM.
    let server = place.start_with(&["--clock", "frozen", "--clock-start", "2026-01-01T01:00:00Z"]);
    wait_until("what was shown starts", || (server.status("vm-0") != "Scheduled").then_some(()));
    let event = &server.document("spot-0")["Events"][0];
    assert_eq!(event["NotBefore"], "Thu, 01 Jan 2026 00:00:30 GMT", "its time stays");
    advance(&server, "29s");
    assert_eq!(server.status("spot-0"), "Scheduled");
    let id = event["EventId"].as_str().unwrap();
    let blockers = server.json(&["event", "explain", id])["blockers"].to_string();
    assert!(blockers.contains("its notice has not ended: it lasts until 2026-01-01T01:00:30Z"), "{blockers}");
    advance(&server, "1s");
    assert_eq!(server.status("spot-0"), "Started");
}

/// promise: N3
#[test]
fn a_start_that_was_shown_is_not_put_off_by_a_restart() {
    let place = place();
    let server = place.start();
    server.enrol(&["spot-0", "vm-0"]);
    assert_eq!(evict(&server).unwrap().status(), 200);
    // Another batch: VMs could read the event of the one before.
    server.restart("vm-0");
    server.kill();
    let server = place.start_with(&["--clock", "frozen", "--clock-start", "2026-01-01T00:01:00Z"]);
    wait_until("it starts", || (server.status("spot-0") != "Scheduled").then_some(()));
}
