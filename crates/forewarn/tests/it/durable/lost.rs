//! Files of the journal that are lost, after a kill and under a running server.
//!
//! A server does not start on a journal that ends before what it has answered; an operator may accept the loss. A server whose
//! directory is removed answers documents, and no writes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::durable::place::Place;
use crate::program;
use forewarn_testkit::operator::{read, write};
use forewarn_testkit::{NEWEST, TestServer, approve, get, wait_until};

/// Runs `forewarn store` on a directory.
fn store(command: &str, directory: &Path) -> Output {
    Command::new(program()).args(["store", command]).arg(directory).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A copy of a data directory, with a place of its own.
fn copy_of(data: &Path, to: &Path) -> Place {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(data).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
    Place::at(to.to_owned())
}

fn incarnation(server: &TestServer) -> u64 {
    server.document("vm-0")["DocumentIncarnation"].as_u64().unwrap()
}

/// A server that was killed after it has cancelled an event, all in the log; the id of the event, and what was shown last.
fn killed() -> (Place, String, u64) {
    let place = Place::new();
    let server = place.start();
    server.enrol(&["vm-0"]);
    let id = server.restart("vm-0");
    server.signal(rustix::process::Signal::TERM);
    assert_eq!(server.end().code(), Some(0));
    let server = place.start();
    server.run(&["event", "cancel", &id]);
    assert_eq!(server.status("vm-0"), "gone");
    let shown = incarnation(&server);
    server.kill();
    (place, id, shown)
}

/// promise: D4
#[test]
fn a_log_that_is_lost_after_a_kill_is_refused_until_an_operator_accepts_the_loss() {
    let (place, id, shown) = killed();
    let log = fs::read(place.data().join("journal.db-wal")).unwrap();
    let losses =
        [("deleted", None), ("emptied", Some(&log[..0])), ("truncated", Some(&log[..log.len() / 2]))];
    for (what, rest) in losses {
        let left = copy_of(place.data(), &place.file(what));
        let log = left.data().join("journal.db-wal");
        match rest {
            Some(rest) => fs::write(log, rest).unwrap(),
            None => fs::remove_file(log).unwrap(),
        }
        let refused = left.fail();
        let words = format!("forewarn store accept-loss {}", left.data().display());
        assert_eq!(refused.status.code(), Some(1), "{what}: {}", said(&refused));
        assert!(said(&refused).contains("the journal has lost acknowledged commits"), "{refused:?}");
        assert!(said(&refused).contains(&words), "{what}: {}", said(&refused));
        let checked = store("check", left.data());
        assert_eq!(checked.status.code(), Some(1), "{what}: {}", said(&checked));
        let accepted = store("accept-loss", left.data());
        assert_eq!(accepted.status.code(), Some(0), "{what}: {}", said(&accepted));
        assert!(said(&accepted).contains("The brake is on"), "{what}: {}", said(&accepted));
        let server = left.start();
        assert!(incarnation(&server) > shown, "{what}: {} after {shown}", incarnation(&server));
        assert!(!server.ids("vm-0").contains(&id), "{what}: an id that was seen means something else");
        let told = server.run(&["audit", "ls", "--kind", "loss_accepted"]);
        assert!(told.contains("commits are missing") && told.contains("shell"), "{what}: {told}");
        // Nothing starts before somebody has looked.
        let ids = server.ids("vm-0");
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        assert_eq!(server.post("vm-0", &approve(&ids)).status(), 200, "{what}");
        assert_eq!(server.status("vm-0"), "Scheduled", "{what}");
        let again = store("accept-loss", left.data());
        assert!(said(&again).contains("in use by another process"), "{what}: {}", said(&again));
        server.kill();
        let again = store("accept-loss", left.data());
        assert!(said(&again).contains("the journal is complete"), "{what}: {}", said(&again));
    }
    // Nothing was lost where nothing was taken away.
    let server = place.start();
    assert_eq!((incarnation(&server), server.status("vm-0").as_str()), (shown, "gone"));
}

/// promise: D4
#[test]
fn a_journal_that_is_missing_from_a_used_directory_is_refused() {
    let (place, _, _) = killed();
    for name in ["journal.db", "journal.db-wal"] {
        fs::remove_file(place.data().join(name)).unwrap();
    }
    let refused = place.fail();
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(said(&refused).contains("missing from a data directory that was in use"), "{}", said(&refused));
    assert!(said(&refused).contains("hint: is the disk mounted?"), "{}", said(&refused));
    assert!(!place.data().join("journal.db").exists(), "another journal was made");
}

/// Waits until the server has noticed, and checks that it writes nothing and still answers documents.
fn is_stopped(server: &TestServer, document: &str) {
    let why = "was removed or replaced while the server runs";
    wait_until("the server notices that its directory is gone", || {
        let ready = read(server.api(), "/readyz").unwrap();
        (ready.status() == 503 && ready.body.contains(why)).then_some(())
    });
    let command = json!({"command": "restart", "machine": "vm-1"});
    let written = write(server.api(), "/v1/commands", &command).unwrap();
    assert_eq!((written.status(), written.header("retry-after")), (503, Some("1")), "{written:?}");
    assert!(written.body.contains(why), "{written:?}");
    assert_eq!(server.say(&get(&format!("/vm/vm-0{NEWEST}"))).body, document);
    assert_eq!(read(server.api(), "/healthz").unwrap().status(), 200);
}

fn document_of(server: &TestServer) -> String {
    server.say(&get(&format!("/vm/vm-0{NEWEST}"))).body
}

/// promise: D3
#[test]
fn a_directory_that_is_moved_away_under_a_running_server_stops_writes_until_it_is_back() {
    let place = Place::new();
    let server = place.start();
    server.enrol(&["vm-0", "vm-1"]);
    server.restart("vm-0");
    let (document, away) = (document_of(&server), place.file("away"));
    fs::rename(place.data(), &away).unwrap();
    is_stopped(&server, &document);
    assert!(!place.data().exists(), "another directory was made");
    // An empty directory is not the one that was there, and stays empty.
    fs::create_dir(place.data()).unwrap();
    is_stopped(&server, &document);
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0, "something was made in another directory");
    fs::remove_dir(place.data()).unwrap();
    fs::rename(&away, place.data()).unwrap();
    wait_until("writes go on", || (read(server.api(), "/readyz").unwrap().status() == 200).then_some(()));
    server.restart("vm-1");
    server.kill();
    let server = place.start();
    assert_eq!((server.status("vm-0").as_str(), server.status("vm-1").as_str()), ("Scheduled", "Scheduled"));
    assert_eq!(document_of(&server), document);
}

/// promise: D3
#[test]
fn a_directory_that_is_deleted_under_a_running_server_is_not_made_anew() {
    let place = Place::new();
    let server = place.start();
    server.enrol(&["vm-0", "vm-1"]);
    server.restart("vm-0");
    let document = document_of(&server);
    fs::remove_dir_all(place.data()).unwrap();
    // The first write is refused, too: it would be in files without a name.
    let command = json!({"command": "restart", "machine": "vm-1"});
    assert_eq!(write(server.api(), "/v1/commands", &command).unwrap().status(), 503);
    is_stopped(&server, &document);
    assert!(!place.data().exists(), "another directory was made");
}
