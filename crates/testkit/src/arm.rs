//! A server with a fleet to make, requests to it as they are written in the documentation, and what its machines see.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::server::dev;
use crate::{NEWEST, RawConnection, RawResponse, TestDir, TestServer, approve, clean_command, wait_until};

/// The subscription of a server that was told of none.
pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

/// The group, and the scale set, of the documentation.
pub const GROUP: &str = "myResourceGroup";
pub const SET: &str = "myVMScaleSet";

/// A version of the API that knows everything.
pub const NEW: &str = "2026-04-01";

/// What documents say of moments that are so many minutes after the clock of every server starts.
pub const AFTER_5: &str = "Thu, 01 Jan 2026 00:05:00 GMT";
pub const AFTER_7: &str = "Thu, 01 Jan 2026 00:07:00 GMT";
pub const AFTER_10: &str = "Thu, 01 Jan 2026 00:10:00 GMT";
pub const AFTER_15: &str = "Thu, 01 Jan 2026 00:15:00 GMT";

/// `forewarn dev` without machines, on hosts, with a home of its own.
pub struct ArmServer {
    pub server: TestServer,
    directory: TestDir,
    program: OsString,
}

/// What a machine sees of one event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeenEvent {
    /// Type and status: `Terminate Scheduled`.
    pub what: String,
    /// The one machine that it is about.
    pub whom: String,
    pub not_before: String,
    pub id: String,
}

/// Hosts, and nothing on them.
const FLEET: &str = r#"
host = [
    { name = "h1" }, { name = "h2" }, { name = "h3" }, { name = "h4" }, { name = "h5" },
    { name = "h6" }, { name = "h7" }, { name = "h8" }, { name = "h9" }, { name = "h10" },
]
"#;

impl ArmServer {
    pub fn start(program: OsString) -> Self {
        Self::start_in(program, TestDir::new(), &[])
    }

    fn start_in(program: OsString, directory: TestDir, more: &[&str]) -> Self {
        let fleet = directory.write("fleet.toml", FLEET);
        let mut command = clean_command(&program);
        dev(&mut command, &["--arm-listen", "127.0.0.1:0", "--seed", "7", "--fleet", &fleet]);
        command.args(["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z"]).args(more);
        Self::at_home(&mut command, directory.root());
        Self { server: TestServer::spawn(program.clone(), command), directory, program }
    }

    /// The same, with everything kept in a directory.
    pub fn start_durable(program: OsString) -> Self {
        let directory = TestDir::new();
        let data = directory.path("data");
        Self::start_in(program, directory, &["--data-dir", &data])
    }

    /// Ends it as a power cut would, and starts it again where it was, at the same addresses.
    pub fn kill_and_start(self) -> Self {
        let Self { server, directory, program } = self;
        let [arm, api, metadata] =
            [server.arm(), server.api(), server.metadata()].map(|address| address.to_string());
        server.kill();
        let mut command = clean_command(&program);
        command.args(["dev", "--data-dir", &directory.path("data"), "--clock", "frozen"]);
        command.args(["--arm-listen", &arm, "--api-listen", &api, "--metadata-listen", &metadata]);
        Self::at_home(&mut command, directory.root());
        Self { server: TestServer::spawn(program.clone(), command), directory, program }
    }

    /// Whatever a program keeps for its user goes with the test.
    fn at_home(command: &mut Command, directory: &Path) {
        command.env("HOME", directory.join("home")).env("XDG_STATE_HOME", directory.join("state"));
        command.env("XDG_CACHE_HOME", directory.join("cache"));
    }

    /// The program under test.
    pub fn forewarn(&self) -> &OsStr {
        &self.program
    }

    /// Where clients of Azure come in.
    pub fn arm(&self) -> String {
        format!("https://{}", self.server.arm())
    }

    /// A directory that goes with the server.
    pub fn directory(&self) -> &Path {
        self.directory.root()
    }

