//! What makes events, and what each says: description, source, duration, notice.
//!
//! | what happens | test |
//! |---|---|
//! | every row of the table `CASES` below | `every_cause_has_its_description_source_duration_and_notice` |
//! | a failed host goes straight to Started, which counts twice | the same |
//! | stop, start, deallocate and a plain delete make no event | `what_is_not_announced_makes_no_event` |
//! | an event ends when its work is done; the machine is then what the kind says | `an_event_ends_with_its_work` |

use serde_json::{Value, json};

use forewarn_testkit::TestServer;

struct Case {
    /// `HOST` stands for the host of the first resource.
    command: &'static [&'static str],
    reader: &'static str,
    resources: &'static [&'static str],
    kind: &'static str,
    /// Empty: it is Started at once.
    not_before: &'static str,
    description: &'static str,
    source: &'static str,
    duration_seconds: i32,
}

const MAINTENANCE: &str = "Host server is undergoing maintenance.";
const QUARTER: &str = "Thu, 01 Jan 2026 00:15:00 GMT";

const CASES: &[Case] = &[
    Case {
        command: &["host", "update", "HOST"],
        reader: "solo",
        resources: &["solo"],
        kind: "Freeze",
        not_before: QUARTER,
        description: MAINTENANCE,
        source: "Platform",
        duration_seconds: 9,
    },
    Case {
        command: &["host", "update", "--network", "HOST"],
        reader: "FrontEnd_IN_0",
        resources: &["FrontEnd_IN_0", "BackEnd_IN_0"],
        kind: "Freeze",
        not_before: QUARTER,
        description: "Host Server infrastructure is undergoing maintenance.",
        source: "Platform",
        duration_seconds: 0,
    },
    Case {
        command: &["host", "migrate", "HOST"],
        reader: "web_1",
        resources: &["web_0"],
        kind: "Freeze",
        not_before: QUARTER,
        description: "Virtual machine is being paused because of a memory-preserving Live Migration operation.",
        source: "Platform",
        duration_seconds: 5,
    },
    Case {
        command: &["host", "reboot", "HOST"],
        reader: "db-1",
        resources: &["db-0"],
        kind: "Reboot",
        not_before: QUARTER,
        description: MAINTENANCE,
        source: "Platform",
        duration_seconds: -1,
    },
    Case {
        command: &["host", "degrade", "HOST"],
        reader: "db-1",
        resources: &["db-2"],
        kind: "Redeploy",
        not_before: "Thu, 08 Jan 2026 00:00:00 GMT",
        description: MAINTENANCE,
        source: "Platform",
        duration_seconds: -1,
    },
    Case {
        command: &["host", "fail", "HOST"],
        reader: "web_2",
        resources: &["web_1"],
        kind: "Reboot",
        not_before: "",
        description: "Virtual machine has encountered a failure.",
        source: "Platform",
        duration_seconds: -1,
    },
    Case {
        command: &["vm", "restart", "solo"],
        reader: "solo",
        resources: &["solo"],
        kind: "Reboot",
        not_before: QUARTER,
        description: "Virtual machine is going to be restarted as requested by authorized user.",
        source: "User",
        duration_seconds: -1,
    },
    Case {
        command: &["vm", "redeploy", "web_3"],
        reader: "web_0",
        resources: &["web_3"],
        kind: "Redeploy",
        not_before: "Thu, 01 Jan 2026 00:10:00 GMT",
        description: "Virtual machine is going to be redeployed as requested by authorized user.",
        source: "User",
        duration_seconds: -1,
    },
    Case {
        command: &["vm", "evict", "spot-0"],
        reader: "spot-0",
        resources: &["spot-0"],
        kind: "Preempt",
        not_before: "Thu, 01 Jan 2026 00:00:30 GMT",
        description: "",
        source: "Platform",
        duration_seconds: -1,
    },
    Case {
        command: &["vm", "delete", "web_4"],
        reader: "web_0",
        resources: &["web_4"],
        kind: "Terminate",
        not_before: "Thu, 01 Jan 2026 00:05:00 GMT",
        description: "",
        source: "User",
        duration_seconds: -1,
    },
];

impl Case {
    fn happen(&self, server: &TestServer) {
        let host = server.host_of(self.resources[0]);
        let word = |word: &&'static str| if *word == "HOST" { host.clone() } else { (*word).to_owned() };
        let words: Vec<_> = self.command.iter().map(word).collect();
        server.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }

    fn event(&self, id: &Value) -> Value {
        json!({
            "EventId": id,
            "EventStatus": if self.not_before.is_empty() { "Started" } else { "Scheduled" },
            "EventType": self.kind,
            "ResourceType": "VirtualMachine",
            "Resources": self.resources,
            "NotBefore": self.not_before,
            "Description": self.description,
            "EventSource": self.source,
            "DurationInSeconds": self.duration_seconds,
        })
    }
}

/// promise: E2, M1
#[test]
fn every_cause_has_its_description_source_duration_and_notice() {
    for case in CASES {
        // A fleet of its own: what one host goes through must not reach the next case.
        let server = TestServer::start(crate::program());
        server.enrol(&[case.reader]);
        case.happen(&server);
        let document = server.document(case.reader);
        let expected = case.event(&document["Events"][0]["EventId"]);
        assert_eq!(document["Events"], json!([expected]), "{:?}", case.command);
        let incarnation = if case.not_before.is_empty() { 3 } else { 2 };
        assert_eq!(document["DocumentIncarnation"], incarnation, "{:?}", case.command);
    }
}

#[test]
fn what_is_not_announced_makes_no_event() {
    let server = TestServer::start(crate::program());
    server.enrol(&["web_0", "db-0", "solo"]);
    for (command, machine) in [
        (["vm", "stop", "web_0"], "web_1"),
        (["vm", "start", "web_0"], "web_1"),
        (["vm", "deallocate", "web_0"], "web_1"),
        (["vm", "reimage", "web_2"], "web_1"),
        (["vm", "delete", "db-2"], "db-0"),
    ] {
        server.run(&command);
        assert_eq!(
            server.document(machine),
            json!({ "DocumentIncarnation": 1, "Events": [] }),
            "{command:?}"
        );
    }
}

#[test]
fn an_event_ends_with_its_work() {
    let server = TestServer::start(crate::program());
    let shown = |machine: &str| server.json(&["vm", "show", machine]);
    server.enrol(&["solo"]);
    let before = shown("solo");
    server.restart("solo");
    for (span, status) in [("14m", "Scheduled"), ("59s", "Scheduled"), ("1s", "Started"), ("5m", "gone")] {
        server.advance(span);
        assert_eq!(server.status("solo"), status, "{span} later");
    }
    let after = shown("solo");
    assert_eq!(after["boots"].as_u64(), before["boots"].as_u64().map(|boots| boots + 1));
    assert_eq!(after["host"], before["host"]);
    server.run(&["vm", "redeploy", "solo"]);
    server.advance("30m");
    assert_ne!(shown("solo")["host"], before["host"]);
}
