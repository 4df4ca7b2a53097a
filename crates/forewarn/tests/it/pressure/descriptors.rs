//! File descriptors: connections of machines do not take those of operators.

use std::process::Command;

use crate::pressure::attack::{ask, hold, request};
use crate::pressure::place::Place;
use crate::program;
use forewarn_testkit::{TestServer, wait_until};

/// File descriptors of the server.
const DESCRIPTORS: &str = "256";

/// promise: S5
#[test]
fn machines_that_take_every_file_descriptor_leave_some_to_operators() {
    let place = Place::new();
    let config = place.settings("listen = '127.0.0.1:0'", "");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {DESCRIPTORS} && exec \"$0\" \"$@\"")]).arg(program());
    command.args(["serve", "--config", &config]);
    let server = TestServer::spawn(crate::program(), command);
    let token = place.token();
    let _machines = hold(server.metadata(), 400, b"GET /");
    assert_eq!(ask(server.api(), &request("/v1/hosts", &token)), 200);
    let listed = place.run(&["host", "ls"]);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    // Operators who take too many give way to each other, and the log stays short.
    let _operators = hold(server.api(), 400, b"GET /");
    wait_until("an operator gets in", || {
        (ask(server.api(), &request("/v1/hosts", &token)) == 200).then_some(())
    });
    let lines = server.log().lines().count();
    assert!(lines < 10, "{}", server.log());
}
