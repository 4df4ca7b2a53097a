//! Nothing secret is in logs, in files, or in what is answered to others.

use std::fs;
use std::path::Path;

use crate::access::place::{Place, Request, forewarn, json, read};
use forewarn_testkit::{TestServer, wait_until};

/// Every file below a directory, as bytes.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.is_file() {
            all.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    all
}

fn has(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The token that a new server prints, and what it says besides.
fn first(server: &TestServer) -> (String, String) {
    let said =
        wait_until("the first token", || Some(server.log()).filter(|log| log.contains("not shown again")));
    let (line, rest): (Vec<_>, Vec<_>) = said.lines().partition(|line| line.contains("not shown again"));
    // A text for people, or an object beside a JSON log.
    let token = match serde_json::from_str::<serde_json::Value>(line[0]) {
        Ok(object) => object["token"].as_str().unwrap().to_owned(),
        Err(_) => line[0].rsplit(' ').next().unwrap().to_owned(),
    };
    (token, rest.join("\n"))
}

/// promise: S4
#[test]
fn no_token_is_in_a_log_a_file_or_an_error() {
    let place = Place::new();
    let settings = "[log]\nlevel = 'debug'\nformat = 'json'";
    let server = place.start_with("listen = '127.0.0.1:0'", settings);
    let (admin, _) = first(&server);
    let send = |line: &str, token: Option<&str>, headers: &str, body: &str| {
        Request { line, token, headers, body }.send(&server)
    };
    let issue = send("POST /v1/tokens", Some(&admin), "", r#"{"name":"ci","role":"operator"}"#);
    let issued = json(&issue)["text"].as_str().unwrap().to_owned();
    let last = if admin.ends_with('0') { '1' } else { '0' };
    let wrong = format!("{}{last}", &admin[..admin.len() - 1]);
    let secrets = [&admin, &issued, &wrong];

    let again = r#"{"name":"ci","role":"operator"}"#;
    let mut answers = vec![
        send("GET /v1/clock", Some(&wrong), "", ""),
        send("GET /v1/clock", None, &format!("Authorization: Basic {admin}\r\n"), ""),
        send("GET /v1/clock", Some(&format!("{issued}x")), "", ""),
        send(&format!("GET /v1/clock?token={admin}"), Some(&admin), "", ""),
        send("POST /v1/tokens", Some(&admin), "", again),
        send("POST /v1/tokens", Some(&issued), "", again),
        send("GET /v1/tokens", Some(&admin), "", ""),
        send("GET /v1/tokens/ci", Some(&admin), "", ""),
        send("DELETE /v1/tokens/c", Some(&admin), "", ""),
        send("GET /metrics", Some(&admin), "", ""),
        send("POST /v1/commands", Some(&issued), "", r#"{"command":"restart","machine":"web_0"}"#),
    ];
    let ran = forewarn()
        .args(["--api", &format!("http://{}", server.api()), "--token", &wrong, "vm", "ls"])
        .output();
    let refused = String::from_utf8(ran.unwrap().stderr).unwrap();
    assert!(refused.contains("the token is missing or invalid"), "{refused}");
    answers.push(send("DELETE /v1/tokens/ci", Some(&admin), "", ""));
    answers.push(read(&server, &issued, "/v1/clock"));
    assert_eq!(answers.last().unwrap().status(), 401, "it was revoked");

    let (_, log) = first(&server);
    assert!(log.contains("\"level\":"), "it is JSON: {log}");
    let kept = files(Path::new(&place.path("data")));
    assert!(!kept.is_empty());
    for secret in secrets {
        // What is random in it, too: nothing is kept without what it begins with either.
        for text in [secret.as_str(), secret.rsplit('_').next().unwrap()] {
            assert!(!has(log.as_bytes(), text), "in the log: {log}");
            assert!(!refused.contains(text), "{refused}");
            for answer in &answers {
                assert!(!answer.body.contains(text) && !answer.head.contains(text), "{answer:?}");
            }
            for (file, bytes) in &kept {
                assert!(!has(bytes, text), "in {file}");
            }
        }
    }
}

/// promise: S4
#[test]
fn the_first_token_is_shown_once_and_only_where_there_is_no_other_way_in() {
    let place = Place::new();
    let server = place.start_with("listen = '127.0.0.1:0'", "");
    let (admin, _) = first(&server);
    assert_eq!(read(&server, &admin, "/v1/tokens").status(), 200);
    server.kill();
    let server = place.start_with("listen = '127.0.0.1:0'", "");
    assert_eq!(read(&server, &admin, "/v1/tokens").status(), 200);
    assert!(!server.log().contains("fwt_"), "{}", server.log());
    let other = Place::new();
    let server = other.start();
    assert!(!server.log().contains("fwt_"), "who has the socket needs none: {}", server.log());
    assert!(other.out(&["token", "ls", "--output", "json"]).contains("[]"));
}
