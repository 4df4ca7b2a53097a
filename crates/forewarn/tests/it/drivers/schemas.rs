//! The JSON schemas of requests and responses agree with the documentation, with the requests that the programs send, and with
//! the responses of drivers.

use std::path::Path;
use std::process::Stdio;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::json_schema::JsonSchema;
use forewarn_testkit::{SOLO_FLEET, ServeDir, clean_command, programs, wait_until};
use serde_json::{Value, json};

use super::support::{VirshDriver, order, order_with};

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

/// A schema of the reference.
fn schema(name: &str) -> JsonSchema {
    JsonSchema::read(&Path::new(REFERENCE).join(name))
}

const CONFIG: &str = "in_memory = true\nfleet = 'DIR/fleet.toml'\napi.socket = 'DIR/api.sock'\n\
    [driver]\nkind = 'program'\nprogram = 'DIR/driver'\n\
    [[metadata.listen]]\nsocket = 'DIR/solo.sock'\nmachine = 'solo'\n";

/// A driver that notes its requests, and carries out everything at once.
const NOTING: &str = "request=$(cat); printf '%s\\n' \"$request\" >>DIR/orders\n\
    case $request in *'}') echo '{\"result\":\"done\"}' ;; *) exit 2 ;; esac";

fn parsed(lines: &str) -> Vec<Value> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn the_examples_of_the_reference_are_valid() {
    let page = std::fs::read_to_string(Path::new(REFERENCE).join("driver.md")).unwrap();
    let requests = schema("driver-request.schema.json");
    let blocks: Vec<_> =
        page.split("\n```json\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        assert!(requests.accepts(&serde_json::from_str(block).unwrap()), "{block}");
    }
    let responses = schema("driver-response.schema.json");
    let spans: Vec<_> = page.split('`').filter(|span| span.starts_with("{\"result\"")).collect();
    assert!(spans.len() >= 5, "{spans:?}");
    for span in spans {
        assert!(responses.accepts(&serde_json::from_str(span).unwrap()), "{span}");
    }
    for verb in ["pause", "resume", "fence_host", "state"] {
        assert!(page.contains(&format!("`{verb}`")) || page.contains(&format!("\"{verb}\"")), "{verb}");
    }
}

#[test]
fn the_schemas_reject_what_is_no_request_and_no_response() {
    let requests = schema("driver-request.schema.json");
    assert!(requests.accepts(&order(1, "stop")));
    for wrong in [
        order(1, "dance"),
        order_with(1, "stop", &json!({"action": "28512AF7C95745009BC4842D6FB531E4"})),
        order_with(1, "stop", &json!({"boots": "1"})),
        order_with(1, "pause", &json!({"seconds": -1})),
        json!({"verb": "state", "machine": "web_0"}),
        json!({"action": format!("{:032x}", 1), "verb": "update_host", "host": "h1"}),
        json!([]),
    ] {
        assert!(!requests.accepts(&wrong), "{wrong}");
    }
    let responses = schema("driver-response.schema.json");
    for wrong in [json!({}), json!({"result": "ok"}), json!({"result": "unknown", "repeat": "no"})] {
        assert!(!responses.accepts(&wrong), "{wrong}");
    }
}

#[test]
fn requests_of_the_server_and_of_the_check_are_valid() {
    let requests = schema("driver-request.schema.json");
    let site = ServeDir::new(crate::program(), SOLO_FLEET);
    site.script("driver", NOTING);
    let mut server = site.serve(CONFIG).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the server answers", || site.run(&["vm", "ls"]).status.success().then_some(()));
    for verb in ["restart", "stop", "start", "deallocate"] {
        site.out(&["vm", verb, "solo", "--wait"]);
    }
    server.kill().unwrap();
    server.wait().unwrap();
    let sent = parsed(&site.read("orders"));
    assert_eq!(sent.len(), 4);

    site.write("orders", "");
    let mut check = clean_command(crate::program());
    check.args([
        "driver",
        "check",
        &site.path("driver"),
        "--machine",
        "solo",
        "--host",
        "h1",
        "--to",
        "h2",
        "--destroy",
    ]);
    for verb in ["update_host", "reboot_host", "fence_host"] {
        check.args(["--host-order", verb]);
    }
    run_with_input(check.arg("--yes"), "");
    let checked = parsed(&site.read("orders"));
    // Two of them are meant to be wrong: an unknown verb, and an order without an action.
    let wrong: Vec<_> = checked.iter().filter(|request| !requests.accepts(request)).collect();
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(checked.len() > 40, "{}", checked.len());
    for request in sent {
        assert!(requests.accepts(&request), "{request}");
    }
}

#[test]
fn responses_of_the_virsh_driver_are_valid() {
    if programs::find_or_skip("python3").is_none() {
        return;
    }
    let responses = schema("driver-response.schema.json");
    let driver = VirshDriver::new();
    let state = json!({"verb": "state", "machine": "web_0", "host": "h1"});
    let orders = [
        state,
        order(1, "pause"),
        order(1, "stop"),
        order(2, "reimage"),
        order_with(3, "stop", &json!({"host": "h9"})),
    ];
    for request in orders {
        let response = driver.send(&request);
        assert!(responses.accepts(&response), "{request}: {response}");
    }
}
