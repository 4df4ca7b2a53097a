//! Faults of stories on a server: the transcript is that of the rules, and programs meet the faults.

use std::fs;

use forewarn_testkit::{NEWEST, TestServer};

const STORY: &str = "\
host h1 h2
vm solo on h1
vm other on h2
next 2 polls of solo answer 500
next approval of solo answer reset
poll all
at 10s restart solo
poll solo
approve solo by solo
expect solo Started
at 20m next poll of other answer 410
expect solo nothing
";

#[test]
fn a_story_with_faults_has_the_same_transcript_on_a_server() {
    let server = TestServer::start_with(crate::program(), &["--fleet", "none"]);
    let file = server.dir().file("faults.story");
    fs::write(&file, STORY).unwrap();
    let file = file.to_str().unwrap();
    let rules = server.run(&["story", "run", file]);
    assert_eq!(server.run(&["story", "run", file, "--live"]), rules);
    assert!(rules.contains("next 2 polls of solo answer 500"), "{rules}");
    // The requests of the story itself have used up none of them.
    for (machine, status) in [("solo", 500), ("solo", 500), ("solo", 200), ("other", 410), ("other", 200)] {
        assert_eq!(server.get(machine, NEWEST).status(), status, "{machine}");
    }
    let left = server.json(&["fault", "ls"]);
    assert_eq!((&left["items"][0]["request"], &left["items"][0]["left"]), (&"approve".into(), &1.into()));
}

#[test]
fn a_reset_of_the_server_ends_faults() {
    let server = super::server();
    super::inject(&server, "solo --next 5 --answer 500");
    server.run(&["reset"]);
    assert_eq!(super::faults_left(&server), 0);
    server.document("solo");
}
