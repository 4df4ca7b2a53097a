//! Several servers on one etcd: any of them answers, one that is lost is replaced, and nothing that was acknowledged is lost.

mod audit_pages;
mod azure;
mod clients;
mod commands;
mod restored;
pub(crate) mod site;
mod stopped;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use forewarn_testkit::etcd::EtcdCluster;
use forewarn_testkit::raw_http::{self, NEWEST, approve};
use forewarn_testkit::{SOLO_FLEET, ServeDir, TestServer, wait_until};
use rustix::process::Signal;

use site::{RealmSite, SERVERS, create, document, event, has_solo, poll, settings};

/// Time of writing before an owner is lost, and after it is replaced.
const WRITING: Duration = Duration::from_secs(1);

/// Pause between two polls of a machine.
const POLL_PAUSE: Duration = Duration::from_millis(20);

/// Longer than a poll may take.
const SLOW_POLL: Duration = Duration::from_secs(5);

/// Creates hosts until it is told to stop. Returns their names and the longest time between two of them.
fn write_until(server: &TestServer, prefix: &str, stop: &AtomicBool) -> (Vec<String>, Duration) {
    let (mut names, mut longest, mut last) = (Vec::new(), Duration::ZERO, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let name = format!("{prefix}-{}", names.len());
        create(server, &["host", "create", &name]);
        names.push(name);
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    (names, longest)
}

/// A machine that polls a server all the time.
struct PollingMachine {
    stop: Arc<AtomicBool>,
    polling: JoinHandle<(usize, Duration)>,
}

impl PollingMachine {
    fn start(at: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let polling = thread::spawn(move || {
            let (mut count, mut longest) = (0, Duration::ZERO);
            while !ended.load(Ordering::Relaxed) {
                let begin = Instant::now();
                let answer = poll(at);
                assert_eq!(answer.status(), 200, "{answer:?}");
                longest = longest.max(begin.elapsed());
                count += 1;
                thread::sleep(POLL_PAUSE);
            }
            (count, longest)
        });
        Self { stop, polling }
    }

    /// Stops, and returns the number of polls and the longest one.
    fn end(self) -> (usize, Duration) {
        self.stop.store(true, Ordering::Relaxed);
        self.polling.join().expect("every poll was answered")
    }
}

fn end_all(machines: Vec<PollingMachine>) {
    for machine in machines {
        let (count, longest) = machine.end();
        println!("{count} polls answered, the longest in {longest:?}");
        assert!(count > 0 && longest < SLOW_POLL);
    }
}

/// promise: S4
#[test]
fn servers_that_start_together_issue_one_first_token_and_load_the_fleet_once() {
    let Some(etcd) = EtcdCluster::start(3) else { return };
    let places: Vec<_> = (0..SERVERS).map(|_| ServeDir::new(crate::program(), SOLO_FLEET)).collect();
    let servers: Vec<_> = thread::scope(|scope| {
        let starts = places.iter().enumerate().map(|(number, place)| {
            let settings = settings(&etcd, number, "api.listen = '127.0.0.1:0'");
            scope.spawn(move || place.start(&settings))
        });
        let starts: Vec<_> = starts.collect();
        starts.into_iter().map(|start| start.join().expect("it starts")).collect()
    });
    let named: Vec<_> = wait_until("a server names the file of the first token", || {
        let named = servers.iter().filter(|server| server.log().contains("first.token"));
        Some(named.collect::<Vec<_>>()).filter(|named| !named.is_empty())
    });
    let token = named[0].key();
    let files = places.iter().filter(|place| place.file("data").join("first.token").exists());
    assert_eq!((named.len(), files.count()), (1, 1), "one server has the first token");
    for server in &servers {
        wait_until("the server has the fleet", || has_solo(server).then_some(()));
        let list = server.run(&["--token", &token, "vm", "ls"]);
        assert!(list.contains("solo"), "{list}");
    }
}

#[test]
fn an_event_goes_through_three_servers() {
    let Some(site) = RealmSite::start() else { return };
    let (one, other, third) = (site.server(0), site.server(1), site.server(2));
    site.running().for_each(|(_, server)| drop(document(server)));
    one.run(&["vm", "restart", "solo"]);
    let begin = Instant::now();
    let (id, status) = wait_until("another server shows the event", || event(other));
    println!("shown by another server after {:?}", begin.elapsed());
    assert_eq!(status, "Scheduled");
    let body = approve(&[&id]);
    wait_until("the third server shows the event", || event(third));
    let answer = raw_http::ask(third.metadata(), &raw_http::post(NEWEST, &body)).expect("an answer");
    assert_eq!(answer.status(), 200, "{answer:?}");
    for (_, server) in site.running() {
        wait_until("the event starts", || {
            (event(server).is_none_or(|(_, status)| status == "Started")).then_some(())
        });
    }
    for (_, server) in site.running() {
        wait_until("the event ends", || event(server).is_none().then_some(()));
    }
}

#[test]
fn a_lost_owner_is_replaced_and_comes_back() {
    let Some(mut site) = RealmSite::start() else { return };
    site.create_objects("before");
    site.check_all();
    let owner = site.owner();
    let lost = site.servers[owner].take().expect("it runs");
    let polling: Vec<_> =
        site.running().map(|(_, server)| PollingMachine::start(server.metadata())).collect();
    let stop = AtomicBool::new(false);
    let written = thread::scope(|scope| {
        let writers: Vec<_> = site
            .running()
            .map(|(number, server)| (number, server, format!("during-s{number}")))
            .map(|(number, server, prefix)| {
                let stop = &stop;
                (number, scope.spawn(move || write_until(server, &prefix, stop)))
            })
            .collect();
        thread::sleep(WRITING);
        lost.kill();
        site.owner();
        thread::sleep(WRITING);
        stop.store(true, Ordering::Relaxed);
        let ended = writers.into_iter().map(|(number, writer)| (number, writer.join().expect("it writes")));
        ended.collect::<Vec<_>>()
    });
    for (number, (names, gap)) in written {
        println!("{} writes through s{number} while s{owner} was killed, longest gap {gap:?}", names.len());
        site.acknowledged.extend(names);
    }
    site.create_objects("after");
    end_all(polling);
    site.check_all();
    assert_ne!(site.owner(), owner);
    // It catches up with what it has missed.
    let begin = Instant::now();
    site.start_server(owner);
    println!("the killed server is back after {:?}", begin.elapsed());
    site.check_all();
    document(site.server(owner));
    site.create_host(owner, "through-the-returned");
    site.check_all();
}

#[test]
fn one_owner_after_the_other_may_be_lost() {
    let Some(mut site) = RealmSite::start() else { return };
    for turn in 0..SERVERS {
        site.create_objects(&format!("before{turn}-"));
        let owner = site.owner();
        site.servers[owner].take().expect("it runs").kill();
        let gap = site.write_through_all(&format!("gap{turn}"));
        println!("the owner s{owner} was killed: writes through both other servers succeed after {gap:?}");
        site.check_all();
        site.start_server(owner);
        site.check_all();
    }
}

/// promise: X2
#[test]
fn an_owner_stops_although_etcd_is_away() {
    let Some(mut site) = RealmSite::start() else { return };
    let owner = site.owner();
    (0..SERVERS).for_each(|member| site.etcd.kill(member));
    let server = site.servers[owner].take().expect("it runs");
    let refused = server.try_run(&["host", "create", "never"]);
    assert!(!refused.status.success(), "its commit has no answer");
    server.signal(Signal::TERM);
    assert_eq!(server.end().code(), Some(0));
}

#[test]
fn a_lost_leader_of_etcd_loses_nothing() {
    let Some(mut site) = RealmSite::start() else { return };
    site.create_objects("before");
    let polling: Vec<_> =
        site.running().map(|(_, server)| PollingMachine::start(server.metadata())).collect();
    let leader = site.etcd.leader();
    site.etcd.kill(leader);
    let gap = site.write_through_all("gap");
    println!("writes through all servers succeed {gap:?} after the leader of etcd was killed");
    site.create_objects("after");
    end_all(polling);
    site.check_all();
    site.etcd.restart(leader);
    site.create_objects("again");
    site.check_all();
}
