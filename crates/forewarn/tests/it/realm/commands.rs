//! Commands about the servers of a realm, on three real servers: moves, drains, descriptions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use forewarn_testkit::{SOLO_FLEET, ServeDir, TestServer, wait_until};
use rustix::process::Signal;
use serde_json::Value;

use super::site::{RealmSite, SERVERS};
use super::{PollingMachine, end_all, write_until};

/// Time of writing before a move, and after it.
const WRITING: Duration = Duration::from_millis(500);

/// The owner and the term of the default cluster, as a server shows them.
fn owner(server: &TestServer) -> (String, u64) {
    wait_until("the cluster has an owner", || {
        let shown = &server.json(&["cluster", "show", "default"])["owner"];
        Some((shown["server"].as_str()?.to_owned(), shown["term"].as_u64()?))
    })
}

fn number(name: &str) -> usize {
    name.strip_prefix('s').and_then(|number| number.parse().ok()).expect("the name of a server")
}

fn others(name: &str) -> impl Iterator<Item = String> {
    (0..SERVERS).map(|number| format!("s{number}")).filter(move |other| other != name)
}

/// Waits until every server shows all servers as active.
pub(super) fn all_active(site: &RealmSite) {
    for (_, server) in site.running() {
        wait_until("all servers are active", || {
            let listed = list(server);
            let is_active = |one: &Value| one["state"] == "active";
            (listed.len() == SERVERS && listed.iter().all(is_active)).then_some(())
        });
    }
}

fn list(server: &TestServer) -> Vec<Value> {
    let listed = server.json(&["server", "ls"]);
    listed.as_array().or_else(|| listed["items"].as_array()).expect("a list").clone()
}

/// Runs something while hosts are created through every server. Returns the longest pause between two of them.
fn while_writing<T>(site: &mut RealmSite, prefix: &str, work: impl FnOnce(&RealmSite) -> T) -> (T, Duration) {
    let stop = AtomicBool::new(false);
    let (done, written) = thread::scope(|scope| {
        let writers: Vec<_> = site
            .running()
            .map(|(number, server)| {
                let (stop, prefix) = (&stop, format!("{prefix}-s{number}"));
                scope.spawn(move || write_until(server, &prefix, stop))
            })
            .collect();
        thread::sleep(WRITING);
        let done = work(site);
        thread::sleep(WRITING);
        stop.store(true, Ordering::Relaxed);
        (done, writers.into_iter().map(|writer| writer.join().expect("it writes")).collect::<Vec<_>>())
    });
    let longest = written.iter().map(|(_, gap)| *gap).max().unwrap_or_default();
    site.acknowledged.extend(written.into_iter().flat_map(|(names, _)| names));
    (done, longest)
}

