//! Several servers on one etcd: any of them answers, one that is lost is replaced, and nothing that was acknowledged is lost.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use forewarn_testkit::etcd::EtcdCluster;
use forewarn_testkit::raw_http::{self, NEWEST, RawResponse, approve};
use forewarn_testkit::{SOLO_FLEET, ServeDir, TestServer, wait_until};
use serde_json::Value;

const SERVERS: usize = 3;

/// The number of writes before a fault, and after it.
const WRITES: usize = 10;

/// Pause between two polls of a machine.
const POLL_PAUSE: Duration = Duration::from_millis(20);

/// Longer than a poll may take.
const SLOW_POLL: Duration = Duration::from_secs(5);

/// Servers on one etcd, each with its own directory.
struct RealmSite {
    servers: Vec<Option<TestServer>>,
    places: Vec<ServeDir>,
    etcd: EtcdCluster,
    /// Names of hosts whose creation was acknowledged.
    acknowledged: BTreeSet<String>,
}

impl RealmSite {
    /// None without etcd.
    fn start() -> Option<Self> {
        let etcd = EtcdCluster::start(3)?;
        let place = |_| ServeDir::new(crate::program(), SOLO_FLEET);
        let places = (0..SERVERS).map(place).collect();
        let servers = (0..SERVERS).map(|_| None).collect();
        let mut site = Self { servers, places, etcd, acknowledged: BTreeSet::new() };
        (0..SERVERS).for_each(|number| site.start_server(number));
        wait_until("every server has the fleet", || {
            site.running().all(|(_, server)| has_solo(server)).then_some(())
        });
        Some(site)
    }

    fn start_server(&mut self, number: usize) {
        let endpoints = self.etcd.endpoints().iter().map(|url| format!("'{url}'")).collect::<Vec<_>>().join(", ");
        let settings = format!(
            "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\napi.socket = 'DIR/api.sock'\ndriver.kind = 'simulated'\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n[metadata.limits]\nenabled = false\n\
             [engine]\nendpoints = [{endpoints}]\n[server]\nname = 's{number}'\nlisten = '127.0.0.1:0'\n"
        );
        self.servers[number] = Some(self.places[number].start(&settings));
    }

    fn server(&self, number: usize) -> &TestServer {
        self.servers[number].as_ref().expect("it runs")
    }

    fn running(&self) -> impl Iterator<Item = (usize, &TestServer)> {
        self.servers.iter().enumerate().filter_map(|(number, server)| Some((number, server.as_ref()?)))
    }

    /// The server that has become the owner of the default cluster last, as the logs say.
    fn owner(&self) -> usize {
        wait_until("a server owns the cluster", || {
            let term = |(number, server): (usize, &TestServer)| Some((last_term(&server.log())?, number));
            self.running().filter_map(term).max().map(|(_, number)| number)
        })
    }

    /// Creates a host through a server, which has to succeed in the end.
    fn create_host(&mut self, through: usize, name: &str) {
        wait_until("a write succeeds", || {
            let output = self.server(through).try_run(&["host", "create", name]);
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            // An earlier attempt may have succeeded without an answer.
            (output.status.success() || error.contains("already")).then_some(())
        });
        self.acknowledged.insert(name.to_owned());
    }

    fn create_hosts(&mut self, prefix: &str) {
        for number in 0..WRITES {
            let servers: Vec<_> = self.running().map(|(server, _)| server).collect();
            self.create_host(servers[number % servers.len()], &format!("{prefix}{number}"));
        }
    }

    /// Everything that was acknowledged is there once, on every server, and nothing else.
    fn check_hosts(&self) {
        let expected: Vec<_> = self.acknowledged.iter().cloned().chain(["h1".to_owned()]).collect();
        let expected: BTreeSet<_> = expected.into_iter().collect();
        for (number, server) in self.running() {
            let names = hosts(server);
            let unique: BTreeSet<_> = names.iter().cloned().collect();
            assert_eq!((names.len(), &unique), (expected.len(), &expected), "server {number}");
        }
    }

