//! An owner that hangs: requests that it has got are answered by the next owner.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::thread;

use forewarn_testkit::raw_http::{self, NEWEST, approve};
use forewarn_testkit::{TestServer, wait_until};
use rustix::process::Signal;

use super::clients::{connect, status_of};
use super::site::{RealmSite, SERVERS, document, event};

/// Requests at once: more than one server sends to another one.
const REQUESTS: usize = 12;

/// Creates hosts at once, each by one request that is not repeated.
fn create_hosts(site: &RealmSite, through: usize, prefix: &str) -> Vec<String> {
    let names: Vec<_> = (0..REQUESTS).map(|number| format!("{prefix}{number}")).collect();
    thread::scope(|scope| {
        let ask = |name: &String| {
            let body = format!(r#"{{"command":"admit_host","name":"{name}"}}"#);
            let fields = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
            let mut reader = connect(site, through, "POST /v1/commands", &fields);
            reader.get_mut().write_all(body.as_bytes()).expect("it reads");
            (name.clone(), reader)
        };
        let asked: Vec<_> = names.iter().map(ask).collect();
        let answers =
            asked.into_iter().map(|(name, reader)| scope.spawn(move || check_created(&name, reader)));
        answers.collect::<Vec<_>>().into_iter().for_each(|answer| answer.join().expect("it is created"));
    });
    names
}

fn check_created<R: Read>(name: &str, mut reader: BufReader<R>) {
    let mut answer = String::new();
    // A server that closes the connection after the answer is fine.
    drop(reader.read_to_string(&mut answer));
    assert_eq!(status_of(&answer), Some(200), "{name}: {answer}");
}

/// Stops a server, and waits until all of its threads are stopped.
fn stop(server: &TestServer) {
    server.signal(Signal::STOP);
    let tasks = format!("/proc/{}/task", server.id());
    // The state is the word after the name, which is in brackets.
    let is_stopped = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
    wait_until("every thread of the server is stopped", || {
        let mut threads = fs::read_dir(&tasks).expect("it runs").flatten();
        let is_stopped =
            threads.all(|thread| fs::read_to_string(thread.path().join("stat")).is_ok_and(is_stopped));
        is_stopped.then_some(())
    });
}

/// promise: D1
#[test]
fn requests_to_an_owner_that_hangs_are_answered_while_it_hangs_and_carried_out_once() {
    let Some(mut site) = RealmSite::start() else { return };
    let owner = site.owner();
    let (other, third) = ((owner + 1) % SERVERS, (owner + 2) % SERVERS);
    document(site.server(other));
    site.server(other).run(&["vm", "restart", "solo"]);
    let (id, _) = wait_until("the third server shows the event", || event(site.server(third)));
    // There are connections to the owner: what is sent on them arrives, and is not read.
    let before = create_hosts(&site, other, "before");
    stop(site.server(owner));
    let during = create_hosts(&site, other, "during");
    wait_until("an approval is answered", || {
        let answer = raw_http::ask(site.server(third).metadata(), &raw_http::post(NEWEST, &approve(&[&id])));
        (answer.expect("it answers").status() == 200).then_some(())
    });
    assert_ne!(site.owner(), owner);
    site.server(owner).signal(Signal::CONT);
    site.acknowledged.extend(before.into_iter().chain(during));
    // It reads the requests now: another server owns the cluster.
    site.create_host(owner, "after");
    site.check_all();
}
