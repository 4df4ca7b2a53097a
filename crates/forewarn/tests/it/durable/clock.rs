//! Clocks that run, servers that sleep, and computers whose time since the boot is another: late at worst, never early.
//!
//! Steps of the wall clock are not tried here: nothing can set it for one process. The rules and the driver are tried on two
//! clocks that know nothing of each other.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use forewarn_imds::parse_date;
use rustix::process::Signal;
use serde_json::json;

use crate::durable::place::Place;
use crate::durable::site::{Site, document};
use forewarn_testkit::operator::{advance, clock, machine, millis, value, write};
use forewarn_testkit::{NEWEST, TestServer, approve, post, wait_until};

/// The fastest: a millisecond is a quarter of an hour.
const FASTEST: u32 = 1_000_000;

/// promise: N4
#[test]
fn a_clock_that_runs_does_not_go_back_over_a_kill() {
    let place = Place::new();
    let mut shown = 0;
    let mut see = |millis: i64| {
        assert!(millis >= shown, "{millis} after {shown}");
        shown = millis;
    };
    for _ in 0..3 {
        let server = place.start();
        see(clock(&server));
        let answer = write(server.api(), "/v1/clock", &json!({"clock": "scale", "speed": FASTEST})).unwrap();
        see(millis(&value(&answer)));
        see(clock(&server));
        server.kill();
        let server = place.start_with(&["--clock", &format!("{FASTEST}x")]);
        see(clock(&server));
        server.kill();
    }
}

/// Longer than a driver sleeps at most.
const DRIVER_SLEEP_MAX: Duration = Duration::from_millis(2_500);

fn sleep_through(server: &TestServer) {
    server.signal(Signal::STOP);
    wait_until("it stands still", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", server.id())).ok()?;
        stat.contains(") T ").then_some(())
    });
    // Time passes, and the server knows nothing of it.
    let stopped = Instant::now();
    wait_until("a driver would have woken", || (stopped.elapsed() > DRIVER_SLEEP_MAX).then_some(()));
    server.signal(Signal::CONT);
}

/// promise: N4
#[test]
fn a_server_that_has_slept_starts_what_is_due_and_nothing_else() {
    let place = Place::new();
    // A second is ten minutes: it sleeps through the whole notice.
    let server = place.start_with(&["--clock", "600x"]);
    server.enrol(&["vm-0"]);
    server.restart("vm-0");
    let not_before = not_before(&server, "vm-0");
    sleep_through(&server);
    wait_until("what was due has started", || (server.status("vm-0") != "Scheduled").then_some(()));
    assert!(clock(&server) >= not_before, "it started late, and not early");
    wait_until("it ends", || (server.status("vm-0") == "gone").then_some(()));
    assert_eq!(machine(&server, "vm-0")["boots"], 2, "once");
    let shown = clock(&server);
    server.kill();
    assert!(clock(&place.start()) >= shown, "the clock has gone back");
}

/// promise: N4
#[test]
fn a_frozen_clock_does_not_feel_a_sleep() {
    let place = Place::new();
    let server = place.start();
    server.enrol(&["vm-0"]);
    let id = server.restart("vm-0");
    advance(&server, "14m");
    let shown = clock(&server);
    sleep_through(&server);
    assert_eq!((server.status("vm-0").as_str(), clock(&server)), ("Scheduled", shown));
    assert_eq!(server.post("vm-0", &approve(&[&id])).status(), 200);
    assert_eq!(server.status("vm-0"), "Started");
}

fn not_before(server: &TestServer, machine: &str) -> i64 {
    let document = server.document(machine);
    let date = document["Events"][0]["NotBefore"].as_str().expect("a date");
    parse_date(date).expect("a date").millis()
}

/// A computer that seems to have run for ten years longer, since the same boot.
const TEN_YEARS: [&str; 6] = ["unshare", "--time", "--fork", "--kill-child=KILL", "--boottime", "315360000"];

/// promise: N4
#[test]
#[ignore = "needs root; `cargo xtask test` runs it"]
fn a_computer_that_seems_to_have_run_for_ten_years_starts_nothing_early() {
    let site = Site::new();
    site.bring_hands();
    let server = site.start();
    document(&server);
    server.run(&["host", "reboot", "h1"]);
    let announced = document(&server);
    server.kill();
    for words in [&TEN_YEARS[..], &[]] {
        let server = site.start_through(words);
        // Whatever is due has been done when the driver answers for the second time.
        (0..2).for_each(|_| drop(server.run(&["event", "ls"])));
        assert_eq!(document(&server), announced, "{words:?}");
        server.kill();
        let lock = File::open(site.file("data/lock")).unwrap();
        wait_until("the directory is free", || lock.try_lock().ok());
    }
    let server = site.start();
    let id = announced["Events"][0]["EventId"].as_str().expect("an id");
    assert_eq!(server.say(&post(NEWEST, &approve(&[id]))).status(), 200);
    wait_until("the event ends", || document(&server)["Events"].as_array()?.is_empty().then_some(()));
}

/// promise: N4
#[test]
fn a_frozen_clock_that_is_set_forward_by_the_notice_that_is_said_reaches_it() {
    for start in ["2026-01-01T00:00:00.001Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.999Z"] {
        let server = TestServer::start_at(crate::program(), start, &[]);
        server.enrol(&["solo"]);
        assert!(server.run(&["vm", "restart", "solo"]).contains("(in 15m)"), "{start}");
        server.advance("15m");
        assert_eq!(server.status("solo"), "Started", "{start}");
    }
}

/// promise: N4
#[test]
fn a_frozen_clock_starts_on_a_whole_second() {
    let place = Place::new();
    for _ in 0..3 {
        // With the time of day at first, and then with what it showed last.
        let server = place.start_with(&["--clock", "frozen"]);
        assert_eq!(clock(&server) % 1_000, 0);
        server.kill();
    }
}
