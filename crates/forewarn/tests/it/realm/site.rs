//! Servers of one realm on a real etcd.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use forewarn_testkit::etcd::EtcdCluster;
use forewarn_testkit::raw_http::{self, NEWEST, RawResponse};
use forewarn_testkit::{SOLO_FLEET, ServeDir, TestServer, wait_until};
use serde_json::Value;

pub(crate) const SERVERS: usize = 3;

/// The number of writes before a fault, and after it.
const WRITES: usize = 10;

/// Servers on one etcd, each with its own directory.
pub(crate) struct RealmSite {
    pub(crate) servers: Vec<Option<TestServer>>,
    pub(crate) places: Vec<ServeDir>,
    pub(crate) etcd: EtcdCluster,
    /// Names of hosts whose creation was acknowledged.
    pub(crate) acknowledged: BTreeSet<String>,
    /// The same of machines, each of which has its own tenant.
    pub(crate) machines: BTreeSet<String>,
    /// Settings of the listeners of every server.
    listeners: &'static str,
}

/// The socket of operators.
/// Directories of the servers.
fn places() -> Vec<ServeDir> {
    (0..SERVERS).map(|_| ServeDir::new(crate::program(), SOLO_FLEET)).collect()
}

const SOCKET: &str = "api.socket = 'DIR/api.sock'";

impl RealmSite {
    /// None without etcd.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(SOCKET, places())
    }

    /// The same with the directories of the servers.
    pub(crate) fn start_on(places: Vec<ServeDir>) -> Option<Self> {
        Self::start_with(SOCKET, places)
    }

    /// Servers that answer Azure clients, too. None without etcd.
    pub(crate) fn start_for_azure() -> Option<Self> {
        Self::start_with("api.socket = 'DIR/api.sock'\narm.listen = '127.0.0.1:0'", places())
    }

    fn start_with(listeners: &'static str, places: Vec<ServeDir>) -> Option<Self> {
        let etcd = EtcdCluster::start(3)?;
        let servers = (0..SERVERS).map(|_| None).collect();
        let (acknowledged, machines) = (BTreeSet::new(), BTreeSet::new());
        let mut site = Self { servers, places, etcd, acknowledged, machines, listeners };
        (0..SERVERS).for_each(|number| site.start_server(number));
        wait_until("every server has the fleet", || {
            site.running().all(|(_, server)| has_solo(server)).then_some(())
        });
        Some(site)
    }

    pub(crate) fn start_server(&mut self, number: usize) {
        let settings = settings(&self.etcd, number, self.listeners);
        self.servers[number] = Some(self.places[number].start(&settings));
    }

    pub(crate) fn server(&self, number: usize) -> &TestServer {
        self.servers[number].as_ref().expect("it runs")
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = (usize, &TestServer)> {
        self.servers.iter().enumerate().filter_map(|(number, server)| Some((number, server.as_ref()?)))
    }

    /// The server that has become the owner of the default cluster last, as the logs say.
    pub(crate) fn owner(&self) -> usize {
        wait_until("a server owns the cluster", || {
            let term = |(number, server): (usize, &TestServer)| Some((last_term(&server.log())?, number));
            self.running().filter_map(term).max().map(|(_, number)| number)
        })
    }

    /// Creates a host through a server, which has to succeed in the end.
    pub(crate) fn create_host(&mut self, through: usize, name: &str) {
        create(self.server(through), &["host", "create", name]);
        self.acknowledged.insert(name.to_owned());
    }

    /// Creates a machine with its own tenant.
    pub(crate) fn create_machine(&mut self, through: usize, name: &str) {
        create(self.server(through), &["vm", "create", name, "--host", "h1"]);
        self.machines.insert(name.to_owned());
    }

    pub(crate) fn create_objects(&mut self, prefix: &str) {
        for number in 0..WRITES {
            let servers: Vec<_> = self.running().map(|(server, _)| server).collect();
            let through = servers[number % servers.len()];
            self.create_host(through, &format!("{prefix}{number}"));
            if number % 3 == 0 {
                self.create_machine(through, &format!("{prefix}{number}"));
            }
        }
    }

    /// Everything that was acknowledged is there once, on every server, and nothing else.
    pub(crate) fn check_all(&self) {
        for (number, server) in self.running() {
            for (list, initial, acknowledged) in
                [("host", "h1", &self.acknowledged), ("vm", "solo", &self.machines)]
            {
                let mut expected: Vec<_> = acknowledged.iter().map(String::as_str).chain([initial]).collect();
                expected.sort_unstable();
                assert_eq!(names(server, list), expected, "{list} on server {number}");
            }
        }
    }

    /// The time until a write through each running server has succeeded.
    pub(crate) fn write_through_all(&mut self, prefix: &str) -> Duration {
        let begin = Instant::now();
        let servers: Vec<_> = self.running().map(|(server, _)| server).collect();
        for server in servers {
            self.create_host(server, &format!("{prefix}-through-s{server}"));
        }
        begin.elapsed()
    }
}

/// The settings of a server with a number.
pub(crate) fn settings(etcd: &EtcdCluster, number: usize, api: &str) -> String {
    let endpoints = etcd.endpoints().iter().map(|url| format!("'{url}'")).collect::<Vec<_>>().join(", ");
    format!(
        "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\n{api}\ndriver.kind = 'simulated'\n\
         [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n[metadata.limits]\nenabled = false\n\
         [engine]\nendpoints = [{endpoints}]\n[server]\nname = 's{number}'\nlisten = '127.0.0.1:0'\n"
    )
}

pub(crate) fn has_solo(server: &TestServer) -> bool {
    poll(server.metadata()).status() == 200
}

pub(crate) fn poll(at: SocketAddr) -> RawResponse {
    raw_http::ask(at, &raw_http::get(NEWEST)).expect("the server answers")
}

pub(crate) fn document(server: &TestServer) -> Value {
    let answer = poll(server.metadata());
    assert_eq!(answer.status(), 200, "{answer:?}");
    serde_json::from_str(&answer.body).expect("a document is JSON")
}

pub(crate) fn event(server: &TestServer) -> Option<(String, String)> {
    let document = document(server);
    let text = |key: &str| document["Events"][0][key].as_str().map(str::to_owned);
    Some((text("EventId")?, text("EventStatus")?))
}

/// The names of all hosts or machines, sorted.
pub(crate) fn names(server: &TestServer, list: &str) -> Vec<String> {
    let list = server.json(&[list, "ls"]);
    let list = list.as_array().or_else(|| list["items"].as_array()).expect("a list");
    let mut names: Vec<_> = list.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect();
    names.sort_unstable();
    names
}

/// Repeats a command until it has succeeded.
pub(crate) fn create(server: &TestServer, words: &[&str]) {
    let mut attempts = 0;
    wait_until("a write succeeds", || {
        attempts += 1;
        let output = server.try_run(words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let exists = error.contains("already");
        assert!(!exists || attempts > 1, "a write was carried out twice: {words:?}: {error}");
        // An earlier attempt may have succeeded without an answer.
        (output.status.success() || exists).then_some(())
    });
}

/// The term of the last ownership in a log.
pub(crate) fn last_term(log: &str) -> Option<u64> {
    let lines = log.lines().filter(|line| line.contains("this server owns the cluster"));
    let term = |line: &str| line.split("term=").nth(1)?.split_whitespace().next()?.parse().ok();
    lines.filter_map(term).max()
}
