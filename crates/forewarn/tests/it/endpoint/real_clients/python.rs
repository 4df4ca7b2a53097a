//! A client of Python's standard library: [watch.py](watch.py).

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};

use super::{Centre, DB_0};

/// A program that is running, and what it prints.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn next(&mut self) -> String {
        self.lines.next().expect("another line").unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// promise: M6
#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn a_watcher_of_pythons_standard_library_sees_approves_and_sees_it_gone() {
    let centre = Centre::start();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/endpoint/real_clients/watch.py");
    let mut child = centre.command(DB_0, "python3").arg(script).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut watcher = Running { child, lines };
    assert_eq!(watcher.next(), "I am db-0");
    assert_eq!(watcher.next(), "1 []");
    centre.server.run(&["vm", "redeploy", "db-0"]);
    assert_eq!(watcher.next(), "2 ['Scheduled']");
    assert_eq!(watcher.next(), "approved 200 b''");
    assert_eq!(watcher.next(), "3 ['Started']");
    centre.finish("db-0");
    assert_eq!(watcher.next(), "4 []");
    assert!(watcher.child.wait().unwrap().success());
}
