//! The trail, as somebody at a terminal or a script knows it; and following it through connections that break.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;

use serde_json::Value;

use crate::cli::support::{Server, alone};

#[test]
fn the_trail_is_listed_by_whatever_it_is_about() {
    let server = Server::start();
    server.enrol("web_0");
    let id = server.json("vm restart web_0")["events"][0]["id"].as_str().unwrap().to_owned();
    server.out("host update h1");
    let count = |words: &str| server.json(&format!("audit ls {words}"))["items"].as_array().unwrap().len();
    assert_eq!(count("--kind command --by anyone"), 2);
    assert_eq!(count(&format!("--event {}", &id[..8])), 1);
    assert_eq!(count("--machine web_0 --kind command"), 1);
    assert_eq!(count("--host h1 --kind command"), 1);
    assert_eq!(count("--rollout 0 --kind planned"), 1);
    assert_eq!(count("--tenant web --kind enrolled"), 1);
    assert_eq!(count("--since 2026-01-01T00:00:01Z"), 0);
    assert_eq!(count("--until 2026-01-01T00:00:00Z"), 0);
    let newest = server.json("audit ls --limit 1");
    assert_eq!(newest["items"].as_array().unwrap().len(), 1);
    assert!(newest["next"].is_string() && newest["head"].is_string(), "{newest}");
    let line = server.out("audit ls --kind command --machine web/web_0");
    assert!(line.contains("  command    requested: restart, machine web_0 [anyone]\n"), "{line}");
    assert!(line.starts_with("default "), "numbers count within a cluster: {line}");
    assert_eq!(server.run("audit ls --machine nobody").code, Some(1));
    assert_eq!(server.run("audit ls --event ABCD").code, Some(1));
    assert_eq!(server.run("audit ls --limit 0").code, Some(2));
}

/// promise: C5
#[test]
fn a_list_of_several_pages_has_everything_once() {
    let server = Server::start();
    // More than a server gives at once.
    let sets: Vec<_> = (0..1_100).map(|number| format!("{{ name = 'x{number}' }}")).collect();
    let ran = server.run_with("fleet apply -", &format!("cloud_service = [{}]\n", sets.join(",")));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let page = server.json("audit ls --limit 5000");
    let mut chains = BTreeMap::<String, Vec<u64>>::new();
    for entry in page["items"].as_array().unwrap() {
        let stream = entry["stream"].as_str().unwrap().to_owned();
        chains.entry(stream).or_default().push(entry["number"].as_u64().unwrap());
    }
    assert!(chains["cluster-0"].len() > 1_000);
    for (stream, numbers) in chains {
        let expected: Vec<_> = (1..=numbers[0]).rev().collect();
        assert_eq!(numbers, expected, "{stream}");
    }
    assert_eq!(page.get("next"), None);
}

