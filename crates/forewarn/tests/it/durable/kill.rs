//! SIGKILL at random moments, while several clients announce, approve, cancel and note things, on a clock that is driven and on
//! one that runs.
//!
//! `FOREWARN_KILL_ROUNDS` says how many times, `FOREWARN_KILL_SEED` what the clients do; both are printed when it fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::durable::place::{MACHINES, Place};
use forewarn_testkit::Random;
use forewarn_testkit::operator::advance;
use forewarn_testkit::random_client::{Endpoints, RandomClient, Time, UNAVAILABLE};
use forewarn_testkit::{DEADLINE, TestServer, io_calls, wait_for_io_calls};

pub(super) fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

/// Fifteen minutes of notice in three seconds: within a few rounds.
const FAST: [&str; 2] = ["--clock", "300x"];

/// Reads and writes of a start: a server has done at least 76 when it is ready.
const START_CALLS: u64 = 70;

/// Reads and writes of some commits.
const CALLS_BEFORE_KILL: u64 = 16;

/// What a run has come to.
struct Run {
    place: Place,
    random: Random,
    clients: Vec<RandomClient>,
    answered: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let client = |(number, machine): (usize, &&'static str)| RandomClient::new(machine, number, seed);
        let clients = MACHINES.iter().enumerate().map(client).collect();
        Self { place: Place::new(), random: Random::new(seed), clients, answered: 0 }
    }

    fn start(&mut self, more: &[&str]) -> TestServer {
        // A start can be killed, too, and then must not have done anything by halves.
        for _ in 0..self.random.below(3) {
            let mut child = self.place.launch(more);
            wait_for_io_calls(child.id(), self.random.below(START_CALLS));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let server = self.place.start_with(more);
        let location = "/metadata/instance/compute/location?api-version=2021-02-01&format=text";
        assert_eq!(server.get(MACHINES[0], location).short(), (200, "north"));
        let doors = Endpoints::of(&server);
        self.clients.iter_mut().for_each(|client| client.check(doors));
        server
    }

    /// Lets the clients work until so much is answered, and the server then do a few more reads and writes; kills it there.
    fn kill(&mut self, server: TestServer, time: Time) {
        let doors = Endpoints::of(&server);
        let wanted = 1 + self.random.below(60);
        let answered = AtomicU64::new(0);
        let more = self.random.below(CALLS_BEFORE_KILL);
        std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for client in &mut self.clients {
                threads.push(scope.spawn(|| {
                    let end = client.work(doors, time, &answered);
                    assert_ne!(end.kind(), UNAVAILABLE, "{end}");
                }));
            }
            let begin = Instant::now();
            // A client that has ended already has found something wrong.
            let goes_on = || threads.iter().all(|thread| !thread.is_finished()) && begin.elapsed() < DEADLINE;
            while answered.load(Ordering::Relaxed) < wanted && goes_on() {
                std::thread::yield_now();
            }
            let calls = io_calls(server.id()) + more;
            while io_calls(server.id()) < calls && goes_on() {
                std::thread::yield_now();
            }
            server.kill();
        });
        let answered = answered.into_inner();
        assert!(answered >= wanted, "the clients were answered {answered} times only");
        self.answered += answered;
    }

    /// Lets everything come to its end, on a clock that stands.
    fn finish(&mut self) {
        let server = self.start(&[]);
        for _ in 0..4 {
            advance(&server, "30m");
        }
        let doors = Endpoints::of(&server);
        self.clients.iter_mut().for_each(|client| client.close(doors));
        let documents = MACHINES.map(|machine| server.document(machine));
        server.kill();
        let server = self.place.start();
        assert_eq!(MACHINES.map(|machine| server.document(machine)), documents);
    }
}

/// promise: N1, N5, T3, D1
#[test]
fn what_was_answered_survives_a_kill_and_nothing_goes_back_or_is_early() {
    let (seed, rounds) = (number("FOREWARN_KILL_SEED", 4), number("FOREWARN_KILL_ROUNDS", 20));
    let mut run = Run::new(seed);
    for round in 0..rounds {
        eprintln!("FOREWARN_KILL_SEED={seed}, round {round} of {rounds}");
        let (time, more) = if round % 2 == 0 { (Time::Driven, &[][..]) } else { (Time::Runs, &FAST[..]) };
        let server = run.start(more);
        run.kill(server, time);
    }
    run.finish();
    let events: usize = run.clients.iter().map(|client| client.books.events()).sum();
    eprintln!("{rounds} kills, {} answers, {events} events", run.answered);
    assert!(events > MACHINES.len(), "too little happened: {events} events");
}
