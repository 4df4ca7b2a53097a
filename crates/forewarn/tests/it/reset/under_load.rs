//! Resets while machines poll, operators work and clients read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use forewarn_testkit::operator::{read, write};
use forewarn_testkit::{NEWEST, TestServer, approve, ask, get, post};
use serde_json::{Value, json};

use super::{assert_same, everything, reset, server};

const RESETS: usize = 200;

/// Requests that go on until a test has done its work.
struct Load<'a> {
    server: &'a TestServer,
    is_over: AtomicBool,
    requests: AtomicU64,
}

impl Load<'_> {
    /// Repeats a request, whose status has to be one of these.
    fn repeat(&self, what: &str, expected: &[u16], mut send: impl FnMut(u64) -> u16) {
        for number in 0.. {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let status = send(number);
            assert!(expected.contains(&status), "{what}: {status}");
            self.requests.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn poll(&self, machine: &str) {
        self.repeat("poll", &[200], |_| self.server.get(machine, NEWEST).status());
    }

    /// Waits for a change of whatever document there is, as an agent does.
    fn long_poll(&self, machine: &str) {
        self.repeat("long poll", &[200, 304], |_| {
            let incarnation = self.server.document(machine)["DocumentIncarnation"].clone();
            let target = format!("/vm/{machine}{NEWEST}&wait=60s&incarnation={incarnation}");
            ask(self.server.metadata(), &get(&target)).unwrap().status()
        });
    }

    /// Approves what it reads. The event may be gone by then.
    fn approve(&self, machine: &str) {
        self.repeat("approval", &[200, 400], |_| {
            let ids = self.server.ids(machine);
            let Some(id) = ids.first() else { return 200 };
            let target = format!("/vm/{machine}{NEWEST}");
            ask(self.server.metadata(), &post(&target, &approve(&[id]))).unwrap().status()
        });
    }

    fn work(&self, path: &str, body: impl Fn(u64) -> Value) {
        self.repeat(path, &[200, 404, 409], |number| {
            write(self.server.api(), path, &body(number)).unwrap().status()
        });
    }

    fn read(&self, path: &str) {
        self.repeat(path, &[200], |_| read(self.server.api(), path).unwrap().status());
    }
}

#[test]
fn resets_in_a_row_disturb_no_request_and_leave_nothing() {
    let (fresh, server) = (server(), server());
    let load = Load { server: &server, is_over: AtomicBool::new(false), requests: AtomicU64::new(0) };
    let mut times = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| load.poll("solo"));
        scope.spawn(|| load.long_poll("web_0"));
        scope.spawn(|| load.approve("solo"));
        scope.spawn(|| load.work("/v1/commands", |_| json!({"command": "restart", "machine": "solo"})));
        scope.spawn(|| load.work("/v1/clock", |_| json!({"clock": "advance", "by": "7m"})));
        scope.spawn(|| {
            load.work(
                "/v1/commands",
                |number| json!({"command": "admit_vm", "name": format!("m{number}"), "host": "h1"}),
            );
        });
        scope.spawn(|| load.work("/v1/clusters", |number| json!({"name": format!("c{number}")})));
        scope.spawn(|| load.read("/v1/machines"));
        scope.spawn(|| load.read("/v1/audit"));
        scope.spawn(|| load.read("/v1/fleet"));
        for _ in 0..RESETS {
            let begin = Instant::now();
            reset(&server);
            times.push(begin.elapsed());
        }
        load.is_over.store(true, Ordering::Relaxed);
        // A request that waits for a change ends with a reset.
        reset(&server);
    });
    reset(&server);
    assert_same(&everything(&server), &everything(&fresh));
    times.sort();
    println!(
        "{RESETS} resets beside {} requests: median {:?}, longest {:?}",
        load.requests.load(Ordering::Relaxed),
        times[RESETS / 2],
        times[RESETS - 1],
    );
    let begin = Instant::now();
    (0..RESETS).for_each(|_| drop(reset(&server)));
    println!("without load: {:?} each", begin.elapsed() / u32::try_from(RESETS).unwrap());
}

#[test]
fn a_reset_waits_for_an_advance_of_the_clock() {
    let (fresh, server) = (server(), server());
    let expected = everything(&fresh);
    for _ in 0..10 {
        std::thread::scope(|scope| {
            let advance =
                || write(server.api(), "/v1/clock", &json!({"clock": "advance", "by": "3650d"})).unwrap();
            server.run(&["rollout", "start", "--all", "--kind", "reboot", "--pause-between", "1h"]);
            let advancing = scope.spawn(advance);
            reset(&server);
            assert_eq!(advancing.join().unwrap().status(), 200);
        });
        reset(&server);
    }
    assert_same(&everything(&server), &expected);
}
