//! Fleet files of more than one request: pieces, their errors, and what an interruption leaves.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use forewarn_testkit::{TestDir, TestServer};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Machines of one piece.
const PIECE: usize = 250;

/// Machines of the file: five pieces.
const MACHINES: usize = 1_100;

/// Bytes that wait in the pipe of a command: one page.
const PIPE_BYTES: usize = 4_096;

/// A file with long names: the differences of a piece do not fit into the pipe.
fn file(machines: usize) -> String {
    let mut text: String = (0..40).map(|host| format!("[[host]]\nname = 'h{host}'\n")).collect();
    let long = "x".repeat(70);
    for vm in 0..machines {
        text += &format!("[[vm]]\nname = '{long}-{vm}'\nhost = 'h{}'\n", vm % 40);
    }
    text
}

/// A server without a fleet that keeps its data in a directory.
fn start(directory: &TestDir) -> TestServer {
    let data = directory.file("data");
    TestServer::start_with(crate::program(), &["--fleet", "none", "--data-dir", data.to_str().unwrap()])
}

fn machines(server: &TestServer) -> usize {
    let fleet = server.json_of(&["fleet", "show"]);
    fleet["vm"].as_array().map_or(0, Vec::len)
}

/// Begins to apply a file, and waits until the first piece is applied. Its differences do not fit into the pipe, so the
/// command goes on when they are read.
fn begin(server: &TestServer, file: &str) -> Child {
    let mut command = server.command(&["fleet", "apply", file]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut first, out) = ([0], child.stdout.as_mut().unwrap());
    fcntl_setpipe_size(&out, PIPE_BYTES).unwrap();
    out.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"+");
    child
}

/// Lets the command go on to its end. Gives what it has said to its user.
fn finish(mut child: Child) -> String {
    let mut err = child.stderr.take().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap()).lines().count();
    assert!(out >= PIECE, "the differences of the first piece: {out}");
    let mut said = String::new();
    err.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    said
}

/// promise: C4
#[test]
fn a_server_that_is_killed_between_two_pieces_has_whole_pieces_and_applying_again_continues() {
    let directory = TestDir::new();
    let path = directory.write("fleet.toml", &file(MACHINES));
    let server = start(&directory);
    let applying = begin(&server, &path);
    server.kill();
    let said = finish(applying);
    let progress = format!("290 of {} hosts and machines applied, 1 of 5 pieces", MACHINES + 40);
    assert!(said.contains(&progress) && said.contains("apply the file again to continue"), "{said}");

    let server = start(&directory);
    assert_eq!(machines(&server), PIECE, "the piece that was confirmed, and nothing else");
    let again = server.run(&["fleet", "apply", &path]);
    assert_eq!(again.lines().count(), MACHINES - PIECE);
    let continued = server.json_of(&["fleet", "show"]);
    let at_once = TestServer::start_with(crate::program(), &["--fleet", "none"]);
    at_once.run(&["fleet", "apply", &path]);
    assert_eq!(continued, at_once.json_of(&["fleet", "show"]));
}

/// promise: C4
#[test]
fn an_interrupted_command_ends_between_two_pieces_and_says_how_far_it_got() {
    let directory = TestDir::new();
    let path = directory.write("fleet.toml", &file(MACHINES));
    let server = start(&directory);
    let applying = begin(&server, &path);
    kill_process(Pid::from_child(&applying), Signal::INT).unwrap();
    let said = finish(applying);
    assert!(
        said.starts_with("forewarn: interrupted: ") && said.contains("hint: apply the file again"),
        "{said}"
    );
    let applied = machines(&server);
    assert!(applied.is_multiple_of(PIECE) && applied < MACHINES, "{applied}: {said}");
    assert!(said.contains(&format!("{} of {} hosts", applied + 40, MACHINES + 40)), "{said}");
}

/// promise: C4
#[test]
fn a_large_file_is_one_request_for_each_piece() {
    let directory = TestDir::new();
    let path = directory.write("fleet.toml", &file(MACHINES));
    let server = start(&directory);
    let output = server.try_run(&["fleet", "apply", &path, "--output", "json"]);
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "quiet without a terminal");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(report["differences"].as_array().unwrap().len(), MACHINES + 40);
    let entries = server.json_of(&["audit", "ls", "--kind", "command"]);
    assert_eq!(entries["items"].as_array().unwrap().len(), 5, "{entries:#}");
    assert_eq!(server.run(&["fleet", "apply", &path]), "The fleet already matches the file.\n");
}

