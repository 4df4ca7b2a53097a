//! `--event` of `forewarn dev`, and the verdict on a running server.

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, TestServer, clean_command, wait_until};

fn verdict(server: &TestServer, more: &[&str]) -> CommandResult {
    let mut command = clean_command(crate::program());
    run_with_input(command.args(["--api", server.api_url(), "verdict"]).args(more), "")
}

#[test]
fn a_server_announces_the_event_that_its_command_line_requests_and_judges_it() {
    let server = TestServer::start_with(crate::program(), &["--event", "Reboot:solo", "--after", "0s"]);
    let nothing = verdict(&server, &[]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert_eq!(nothing.out, "FAILED: no event was announced, so nothing was tested\n");
    let event = wait_until("the event is announced", || server.ids("solo").pop());
    let pending = verdict(&server, &[]);
    assert!(
        pending.out.contains("solo has not approved E1 (Reboot), which is still scheduled"),
        "{pending:?}"
    );
    server.run(&["event", "approve", &event]);
    let by_operator = verdict(&server, &["--output", "json"]);
    assert_eq!(by_operator.code, Some(1), "{by_operator:?}");
    let json: serde_json::Value = serde_json::from_str(&by_operator.out).unwrap();
    assert!(json["sentences"][0].as_str().unwrap().contains("it was approved by an operator"), "{json}");
}

#[test]
fn an_event_for_an_unknown_machine_is_an_invalid_command_line() {
    for (options, words) in [
        ("--metadata-listen :0 --event Reboot:nope", "--event Reboot:nope: no such machine: nope"),
        ("--metadata-listen :0 --default-vm nope", "--default-vm: no such machine: nope"),
        ("--metadata-listen 0.0.0.0:0", "0.0.0.0:0 is not loopback"),
    ] {
        let mut command = clean_command(crate::program());
        command.args(["dev", "--api-listen", ":0", "--arm-listen", "off"]).args(options.split_whitespace());
        let refused = run_with_input(&mut command, "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.err.contains(words), "{refused:?}");
    }
}
