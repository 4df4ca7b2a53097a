//! The JSON log of a server: one valid object for each line, whatever a driver program writes.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::durable::site::Site;
use crate::program;
use forewarn_testkit::log_objects;
use forewarn_testkit::wait_until;

/// Bytes that the driver program writes besides the first lines, without the ends of lines.
const FLOOD_BYTES: usize = 27_000_000;

/// Bytes of the log that one action may cause: far less than the driver program writes.
const LOG_BYTES_MAX: usize = 200_000;

const NOISY: &str = r#"order=$(cat)
printf 'domain is not there\n' >&2
printf 'bad \377\376 bytes\n' >&2
printf 'control \033[2J \007 \r and bidi \342\200\256 here\n' >&2
printf '{"level":"INFO","message":"forged"}\n' >&2
printf '\n' >&2
head -c 100000 /dev/zero | tr '\0' 'x' >&2
printf '\n' >&2
yes 'much more' | head -c 30000000 >&2
printf 'no newline at the end' >&2
echo '{"result":"failed","message":"no such domain"}'
"#;

/// Objects of the log with that message.
fn of<'a>(log: &'a [Value], message: &str) -> Vec<&'a Value> {
    log.iter().filter(|object| object["message"] == message).collect()
}

const SAYS: &str = "driver program wrote to standard error";
const DROPPED: &str = "driver program wrote too much to standard error: the rest was dropped";

/// promise: S6
#[test]
fn every_line_of_a_json_log_is_one_object_whatever_a_driver_program_writes() {
    let site = Site::new();
    site.configure("log = { format = \"json\", level = \"debug\" }\n");
    site.bring_program(NOISY);
    let server = site.start();
    let output = server.try_run(&["vm", "restart", "front", "--wait"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    server.signal(Signal::TERM);
    let text = wait_until("the server has stopped", || {
        let log = server.log();
        (log.contains("terminated, stopping") && log.ends_with('\n')).then_some(log)
    });
    let log = log_objects(&text);
    assert!(text.len() < LOG_BYTES_MAX, "the log has a limit: {} bytes", text.len());

    let failed = of(&log, "impact failed");
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["reason"], "no such domain");
    let action = failed[0]["action"].as_str().expect("a name");

    let says = of(&log, SAYS);
    let lines: Vec<_> = says.iter().map(|object| object["text"].as_str().expect("a text")).collect();
    assert_eq!(lines[0], "domain is not there");
    assert_eq!(lines[1], "bad \u{fffd}\u{fffd} bytes");
    assert_eq!(lines[2], r"control \u{1b}[2J \u{7} \r and bidi \u{202e} here");
    assert_eq!(lines[3], r#"{"level":"INFO","message":"forged"}"#);
    assert!(lines[4].starts_with("xxxx") && lines[4].len() < 5_000, "{}", lines[4].len());
    for object in &says {
        assert_eq!((&object["action"], &object["machine"]), (&action.into(), &"front".into()), "{object}");
        assert_eq!((&object["tenant"], &object["verb"]), (&"shop".into(), &"reboot".into()), "{object}");
    }

    let dropped = of(&log, DROPPED);
    assert_eq!(dropped.len(), 1, "it is said once");
    assert_eq!(dropped[0]["action"], action);
    let left = usize::try_from(dropped[0]["bytes"].as_u64().expect("a number")).unwrap();
    assert!(left > FLOOD_BYTES - LOG_BYTES_MAX && left < FLOOD_BYTES + 101_000, "{left}");
}

/// promise: S6
#[test]
fn a_server_that_cannot_start_says_so_in_one_object() {
    let site = Site::new();
    site.configure("log = { format = \"json\" }\n");
    site.bring_hands();
    let run = || {
        let mut command = Command::new(program());
        command.arg("serve").arg("--config").arg(site.file("config.toml")).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let both = [output.stdout, output.stderr].concat();
        let log = log_objects(&String::from_utf8(both).unwrap());
        let last = log.last().expect("a reason");
        assert_eq!((&last["level"], &last["message"]), (&"ERROR".into(), &"program failed".into()));
        last["error"].as_str().expect("a reason").to_owned()
    };
    // The data directory cannot be made.
    fs::write(site.file("data"), "in the way").unwrap();
    assert!(run().contains("data"));
    fs::remove_file(site.file("data")).unwrap();
    // The settings can be read, and are wrong.
    site.take_hands();
    assert!(run().contains("hands"));
}

/// promise: S6
#[test]
fn dev_says_where_it_is_in_one_object() {
    let server = forewarn_testkit::TestServer::start_with(crate::program(), &["--log", "json"]);
    let text = wait_until("the greeting", || Some(server.log()).filter(|log| log.ends_with('\n')));
    let log = log_objects(&text);
    let greeting = of(&log, "server ready");
    assert_eq!(greeting.len(), 1, "{text}");
    assert_eq!(greeting[0]["api"], server.api_url());
    assert_eq!(greeting[0]["dashboard"], format!("{}/", server.api_url()));
}
