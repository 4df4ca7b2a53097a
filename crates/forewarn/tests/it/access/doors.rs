//! The socket and the address, and the command line before them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::access::place::{Place, forewarn, read};

/// promise: S2
#[test]
fn who_has_lost_every_token_still_has_the_socket() {
    let place = Place::new();
    let server = place.start();
    let url = format!("http://{}", server.api());
    let by_address = |token: &str, words: &[&str]| {
        forewarn().args(["--api", &url, "--token", token]).args(words).output().unwrap()
    };
    let admin = place.token("admin --role admin");
    let kept = by_address(&admin, &["token", "delete", "admin"]);
    let kept = String::from_utf8_lossy(&kept.stderr).into_owned();
    assert!(kept.starts_with("forewarn: this is the last admin token: admin\n  hint: "), "{kept}");
    assert!(by_address(&admin, &["token", "delete", "admin", "--yes"]).status.success());
    let refused = by_address(&admin, &["vm", "ls"]);
    assert_eq!(refused.status.code(), Some(1));
    let ours = place.token("again --role operator --tenant web --expires 90d");
    assert_eq!(read(&server, &ours, "/v1/tenants/web").status(), 200);
    let listed = place.out(&["token", "ls"]);
    let row = listed.lines().nth(1).unwrap();
    assert!(row.starts_with("again  operator  all       web      ") && row.contains("(in 90d)"), "{listed}");
    assert!(row.ends_with("  socket"), "{listed}");
}

#[test]
fn clusters_are_managed_and_meant_from_the_command_line() {
    let place = Place::new();
    let _server = place.start();
    place.add_west();
    let listed = place.out(&["cluster", "ls"]);
    assert_eq!(
        listed,
        "NAME     HOSTS  TENANTS  MACHINES  BRAKE\ndefault  3      3        4         off\nwest     3      3        4         off\n"
    );
    place.out(&["--cluster", "west", "brake", "on"]);
    assert!(place.out(&["cluster", "show", "west"]).contains("on: no event starts"));
    assert!(place.out(&["settings", "show"]).ends_with("brake                off\n"));
    assert!(place.out(&["settings", "show", "--cluster", "west"]).ends_with("on: no event starts\n"));
    place.out(&["settings", "set", "--failure", "redeploy", "--user-operations-max", "2"]);
    let shown = place.out(&["settings", "show"]);
    assert!(shown.contains("redeploy: ") && shown.contains("2 simultaneous user events"), "{shown}");
    place.out(&["cluster", "rename", "west", "east"]);
    let err = |words: &[&str]| {
        let output = place.run(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(
        err(&["cluster", "delete", "eats"]).contains("no such cluster: eats\n  hint: did you mean east?")
    );
    assert!(err(&["cluster", "delete", "east"]).contains("cluster east is not empty"));
    assert!(err(&["--cluster", "defualt", "vm", "ls"]).contains("did you mean default?"));
    assert!(err(&["token", "delete", "nobody"]).contains("no such token: nobody"));
    let limited =
        place.run(&["token", "create", "t", "--role", "admin", "--cluster", "east", "--cluster", "default"]);
    let hint = String::from_utf8(limited.stderr).unwrap();
    assert!(hint.starts_with("Token t: admin, clusters east, default.\n"), "{hint}");
    assert!(
        err(&["token", "create", "u", "--role", "admin", "--tenant", "web"])
            .contains("an admin cannot be limited")
    );
    place.out(&["cluster", "create", "empty"]);
    assert_eq!(place.out(&["cluster", "delete", "empty"]), "Cluster empty deleted.\n");
}

/// Reads one request; gives its key.
fn key_of(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let (mut key, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(": ") {
            Some(("idempotency-key", value)) => value.clone_into(&mut key),
            Some(("content-length", value)) => length = value.parse().unwrap(),
            Some(_) => {}
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
    key
}

/// promise: C2
#[test]
fn a_change_is_asked_for_again_under_the_same_key_when_nobody_knows_whether_it_was_done() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let problem = r#"{"type":"/problems/unavailable","title":"","status":503,"detail":"not now"}"#;
        let done = r#"{"now":"2026-01-01T00:00:00Z","changes":1,"events":[],"unnotified":[],"work":[],"rollouts":[]}"#;
        let answers = [None, Some((503, problem)), Some((200, done))];
        answers.map(|answer| {
            let (mut stream, _) = listener.accept().unwrap();
            let key = key_of(&stream);
            if let Some((status, body)) = answer {
                write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                    .unwrap();
            }
            key
        })
    });
    let output = forewarn().args(["--api", &url, "brake", "on"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let [first, second, third] = server.join().unwrap();
    assert_eq!((&first, &first), (&second, &third));
    assert_eq!(first.len(), 32, "{first}");
}