/// promise: C4
#[test]
fn a_large_file_is_checked_before_anything_is_sent() {
    let directory = TestDir::new();
    let server = start(&directory);
    let failed = |text: &str, more: &[&str]| {
        let path = directory.write("fleet.toml", text);
        let output = server.try_run(&[&["fleet", "apply", &path], more].concat());
        assert_eq!((output.status.code(), output.stdout), (Some(1), Vec::new()));
        String::from_utf8(output.stderr).unwrap()
    };
    let good = file(1_200);
    let last = good.lines().count();
    let twice =
        failed(&format!("{good}[[vm]]\nname = 'a'\nhost = 'h1'\n[[vm]]\nname = 'a'\nhost = 'h1'\n"), &[]);
    assert!(twice.ends_with(&format!("fleet.toml:{}: a is listed twice\n", last + 5)), "{twice}");
    let name = failed(&format!("{good}[[vm]]\nname = 'a b'\nhost = 'h1'\n"), &[]);
    assert!(name.contains(&format!("fleet.toml:{}: invalid name", last + 2)), "{name}");
    for option in ["--prune", "--forget", "--dry-run"] {
        let said = failed(&good, &[option]);
        let words =
            format!("{option} needs a file of one request, of at most 1000 machines, not 1200\n  hint: ");
        assert!(said.contains(&words), "{said}");
    }
    assert_eq!(machines(&server), 0);
}

/// promise: C4
#[test]
fn a_rejected_piece_leaves_the_pieces_before_it() {
    let directory = TestDir::new();
    let server = start(&directory);
    let text = format!("{}[[vm]]\nname = 'z'\nhost = 'h99'\n", file(1_200));
    let path = directory.write("fleet.toml", &text);
    // A host that the file does not list may be in the cluster: the server knows.
    let output = server.try_run(&["fleet", "apply", &path]);
    let said = String::from_utf8(output.stderr).unwrap();
    let line = text.lines().count();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("fleet.toml:{line}: no such host: h99")), "{said}");
    assert!(said.contains("1040 of 1241 hosts and machines applied, 4 of 5 pieces"), "{said}");
    assert_eq!(machines(&server), 1_000);
    server.run(&["host", "create", "h99"]);
    server.run(&["fleet", "apply", &path]);
    assert_eq!(machines(&server), 1_201);
}

/// promise: C4
#[test]
fn a_number_of_instances_is_placed_and_kept() {
    let directory = TestDir::new();
    let server = start(&directory);
    let apply = |instances: u16, more: &[&str]| {
        let text = format!(
            "host = [{{ name = 'h1' }}, {{ name = 'h2' }}]\n[[scale_set]]\nname = 'web'\ninstances = {instances}\n"
        );
        let path = directory.write("fleet.toml", &text);
        server.try_run(&[&["fleet", "apply", &path], more].concat())
    };
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let first = text(apply(3, &[]).stdout);
    assert_eq!(
        first,
        "+ host h1\n+ host h2\n+ scale set web\n+ instance web_0 on h1\n+ instance web_1 on h2\n+ instance web_2 on h1\n"
    );
    assert_eq!(text(apply(3, &["--prune"]).stdout), "The fleet already matches the file.\n");
    assert_eq!(text(apply(4, &[]).stdout), "+ instance web_3 on h2\n");
    let fewer = apply(2, &[]);
    assert_eq!(fewer.status.code(), Some(1));
    assert_eq!(
        text(fewer.stdout),
        "~ web: instances 4 -> 2  (not applied: --prune deletes the surplus, --forget forgets it)\n"
    );
    let dry = apply(2, &["--dry-run"]);
    assert!(text(dry.stdout).starts_with("~ web: instances 4 -> 2  (not applied"));
    assert_eq!(text(apply(3, &["--forget"]).stdout), "- instance web_3, forgotten\n");
    assert_eq!(text(apply(2, &["--prune"]).stdout), "- instance web_2\n");
    let shown = server.run(&["fleet", "show"]);
    let path = directory.write("shown.toml", &shown);
    assert_eq!(server.run(&["fleet", "apply", &path, "--prune"]), "The fleet already matches the file.\n");
}
