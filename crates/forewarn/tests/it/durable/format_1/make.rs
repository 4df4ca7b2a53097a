//! Makes the fixture, with a server that writes format 1.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::answers::{record, send, write};
use super::{NOBODY, OPS, PAGER, copy, start};
use forewarn_testkit::arm::{NEW, SUBSCRIPTION, operation};
use forewarn_testkit::webhook_receiver::{Seen, WebhookReceiver, until_state};
use forewarn_testkit::{NEWEST, RawResponse, TestDir, TestServer, approve, ask, get, post, wait_until};

const DEFAULT: &str = r#"{
    "site": { "location": "westeurope", "resource_group": "main" },
    "host": [{ "name": "h1" }, { "name": "h2" }, { "name": "h3", "zone": 1 }, { "name": "h4", "zone": 2 }, { "name": "h5" }],
    "scale_set": [{ "name": "web", "terminate": "5m", "instance": [
        { "host": "h1", "update_domain": 0 }, { "host": "h2", "update_domain": 1 }, { "host": "h5", "update_domain": 2 }] }],
    "availability_set": [{ "name": "db", "machine": [
        { "name": "db-0", "host": "h2", "update_domain": 0 }, { "name": "db-1", "host": "h1", "update_domain": 1 }] }],
    "cloud_service": [{ "name": "shop", "machine": [
        { "name": "FrontEnd_IN_0", "host": "h3" }, { "name": "BackEnd_IN_0", "host": "h3" }] }],
    "vm": [{ "name": "solo", "host": "h1", "addresses": ["10.0.0.10", "fd00::10"], "tags": { "role": "demo" } },
        { "name": "spot-0", "host": "h4", "spot": "deallocate" }]
}"#;

const NORTH: &str = r#"{
    "host": [{ "name": "n1" }, { "name": "n2" }, { "name": "n3" }],
    "scale_set": [{ "name": "api", "terminate": "10m", "instance": [{ "host": "n1" }, { "host": "n2", "update_domain": 1 }] }],
    "vm": [{ "name": "alpha", "host": "n1", "addresses": ["10.1.0.10"], "terminate": "7m" },
        { "name": "beta", "host": "n2", "addresses": ["10.1.0.11"] }]
}"#;

const SOUTH: &str = r#"{
    "site": { "location": "southindia", "resource_group": "south-group" },
    "host": [{ "name": "s1" }, { "name": "s2" }],
    "vm": [{ "name": "gamma", "host": "s1", "addresses": ["10.2.0.10"] }, { "name": "delta", "host": "s2" }]
}"#;

/// A server that is filled, and everything that was asked under a key.
struct Maker {
    server: TestServer,
    repeated: RefCell<Vec<Value>>,
}

impl Maker {
    fn ask(&self, line: &str, body: &str) -> RawResponse {
        let answer = send(&self.server, line, "", body);
        assert!(answer.status() < 300, "{line}: {answer:?}");
        answer
    }

    /// A request with an idempotency key, whose answer is written down.
    fn once(&self, key: &str, line: &str, body: &str) -> RawResponse {
        let answer = send(&self.server, line, &format!("Idempotency-Key: {key}\r\n"), body);
        let shown: Value = serde_json::from_str(&answer.body).unwrap();
        let mut repeated = self.repeated.borrow_mut();
        repeated.push(
            json!({ "key": key, "line": line, "body": body, "status": answer.status(), "answer": shown }),
        );
        answer
    }

