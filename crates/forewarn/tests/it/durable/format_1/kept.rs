//! Nothing is lost: answers, the audit log, commits of a log, tokens, and the old journal itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;

use super::answers::{CLUSTERS, compare, compare_entries, send};
use super::{OldData, Receivers, Turn, command, copied, exported, fixture, format_of, more, start};
use crate::access::place::{self, Request};
use forewarn_testkit::{Random, ServeDir, TestServer, io_calls};

/// The old journal, if this version has another format: it is complete, and can be upgraded again.
fn check_kept(old: &OldData) {
    if format_of(&old.data) == 1 {
        return;
    }
    let kept = old.data.join("journal.format-1.db");
    assert!(kept.exists(), "the old journal is kept");
    let again = old.files.file("again");
    fs::create_dir(&again).unwrap();
    fs::copy(&kept, again.join("journal.db")).unwrap();
    let server = start(&again, &[]);
    compare(&server, &fixture("answers"));
}

/// promise: D5
#[test]
fn a_directory_of_format_1_answers_as_before() {
    let old = OldData::stopped();
    let receivers = Receivers::start(&old);
    // It is not answered, so that it stays as it was.
    receivers.pager.stalls_at(Some(0));
    for _ in 0..2 {
        let server = start(&old.data, &[]);
        assert!(compare(&server, &fixture("answers")) > 200, "too few answers");
        compare_entries(&server, &exported());
        server.kill();
    }
    check_kept(&old);
}

/// The last commits of a server that was killed are in its log.
/// promise: D5
#[test]
fn commits_in_the_log_of_format_1_are_kept() {
    let old = OldData::killed();
    for _ in 0..2 {
        let server = start(&old.data, &[]);
        let shown = |target: &str| place::json(&send(&server, &format!("GET {target}"), "", ""));
        assert_eq!(shown("/v1/hosts/last?cluster=north")["name"], "last");
        assert_eq!(shown("/v1/site?cluster=west")["resource_group"], "west-group");
        let names = shown("/v1/clusters")["items"].as_array().unwrap().len();
        assert_eq!(names, CLUSTERS.len() + 1);
        let log = server.run(&["audit", "export", "-"]);
        let new: Vec<_> = log.strip_prefix(&exported()).expect("the same log, and more").lines().collect();
        assert_eq!(new.len(), 4, "{new:?}");
        server.run(&["audit", "verify"]);
        server.kill();
    }
}

/// A log that has lost commits is noticed, and the directory stays as it was.
/// promise: D4
#[test]
fn a_directory_of_format_1_without_its_log_is_refused() {
    let old = OldData::killed();
    fs::remove_file(old.data.join("journal.db-wal")).unwrap();
    let refused = forewarn_testkit::command::output_of(&mut command(&old.data, &[]));
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && text.contains("acknowledged"), "{text}");
    assert_eq!(
        fs::read(old.data.join("journal.db")).unwrap(),
        fs::read(fixture("stopped/journal.db")).unwrap()
    );
}

/// Reads and writes of the first start on the directory; a start that needs fewer is killed when it is ready.
const START_CALLS: u64 = 400;
const KILLS: usize = 12;

/// A start that is killed at any point, an upgrade included, leaves a directory on which the next one finds everything.
/// promise: D1, D5
#[test]
fn a_first_start_that_is_killed_loses_nothing() {
    let mut random = Random::new(11);
    for kill in 0..KILLS {
        let old = if kill % 2 == 0 { OldData::stopped() } else { OldData::killed() };
        let ready = old.files.file("ready");
        let mut command = command(&old.data, &[]);
        command.arg("--addresses-file").arg(&ready).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let calls = random.below(START_CALLS);
        while io_calls(child.id()) < calls && !ready.exists() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let server = start(&old.data, &[]);
        let log = server.run(&["audit", "export", "-"]);
        assert!(log.starts_with(&exported()), "the log of the fixture");
        let sites = CLUSTERS.map(|cluster| {
            place::json(&send(&server, &format!("GET /v1/site?cluster={cluster}"), "", ""))["resource_group"].clone()
        });
        assert_eq!(sites, ["main", "north-group", "south-group"]);
        assert_eq!(old.is_killed, send(&server, "GET /v1/clusters/west", "", "").status() == 200);
    }
}

/// Tokens, their roles and their limits. The server has the clock of the computer, which is later: events are over.
/// promise: S2, S3
#[test]
fn tokens_of_format_1_are_valid_within_their_limits() {
    let (_turn, files) = (Turn::take(), ServeDir::new(crate::program(), ""));
    copied(&fixture("stopped"), &files, "data");
    fs::set_permissions(files.file("data"), fs::Permissions::from_mode(0o700)).unwrap();
    let server = files.start(
        "data_dir = 'DIR/data'\n[api]\nlisten = '127.0.0.1:0'\n[driver]\nkind = 'simulated'\n\
         [[metadata.listen]]\naddress = '127.0.0.1:0'\n",
    );
    let tokens = more()["tokens"].clone();
    let status = |token: &str, line: &str, body: &str| {
        let token = tokens[token].as_str().unwrap();
        Request { line, token: Some(token), headers: "", body }.send(&server).status()
    };
    assert_eq!(status("root", "GET /v1/tokens", ""), 200);
    assert_eq!(status("audit", "GET /v1/tokens", ""), 403);
    assert_eq!(status("former", "GET /v1/site?cluster=south", ""), 401, "it was revoked");
    for (cluster, north_op) in [("default", 404), ("north", 200), ("south", 404)] {
        let line = format!("PUT /v1/brake?cluster={cluster}");
        assert_eq!(status("north-op", &line, r#"{"brake":"on"}"#), north_op, "{cluster}");
        assert_eq!(status("audit", &format!("GET /v1/site?cluster={cluster}"), ""), 200, "{cluster}");
        assert_eq!(status("audit", &line, r#"{"brake":"on"}"#), 403, "{cluster}");
    }
    let seen = place::read(&server, tokens["web-op"].as_str().unwrap(), "/v1/tenants");
    let seen = place::json(&seen);
    let names: Vec<_> = seen["items"].as_array().unwrap().iter().map(|tenant| &tenant["name"]).collect();
    assert_eq!(names, [&Value::from("web")]);
    check_log(&server, tokens["root"].as_str().unwrap());
}

fn check_log(server: &TestServer, token: &str) {
    let verified = server.try_run(&["--token", token, "audit", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
}
