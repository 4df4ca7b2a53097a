//! The audit log of more clusters than one query can ask for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use forewarn_testkit::operator::write;
use forewarn_testkit::{TestDir, TestServer};

const CLUSTERS: usize = 150;

/// Commands about the machine of each cluster.
const ROUNDS: usize = 3;

fn server() -> (TestServer, TestDir) {
    let directory = TestDir::new();
    let data = directory.path("data");
    (TestServer::start_with(crate::program(), &["--data-dir", &data]), directory)
}

fn send(server: &TestServer, path: &str, body: &Value) {
    let response = write(server.api(), path, body).unwrap();
    assert!((200..300).contains(&response.status()), "{path}: {response:?}");
}

fn items(page: &Value) -> Vec<(String, u64)> {
    let key =
        |entry: &Value| (entry["cluster"].as_str().unwrap().to_owned(), entry["number"].as_u64().unwrap());
    page["items"].as_array().unwrap().iter().map(key).collect()
}

/// promise: C5
#[test]
fn the_audit_log_of_150_clusters_is_listed_by_tenant_and_machine() {
    let (server, _directory) = server();
    for number in 0..CLUSTERS {
        let name = format!("c{number}");
        send(&server, "/v1/clusters", &json!({ "name": name }));
        let commands = format!("/v1/commands?cluster={name}");
        send(&server, &commands, &json!({ "command": "admit_host", "name": "h1" }));
        send(&server, &commands, &json!({ "command": "admit_vm", "name": "solo", "host": "h1" }));
    }
    // Entries of all clusters follow each other in turn, so that every page has some of each part.
    for round in 0..ROUNDS {
        for number in 0..CLUSTERS {
            let commands = format!("/v1/commands?cluster=c{number}");
            send(
                &server,
                &commands,
                &json!({ "command": "describe", "machine": "solo", "tags": { "round": round.to_string() } }),
            );
        }
    }
    let filter = ["--tenant", "solo", "--machine", "solo/solo", "--kind", "command"];
    let list = |more: &[&str]| server.json(&[&["audit", "ls"], &filter[..], more].concat());
    let all = items(&list(&["--limit", "5000"]));
    let mut expected: Vec<_> = (0..CLUSTERS).rev().map(|number| format!("c{number}")).collect();
    expected = [&expected[..]; ROUNDS].concat();
    let described: Vec<_> = all.iter().take(expected.len()).map(|(cluster, _)| cluster.clone()).collect();
    assert_eq!(described, expected, "latest first, over all clusters");
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no entry appears twice");

    // Pages of any size have the same entries in the same order.
    let mut paged = Vec::new();
    let mut before = String::new();
    loop {
        let path = format!("/v1/audit?tenant=solo&machine=solo%2Fsolo&kind=command&limit=77{before}");
        let page = forewarn_testkit::operator::value(
            &forewarn_testkit::operator::read(server.api(), &path).unwrap(),
        );
        assert!(page["items"].as_array().unwrap().len() <= 77);
        paged.extend(items(&page));
        let Some(next) = page["next"].as_str() else { break };
        before = format!("&before={next}");
    }
    assert_eq!(paged, all);

    // A short list has the latest ones.
    let latest = items(&list(&["--limit", "1"]));
    assert_eq!(latest, all[..1]);
}
