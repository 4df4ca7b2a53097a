//! Nothing secret is in logs, in files, or in what is answered to others.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::access::place::{Place, Request, forewarn, json, read};
use forewarn_testkit::command::output_of;
use forewarn_testkit::wait_until;

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

/// promise: S4
#[test]
fn no_token_is_in_a_log_a_file_or_an_error() {
    let place = Place::new();
    let settings = "[log]\nlevel = 'debug'\nformat = 'json'";
    let server = place.start_with("listen = '127.0.0.1:0'", settings);
    let admin = server.key();
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

    let log = server.log();
    assert!(log.contains("\"level\":"), "it is JSON: {log}");
    let first = server.key_file();
    let kept: Vec<_> = files(Path::new(&place.path("data")));
    assert!(!kept.is_empty() && kept.iter().any(|(file, _)| *file == first));
    // Only this file has the first token.
    let kept: Vec<_> = kept.into_iter().filter(|(file, _)| *file != first).collect();
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
fn the_first_token_is_in_a_private_file_and_only_where_there_is_no_other_way_in() {
    let place = Place::new();
    let server = place.start_with("listen = '127.0.0.1:0'", "");
    let (admin, file) = (server.key(), server.key_file());
    assert_eq!(file, place.path("data/first.token"));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    assert_eq!(read(&server, &admin, "/v1/tokens").status(), 200);
    assert!(!server.log().contains("fwt_"), "{}", server.log());
    server.kill();
    // It is named until it is taken away.
    let server = place.start_with("listen = '127.0.0.1:0'", "");
    assert_eq!((server.key_file(), server.key()), (file.clone(), admin.clone()));
    assert_eq!(read(&server, &admin, "/v1/tokens").status(), 200);
    server.kill();
    fs::remove_file(&file).unwrap();
    let server = place.start_with("listen = '127.0.0.1:0'", "");
    server.wait_for_log("server ready");
    assert!(!server.log().contains("first token"), "{}", server.log());
    assert_eq!(read(&server, &admin, "/v1/tokens").status(), 200);
    let other = Place::new();
    let server = other.start();
    server.wait_for_log("server ready");
    assert!(!server.log().contains("first token"), "who has the socket needs none: {}", server.log());
    assert!(other.out(&["token", "ls", "--output", "json"]).contains("[]"));
    assert!(!Path::new(&other.path("data/first.token")).exists());
}

/// promise: S4
#[test]
fn a_server_that_cannot_write_its_first_token_does_not_start_and_issues_none() {
    let place = Place::new();
    place.write("occupied", "notes of the administrator");
    let settings = |file: &str| {
        format!(
            "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\n[api]\nlisten = '127.0.0.1:0'\nfirst_token_file = '{file}'\n\
             [driver]\nkind = 'simulated'\n[[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'web_0'\n"
        )
    };
    for (file, why) in [
        ("DIR/occupied/first.token", "cannot write the first token: "),
        ("DIR/occupied", "the file of the first token has another content: "),
    ] {
        let ran = output_of(&mut place.serve(&settings(file)));
        let said = String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{said}");
        assert!(said.contains(why) && said.contains("\n  hint: ") && !said.contains("fwt_"), "{said}");
    }
    assert_eq!(place.read("occupied"), "notes of the administrator");
    // No token was issued: the first start that can write the file issues it.
    let server = place.start_with("listen = '127.0.0.1:0'\nfirst_token_file = 'DIR/new/first.token'", "");
    assert_eq!(server.key_file(), place.path("new/first.token"));
    let tokens = json(&read(&server, &server.key(), "/v1/tokens"));
    assert_eq!(tokens["items"].as_array().unwrap().len(), 1, "{tokens}");
}

/// A server that is killed at any moment of its first start leaves no token without its file.
///
/// promise: S4
#[test]
fn a_first_start_that_is_killed_loses_no_token() {
    let settings = "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\n[api]\nlisten = '127.0.0.1:0'\n\
                    [driver]\nkind = 'simulated'\n[[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'web_0'\n";
    // Each of these appears at another moment of the start.
    for seen in
        ["data", "data/lock", "data/journal.db", "data/first.token.new", "data/first.token", "addresses"]
    {
        let place = Place::new();
        let mut command = place.serve(settings);
        command
            .args(["--addresses-file", &place.path("addresses")])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        // A file that exists for a moment may be missed; then a later one is seen.
        let moments = [seen, "addresses"].map(|name| place.path(name));
        wait_until(seen, || moments.iter().any(|path| Path::new(path).exists()).then_some(()));
        process.kill().unwrap();
        process.wait().unwrap();
        let server = place.start_with("listen = '127.0.0.1:0'", "");
        assert_eq!(read(&server, &server.key(), "/v1/tokens").status(), 200, "{seen}");
        assert!(!server.log().contains("fwt_"), "{}", server.log());
    }
}
