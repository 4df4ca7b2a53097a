//! Told to stop.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;

use crate::durable::place::{MACHINES, Place};
use forewarn_testkit::random_client::{Endpoints, RandomClient, Time};
use forewarn_testkit::wait_until;

/// promise: X2
#[test]
fn told_to_stop_in_the_middle_of_writes_it_ends_well_and_nothing_is_lost() {
    let place = Place::new();
    let client = |(number, machine): (usize, &&'static str)| RandomClient::new(machine, number, 6);
    let mut clients: Vec<_> = MACHINES.iter().enumerate().map(client).collect();
    for _ in 0..3 {
        let server = place.start();
        let doors = Endpoints::of(&server);
        clients.iter_mut().for_each(|client| client.check(doors));
        let answered = AtomicU64::new(0);
        let status = std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| client.work(doors, Time::Driven, &answered));
            }
            wait_until("the clients are at work", || (answered.load(Ordering::Relaxed) > 20).then_some(()));
            server.signal(Signal::TERM);
            server.end()
        });
        assert_eq!(status.code(), Some(0));
        let files = std::fs::read_dir(place.data()).unwrap().map(|file| file.unwrap().file_name());
        let mut files: Vec<_> = files.collect();
        files.sort();
        assert_eq!(files, ["audit.db", "journal.db", "journal.reach", "lock"], "the journal is closed");
    }
    let server = place.start();
    clients.iter_mut().for_each(|client| client.check(Endpoints::of(&server)));
}
