//! The JSON schemas of requests and responses agree with the documentation, with the requests that the programs send, and with
//! the responses of drivers.

use std::path::Path;
use std::process::Stdio;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{SOLO_FLEET, ServeDir, clean_command, programs, wait_until};
use serde_json::{Value, json};

use super::support::{VirshDriver, order, order_with};

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

/// Keywords that only describe.
const NOTES: [&str; 4] = ["$schema", "$defs", "title", "description"];

/// A JSON schema of the few keywords that ours use.
struct Schema(Value);

impl Schema {
    fn read(name: &str) -> Self {
        let file = Path::new(REFERENCE).join(name);
        Self(serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap())
    }

    fn accepts(&self, value: &Value) -> bool {
        self.holds(&self.0, value)
    }

    fn holds(&self, schema: &Value, value: &Value) -> bool {
        let rules = schema.as_object().unwrap().iter();
        rules.filter(|(rule, _)| !NOTES.contains(&rule.as_str())).all(|(rule, wanted)| match rule.as_str() {
            "$ref" => self.holds(self.0.pointer(&wanted.as_str().unwrap()[1..]).unwrap(), value),
            "oneOf" => {
                let several = wanted.as_array().unwrap();
                several.iter().filter(|one| self.holds(one, value)).count() == 1
            }
            "type" => match wanted.as_str().unwrap() {
                "object" => value.is_object(),
                "string" => value.is_string(),
                "integer" => value.is_u64() || value.is_i64(),
                "boolean" => value.is_boolean(),
                other => panic!("a type that this test does not know: {other}"),
            },
            "properties" => {
                let members = wanted.as_object().unwrap().iter();
                members
                    .into_iter()
                    .all(|(name, rules)| value.get(name).is_none_or(|member| self.holds(rules, member)))
            }
            "required" => {
                wanted.as_array().unwrap().iter().all(|name| value.get(name.as_str().unwrap()).is_some())
            }
            "enum" => wanted.as_array().unwrap().contains(value),
            "const" => wanted == value,
            "minLength" => value.as_str().unwrap().len() as u64 >= wanted.as_u64().unwrap(),
            "minimum" => value.as_u64().is_some_and(|number| number >= wanted.as_u64().unwrap()),
            "maximum" => value.as_u64().is_some_and(|number| number <= wanted.as_u64().unwrap()),
            "pattern" => {
                assert_eq!(wanted, "^[0-9a-f]{32}$", "the only pattern that this test knows");
                let text = value.as_str().unwrap();
                text.len() == 32
                    && text.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
            }
            other => panic!("a keyword that this test does not know: {other}"),
        })
    }
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
    let requests = Schema::read("driver-request.schema.json");
    let blocks: Vec<_> =
        page.split("\n```json\n").skip(1).map(|block| block.split("```").next().unwrap()).collect();
    assert_eq!(blocks.len(), 4);
    for block in blocks {
        assert!(requests.accepts(&serde_json::from_str(block).unwrap()), "{block}");
    }
    let responses = Schema::read("driver-response.schema.json");
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
    let requests = Schema::read("driver-request.schema.json");
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
    let responses = Schema::read("driver-response.schema.json");
    for wrong in [json!({}), json!({"result": "ok"}), json!({"result": "unknown", "repeat": "no"})] {
        assert!(!responses.accepts(&wrong), "{wrong}");
    }
}

#[test]
fn requests_of_the_server_and_of_the_check_are_valid() {
    let requests = Schema::read("driver-request.schema.json");
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
    let responses = Schema::read("driver-response.schema.json");
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
