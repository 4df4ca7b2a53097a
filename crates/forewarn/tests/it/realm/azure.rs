//! Writes of Azure clients, and files of fleets, through any server: each response shows what the request has done.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::site::{RealmSite, SERVERS, names};

/// Longest wait for bytes of a server.
const READ_MAX: Duration = Duration::from_secs(60);

/// Writes through each server: a copy that lags would be seen at one of them.
const ROUNDS: usize = 5;

const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/forewarn";

/// Sends a request of an Azure client to the socket of a server. Returns the status and the body.
fn ask(site: &RealmSite, server: usize, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = UnixStream::connect(site.places[server].file("api.sock")).expect("it listens");
    stream.set_read_timeout(Some(READ_MAX)).expect("a timeout");
    let sent = if body.is_null() { String::new() } else { body.to_string() };
    let request = format!(
        "{method} {GROUP}/providers/{path}?api-version=2024-07-01 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{sent}",
        sent.len()
    );
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

fn machine(size: &str) -> Value {
    json!({ "location": "eastus", "properties": { "hardwareProfile": { "vmSize": size } } })
}

/// promise: C1
#[test]
fn an_azure_client_sees_what_it_has_written_whichever_server_it_asks() {
    let Some(site) = RealmSite::start_for_azure() else { return };
    let owner = site.owner();
    let mut times = vec![Vec::new(); SERVERS];
    for round in 0..ROUNDS {
        for (server, times) in times.iter_mut().enumerate() {
            let name = format!("vm{round}-{server}");
            let path = format!("Microsoft.Compute/virtualMachines/{name}");
            for (size, wanted) in [("Standard_D2s_v3", 201), ("Standard_D4s_v3", 200)] {
                let begin = Instant::now();
                let (status, shown) = ask(&site, server, "PUT", &path, &machine(size));
                times.push(begin.elapsed());
                assert_eq!((status, &shown["name"]), (wanted, &json!(name)), "{shown}");
                assert_eq!(shown["properties"]["hardwareProfile"]["vmSize"], size, "{shown}");
            }
        }
    }
    for (server, times) in times.iter_mut().enumerate() {
        times.sort_unstable();
        let role = if server == owner { "the owner" } else { "another server" };
        println!("PUT of a machine through s{server}, {role}: median {:?}", times[times.len() / 2]);
    }
}

/// promise: Z4
#[test]
fn a_template_is_deployed_through_any_server() {
    let Some(site) = RealmSite::start_for_azure() else { return };
    for server in 0..SERVERS {
        let (set, name) = (format!("set{server}"), format!("member{server}"));
        let id = format!("[resourceId('Microsoft.Compute/availabilitySets', '{set}')]");
        let resources = json!([
            {
                "type": "Microsoft.Compute/availabilitySets",
                "apiVersion": "2024-07-01",
                "name": set,
                "location": "eastus",
                "sku": { "name": "Aligned" },
                "properties": {},
            },
            {
                "type": "Microsoft.Compute/virtualMachines",
                "apiVersion": "2024-07-01",
                "name": name,
                "location": "eastus",
                "dependsOn": [id],
                "properties": { "availabilitySet": { "id": id } },
            },
        ]);
        let template =
            json!({ "mode": "incremental", "parameters": {}, "template": { "resources": resources } });
        let path = format!("Microsoft.Resources/deployments/{name}");
        let (status, made) = ask(&site, server, "PUT", &path, &json!({ "properties": template }));
        assert_eq!((status, &made["name"]), (201, &json!(name)), "{made}");
        for asked in 0..SERVERS {
            let (status, shown) = ask(&site, asked, "GET", &path, &Value::Null);
            let state = &shown["properties"]["provisioningState"];
            assert_eq!((status, state), (200, &json!("Succeeded")), "{shown}");
            let (_, member) =
                ask(&site, asked, "GET", &format!("Microsoft.Compute/virtualMachines/{name}"), &Value::Null);
            let joined = member["properties"]["availabilitySet"]["id"].as_str().unwrap_or_default();
            assert!(joined.ends_with(&set), "{member}");
        }
    }
}

/// promise: C1
#[test]
fn a_file_of_the_fleet_is_applied_whole_through_any_server() {
    let Some(site) = RealmSite::start() else { return };
    for number in 0..SERVERS {
        let (server, place) = (site.server(number), &site.places[number]);
        let larger = "host = [{ name = 'h1' }, { name = 'h2' }]\n\
                      vm = [{ name = 'solo', host = 'h1' }, { name = 'more', host = 'h2' }]\n";
        server.run(&["fleet", "apply", &place.write("larger.toml", larger)]);
        assert_eq!(
            (names(server, "host"), names(server, "vm").len()),
            (vec!["h1".to_owned(), "h2".to_owned()], 2)
        );
        // The host is removed once its machine is forgotten: in a second step.
        let report = server.json(&["fleet", "apply", &place.path("fleet.toml"), "--forget"]);
        let states: Vec<_> = report["differences"].as_array().expect("a report").iter().collect();
        assert!(states.len() >= 2 && states.iter().all(|one| one["state"] == "done"), "{report}");
        assert_eq!(
            (names(server, "host"), names(server, "vm")),
            (vec!["h1".to_owned()], vec!["solo".to_owned()])
        );
    }
}
