//! The first request of a tenant, and its silence.
//!
//! | behaviour | test |
//! |---|---|
//! | the first valid request of any machine enables the tenant, and no other | `a_tenant_is_enrolled_by_its_first_request` |
//! | refused requests and other paths do not | `a_refused_request_and_instance_metadata_enrol_nobody` |
//! | 24 hours of silence disable | `a_day_of_silence_ends_it` |
//! | a first answer without a body | `the_first_answer_may_be_empty` |
//! | a slow first answer: enabling goes on when the caller hangs up | `a_slow_first_answer_enables_although_the_caller_hangs_up` |
//! | a slow first answer comes | `a_slow_first_answer_comes` |

use std::process::{Command, Stdio};

use forewarn_testkit::programs::find_or_skip;
use forewarn_testkit::{NEWEST, TestServer, get, post, wait_until};

/// Whether a restart is announced: it is not where nobody listens. Asks nobody who could be enrolled by being asked.
fn is_announced(server: &TestServer, machine: &str) -> bool {
    server.run(&["vm", "restart", machine]);
    let shown = server.json(&["vm", "show", machine]);
    !shown["events"].as_array().expect("a list").is_empty()
}

#[test]
fn a_tenant_is_enrolled_by_its_first_request() {
    let target = |edition: &str| format!("/vm/db-1/metadata/scheduledevents?api-version={edition}");
    for request in [
        get(&target("2020-07-01")),
        get(&target("2017-03-01")).replace("Metadata: true\r\n", ""),
        get(&format!("{}&wait=0s&incarnation=1", target("2020-07-01"))),
        post(&target("2019-08-01"), "not even JSON"),
    ] {
        let server = TestServer::start(crate::program());
        assert!(!is_announced(&server, "db-0"), "nobody has asked yet");
        server.say(&request);
        assert!(is_announced(&server, "db-0"), "{request}");
        assert!(!is_announced(&server, "solo"), "another tenant");
    }
}

#[test]
fn a_refused_request_and_instance_metadata_enrol_nobody() {
    let server = TestServer::start(crate::program());
    for request in [
        get("/metadata/instance?api-version=2021-02-01"),
        get("/metadata/versions"),
        get("/metadata/forewarn/members?api-version=2020-07-01"),
        get("/metadata/scheduledevents?api-version=latest"),
        get(NEWEST).replace("Metadata", "Other"),
        get(NEWEST).replacen("GET", "PUT", 1),
        get(NEWEST).replacen("GET", "HEAD", 1),
        get(&format!("{NEWEST}&a=1&a=1")),
        get(NEWEST).replace("Metadata", "Via: x\r\nMetadata"),
    ] {
        let mut line = server.connect();
        line.send(&request);
        line.answer();
        assert!(!is_announced(&server, "solo"), "{request}");
    }
}

#[test]
fn a_day_of_silence_ends_it() {
    let server = TestServer::start(crate::program());
    server.enrol(&["solo", "db-0"]);
    server.advance("23h");
    server.enrol(&["solo"]);
    server.get("db-0", "/metadata/instance?api-version=2021-02-01");
    server.advance("2h");
    assert!(is_announced(&server, "solo"), "it was heard two hours ago");
    assert!(!is_announced(&server, "db-0"), "it has not asked for its events for more than a day");
    server.enrol(&["db-0"]);
    assert!(is_announced(&server, "db-0"), "and is back with its next request");
}

#[test]
fn the_first_answer_may_be_empty() {
    let Some(curl) = find_or_skip("curl") else { return };
    let server = TestServer::start_with(crate::program(), &["--first-answer", "empty"]);
    let ask = || {
        let mut command = Command::new(&curl);
        let url = format!("http://{}{NEWEST}", server.metadata());
        let output =
            command.args(["-s", "-w", "|%{http_code}", "-H", "Metadata:true", &url]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(), "|200", "a success without a body");
    assert_eq!(ask(), r#"{"DocumentIncarnation":1,"Events":[]}|200"#);
    assert!(is_announced(&server, "solo"));
    let answer = server.get("web_0", NEWEST);
    assert_eq!((answer.short(), answer.header("Content-Length")), ((200, ""), Some("0")));
}

/// promise: T2
#[test]
fn a_slow_first_answer_enables_although_the_caller_hangs_up() {
    let Some(curl) = find_or_skip("curl") else { return };
    let server = TestServer::start_with(crate::program(), &["--first-answer", "2m"]);
    let url = format!("http://{}/vm/db-0{NEWEST}", server.metadata());
    let mut waiting = Command::new(curl)
        .args(["-s", "-H", "Metadata:true", &url])
        .stdout(Stdio::null())
        .spawn()
        .expect("curl starts");
    // Until curl is heard, nothing is announced.
    wait_until("the tenant is enrolled", || is_announced(&server, "db-1").then_some(()));
    assert!(waiting.try_wait().unwrap().is_none(), "it has not been answered");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    assert!(is_announced(&server, "db-2"), "it is enabled although nobody waits any more");
    assert_eq!(server.ids("db-0").len(), 2, "and a second request is answered at once");
}

#[test]
fn a_slow_first_answer_comes() {
    let Some(curl) = find_or_skip("curl") else { return };
    let server = TestServer::start_with(crate::program(), &["--first-answer", "1s"]);
    let url = format!("http://{}{NEWEST}", server.metadata());
    let words = ["-s", "-w", "|%{time_total}", "-H", "Metadata:true", &url];
    let output = Command::new(curl).args(words).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let (body, seconds) = printed.split_once('|').expect("a body and a time");
    assert_eq!(body, r#"{"DocumentIncarnation":1,"Events":[]}"#);
    assert!(seconds.parse::<f64>().unwrap() >= 1.0, "{seconds}");
}