    /// A program of this place: at home here, and without anything that whoever runs the tests has set.
    pub fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        std::fs::create_dir_all(self.directory().join("home")).unwrap();
        Self::at_home(&mut command, self.directory());
        command
    }

    /// What is answered to a request of Azure Resource Manager, through the door of operators.
    pub fn ask(&self, method: &str, path: &str, version: &str, body: &str) -> RawResponse {
        let join = if path.contains('?') { '&' } else { '?' };
        self.ask_url(method, &format!("{path}{join}api-version={version}"), body)
    }

    /// The same, where the whole target is known.
    pub fn ask_url(&self, method: &str, target: &str, body: &str) -> RawResponse {
        self.ask_with(method, target, "", body)
    }

    /// The same, with more header fields, as whole lines.
    pub fn ask_with(&self, method: &str, target: &str, fields: &str, body: &str) -> RawResponse {
        let api = self.server.api();
        let mut line = RawConnection::connect(api);
        line.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: {api}\r\nAuthorization: Bearer anything\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{fields}\r\n{body}",
            body.len()
        ));
        line.answer()
    }

    pub fn get(&self, path: &str, version: &str) -> Value {
        let answer = self.ask("GET", path, version, "");
        assert_eq!(answer.status(), 200, "GET {path}: {answer:?}");
        body(&answer)
    }

    /// A PUT that has to be accepted; what it begins is waited for.
    pub fn put(&self, path: &str, version: &str, sent: &Value) -> Value {
        self.change("PUT", path, version, sent)
    }

    pub fn change(&self, method: &str, path: &str, version: &str, sent: &Value) -> Value {
        let answer = self.ask(method, path, version, &sent.to_string());
        assert!([200, 201].contains(&answer.status()), "{method} {path}: {answer:?}");
        self.finish(&answer);
        body(&answer)
    }

    /// Begins something; gives where its operation is asked for.
    pub fn begin(&self, method: &str, path: &str, sent: &Value) -> String {
        let answer = self.ask(method, path, NEW, &sent.to_string());
        assert_eq!(answer.status(), 202, "{method} {path}: {answer:?}");
        assert_eq!(answer.body, "", "{method} {path}");
        operation(&answer).unwrap_or_else(|| panic!("no operation: {answer:?}"))
    }

    /// Begins something that needs nobody, and sees that it is over.
    pub fn act(&self, path: &str, sent: &Value) {
        let operation = self.begin("POST", path, sent);
        assert_eq!(self.status(&operation), "Succeeded", "{path}");
    }

    /// Where an operation stands.
    pub fn status(&self, operation: &str) -> String {
        let answer = self.ask_url("GET", operation, "");
        assert_eq!(answer.status(), 200, "{operation}: {answer:?}");
        let shown = body(&answer);
        assert!(shown["name"].is_string() && shown["startTime"].is_string(), "{shown}");
        let status = text(&shown["status"]);
        let ends = ["Succeeded", "Failed", "Canceled"].contains(&status.as_str());
        assert_eq!(shown["endTime"].is_string(), ends, "{shown}");
        // Whoever is not told how long to wait waits for half a minute.
        let wait = header(&answer, "retry-after").and_then(|wait| wait.parse().ok());
        assert!(ends || wait.is_some_and(|seconds: u32| seconds >= 1), "{answer:?}");
        status
    }

    /// Sees that what an answer has begun is over.
    pub fn finish(&self, answer: &RawResponse) {
        if let Some(operation) = operation(answer) {
            wait_until("an operation ends", || (self.status(&operation) != "InProgress").then_some(()));
            assert_eq!(self.status(&operation), "Succeeded", "{operation}");
        }
    }

    /// The group of the documentation.
    pub fn make_group(&self) {
        let path = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}");
        self.put(&path, "2024-11-01", &json!({ "location": "eastus" }));
    }

    /// A group with a scale set of that many instances that are not told of their deletion, and a machine of it that has asked.
    pub fn make_set(&self, capacity: u32) {
        self.make_group();
        self.put(&set(), NEW, &wanted_set(capacity));
        self.server.enrol(&[&instance(0)]);
    }

    /// What a machine sees.
    pub fn seen(&self, machine: &str) -> Vec<SeenEvent> {
        let document = self.server.document(machine);
        let events = document["Events"].as_array().expect("a list").iter();
        events.map(SeenEvent::of).collect()
    }

    /// The one event that a machine sees.
    pub fn one(&self, machine: &str) -> SeenEvent {
        let mut seen = self.seen(machine);
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.remove(0)
    }

    /// Types, statuses and whom they are about: what a machine sees, in short.
    pub fn short(&self, machine: &str) -> Vec<String> {
        let seen = self.seen(machine).into_iter();
        seen.map(|SeenEvent { what, whom, .. }| format!("{what} {whom}")).collect()
    }

    /// Approves what a machine sees about itself or another, as that machine.
    pub fn approve(&self, machine: &str, whom: &str) {
        let seen = self.seen(machine);
        let ids: Vec<_> = seen.iter().filter(|seen| seen.whom == whom).map(|seen| seen.id.as_str()).collect();
        assert!(!ids.is_empty(), "nothing about {whom}: {seen:?}");
        assert_eq!(self.server.post(machine, &approve(&ids)).short(), (200, ""));
    }

    /// Whether a machine is there for the metadata endpoint.
    pub fn is_there(&self, machine: &str) -> bool {
        self.server.get(machine, NEWEST).status() == 200
    }
}

