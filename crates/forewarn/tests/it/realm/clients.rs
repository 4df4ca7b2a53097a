//! Clients of a realm that go on at another server, and clients of servers without etcd.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use forewarn_testkit::raw_http::{self, NEWEST, approve};
use forewarn_testkit::wait_until;
use forewarn_testkit::webhook_receiver::{WebhookReceiver, add, shorts};
use serde_json::Value;

use super::site::{RealmSite, SERVERS, event, poll};

/// Longest wait for bytes of a server.
const READ_MAX: Duration = Duration::from_secs(60);

/// Sends a request to the socket of a server.
pub(super) fn connect(site: &RealmSite, server: usize, line: &str, fields: &str) -> BufReader<UnixStream> {
    let mut stream = UnixStream::connect(site.places[server].file("api.sock")).expect("it listens");
    stream.set_read_timeout(Some(READ_MAX)).expect("a timeout");
    let request = format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    BufReader::new(stream)
}

/// The head of an answer, in small letters.
fn head(reader: &mut BufReader<UnixStream>) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).expect("an answer") > 0, "{head}");
    }
    head.to_lowercase()
}

/// The status of a request, and the whole answer in small letters.
fn ask(site: &RealmSite, server: usize, line: &str, fields: &str) -> (u16, String) {
    let mut reader = connect(site, server, line, fields);
    let mut answer = head(&mut reader);
    // A server that closes the connection after the head is fine.
    drop(reader.read_to_string(&mut answer));
    (status_of(&answer).expect("a status"), answer)
}

/// The status of an answer.
pub(super) fn status_of(answer: &str) -> Option<u16> {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok())
}

/// A client of the event stream, which goes on at another server with its last id.
#[derive(Default)]
struct WatchingClient {
    last_id: Option<String>,
    /// The number of the last entry of each audit log.
    numbers: BTreeMap<String, u64>,
    count: usize,
}

impl WatchingClient {
    /// Opens a stream; it has begun once it has given its first id.
    fn open(&mut self, site: &RealmSite, server: usize) -> BufReader<UnixStream> {
        let last = self.last_id.iter().map(|id| format!("Last-Event-ID: {id}\r\n"));
        let mut reader = connect(site, server, "GET /v1/watch", &last.collect::<String>());
        assert!(head(&mut reader).starts_with("http/1.1 200"));
        while self.next(&mut reader).is_none() && self.last_id.is_none() {}
        reader
    }

    /// Reads a line. Returns the entry that it has.
    fn next(&mut self, reader: &mut BufReader<UnixStream>) -> Option<Value> {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("the stream goes on") > 0, "the stream has ended");
        if let Some(id) = line.strip_prefix("id: ") {
            self.last_id = Some(id.trim().to_owned());
        }
        let entry: Value = serde_json::from_str(line.strip_prefix("data: ")?).expect("an entry");
        self.check(&entry);
        Some(entry)
    }

    /// Every entry of a log comes once, and none is left out.
    fn check(&mut self, entry: &Value) {
        let number = entry["number"].as_u64().unwrap_or_else(|| panic!("no entry: {entry}"));
        let stream = entry["stream"].to_string();
        let before = self.numbers.insert(stream, number);
        assert!(before.is_none_or(|before| before + 1 == number), "{number} after {before:?}");
        self.count += 1;
    }

    /// Reads until a host is created.
    fn until_host(&mut self, reader: &mut BufReader<UnixStream>, host: &str) {
        loop {
            if self
                .next(reader)
                .is_some_and(|entry| entry["hosts"].to_string().contains(&format!("\"{host}\"")))
            {
                return;
            }
        }
    }
}

/// promise: C5
#[test]
fn an_event_stream_goes_on_at_another_server_without_a_gap_or_a_repetition() {
    let Some(mut site) = RealmSite::start() else { return };
    let mut client = WatchingClient::default();
    let mut reader = client.open(&site, 0);
    for turn in 0..2 * SERVERS {
        // Entries of the shared stream too, and some while the client is away.
        let through = turn % SERVERS;
        let cluster = format!("c{turn}");
        super::site::create(site.server(through), &["cluster", "create", &cluster]);
        site.create_host((turn + 1) % SERVERS, &format!("a{turn}"));
        client.until_host(&mut reader, &format!("a{turn}"));
        drop(reader);
        site.create_host(through, &format!("b{turn}"));
        reader = client.open(&site, (turn + 1) % SERVERS);
        client.until_host(&mut reader, &format!("b{turn}"));
    }
    let owner = site.owner();
    site.servers[owner].take().expect("it runs").kill();
    let other = (owner + 1) % SERVERS;
    site.create_host(other, "after");
    drop(reader);
    reader = client.open(&site, other);
    client.until_host(&mut reader, "after");
    println!("{} entries of {} logs, each once", client.count, client.numbers.len());
    assert!(client.count >= 4 * SERVERS && client.numbers.len() >= 2);
}

/// promise: W2
#[test]
fn a_webhook_gets_its_messages_after_the_owner_is_killed() {
    let Some(mut site) = RealmSite::start() else { return };
    let receiver = WebhookReceiver::start();
    let owner = site.owner();
    let other = (owner + 1) % SERVERS;
    add(site.server(other), "ops", &receiver, &[]);
    poll(site.server(other).metadata());
    site.server(other).run(&["vm", "restart", "solo"]);
    let has = |status: &str| shorts(&receiver.taken()).iter().any(|one| one.contains(status));
    wait_until("the event is reported", || has("Scheduled").then_some(()));
    site.servers[owner].take().expect("it runs").kill();
    let (id, _) = wait_until("another server shows the event", || event(site.server(other)));
    wait_until("the event is approved", || {
        let answer = raw_http::ask(site.server(other).metadata(), &raw_http::post(NEWEST, &approve(&[&id])));
        let answer = answer.expect("it answers");
        (answer.status() == 200).then_some(())
    });
    wait_until("the next owner reports it", || has("Started").then_some(()));
}

/// promise: D3
#[test]
fn without_etcd_operators_get_503_and_machines_get_their_documents() {
    let Some(mut site) = RealmSite::start() else { return };
    (0..3).for_each(|member| site.etcd.stop(member));
    for server in 0..SERVERS {
        wait_until("operators are asked to come back", || {
            let (status, answer) = ask(&site, server, "GET /v1/hosts", "");
            (status == 503 && answer.contains("\r\nretry-after: ")).then_some(())
        });
        assert_eq!(poll(site.server(server).metadata()).status(), 200);
    }
    (0..3).for_each(|member| site.etcd.resume(member));
    site.write_through_all("again");
    site.check_all();
}