    fn command(&self, cluster: &str, command: &str) -> Value {
        let answer = self.ask(&format!("POST /v1/commands?cluster={cluster}"), command);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// The id of the event of a command.
    fn event(&self, cluster: &str, command: &str) -> String {
        self.command(cluster, command)["events"][0]["id"].as_str().expect("an event").to_owned()
    }

    fn enrol(&self, machine: &str) {
        let read = ask(self.server.metadata(), &get(&format!("/vm/{machine}{NEWEST}"))).unwrap();
        assert_eq!(read.status(), 200, "{machine}: {read:?}");
    }

    fn approve(&self, machine: &str, event: &str) {
        let bytes = post(&format!("/vm/{machine}{NEWEST}"), &approve(&[event]));
        assert_eq!(ask(self.server.metadata(), &bytes).unwrap().short(), (200, ""));
    }

    fn clusters(&self) {
        self.once("create-north", "POST /v1/clusters", r#"{"name":"north"}"#);
        self.ask("POST /v1/clusters", r#"{"name":"sud"}"#);
        self.once("rename-sud", "PATCH /v1/clusters/sud", r#"{"name":"south"}"#);
        self.ask("POST /v1/fleet?cluster=default", DEFAULT);
        self.once("fleet-north", "POST /v1/fleet?cluster=north", NORTH);
        self.ask("POST /v1/fleet?cluster=south", SOUTH);
        let site = r#"{"location":"northeurope","resource_group":"north-group"}"#;
        self.once("site-north", "PATCH /v1/site?cluster=north", site);
        self.ask("PATCH /v1/settings?cluster=north", r#"{"failure":"redeploy","user_operations_max":5}"#);
        self.ask("PUT /v1/tenants/beta/policy?cluster=north", r#"{"restart":"automatic"}"#);
        // A cluster that lived, and is gone.
        self.ask("POST /v1/clusters", r#"{"name":"gone"}"#);
        self.ask(
            "POST /v1/fleet?cluster=gone",
            r#"{"host":[{"name":"g1"}],"vm":[{"name":"omega","host":"g1"}]}"#,
        );
        self.enrol("gone/omega/omega");
        self.command("gone", r#"{"command":"forget","machine":"omega"}"#);
        self.command("gone", r#"{"command":"remove_host","host":"g1"}"#);
        self.once("remove-gone", "DELETE /v1/clusters/gone", "");
        // A request that was refused.
        self.once("site-taken", "PATCH /v1/site?cluster=south", r#"{"resource_group":"NORTH-group"}"#);
    }

    /// Gives the texts of the tokens.
    fn tokens(&self) -> Value {
        let mut texts = serde_json::Map::new();
        for (name, token) in [
            ("audit", json!({ "role": "viewer" })),
            ("root", json!({ "role": "admin" })),
            ("north-op", json!({ "role": "operator", "clusters": ["north"] })),
            ("web-op", json!({ "role": "operator", "clusters": ["default"], "tenants": ["web"] })),
            ("former", json!({ "role": "viewer", "clusters": ["south"] })),
        ] {
            let mut token = token;
            token["name"] = name.into();
            let issued = self.ask("POST /v1/tokens", &token.to_string());
            let issued: Value = serde_json::from_str(&issued.body).unwrap();
            texts.insert(name.to_owned(), issued["text"].clone());
        }
        self.once("token-late", "POST /v1/tokens", r#"{"name":"late","role":"viewer"}"#);
        self.once("revoke-former", "DELETE /v1/tokens/former", "");
        texts.into()
    }

    fn webhooks(&self) {
        self.ask(
            "POST /v1/webhooks",
            &json!({ "name": "ops", "url": format!("http://{OPS}/events") }).to_string(),
        );
        let pager = json!({
            "name": "pager", "url": format!("http://{PAGER}/events"), "schema": "eventgrid",
            "clusters": ["north", "south"], "authorization": "Bearer pager",
        });
        self.ask("POST /v1/webhooks", &pager.to_string());
        let nobody =
            json!({ "name": "nobody", "url": format!("http://{NOBODY}/events"), "types": ["Terminate"] });
        self.ask("POST /v1/webhooks", &nobody.to_string());
        until_state(&self.server, "ops", "healthy");
        until_state(&self.server, "pager", "healthy");
    }

    fn group(&self, name: &str, location: &str) {
        let path = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{name}?api-version=2024-11-01");
        let body = json!({ "location": location, "tags": { "made-by": "a test" } });
        self.ask(&format!("PUT {path}"), &body.to_string());
    }

    fn vm(&self, group: &str, name: &str, location: &str) -> String {
        let path = compute(group, &format!("virtualMachines/{name}"));
        let body = json!({ "location": location, "tags": { "of": group }, "properties": {
            "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
            "osProfile": { "computerName": name, "adminUsername": "azureuser" },
            "scheduledEventsProfile": { "terminateNotificationProfile": { "enable": true, "notBeforeTimeout": "PT8M" } },
        } });
        self.ask(&format!("PUT {path}?api-version={NEW}"), &body.to_string());
        path
    }

    /// Resources in two clusters; gives the targets of the operation that ended and of the one that is open.
    fn azure(&self) -> [String; 2] {
        self.group("arm-main", "westeurope");
        self.group("Arm-North", "northeurope");
        let set = compute("arm-main", "availabilitySets/pair");
        let body = r#"{"location":"westeurope","sku":{"name":"Aligned"},"properties":{"platformFaultDomainCount":2}}"#;
        self.ask(&format!("PUT {set}?api-version={NEW}"), body);
        let main = self.vm("arm-main", "vm-a", "westeurope");
        let north = self.vm("Arm-North", "vm-n", "northeurope");
        self.enrol("north/vm-n/vm-n");
        let [ended, open] = [main, north].map(|vm| {
            let answer = self.ask(&format!("POST {vm}/restart?api-version={NEW}"), "");
            operation(&answer).unwrap_or_else(|| panic!("an operation: {answer:?}"))
        });
        let status = |target: &str| self.ask(&format!("GET {target}"), "").body;
        wait_until("the first operation ends", || status(&ended).contains("Succeeded").then_some(()));
        assert!(status(&open).contains("InProgress"), "{}", status(&open));
        [ended, open]
    }

    /// Events in every state.
    fn events(&self, pager: &WebhookReceiver) {
        let completed = self.event("north", r#"{"command":"restart","machine":"alpha"}"#);
        self.approve("north/alpha/alpha", &completed);
        self.command("south", r#"{"command":"brake_on"}"#);
        // It is held when it is due.
        self.event("south", r#"{"command":"restart","machine":"gamma"}"#);
        pager.until_taken(3);
        self.server.advance("20m");
        pager.until_taken(4);
        pager.refuses(Some("503 Service Unavailable"));
        let cancelled = self.event("north", r#"{"command":"redeploy","machine":"alpha"}"#);
        self.command("north", &json!({ "command": "cancel", "event": cancelled }).to_string());
        let rollout = json!({ "command": "start_rollout", "kind": "reboot", "hosts": ["h3", "h4", "h5"],
            "terms": { "at_once": 1, "pause_between": "30m", "windows": ["00:00-12:00"] } });
        self.command("default", &rollout.to_string());
        self.command("default", r#"{"command":"degrade_host","host":"h2","fails_in":"3d"}"#);
        self.server.advance("1m");
        self.once("restart-solo", "POST /v1/commands", r#"{"command":"restart","machine":"solo"}"#);
        self.once(
            "restart-beta",
            "POST /v1/commands?cluster=north",
            r#"{"command":"restart","machine":"beta"}"#,
        );
        self.event("default", r#"{"command":"delete","machine":"web_2"}"#);
        self.event("north", r#"{"command":"delete","machine":"api_1"}"#);
        let running = self.event("default", r#"{"command":"restart","machine":"FrontEnd_IN_0"}"#);
        self.once(
            "approve-shop",
            "POST /v1/commands",
            &json!({ "command": "approve", "tenant": "shop", "events": [running] }).to_string(),
        );
    }
}

fn compute(group: &str, path: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Compute/{path}")
}

/// Fills a new directory; gives the answers that are not GETs.
fn fill(data: &Path, ops: &WebhookReceiver, pager: &WebhookReceiver) -> (Vec<Value>, Value) {
    let server = start(data, &["--clock-start", "2026-01-01T00:00:00Z", "--seed", "7", "--fleet", "none"]);
    let maker = Maker { server, repeated: RefCell::default() };
    maker.clusters();
    let tokens = maker.tokens();
    maker.webhooks();
    for machine in ["web/web_0", "db/db-0", "shop/FrontEnd_IN_0", "solo/solo"] {
        maker.enrol(machine);
    }
    for machine in ["north/alpha/alpha", "north/api/api_0", "south/gamma/gamma"] {
        maker.enrol(machine);
    }
    maker.events(pager);
    let [ended, open] = maker.azure();
    until_state(&maker.server, "pager", "failing");
    until_told(&maker.server, "ops");
    let told = ops.taken();
    let more = json!({
        "tokens": tokens, "ended": ended, "open": open,
        "ops": told.iter().map(Seen::id).collect::<Vec<_>>(),
        "pager": pager.taken().iter().map(Seen::id).collect::<Vec<_>>(),
    });
    let Maker { server, repeated } = maker;
    server.signal(rustix::process::Signal::TERM);
    assert!(server.end().success());
    (repeated.into_inner(), more)
}

/// The messages that the failing webhook gets once it takes them, in order.
fn waiting(data: &Path, pager: &WebhookReceiver) -> Vec<String> {
    let before = pager.taken().len();
    let server = start(data, &[]);
    until_told(&server, "pager");
    let taken = pager.taken().split_off(before);
    assert!(taken.len() > 3, "{taken:?}");
    taken.iter().map(Seen::id).collect()
}

/// Commits after the last clean stop, which are only in the log.
fn add_commits(data: &Path) {
    let server = start(data, &[]);
    let ask = |line: &str, body: &str| assert_eq!(send(&server, line, "", body).status(), 200, "{line}");
    ask("POST /v1/commands?cluster=north", r#"{"command":"admit_host","name":"last"}"#);
    ask("POST /v1/clusters", r#"{"name":"west"}"#);
    ask("PATCH /v1/site?cluster=west", r#"{"resource_group":"west-group"}"#);
    server.kill();
}

/// Waits until a webhook has everything that is in the audit log.
fn until_told(server: &TestServer, webhook: &str) {
    wait_until(&format!("{webhook} has everything"), || {
        let shown = until_state(server, webhook, "healthy");
        let page = send(server, "GET /v1/audit?limit=1", "", "");
        let page: Value = serde_json::from_str(&page.body).unwrap();
        (shown["last_entry"] == page["head"]).then_some(())
    });
}

/// Keeps the content of a data directory.
fn keep(data: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    copy(data, target);
}

/// Writes the fixture into the directory that `FOREWARN_FORMAT_1` names. Only a program that writes format 1 can do it: the
/// fixture of the repository was made by the last one.
#[test]
#[ignore = "makes the fixture: needs FOREWARN_FORMAT_1, and a program that writes format 1"]
fn make() {
    let Some(target) = std::env::var_os("FOREWARN_FORMAT_1").map(PathBuf::from) else { return };
    let (_turn, files) = (super::Turn::take(), TestDir::new());
    let data = files.file("data");
    let (ops, pager) = (WebhookReceiver::start_at(OPS), WebhookReceiver::start_at(PAGER));
    let (mut repeated, mut more) = fill(&data, &ops, &pager);
    assert_eq!(super::format_of(&data), 1, "another program is needed");
    let (stopped, answers) = (target.join("stopped"), target.join("answers"));
    keep(&data, &stopped);
    add_commits(&data);
    let journal = |data: &Path| fs::read(data.join("journal.db")).unwrap();
    assert_eq!(journal(&data), journal(&stopped), "the commits are in the log alone");
    keep(&data, &target.join("killed"));
    fs::remove_file(target.join("killed/journal.db")).unwrap();
    pager.stalls_at(Some(0));
    let server = start(&super::copied(&stopped, &files, "one"), &[]);
    record(&server, &answers);
    // The texts of tokens are not kept, and the times of events may move: a repetition is not always the same response.
    for request in &mut repeated {
        let (status, answer) = super::repeat(&server, request);
        (request["status"], request["answer"]) = (status.into(), answer);
    }
    write(&answers.join("repeated.json"), &repeated);
    // The answers do not depend on the run.
    let server = start(&super::copied(&stopped, &files, "two"), &[]);
    super::answers::compare(&server, &answers);
    drop(server);
    pager.stalls_at(None);
    pager.refuses(None);
    more["waiting"] = waiting(&super::copied(&stopped, &files, "three"), &pager).into();
    fs::write(answers.join("more.json"), serde_json::to_string_pretty(&more).unwrap() + "\n").unwrap();
}