impl SeenEvent {
    fn of(event: &Value) -> Self {
        let names = event["Resources"].as_array().expect("a list");
        assert_eq!(names.len(), 1, "{event}");
        Self {
            what: format!("{} {}", text(&event["EventType"]), text(&event["EventStatus"])),
            whom: text(&names[0]),
            not_before: text(&event["NotBefore"]),
            id: text(&event["EventId"]),
        }
    }
}

/// The path of the provider of machines in the group of the documentation.
pub fn compute() -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute")
}

/// The path of the scale set of the documentation.
pub fn set() -> String {
    format!("{}/virtualMachineScaleSets/{SET}", compute())
}

/// The name of an instance of it, as its machine knows it.
pub fn instance(number: u32) -> String {
    format!("{SET}_{number}")
}

/// The body of a scale set, as a client makes one.
pub fn wanted_set(capacity: u32) -> Value {
    json!({
        "location": "eastus",
        "tags": { "made-by": "a test" },
        "sku": { "name": "Standard_D2s_v3", "tier": "Standard", "capacity": capacity },
        "properties": {
            "orchestrationMode": "Uniform",
            "overprovision": false,
            "upgradePolicy": { "mode": "Manual" },
            "virtualMachineProfile": {
                "osProfile": { "computerNamePrefix": "web", "adminUsername": "azureuser" },
                "storageProfile": { "imageReference": {
                    "publisher": "Canonical", "offer": "UbuntuServer", "sku": "18.04-LTS", "version": "latest"
                } },
            },
        },
    })
}

/// A body with only the terminate notification.
pub fn notification(profile: &Value) -> Value {
    let profile = json!({ "terminateNotificationProfile": profile });
    json!({ "properties": { "virtualMachineProfile": { "scheduledEventsProfile": profile } } })
}

/// The terminate notification of a scale set that is shown.
pub fn shown_notification(set: &Value) -> &Value {
    &set["properties"]["virtualMachineProfile"]["scheduledEventsProfile"]["terminateNotificationProfile"]
}

pub fn body(answer: &RawResponse) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|problem| panic!("{problem}: {answer:?}"))
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// A header field, in any spelling.
pub fn header<'a>(answer: &'a RawResponse, name: &str) -> Option<&'a str> {
    let mut fields = answer.head.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The target of the operation that an answer names.
pub fn operation(answer: &RawResponse) -> Option<String> {
    let url = header(answer, "azure-asyncoperation")?;
    let rest = url.split_once("://").expect("a whole URL").1;
    Some(rest[rest.find('/').expect("a path")..].to_owned())
}

/// The code of a refusal with that status.
pub fn refusal(answer: &RawResponse, status: u16) -> (String, String) {
    assert_eq!(answer.status(), status, "{answer:?}");
    let error = &body(answer)["error"];
    (text(&error["code"]), text(&error["message"]))
}
