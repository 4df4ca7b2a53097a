//! SIGKILL at random points, while the clients of many clusters compete for the same resource groups, and clusters come and go.
//!
//! `FOREWARN_KILL_ROUNDS` is the number of kills, `FOREWARN_KILL_SEED` the seed of the clients; both are printed if it fails.

mod book;
mod client;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::{Value, json};

use crate::access::place::{Request, json as body_of};
use crate::durable::format_1::format_of;
use crate::durable::kill::number;
use book::Book;
use client::{Client, Counts};
use forewarn_testkit::arm::SUBSCRIPTION;
use forewarn_testkit::{
    DEADLINE, NEWEST, Random, RawResponse, ServeDir, TestServer, get, io_calls, wait_for_io_calls,
};

/// Clusters that stay, each with a client whose token is limited to it; and clusters that come and go.
const CLUSTERS: usize = 8;
const TEMPORARY: usize = 2;

/// The resource groups that all of them want: fewer than clusters.
const POOL: [&str; 6] = ["pool-0", "pool-1", "pool-2", "pool-3", "pool-4", "pool-5"];

/// The groups that clients want for sites, and those that they want to create.
#[derive(Clone, Copy)]
struct Pools {
    sites: &'static [&'static str],
    resources: &'static [&'static str],
}

impl Pools {
    /// The same groups for both. Servers of format 1 did not notice if a cluster took a group for its site while another one
    /// created it: with them, each has groups of its own.
    fn of(data: &Path) -> Self {
        match format_of(data) {
            1 => Self { sites: &POOL[..3], resources: &POOL[3..] },
            _ => Self { sites: &POOL, resources: &POOL },
        }
    }
}

/// Reads and writes of a start: a server has done at least so many when it is ready.
const START_CALLS: u64 = 70;

/// Reads and writes of some commits.
const CALLS_BEFORE_KILL: u64 = 40;

/// Answers between two kills.
const ANSWERS_MAX: u64 = 120;

const FLEET: &str = r#"{"host":[{"name":"h0"},{"name":"h1"}],"vm":[{"name":"m","host":"h0"}]}"#;

struct Run {
    files: ServeDir,
    settings: String,
    root: String,
    random: Random,
    clients: Vec<Client>,
    counts: Counts,
}

fn send(api: SocketAddr, token: &str, line: &str, body: &str) -> RawResponse {
    forewarn_testkit::ask(api, &Request { line, token: Some(token), headers: "", body }.bytes()).unwrap()
}

fn group_path(group: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{group}?api-version=2024-11-01")
}

impl Run {
    fn new(seed: u64) -> Self {
        let files = ServeDir::new(crate::program(), "");
        let mut settings =
            "data_dir = 'DIR/data'\napi = { listen = '127.0.0.1:0' }\ndriver = { kind = 'simulated' }\n\
             arm = { listen = '127.0.0.1:0', tls = { self_signed = true } }\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\n"
                .to_owned();
        for cluster in 0..CLUSTERS {
            settings +=
                &format!("[[metadata.listen]]\nsocket = 'DIR/c{cluster}.sock'\nmachine = 'c{cluster}/m/m'\n");
        }
        let server = files.start(&settings);
        let root = server.key();
        let mut run = Self {
            files,
            settings,
            root,
            random: Random::new(seed),
            clients: Vec::new(),
            counts: Counts::default(),
        };
        run.fill(&server, seed);
        run
    }

    /// Creates clusters with a machine, and a token for each.
    fn fill(&mut self, server: &TestServer, seed: u64) {
        let (api, pools) = (server.api(), Pools::of(&self.files.file("data")));
        let ask = |line: &str, body: &str| {
            let answer = send(api, &self.root, line, body);
            assert_eq!(answer.status(), 200, "{line}: {answer:?}");
            body_of(&answer)
        };
        for number in 0..CLUSTERS + TEMPORARY {
            let random = Random::new(seed ^ (number as u64 + 1) << 32);
            if number >= CLUSTERS {
                self.clients.push(Client::temporary(format!("t{number}"), self.root.clone(), random, pools));
                continue;
            }
            let name = format!("c{number}");
            ask("POST /v1/clusters", &json!({ "name": name }).to_string());
            ask(&format!("POST /v1/fleet?cluster={name}"), FLEET);
            let token = json!({ "name": name, "role": "admin", "clusters": [name] });
            let token = ask("POST /v1/tokens", &token.to_string());
            enrol(&self.files.path(&format!("{name}.sock")));
            let mut book = Book::new(&name, true);
            book.hosts = ["h0", "h1"].map(str::to_owned).into();
            let text = token["text"].as_str().unwrap().to_owned();
            self.clients.push(Client::new(name, text, random, book, pools));
        }
    }

