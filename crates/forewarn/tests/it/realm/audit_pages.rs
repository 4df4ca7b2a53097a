//! Pages of the audit log of a realm: a load balancer may send each request to another server.

use std::io::Read;

use forewarn_testkit::wait_until;
use serde_json::Value;

use super::clients::connect;
use super::site::{RealmSite, SERVERS, create};

/// The status of a request, its head in small letters, and its body.
fn get(site: &RealmSite, server: usize, path: &str) -> (u16, String, Value) {
    let mut answer = String::new();
    connect(site, server, &format!("GET {path}"), "").read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let body = body.get(body.find('{').expect("JSON")..=body.rfind('}').expect("JSON")).expect("JSON");
    (status, head.to_lowercase(), serde_json::from_str(body).expect("JSON"))
}

/// Reads all pages, each from the next server in turn.
fn paged(site: &RealmSite, in_turn: &[usize], path: &str, cursor: &str) -> Vec<Value> {
    let (mut all, mut next) = (Vec::new(), String::new());
    for server in in_turn.iter().cycle() {
        let (status, _, mut page) = get(site, *server, &format!("{path}{next}"));
        assert_eq!(status, 200, "{path}{next} on server {server}: {page}");
        all.append(page["items"].as_array_mut().expect("a page"));
        match page["next"].as_str() {
            Some(position) => next = format!("&{cursor}={position}"),
            None => break,
        }
    }
    all
}

/// promise: C5
#[test]
fn pages_of_the_audit_log_go_on_at_another_server_each_time() {
    let Some(mut site) = RealmSite::start() else { return };
    for turn in 0..2 * SERVERS {
        create(site.server(turn % SERVERS), &["cluster", "create", &format!("c{turn}")]);
        create(site.server((turn + 1) % SERVERS), &["--cluster", &format!("c{turn}"), "host", "create", "h"]);
        site.create_host((turn + 2) % SERVERS, &format!("a{turn}"));
    }
    for first in 0..SERVERS {
        let in_turn = [first, (first + 1) % SERVERS, (first + 2) % SERVERS];
        for (order, cursor) in [("oldest", "after"), ("newest", "before")] {
            let path = format!("/v1/audit?limit=1&order={order}");
            let found = paged(&site, &in_turn, &path, cursor);
            assert_eq!(found, paged(&site, &[first], &path, cursor), "{order}, first {first}");
            assert!(found.len() >= 6 * SERVERS, "{} entries", found.len());
            // The command line reads them as one list.
            let listed = site.server(first).json(&["audit", "ls", "--limit", "100000"]);
            let listed = listed["items"].as_array().or_else(|| listed.as_array()).expect("a list");
            assert_eq!(listed.len(), found.len());
        }
    }
    let after = "/v1/audit?limit=1&order=oldest&after=1@s0";
    let (_, _, second) = get(&site, 1, after);
    site.servers[0].take().expect("it runs").kill();
    let gone = wait_until("the killed server is gone", || {
        let (status, head, problem) = get(&site, 1, after);
        assert!(status == 404 || status == 503 && head.contains("\r\nretry-after: "), "{status}: {problem}");
        (status == 404).then(|| problem["detail"].to_string())
    });
    assert!(gone.contains("the server of the cursor is gone or unknown: s0"), "{gone}");
    site.start_server(0);
    wait_until("the server is back", || {
        let (status, _, page) = get(&site, 1, after);
        (status == 200).then(|| assert_eq!(page["items"], second["items"]))
    });
}
