//! What a supervisor hears, and what the journal gets.

use std::os::unix::net::UnixDatagram;

use crate::place::Place;
use crate::played::{Played, Say};
use forewarn_testkit::DEADLINE;

/// promise: A7
#[test]
fn a_supervisor_hears_that_it_is_ready_well_and_stops() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), "");
    let socket = place.path("notify");
    let supervisor = UnixDatagram::bind(&socket).unwrap();
    supervisor.set_read_timeout(Some(DEADLINE)).unwrap();
    let heard = || {
        let mut bytes = [0; 4096];
        let read = supervisor.recv(&mut bytes).expect("another word");
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    };
    let variables = [("NOTIFY_SOCKET", socket.to_str().unwrap()), ("WATCHDOG_USEC", "200000")];
    let agent = place.start_with(&["run"], &variables);
    let mut words = Vec::new();
    while words.iter().filter(|word| *word == "WATCHDOG=1").count() < 3 || words.len() < 5 {
        words.push(heard());
    }
    assert!(words.contains(&"READY=1".to_owned()), "{words:?}");
    assert!(words.iter().any(|word| word.starts_with("STATUS=watching web_0")), "{words:?}");
    agent.signal(rustix::process::Signal::HUP);
    while !heard().starts_with("RELOADING=1\nMONOTONIC_USEC=") {}
    while heard() != "READY=1" {}
    agent.signal(rustix::process::Signal::TERM);
    while heard() != "STOPPING=1" {}
    assert!(agent.end().success());
}

/// promise: A7
#[test]
fn lines_for_the_journal_begin_with_their_priority() {
    use std::os::unix::fs::MetadataExt;
    let endpoint = Played::start(Say::Nothing);
    let place = Place::new(&endpoint.url(), "name = \"web_0\"\n");
    std::fs::write(place.path("log"), "").unwrap();
    let about = std::fs::metadata(place.path("log")).unwrap();
    let stream = format!("{}:{}", about.dev(), about.ino());
    let agent = place.start_with(&["run"], &[("JOURNAL_STREAM", &stream)]);
    let said = agent.hear("endpoint does not respond");
    assert!(said.lines().any(|line| line.starts_with("<6>agent started")), "{said}");
    assert!(said.lines().any(|line| line.starts_with("<4>endpoint does not respond")), "{said}");
    assert!(said.lines().all(|line| line.starts_with('<')), "{said}");
}

/// promise: A7
#[test]
fn lines_can_be_json() {
    let endpoint = Played::start(Say::Events(Vec::new()));
    let place = Place::new(&endpoint.url(), "[log]\nformat = \"json\"\n");
    let agent = place.start();
    let said = agent.hear("Scheduled Events enabled");
    let line = said.lines().find(|line| line.contains("Scheduled Events enabled")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["message"], "Scheduled Events enabled");
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["edition"], "2020-07-01");
}