/// promise: C5
#[test]
fn an_export_is_verified_and_a_changed_byte_is_found() {
    let server = Server::start();
    server.out("vm stop solo --wait");
    let file = server.file("taken", "");
    let taken = server.run(&format!("audit export {}", file.display()));
    assert_eq!(taken.code, Some(1), "a file that is there is not written over");
    let file = file.with_file_name("trail.ndjson");
    let name = file.display();
    server.out(&format!("audit export {name}"));
    let whole = server.out("audit verify");
    assert_eq!(alone(&format!("audit verify {name}")).out, whole, "with and without the server");
    let text = fs::read_to_string(&file).unwrap();
    let count = text.lines().count();
    assert!(whole.starts_with(&format!("Verified: {count} entries.\n")), "{whole}");
    let of_default = text.lines().filter(|line| line.contains(r#","stream":"cluster-0","hash":""#)).count();
    let range = format!("{of_default} entries, from 1 to {of_default}");
    let chain = format!("\n  default (cluster-0): {range}. The last entry is cluster-0:{of_default}:");
    assert!(whole.contains(&chain), "{whole}");
    assert_eq!(server.out("audit export -"), text);

    let verified = server.json("audit verify");
    let hashes: Vec<_> = verified["chains"].as_array().unwrap().iter().map(|it| &it["hash"]).collect();
    let expected: String =
        hashes.iter().map(|hash| format!(" --expect {}", hash.as_str().unwrap())).collect();
    assert_eq!(alone(&format!("audit verify {name}{expected}")).code, Some(0));
    let ends = whole.lines().filter_map(|line| line.rsplit_once("The last entry is ").map(|(_, end)| end));
    let noted: String = ends.map(|end| format!(" --expect {end}")).collect();
    let compared = alone(&format!("audit verify {name}{noted}"));
    assert_eq!(compared.out.matches("is as expected").count(), 1, "{}{}", compared.out, compared.err);
    server.out("vm start solo --wait");
    let grown = server.out(&format!("audit verify{noted}"));
    assert!(grown.contains(&format!("; entry {of_default} is as expected. ")), "{grown}");
    assert_eq!(server.run(&format!("audit verify{expected}")).code, Some(1), "there are later entries");
    let part: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
    let cut = server.run_with(&format!("audit verify -{noted}"), &part);
    assert!(cut.code == Some(1) && cut.err.contains("is missing: the last one is entry 5"), "{}", cut.err);
    let own = alone(&format!("audit verify {name} --cluster default"));
    assert!(
        own.out.starts_with(&format!("Verified: {of_default} entries.\n  default (cluster-0): ")),
        "{}",
        own.out
    );
    let other = alone(&format!("audit verify {name} --expect {}", "0".repeat(64)));
    assert!(other.code == Some(1) && other.err.contains("unexpected last hash"), "{}", other.err);

    let own = text.lines().filter(|line| line.contains(r#","stream":"cluster-0","hash":""#));
    let part: String = own.skip(5).map(|line| format!("{line}\n")).collect();
    let ran = server.run_with("audit verify -", &part);
    let expected = format!(
        "Verified: {0} entries.\n  default (cluster-0): {0} entries, from 6 to {of_default}; entries before 6 are ",
        of_default - 5
    );
    assert!(ran.out.starts_with(&expected), "{}", ran.out);
    let changed = text.replacen("requested: stop", "requested: spot", 1);
    let line = 1 + text.lines().position(|line| line.contains("requested: stop")).unwrap();
    let ran = server.run_with("audit verify -", &changed);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    let number =
        serde_json::from_str::<Value>(text.lines().nth(line - 1).unwrap()).unwrap()["number"].clone();
    assert!(ran.err.starts_with(&format!("forewarn: line {line}: audit entry {number}, or")), "{}", ran.err);
}

/// promise: C5
#[test]
fn a_renamed_cluster_is_verified_under_its_new_name() {
    let server = Server::start();
    server.out("cluster create west");
    server.out("brake on --cluster west");
    server.out("cluster rename west west2");
    let renamed = server.out("audit verify --cluster west2");
    assert!(renamed.contains("\n  west (cluster-1): "), "its entries have the former name: {renamed}");
    let file = server.file("taken", "").with_file_name("west.ndjson");
    server.out(&format!("audit export {} --cluster west2", file.display()));
    assert_eq!(alone(&format!("audit verify {} --cluster west", file.display())).out, renamed);
    let unknown = alone(&format!("audit verify {} --cluster east", file.display()));
    assert!(unknown.code == Some(1) && unknown.err.contains("no entries of the cluster east"));
}

/// The stream of what happens, from a place on.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(server: &Server, last: Option<u64>) -> Self {
        let address = server.api.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        write!(stream, "GET /v1/watch HTTP/1.1\r\nHost: {address}\r\n{last}\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    /// The next id and what comes with it. Ids are opaque to clients; with one cluster at work, they are positions.
    /// Nothing comes with the first, which says where the stream begins.
    fn next(&mut self) -> (u64, Option<Value>) {
        let (mut id, mut data) = (None, None);
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
            match line.trim_end() {
                "" => {
                    if let Some(id) = id {
                        return (id, data);
                    }
                }
                line => {
                    id = line.strip_prefix("id:").map(|id| id.trim().parse().unwrap()).or(id);
                    data =
                        line.strip_prefix("data:").map(|data| serde_json::from_str(data).unwrap()).or(data);
                }
            }
        }
    }
}

/// promise: C5
#[test]
fn a_stream_that_is_taken_up_again_has_everything_once() {
    let server = Server::start();
    let mut stream = Stream::open(&server, None);
    let (begin, nothing) = stream.next();
    assert_eq!(nothing, None);
    server.out("brake on");
    let mut seen = vec![stream.next().0, stream.next().0];
    drop(stream);
    server.out("brake off");
    server.out("vm stop solo");
    let head = server.json("audit ls --limit 1")["head"].as_str().unwrap().parse().unwrap();
    let mut stream = Stream::open(&server, seen.last().copied());
    assert_eq!(stream.next().0, seen[1], "it begins where the other ended");
    while *seen.last().unwrap() < head {
        seen.push(stream.next().0);
    }
    server.out("brake on");
    seen.push(stream.next().0);
    assert_eq!(seen, (begin + 1..=head + 1).collect::<Vec<_>>());
    // Who has seen more than there is has seen another server: it is told what happens from now on.
    let mut stream = Stream::open(&server, Some(1_000_000));
    let (now, _) = stream.next();
    server.out("brake off");
    assert_eq!(stream.next().0, now + 1);
}

/// Passes everything on between whoever connects and a server, and cuts it when told to.
struct Cable {
    address: SocketAddr,
    connections: mpsc::Receiver<TcpStream>,
}

impl Cable {
    fn to(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = server.api.strip_prefix("http://").unwrap().to_owned();
        let (sender, connections) = mpsc::channel();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect(&server) else { return };
                let pairs = [(near.try_clone(), far.try_clone()), (far.try_clone(), near.try_clone())];
                for (from, to) in pairs {
                    let (mut from, mut to) = (from.unwrap(), to.unwrap());
                    // It ends when either side does.
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                if sender.send(near).is_err() {
                    return;
                }
            }
        });
        Self { address, connections }
    }

    /// Cuts the next connection that was made.
    fn cut(&self) {
        let connection = self.connections.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        connection.shutdown(std::net::Shutdown::Both).unwrap();
    }
}

/// promise: C5
#[test]
fn watching_goes_on_where_it_was_when_the_connection_breaks() {
    let server = Server::start();
    let cable = Cable::to(&server);
    let mut watching = server.begin(&format!("watch --output json --api http://{}", cable.address));
    let number = |line: String| serde_json::from_str::<Value>(&line).unwrap()["number"].as_u64().unwrap();
    // Whoever watches sees what happens from then on; nobody says when that is.
    let mut lines = std::iter::repeat_with(|| {
        server.out("brake on");
        server.out("brake off");
        watching.line_soon()
    });
    let first = number(lines.find_map(|line| line).unwrap());
    let newest = || server.json("audit ls --limit 1")["items"][0]["number"].as_u64().unwrap();
    let before = newest();
    let mut seen = vec![first];
    while *seen.last().unwrap() < before {
        seen.push(number(watching.line()));
    }
    cable.cut();
    server.out("brake on");
    let head = newest();
    while *seen.last().unwrap() < head {
        seen.push(number(watching.line()));
    }
    assert_eq!(seen, (first..=head).collect::<Vec<_>>());
    watching.hear("reconnecting");
    assert_eq!(watching.interrupt(), Some(0));
}
