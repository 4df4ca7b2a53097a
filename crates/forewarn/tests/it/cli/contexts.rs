//! Contexts: servers with a name. Each test has a configuration directory of its own.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, TestDir, clean_command};
use serde_json::Value;

use super::support::Server;

/// The home of a user.
struct User(TestDir);

impl User {
    fn new() -> Self {
        Self(TestDir::new())
    }

    fn command(&self, words: &str) -> Command {
        let mut command = clean_command(crate::program());
        command.args(words.split_whitespace()).env("XDG_CONFIG_HOME", self.0.path("config"));
        command.current_dir(self.0.path("."));
        command
    }

    fn run(&self, words: &str) -> CommandResult {
        run_with_input(&mut self.command(words), "")
    }

    fn run_with(&self, words: &str, variables: &[(&str, &str)]) -> CommandResult {
        run_with_input(self.command(words).envs(variables.iter().copied()), "")
    }

    fn out(&self, words: &str) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        ran.out
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.out(&format!("{words} --output json"))).unwrap()
    }

    fn file(&self) -> String {
        self.0.path("config/forewarn/contexts.toml")
    }
}

#[test]
fn commands_use_the_server_of_the_selected_context() {
    let (user, one, two) = (User::new(), Server::start(), Server::start());
    two.out("clock advance 1h");
    let set = user.out(&format!("context set one --api {}/v1/", one.api));
    assert_eq!(
        set,
        format!(
            "Context one: {}\n`forewarn context use one` selects it for all further commands.\n",
            one.api
        )
    );
    user.out(&format!("context set two --api {}", two.api));
    assert_eq!(fs::metadata(user.file()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(user.out("context use one"), "Commands use context one.\n");
    let (now, later) = (one.out("clock show"), two.out("clock show"));
    assert_ne!(now, later);
    assert_eq!(user.out("clock show"), now);
    assert_eq!(user.out("--context two clock show"), later);
    let with = |words: &str, variables: &[(&str, &str)]| user.run_with(words, variables).out;
    assert_eq!(with("clock show", &[("FOREWARN_CONTEXT", "two")]), later);
    assert_eq!(
        with("clock show", &[("FOREWARN_API", &two.api)]),
        later,
        "the address counts more than the context"
    );
    assert_eq!(with("clock show", &[("FOREWARN_API", ""), ("FOREWARN_CONTEXT", "")]), now);
    assert_eq!(
        with("--context one clock show", &[("FOREWARN_API", &two.api)]),
        now,
        "the line counts more than variables"
    );
    assert_eq!(with(&format!("--api {} clock show", two.api), &[("FOREWARN_CONTEXT", "one")]), later);
    assert_eq!(
        user.out(&format!("context set one --api {}", two.api)),
        format!("Context one: {}\n", two.api)
    );
    assert_eq!(user.out("clock show"), later, "it was changed");
    assert_eq!(user.out("context delete one"), "Context one deleted.\n");
    assert_eq!(user.json("context ls")["items"][0]["current"], false);
    assert_eq!(user.json("context ls")["items"].as_array().unwrap().len(), 1);
}

#[test]
fn contexts_are_listed_and_shown() {
    let user = User::new();
    user.0.write("ca.pem", "");
    let set = user.run(
        "context set prod --api https://p.internal:1339 --ca ca.pem --token-file sub/token --cluster west",
    );
    assert_eq!(set.code, Some(0), "{set:?}");
    assert_eq!(set.err, format!("forewarn: warning: no such file yet: {}\n", user.0.path("sub/token")));
    user.out("context set lab --api unix:lab.sock");
    user.out("context use prod");
    let (ca, token, socket) = (user.0.path("ca.pem"), user.0.path("sub/token"), user.0.path("lab.sock"));
    let shown = format!(
        "name        prod\napi         https://p.internal:1339\ntoken file  {token}\nca          {ca}\ncluster     west\n"
    );
    assert_eq!(user.out("context show prod"), shown);
    let listed = user.out("context ls -o wide");
    let lines: Vec<Vec<_>> = listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1], ["-", "lab", &format!("unix:{socket}"), "-", "-", "-"], "{listed}");
    assert_eq!(lines[2], ["*", "prod", "https://p.internal:1339", "west", &token, &ca], "{listed}");
    let server = user.json("context show");
    assert_eq!((&server["context"], &server["source"]), (&"prod".into(), &"from context prod".into()));
    assert_eq!((&server["cluster"], &server["ca"]), (&"west".into(), &ca.as_str().into()));
    assert!(user.out("context show --api http://h:1").contains("http://h:1 (from --api)\n"));
    assert_eq!(user.json("context show --api http://h:1")["ca"], Value::Null);
    // An empty value removes a setting.
    let mut unset = user.command("context set prod");
    assert!(unset.args(["--ca", "", "--token-file", "", "--cluster", ""]).status().unwrap().success());
    assert_eq!(
        user.out("context show prod"),
        "name        prod\napi         https://p.internal:1339\ntoken file  -\nca          -\ncluster     -\n"
    );
    assert_eq!(user.out("context use none"), "Commands use no context.\n");
    assert_eq!(user.json("context show")["context"], Value::Null);
}