    /// The time until a write through each running server has succeeded.
    fn write_through_all(&mut self, prefix: &str) -> Duration {
        let begin = Instant::now();
        let servers: Vec<_> = self.running().map(|(server, _)| server).collect();
        for server in servers {
            self.create_host(server, &format!("{prefix}-through-s{server}"));
        }
        begin.elapsed()
    }
}

fn has_solo(server: &TestServer) -> bool {
    poll(server.metadata()).status() == 200
}

fn poll(at: SocketAddr) -> RawResponse {
    raw_http::ask(at, &raw_http::get(NEWEST)).expect("the server answers")
}

fn document(server: &TestServer) -> Value {
    let answer = poll(server.metadata());
    assert_eq!(answer.status(), 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("a document is JSON")
}

fn event(server: &TestServer) -> Option<(String, String)> {
    let document = document(server);
    let text = |key: &str| document["Events"][0][key].as_str().map(str::to_owned);
    Some((text("EventId")?, text("EventStatus")?))
}

fn hosts(server: &TestServer) -> Vec<String> {
    let list = server.json(&["host", "ls"]);
    let list = list.as_array().or_else(|| list["items"].as_array()).expect("a list").clone();
    list.iter().map(|host| host["name"].as_str().expect("a name").to_owned()).collect()
}

/// The term of the last ownership in a log.
fn last_term(log: &str) -> Option<u64> {
    let lines = log.lines().filter(|line| line.contains("this server owns the cluster"));
    let term = |line: &str| line.split("term=").nth(1)?.split_whitespace().next()?.parse().ok();
    lines.filter_map(term).max()
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

#[test]
fn an_event_goes_through_three_servers() {
    let Some(site) = RealmSite::start() else { return };
    let (one, other, third) = (site.server(0), site.server(1), site.server(2));
    site.running().for_each(|(_, server)| drop(document(server)));
    wait_until("the tenant is enrolled", || {
        one.json(&["vm", "show", "solo"]).to_string().contains("enrolled").then_some(())
    });
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
    site.create_hosts("before");
    site.check_hosts();
    let owner = site.owner();
    let polling: Vec<_> = site
        .running()
        .filter(|(number, _)| *number != owner)
        .map(|(_, server)| PollingMachine::start(server.metadata()))
        .collect();
    site.servers[owner].take().expect("it runs").kill();
    let gap = site.write_through_all("gap");
    println!("writes through both other servers succeed {gap:?} after the owner was killed");
    site.create_hosts("after");
    end_all(polling);
    site.check_hosts();
    assert_ne!(site.owner(), owner);
    // It catches up with what it has missed.
    let begin = Instant::now();
    site.start_server(owner);
    println!("the killed server is back after {:?}", begin.elapsed());
    site.check_hosts();
    document(site.server(owner));
    site.create_host(owner, "through-the-returned");
    site.check_hosts();
}

#[test]
fn every_server_may_be_lost_in_turn() {
    let Some(mut site) = RealmSite::start() else { return };
    for number in 0..SERVERS {
        site.create_hosts(&format!("before{number}-"));
        site.servers[number].take().expect("it runs").kill();
        let gap = site.write_through_all(&format!("gap{number}"));
        println!("s{number} killed: writes through both other servers succeed after {gap:?}");
        site.check_hosts();
        site.start_server(number);
        site.check_hosts();
    }
}

#[test]
fn a_lost_leader_of_etcd_loses_nothing() {
    let Some(mut site) = RealmSite::start() else { return };
    site.create_hosts("before");
    let polling: Vec<_> =
        site.running().map(|(_, server)| PollingMachine::start(server.metadata())).collect();
    let leader = site.etcd.leader();
    site.etcd.kill(leader);
    let gap = site.write_through_all("gap");
    println!("writes through all servers succeed {gap:?} after the leader of etcd was killed");
    site.create_hosts("after");
    end_all(polling);
    site.check_hosts();
    site.etcd.restart(leader);
    site.create_hosts("again");
    site.check_hosts();
}