pub(super) fn refused(server: &TestServer, words: &[&str]) -> String {
    let output = server.try_run(words);
    assert!(!output.status.success(), "{words:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// promise: C7
#[test]
fn a_cluster_moves_while_requests_go_on() {
    let Some(mut site) = RealmSite::start() else { return };
    all_active(&site);
    let polling: Vec<_> =
        site.running().map(|(_, server)| PollingMachine::start(server.metadata())).collect();
    for turn in 0..3 {
        let (from, term) = owner(site.server(0));
        let to = others(&from).nth(turn % 2).expect("another server");
        let (said, gap) = while_writing(&mut site, &format!("move{turn}"), |site| {
            site.server(turn).run(&["cluster", "move", "default", "--to", &to])
        });
        println!("moved from {from} to {to}: longest pause between two writes {gap:?}");
        assert_eq!(said, format!("Cluster default is owned by {to} (term {}).\n", term + 1));
        for (_, server) in site.running() {
            wait_until("every server knows the owner", || {
                (owner(server) == (to.clone(), term + 1)).then_some(())
            });
        }
    }
    end_all(polling);
    site.check_all();
    let shown = site.server(0).run(&["cluster", "show", "default"]);
    let (now, _) = owner(site.server(0));
    assert!(shown.contains(&format!("preferred  {now}")), "{shown}");
}

/// promise: C7
#[test]
fn a_server_is_drained_and_used_again() {
    let Some(mut site) = RealmSite::start() else { return };
    all_active(&site);
    let (first, _) = owner(site.server(0));
    let (drained, gap) = while_writing(&mut site, "drain", |site| {
        let drained = site.server(0).run(&["server", "drain", &first]);
        wait_until("another server owns the cluster", || (owner(site.server(0)).0 != first).then_some(()));
        drained
    });
    println!("drained {first}: longest pause between two writes {gap:?}");
    assert!(drained.starts_with(&format!("Server {first} drains.")), "{drained}");
    for (_, server) in site.running() {
        wait_until("every server shows the drain", || {
            (server.json(&["server", "show", &first])["state"] == "draining").then_some(())
        });
    }
    let error = refused(site.server(0), &["cluster", "move", "default", "--to", &first]);
    assert!(error.contains("cannot own clusters now") && error.contains("hint:"), "{error}");
    // The drained server answers, and a lost owner is replaced by the third.
    let (second, _) = owner(site.server(number(&first)));
    site.servers[number(&second)].take().expect("it runs").kill();
    let through = number(&first);
    site.create_host(through, "through-the-drained");
    let third = others(&first).find(|name| *name != second).expect("a third server");
    assert_eq!(owner(site.server(through)).0, third);
    let active = site.server(through).run(&["server", "drain", &first, "--off"]);
    assert_eq!(active, format!("Server {first} may own clusters again.\n"));
    wait_until("the drain has ended", || {
        (site.server(through).json(&["server", "show", &first])["state"] == "active").then_some(())
    });
    site.server(through).run(&["cluster", "move", "default", "--to", &first]);
    site.create_host(number(&third), "after");
    site.check_all();
}

/// promise: C7
#[test]
fn a_server_that_is_stopped_gives_its_clusters_away() {
    let Some(mut site) = RealmSite::start() else { return };
    all_active(&site);
    let (first, term) = owner(site.server(0));
    let leaving = site.servers[number(&first)].take().expect("it runs");
    let (ended, gap) = while_writing(&mut site, "stop", |_| {
        leaving.signal(Signal::TERM);
        leaving.end()
    });
    println!("stopped {first}: longest pause between two writes {gap:?}");
    assert!(ended.success(), "{ended}");
    let through = number(&others(&first).next().expect("another server"));
    let (second, now) = owner(site.server(through));
    assert_ne!(second, first);
    assert_eq!(now, term + 1, "no takeover was needed");
    site.check_all();
    let gone = wait_until("its key is gone", || {
        Some(refused_or_gone(site.server(through), &first))
            .filter(|state| state != "active" && state != "draining")
    });
    println!("a server that has stopped is {gone}");
    site.start_server(number(&first));
    all_active(&site);
    site.check_all();
}

/// The state of a server, or the error about it.
fn refused_or_gone(server: &TestServer, name: &str) -> String {
    let output = server.try_run(&["server", "show", name, "-o", "json"]);
    let shown = serde_json::from_slice::<Value>(&output.stdout).ok();
    let state = shown.and_then(|shown| shown["state"].as_str().map(str::to_owned));
    state.unwrap_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_realm_is_described_on_every_server() {
    let Some(site) = RealmSite::start() else { return };
    all_active(&site);
    let descriptions: Vec<_> = site.running().map(|(_, server)| server.json(&["realm", "show"])).collect();
    for realm in &descriptions {
        assert_eq!(realm["identity"], descriptions[0]["identity"]);
        assert_eq!((realm["format"].as_u64(), realm["restores"].as_u64()), (Some(1), Some(0)));
        assert_eq!(realm["servers"].as_array().map(Vec::len), Some(SERVERS));
        let members = realm["engine"].as_array().expect("members");
        assert_eq!(members.len(), 3);
        assert!(members.iter().all(|member| member["version"].is_string() && member["bytes"].is_u64()));
        assert!(
            realm["streams"]["shared"]["number"].is_u64()
                && realm["streams"]["cluster-0"]["owner"].is_string()
        );
    }
    let server = site.server(0);
    for (words, expected) in [
        (&["server", "show", "s9"][..], "no such server: s9"),
        (&["server", "delete", "s1"], "server s1 is a member of the realm"),
        (&["cluster", "move", "default", "--to", "s9"], "no such server: s9"),
        (&["cluster", "move", "west", "--to", "s1"], "no such cluster: west"),
        (&["realm", "set-format", "2"], "does not read format 2: it reads 1"),
    ] {
        let error = refused(server, words);
        assert!(error.contains(expected) && error.contains("hint: "), "{words:?}: {error}");
    }
    assert_eq!(server.run(&["realm", "set-format", "1"]), "Records are written in format 1.\n");
    assert_eq!(server.run(&["server", "ls", "-o", "name"]), "s0\ns1\ns2\n");
    let table = server.run(&["cluster", "ls"]);
    assert!(table.starts_with("NAME") && table.contains("OWNER"), "{table}");
}

#[test]
fn a_server_without_a_realm_says_so() {
    let place = ServeDir::new(crate::program(), SOLO_FLEET);
    let server = place.start(
        "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\napi.socket = 'DIR/api.sock'\ndriver.kind = 'simulated'\n\
         [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n",
    );
    for words in [
        &["server", "ls"][..],
        &["server", "drain", "a1"],
        &["cluster", "move", "default", "--to", "a1"],
        &["realm", "show"],
    ] {
        let error = refused(&server, words);
        assert!(error.contains("this server belongs to no realm") && error.contains("hint: "), "{error}");
    }
    let clusters = server.run(&["cluster", "ls"]);
    assert!(!clusters.contains("OWNER"), "{clusters}");
}
