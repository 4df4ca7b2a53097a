//! A server with a fleet to make, requests to it as they are written in the documentation, and what its machines see.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::server::program;
use crate::harness::{Answer, Line, Server, approve};

/// The subscription of a server that was told of none.
pub(crate) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

/// The group, and the scale set, of the documentation.
pub(crate) const GROUP: &str = "myResourceGroup";
pub(crate) const SET: &str = "myVMScaleSet";

/// A version of the API that knows everything.
pub(crate) const NEW: &str = "2026-04-01";

/// What documents say of moments that are so many minutes after the clock of every server starts.
pub(crate) const AFTER_5: &str = "Thu, 01 Jan 2026 00:05:00 GMT";
pub(crate) const AFTER_7: &str = "Thu, 01 Jan 2026 00:07:00 GMT";
pub(crate) const AFTER_10: &str = "Thu, 01 Jan 2026 00:10:00 GMT";
pub(crate) const AFTER_15: &str = "Thu, 01 Jan 2026 00:15:00 GMT";

/// `forewarn dev` without machines, on hosts, with a home of its own.
pub(crate) struct Place {
    pub(crate) server: Server,
    directory: TempDir,
}

/// What a machine sees of one event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    /// Type and status: `Terminate Scheduled`.
    pub(crate) what: String,
    /// The one machine that it is about.
    pub(crate) whom: String,
    pub(crate) not_before: String,
    pub(crate) id: String,
}

/// Hosts, and nothing on them.
const FLEET: &str = r#"
host = [
    { name = "h1" }, { name = "h2" }, { name = "h3" }, { name = "h4" }, { name = "h5" },
    { name = "h6" }, { name = "h7" }, { name = "h8" }, { name = "h9" }, { name = "h10" },
]
"#;

impl Place {
    pub(crate) fn start() -> Self {
        Self::start_in(TempDir::new().unwrap(), &[])
    }

    fn start_in(directory: TempDir, more: &[&str]) -> Self {
        std::fs::write(directory.path().join("fleet.toml"), FLEET).unwrap();
        let server = Server::spawn(Self::command(directory.path(), more));
        Self { server, directory }
    }

    /// The same, with everything kept in a directory.
    pub(crate) fn start_durable() -> Self {
        let directory = TempDir::new().unwrap();
        let data = directory.path().join("data").display().to_string();
        Self::start_in(directory, &["--data-dir", &data])
    }

    /// Ends it as a power cut would, and starts it again where it was, at the same addresses.
    pub(crate) fn kill_and_start(self) -> Self {
        let Self { server, directory } = self;
        let [arm, api, metadata] =
            [server.arm(), server.api(), server.metadata()].map(|address| address.to_string());
        server.kill();
        let data = directory.path().join("data").display().to_string();
        let mut command = Command::new(program());
        command.args(["dev", "--data-dir", &data, "--clock", "frozen"]);
        command.args(["--arm-listen", &arm, "--api-listen", &api, "--metadata-listen", &metadata]);
        Self::at_home(&mut command, directory.path());
        Self { server: Server::spawn(command), directory }
    }