    fn start(&mut self) -> TestServer {
        // A start can be killed, too.
        for _ in 0..self.random.below(3) {
            let mut command = self.files.serve(&self.settings);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            wait_for_io_calls(child.id(), self.random.below(START_CALLS));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        self.files.start(&self.settings)
    }

    /// Lets the clients work until so much is answered, and the server then do a few more reads and writes; kills it there.
    fn kill(&mut self, server: TestServer) {
        let (api, counts) = (server.api(), &self.counts);
        let wanted = counts.answered.load(Ordering::Relaxed) + 1 + self.random.below(ANSWERS_MAX);
        let more = self.random.below(CALLS_BEFORE_KILL);
        std::thread::scope(|scope| {
            let clients = self.clients.iter_mut();
            let threads: Vec<_> = clients.map(|client| scope.spawn(|| client.work(api, counts))).collect();
            let begin = Instant::now();
            // A client that has ended already has found something wrong.
            let goes_on = || threads.iter().all(|thread| !thread.is_finished()) && begin.elapsed() < DEADLINE;
            while counts.answered.load(Ordering::Relaxed) < wanted && goes_on() {
                std::thread::yield_now();
            }
            let calls = io_calls(server.id()) + more;
            while io_calls(server.id()) < calls && goes_on() {
                std::thread::yield_now();
            }
            server.kill();
        });
        let answered = counts.answered.load(Ordering::Relaxed);
        assert!(answered >= wanted, "the clients were answered {answered} times only");
    }

    /// Everything that was answered is true, each group belongs to one cluster, and no group is lost.
    fn check(&mut self, server: &TestServer) {
        let api = server.api();
        check_owners(&self.clients.iter().map(|client| (client, client.check(api))).collect::<Vec<_>>());
        // The requests without an answer are repeated: now every book is exact.
        for client in &mut self.clients {
            client.settle(api, &self.counts).unwrap();
        }
        let exact: Vec<_> = self.clients.iter().map(|client| (client, client.observe(api))).collect();
        for (client, observed) in &exact {
            assert_eq!(observed, &client.book, "{}", client.name);
        }
        check_owners(&exact);
        let there = exact.iter().filter(|(_, book)| book.exists).map(|(client, _)| client.name.clone());
        let expected: BTreeSet<_> = there.chain(["default".to_owned()]).collect();
        let shown = body_of(&send(api, &self.root, "GET /v1/clusters", ""));
        let names = shown["items"].as_array().unwrap().iter();
        let names: BTreeSet<_> = names.map(|item| item["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(names, expected, "the clusters that were answered, and no others");
        let used: BTreeSet<_> = exact.iter().flat_map(|(_, book)| book.used()).collect();
        self.check_free_groups(api, &used);
    }

    /// A group that no cluster uses can be taken by any cluster at once, by one of them alone, and again when it is left.
    fn check_free_groups(&mut self, api: SocketAddr, used: &BTreeSet<String>) {
        for group in POOL.iter().filter(|group| !used.contains(**group)) {
            let first = self.random.index(CLUSTERS);
            let second = (first + 1 + self.random.index(CLUSTERS - 1)) % CLUSTERS;
            let (first, second) = (&self.clients[first], &self.clients[second]);
            let is_site = |client: &Client, group: &str| client.move_site(api, group).status();
            let create = |client: &Client| {
                client.send(api, &format!("PUT {}", group_path(group)), r#"{"location":"local"}"#).status()
            };
            let delete =
                |client: &Client| client.send(api, &format!("DELETE {}", group_path(group)), "").status();
            assert_eq!(create(first), 201, "{group} is free, also for {}", first.name);
            assert_eq!(is_site(second, group), 409, "{group} belongs to {}", first.name);
            assert_eq!(create(second), 409, "{group} belongs to {}", first.name);
            assert_eq!(delete(first), 202, "{group} of {}", first.name);
            assert_eq!(is_site(second, group), 200, "{group} is free again, also for {}", second.name);
            assert_eq!(create(first), 409, "{group} belongs to {}", second.name);
            assert_eq!(is_site(second, &second.book.site), 200, "{}", second.name);
        }
    }

    /// Nothing is under way: a clean stop and a start change nothing, and the audit log is whole.
    fn finish(&mut self) {
        let server = self.start();
        self.check(&server);
        let verified = server.try_run(&["--token", &self.root, "audit", "verify"]);
        assert!(verified.status.success(), "{verified:?}");
        server.signal(rustix::process::Signal::TERM);
        assert!(server.end().success());
        let server = self.files.start(&self.settings);
        self.check(&server);
    }
}

/// A group is used by one cluster.
fn check_owners(observed: &[(&Client, Book)]) {
    let mut owners = BTreeMap::new();
    for (client, book) in observed {
        for group in book.used() {
            let other = owners.insert(group.to_lowercase(), &client.name);
            assert_eq!(other, None, "{group} belongs to {}, too", client.name);
        }
    }
}

/// Reads the document of a machine once, through its socket.
fn enrol(socket: &str) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(get(NEWEST).as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200", "{socket}");
}

/// promise: C2, D1, Z1, C7
#[test]
fn clusters_that_compete_for_groups_keep_what_they_were_answered_over_kills() {
    let (seed, rounds) = (number("FOREWARN_KILL_SEED", 4), number("FOREWARN_KILL_ROUNDS", 20));
    let mut run = Run::new(seed);
    for round in 0..rounds {
        eprintln!("FOREWARN_KILL_SEED={seed}, round {round} of {rounds}");
        let server = run.start();
        run.check(&server);
        run.kill(server);
    }
    run.finish();
    let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let Counts { answered, taken, refused, removed } = &run.counts;
    let events: usize = run.clients.iter().map(Client::events).sum();
    let shown = json!({ "answered": count(answered), "taken": count(taken), "refused": count(refused),
        "removed": count(removed), "events": events });
    eprintln!("{rounds} kills: {shown}");
    // Events end, and those of removed clusters go: their number does not grow for ever.
    let is_enough = |value: &Value| value.as_u64().unwrap() >= (rounds / 2).min(10);
    assert!(shown.as_object().unwrap().values().all(is_enough), "too little happened: {shown}");
}