#[test]
fn invalid_contexts_are_refused_and_nothing_is_lost() {
    let user = User::new();
    for (words, code, why) in [
        ("context set prod", 2, "a new context needs an address: prod"),
        ("context set a/b --api http://h:1", 2, "invalid name of a context"),
        ("context set none --api http://h:1", 2, "reserved name: none"),
        ("context set prod --api ftp://h", 2, "invalid server address"),
        ("context set prod --api http://h:1 --token fwt_0_00", 2, "--token-file FILE"),
        ("context use prod", 1, "no such context: prod\n  hint: there are none"),
        ("context delete prod", 1, "no such context: prod"),
        ("context show prod", 1, "no such context: prod"),
        ("--context prod vm ls", 1, "--context: no such context: prod"),
        ("--context prod --api http://h:1 vm ls", 2, "--api and --context exclude each other"),
    ] {
        let ran = user.run(words);
        assert_eq!(ran.code, Some(code), "{words}: {ran:?}");
        assert!(ran.err.contains(why) && ran.out.is_empty(), "{words}: {ran:?}");
    }
    assert!(!Path::new(&user.file()).exists() && !user.0.path("config").contains("fwt_"));
    user.out("context set prod --api http://127.0.0.1:1");
    let damaged = format!("{}colour = 'red'\n", fs::read_to_string(user.file()).unwrap());
    fs::write(user.file(), &damaged).unwrap();
    for words in [
        "vm ls",
        "context ls",
        "context use prod",
        "context set prod --api http://h:1",
        "context delete prod",
    ] {
        let ran = user.run(words);
        assert_eq!(ran.code, Some(1), "{words}: {ran:?}");
        assert!(
            ran.err.starts_with(&format!("forewarn: invalid file of contexts: {}: ", user.file())),
            "{ran:?}"
        );
        assert!(ran.err.contains("unknown field `colour`"), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(user.file()).unwrap(), damaged);
    let server = Server::start();
    assert_eq!(
        user.run(&format!("--api {} clock show", server.api)).code,
        Some(0),
        "an address needs no context"
    );
}

#[test]
fn an_error_names_the_source_of_the_address() {
    let user = User::new();
    user.out("context set prod --api http://127.0.0.1:1");
    let at = "forewarn: cannot reach the server at http://127.0.0.1:1";
    let of_context = user.run("--context prod vm ls");
    assert!(of_context.err.starts_with(&format!("{at} (from context prod): ")), "{of_context:?}");
    assert!(
        of_context.err.contains("\n  hint: ") && !of_context.err.contains("forewarn dev"),
        "{of_context:?}"
    );
    let of_variable = user.run_with("vm ls", &[("FOREWARN_API", "http://127.0.0.1:1")]);
    assert!(of_variable.err.starts_with(&format!("{at} (from FOREWARN_API): ")), "{of_variable:?}");
    let of_option = user.run("--api http://127.0.0.1:1 vm ls");
    assert!(of_option.err.starts_with(&format!("{at}: ")), "{of_option:?}");
    let invalid = user.run_with("vm ls", &[("FOREWARN_API", "ftp://x")]);
    assert_eq!(invalid.code, Some(2));
    assert!(invalid.err.starts_with("forewarn: from FOREWARN_API: invalid server address: "), "{invalid:?}");
}

/// A server that answers every request with an empty list, and keeps the heads of requests.
struct Recorder {
    url: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        // It ends with the process of the test.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let head = answer(stream.unwrap());
                kept.lock().unwrap().push(head.to_lowercase());
            }
        });
        Self { url, heads }
    }

    /// The heads of all requests since the last look.
    fn take(&self) -> String {
        std::mem::take(&mut *self.heads.lock().unwrap()).concat()
    }
}

/// Answers one request; gives its head.
fn answer(mut stream: TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let body = "{\"items\":[]}";
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}").unwrap();
    String::from_utf8(head).unwrap()
}

/// promise: S4
#[test]
fn the_token_of_a_context_goes_to_its_address_only() {
    let user = User::new();
    let token = user.0.write("prod.token", "fwt_0_secret\n");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let (own, other) = (Recorder::start(), Recorder::start());
    user.out(&format!("context set prod --api {} --token-file prod.token --cluster west", own.url));
    user.out("context use prod");
    // The recorder answers only some of the requests of a command as a server would.
    user.run("scaleset ls");
    let request = own.take();
    assert!(
        request.contains("authorization: bearer fwt_0_secret\r\n") && request.contains("cluster=west"),
        "{request}"
    );
    user.run_with("scaleset ls", &[("FOREWARN_TOKEN", "fwt_1_mine"), ("FOREWARN_CLUSTER", "east")]);
    let request = own.take();
    assert!(request.contains("bearer fwt_1_mine\r\n") && request.contains("cluster=east"), "{request}");
    assert!(!request.contains("fwt_0"), "{request}");
    for (words, variables) in [
        (format!("--api {} scaleset ls", other.url), vec![]),
        ("scaleset ls".to_owned(), vec![("FOREWARN_API", other.url.as_str())]),
    ] {
        user.run_with(&words, &variables);
        let request = other.take();
        assert!(request.contains("get /v1/"), "{words}: {request}");
        assert!(!request.contains("authorization") && !request.contains("west"), "{words}: {request}");
    }
    // Even at the same address, if that does not come from the context.
    user.run(&format!("--api {} scaleset ls", own.url));
    let request = own.take();
    assert!(request.contains("get /v1/") && !request.contains("authorization"), "{request}");
    let ran = user.run("health");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o640)).unwrap();
    let ran = user.run("health");
    let warning = format!(
        "forewarn: warning: other users can read the token file: {token}\n  hint: chmod 600 {token}\n"
    );
    assert_eq!((ran.code, ran.err), (Some(0), warning));
    assert!(own.take().contains("bearer fwt_0_secret"));
    fs::remove_file(&token).unwrap();
    let gone = user.run("health");
    assert!(
        gone.err.starts_with(&format!("forewarn: cannot read the token file of context prod: {token}: ")),
        "{gone:?}"
    );
}