    fn command(directory: &Path, more: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "127.0.0.1:0", "--seed", "7"]);
        command.args(["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z"]);
        command.arg("--fleet").arg(directory.join("fleet.toml")).args(more);
        Self::at_home(&mut command, directory);
        command
    }

    /// Whatever a program keeps for its user goes with the test.
    fn at_home(command: &mut Command, directory: &Path) {
        command.env("HOME", directory.join("home")).env("XDG_STATE_HOME", directory.join("state"));
        command.env("XDG_CACHE_HOME", directory.join("cache"));
    }

    /// Where clients of Azure come in.
    pub(crate) fn arm(&self) -> String {
        format!("https://{}", self.server.arm())
    }

    /// A directory that goes with the server.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A program of this place: at home here, and without anything that whoever runs the tests has set.
    pub(crate) fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        std::fs::create_dir_all(self.directory().join("home")).unwrap();
        Self::at_home(&mut command, self.directory());
        command
    }

    /// What is answered to a request of Azure Resource Manager, through the door of operators.
    pub(crate) fn ask(&self, method: &str, path: &str, version: &str, body: &str) -> Answer {
        let join = if path.contains('?') { '&' } else { '?' };
        self.ask_url(method, &format!("{path}{join}api-version={version}"), body)
    }

    /// The same, where the whole target is known.
    pub(crate) fn ask_url(&self, method: &str, target: &str, body: &str) -> Answer {
        self.ask_with(method, target, "", body)
    }

    /// The same, with more header fields, as whole lines.
    pub(crate) fn ask_with(&self, method: &str, target: &str, fields: &str, body: &str) -> Answer {
        let api = self.server.api();
        let mut line = Line::to(api);
        line.send(&format!(
            "{method} {target} HTTP/1.1\r\nHost: {api}\r\nAuthorization: Bearer anything\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{fields}\r\n{body}",
            body.len()
        ));
        line.answer()
    }

    pub(crate) fn get(&self, path: &str, version: &str) -> Value {
        let answer = self.ask("GET", path, version, "");
        assert_eq!(answer.status(), 200, "GET {path}: {answer:?}");
        body(&answer)
    }

    /// A PUT that has to be accepted; what it begins is waited for.
    pub(crate) fn put(&self, path: &str, version: &str, sent: &Value) -> Value {
        self.change("PUT", path, version, sent)
    }

    pub(crate) fn change(&self, method: &str, path: &str, version: &str, sent: &Value) -> Value {
        let answer = self.ask(method, path, version, &sent.to_string());
        assert!([200, 201].contains(&answer.status()), "{method} {path}: {answer:?}");
        self.finish(&answer);
        body(&answer)
    }

    /// Begins something; gives where its operation is asked for.
    pub(crate) fn begin(&self, method: &str, path: &str, sent: &Value) -> String {
        let answer = self.ask(method, path, NEW, &sent.to_string());
        assert_eq!(answer.status(), 202, "{method} {path}: {answer:?}");
        assert_eq!(answer.body, "", "{method} {path}");
        operation(&answer).unwrap_or_else(|| panic!("no operation: {answer:?}"))
    }

    /// Begins something that needs nobody, and sees that it is over.
    pub(crate) fn act(&self, path: &str, sent: &Value) {
        let operation = self.begin("POST", path, sent);
        assert_eq!(self.status(&operation), "Succeeded", "{path}");
    }

    /// Where an operation stands.
    pub(crate) fn status(&self, operation: &str) -> String {
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
    pub(crate) fn finish(&self, answer: &Answer) {
        if let Some(operation) = operation(answer) {
            crate::harness::until("an operation ends", || {
                (self.status(&operation) != "InProgress").then_some(())
            });
            assert_eq!(self.status(&operation), "Succeeded", "{operation}");
        }
    }

    /// The group of the documentation.
    pub(crate) fn make_group(&self) {
        let path = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}");
        self.put(&path, "2024-11-01", &json!({ "location": "eastus" }));
    }

    /// A group with a scale set of that many instances that are not told of their deletion, and a machine of it that has asked.
    pub(crate) fn make_set(&self, capacity: u32) {
        self.make_group();
        self.put(&set(), NEW, &wanted_set(capacity));
        self.server.enrol(&[&instance(0)]);
    }

    /// What a machine sees.
    pub(crate) fn seen(&self, machine: &str) -> Vec<Seen> {
        let document = self.server.document(machine);
        let events = document["Events"].as_array().expect("a list").iter();
        events.map(Seen::of).collect()
    }

    /// The one event that a machine sees.
    pub(crate) fn one(&self, machine: &str) -> Seen {
        let mut seen = self.seen(machine);
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.remove(0)
    }

    /// Types, statuses and whom they are about: what a machine sees, in short.
    pub(crate) fn short(&self, machine: &str) -> Vec<String> {
        let seen = self.seen(machine).into_iter();
        seen.map(|Seen { what, whom, .. }| format!("{what} {whom}")).collect()
    }

    /// Approves what a machine sees about itself or another, as that machine.
    pub(crate) fn approve(&self, machine: &str, whom: &str) {
        let seen = self.seen(machine);
        let ids: Vec<_> = seen.iter().filter(|seen| seen.whom == whom).map(|seen| seen.id.as_str()).collect();
        assert!(!ids.is_empty(), "nothing about {whom}: {seen:?}");
        assert_eq!(self.server.post(machine, &approve(&ids)).short(), (200, ""));
    }

    /// Whether a machine is there for the metadata endpoint.
    pub(crate) fn is_there(&self, machine: &str) -> bool {
        self.server.get(machine, crate::harness::NEWEST).status() == 200
    }
}

impl Seen {
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
pub(crate) fn compute() -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute")
}

/// The path of the scale set of the documentation.
pub(crate) fn set() -> String {
    format!("{}/virtualMachineScaleSets/{SET}", compute())
}

/// The name of an instance of it, as its machine knows it.
pub(crate) fn instance(number: u32) -> String {
    format!("{SET}_{number}")
}

/// The body of a scale set, as a client makes one.
pub(crate) fn wanted_set(capacity: u32) -> Value {
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
pub(crate) fn notification(profile: &Value) -> Value {
    let profile = json!({ "terminateNotificationProfile": profile });
    json!({ "properties": { "virtualMachineProfile": { "scheduledEventsProfile": profile } } })
}

/// The terminate notification of a scale set that is shown.
pub(crate) fn shown_notification(set: &Value) -> &Value {
    &set["properties"]["virtualMachineProfile"]["scheduledEventsProfile"]["terminateNotificationProfile"]
}

pub(crate) fn body(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|problem| panic!("{problem}: {answer:?}"))
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// A header field, in any spelling.
pub(crate) fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let mut fields = answer.head.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// The target of the operation that an answer names.
pub(crate) fn operation(answer: &Answer) -> Option<String> {
    let url = header(answer, "azure-asyncoperation")?;
    let rest = url.split_once("://").expect("a whole URL").1;
    Some(rest[rest.find('/').expect("a path")..].to_owned())
}

/// The code of a refusal with that status.
pub(crate) fn refusal(answer: &Answer, status: u16) -> (String, String) {
    assert_eq!(answer.status(), status, "{answer:?}");
    let error = &body(answer)["error"];
    (text(&error["code"]), text(&error["message"]))
}
