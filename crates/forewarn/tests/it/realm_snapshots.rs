//! The log in etcd does not grow for ever: its states are stored, its batches deleted, and a server that joins afterwards
//! has everything all the same.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use forewarn_testkit::etcd::EtcdCluster;
use forewarn_testkit::{SOLO_FLEET, ServeDir, TestServer, wait_until};
use serde_json::{Value, json};

use crate::realm::site::{document, has_solo, names, settings};

/// More batches than the log keeps.
const HOSTS: usize = 1_050;

const SOCKET: &str = "api.socket = 'DIR/api.sock'";

/// Keys of the first batches of the default cluster, without the prefix of the realm.
const LOG: &str = "/forewarn/1/log/cluster-0/";

/// A connection of an operator to the socket of a server.
struct OperatorConnection(BufReader<UnixStream>);

impl OperatorConnection {
    fn open(place: &ServeDir) -> Self {
        Self(BufReader::new(UnixStream::connect(place.path("api.sock")).expect("the server listens")))
    }

    /// Sends a command, and returns the status.
    fn command(&mut self, body: &Value) -> String {
        let body = body.to_string();
        let head = "POST /v1/commands HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        self.0.get_mut().write_all(request.as_bytes()).expect("the server reads");
        let (status, mut length) = (self.line(), 0);
        loop {
            let line = self.line().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("the whole answer");
        status
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        line.trim_end().to_owned()
    }
}

/// Number of keys of the log that begin with a prefix.
fn count_keys(etcd: &EtcdCluster, prefix: &str) -> u64 {
    let encode = |bytes: &[u8]| data_encoding::BASE64.encode(bytes);
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().expect("a prefix") += 1;
    let query = json!({ "key": encode(prefix.as_bytes()), "range_end": encode(&end), "count_only": true });
    let answer = etcd.post(0, "/v3/kv/range", None, &query);
    answer["count"].as_str().map_or(0, |count| count.parse().expect("a number"))
}

/// All audit entries that a server has, in one order.
fn entries(server: &TestServer) -> Vec<String> {
    let mut lines: Vec<_> = server.run(&["audit", "export", "-"]).lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// promise: D5
#[test]
fn a_server_joins_after_the_log_was_shortened() {
    let Some(etcd) = EtcdCluster::start(3) else { return };
    let places: Vec<_> = (0..3).map(|_| ServeDir::new(crate::program(), SOLO_FLEET)).collect();
    let start = |number: usize| places[number].start(&settings(&etcd, number, SOCKET));
    let (first, second) = (start(0), start(1));
    wait_until("both have the fleet", || (has_solo(&first) && has_solo(&second)).then_some(()));
    let mut connection = OperatorConnection::open(&places[0]);
    for number in 0..HOSTS {
        let status = connection.command(&json!({ "command": "admit_host", "name": format!("n{number}") }));
        assert!(status.contains(" 200 "), "{status}");
    }
    wait_until("the log is short", || (count_keys(&etcd, LOG) < HOSTS as u64 / 2).then_some(()));
    assert!(count_keys(&etcd, "/forewarn/1/snapshot/cluster-0/") > 0);
    let third = start(2);
    wait_until("it serves documents", || has_solo(&third).then_some(()));
    assert_eq!(document(&third)["DocumentIncarnation"], document(&first)["DocumentIncarnation"]);
    assert_eq!(names(&third, "host"), names(&first, "host"));
    assert_eq!(names(&third, "host").len(), HOSTS + 1);
    let expected = entries(&first);
    assert!(expected.len() > HOSTS, "{}", expected.len());
    wait_until("it has copied the older audit entries", || (entries(&third) == expected).then_some(()));
    // It continues alone from its own copy.
    drop((first, second));
    third.run(&["host", "create", "last"]);
    assert_eq!(names(&third, "host").len(), HOSTS + 2);
    drop(third);
    let checked =
        places[2].command().args(["store", "check", &places[2].path("data")]).output().expect("it runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
