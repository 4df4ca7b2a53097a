//! Messages to chats: receivers that check them as Slack, Microsoft Teams and PagerDuty document it, and plain text.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program;
use forewarn_testkit::chat::ChatService;
use forewarn_testkit::server::dev;
use forewarn_testkit::webhook_receiver::{Seen, WebhookReceiver, are_apart, show};
use forewarn_testkit::{TestServer, clean_command};

/// Routing key of PagerDuty.
const KEY: &str = "s3cretkey0123456789abcdef0123456";

/// A receiver that stands for a service, and the directory with the routing key.
struct Chat {
    service: ChatService,
    receiver: WebhookReceiver,
    files: TempDir,
}

impl Chat {
    fn start(service: ChatService) -> Self {
        let files = TempDir::new().unwrap();
        fs::write(files.path().join("key"), format!("{KEY}\n")).unwrap();
        Self { service, receiver: WebhookReceiver::start_chat(service), files }
    }

    fn create(&self, server: &TestServer, path: &str) {
        let url = self.receiver.url(path);
        let mut words = vec!["webhook", "create", self.service.word(), &url, "--format", self.service.word()];
        let file = self.files.path().join("key").display().to_string();
        if self.service == ChatService::PagerDuty {
            words.extend(["--key-file", &file]);
        }
        let said = server.run(&words);
        let name = self.service.word();
        assert_eq!(
            said,
            format!("Webhook {name} created.\nTo send a test message: forewarn webhook test {name}\n")
        );
        assert_eq!(show(server, name)["state"], "healthy", "nobody has to confirm it");
    }

    /// The words of the messages that the service has accepted; it has rejected none.
    fn texts(&self, count: usize) -> Vec<String> {
        let taken = self.receiver.until_taken(count);
        let rejected = |seen: &&Seen| self.service.check(seen.to_chat()).is_err();
        assert_eq!(self.receiver.seen().iter().find(rejected).map(|seen| &seen.body), None);
        taken.iter().map(|seen| self.service.text(&seen.body)).collect()
    }
}

fn has_all(text: &str, wanted: &[&str]) {
    for words in wanted {
        assert!(text.contains(words), "{words}\nin\n{text}");
    }
}

/// promise: W1
#[test]
fn every_chat_gets_messages_in_its_format_without_a_handshake() {
    for service in ChatService::ALL {
        let (server, chat) = (TestServer::start(program()), Chat::start(service));
        server.enrol(&["web_0"]);
        chat.create(&server, "/hook");
        assert!(chat.receiver.seen().is_empty(), "nothing is asked");
        let id = server.restart("web_0");
        let scheduled = &chat.texts(1)[0];
        let when = "not before 2026-01-01 00:15:00 UTC (in 15m)";
        let approve = format!("forewarn event approve {id}");
        let wanted = ["web_0 will be restarted", when, "waits for the approval of tenant web", &approve];
        has_all(scheduled, &wanted);
        server.run(&["event", "approve", &id]);
        server.advance("1m");
        let all = chat.texts(3);
        if service == ChatService::PagerDuty {
            let alerts: Vec<_> = chat.receiver.taken().iter().map(Seen::json).collect();
            assert!(
                alerts.iter().all(|alert| alert["dedup_key"] == id.as_str() && alert["routing_key"] == KEY)
            );
            let actions: Vec<_> = alerts.iter().map(|alert| alert["event_action"].clone()).collect();
            assert_eq!(actions, ["trigger", "trigger", "resolve"]);
        } else {
            has_all(&all[1], &["web_0 is being restarted since 2026-01-01 00:00:00 UTC."]);
            has_all(&all[2], &["web_0 was restarted. It ended at 2026-01-01 00:0"]);
        }
        let shown = show(&server, service.word());
        assert_eq!((&shown["format"], &shown["delivered"]), (&service.word().into(), &3.into()));
        assert!(shown.get("schema").is_none(), "{shown}");
    }
}

/// promise: W1
#[test]
fn a_test_of_a_chat_says_that_it_is_one_and_leaves_no_alert_open() {
    let server = TestServer::start(program());
    for service in ChatService::ALL {
        let (chat, name) = (Chat::start(service), service.word());
        chat.create(&server, "/hook");
        let said = server.run(&["webhook", "test", name]);
        assert!(said.starts_with(&format!("Webhook {name} accepted a test message in ")), "{said}");
        let texts = chat.texts(1);
        has_all(&texts[0], &[&format!("Test of the webhook {name}"), "Nothing happens to any machine."]);
        let actions: Vec<Value> = match service {
            ChatService::PagerDuty => {
                let told = chat.receiver.taken();
                let same = |seen: &Seen| seen.json()["dedup_key"] == told[0].json()["dedup_key"];
                assert!(told.iter().all(same), "{told:?}");
                told.iter().map(|seen| seen.json()["event_action"].clone()).collect()
            }
            ChatService::Slack | ChatService::Teams | ChatService::Text => Vec::new(),
        };
        assert!(actions.is_empty() || actions == ["trigger", "resolve"], "{actions:?}");
        // A message that the service rejects is an error with its status.
        chat.receiver.answers(&["403 Forbidden"]);
        let failed = server.try_run(&["webhook", "test", name]);
        let said = String::from_utf8(failed.stderr).unwrap();
        let expected =
            format!("forewarn: webhook {name} did not accept the test message: receiver answered 403\n");
        assert_eq!(said, expected);
    }
}

/// promise: W1
#[test]
fn a_host_that_is_ready_is_told_to_every_chat() {
    let data = TempDir::new().unwrap();
    let fleet = data.path().join("fleet.toml");
    fs::write(&fleet, "host = [{ name = 'kvm1' }]\n").unwrap();
    let mut command = clean_command(program());
    let start =
        ["--host-work", "manual", "--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z", "--fleet"];
    dev(&mut command, &start);
    command.arg(fleet);
    let server = TestServer::spawn(program(), command);
    let chats = ChatService::ALL.map(Chat::start);
    chats.iter().for_each(|chat| chat.create(&server, "/hook"));
    server.run(&["host", "update", "kvm1", "--work", "kernel <6.12.9> & \"more\""]);
    server.advance("1s");
    for chat in &chats {
        let said = if chat.service == ChatService::Slack {
            "kernel &lt;6.12.9&gt; &amp; \"more\""
        } else {
            "kernel <6.12.9> & \"more\""
        };
        has_all(&chat.texts(1)[0], &["Host kvm1 is ready for work: ", said, "forewarn host done kvm1"]);
    }
    server.run(&["host", "done", "kvm1", "--failed", "does not boot"]);
    for chat in &chats {
        has_all(&chat.texts(2)[1], &["Update of host kvm1 failed: ", "does not boot"]);
    }
}

/// Events of one change share messages: a chat gets five of them at once, one message per second.
/// promise: W1
/// promise: W2
#[test]
fn many_events_of_one_change_share_messages() {
    let machines: Vec<_> = (0..7).map(|number| format!("m{number}")).collect();
    let data = TempDir::new().unwrap();
    let fleet = data.path().join("fleet.toml");
    let vms: Vec<_> = machines.iter().map(|name| format!("{{ name = '{name}', host = 'kvm1' }}")).collect();
    fs::write(&fleet, format!("host = [{{ name = 'kvm1' }}]\nvm = [{}]\n", vms.join(", "))).unwrap();
    let mut command = clean_command(program());
    dev(&mut command, &["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z", "--fleet"]);
    command.arg(fleet);
    let server = TestServer::spawn(program(), command);
    server.enrol(&machines.iter().map(String::as_str).collect::<Vec<_>>());
    let chats = ChatService::ALL.map(Chat::start);
    chats.iter().for_each(|chat| chat.create(&server, "/hook"));
    server.run(&["host", "update", "kvm1"]);
    for chat in &chats {
        let (expected, of_each) = match chat.service {
            ChatService::PagerDuty => (7, 1),
            ChatService::Slack | ChatService::Teams | ChatService::Text => (2, 5),
        };
        let texts = chat.texts(expected);
        let all = texts.join("\n");
        assert!(machines.iter().all(|name| all.contains(&format!("Freeze of {name} scheduled"))), "{all}");
        let events = texts[0].matches("event approve").count();
        assert!(events >= of_each, "{}", texts[0]);
        let delivered = forewarn_testkit::wait_until("all are counted", || {
            Some(show(&server, chat.service.word())["delivered"].clone()).filter(|count| *count == 7)
        });
        assert_eq!((chat.receiver.told().len(), delivered), (expected, 7.into()));
        if chat.service == ChatService::Slack {
            let told = chat.receiver.told();
            assert!(are_apart(&told[0], &told[1], Duration::from_secs(1)), "one message per second");
        }
    }
}

/// promise: W2
#[test]
fn slack_says_for_how_long_it_is_left_alone() {
    let (server, chat) = (TestServer::start(program()), Chat::start(ChatService::Slack));
    server.enrol(&["solo"]);
    chat.create(&server, "/hook");
    chat.receiver.answers(&["429 Too Many Requests\r\nRetry-After: 3"]);
    server.restart("solo");
    chat.texts(1);
    let told = chat.receiver.told();
    assert_eq!(told.len(), 2);
    assert!(are_apart(&told[0], &told[1], Duration::from_secs(3)));
}

/// The path of the URL and the routing key are sent, and appear nowhere else: views, log, errors, audit log, metrics.
/// promise: S4, W2
#[test]
fn the_secrets_of_chats_are_shown_nowhere() {
    const PATH: &str = "s3cret-path";
    let server = TestServer::start_with(program(), &["--log-level", "debug"]);
    server.enrol(&["solo"]);
    let chats = ChatService::ALL.map(Chat::start);
    chats.iter().for_each(|chat| chat.create(&server, &format!("/services/{PATH}?sig={PATH}")));
    server.restart("solo");
    for chat in &chats {
        chat.texts(1);
        let told = chat.receiver.told();
        assert_eq!(told[0].line, format!("POST /services/{PATH}?sig={PATH} HTTP/1.1"));
        assert_eq!(told[0].header("authorization"), None);
        assert_eq!(told[0].body.contains(KEY), chat.service == ChatService::PagerDuty);
    }
    // Failures: a receiver that rejects, one that is gone, a URL that is none, a name that is taken.
    chats[0].receiver.refuses(Some("500 Internal Server Error"));
    let file = chats[0].files.path().join("key").display().to_string();
    let gone = format!("http://127.0.0.1:9/{PATH}");
    server.run(&["webhook", "create", "gone", &gone, "--format", "teams"]);
    let invalid = format!("http://u@h/{PATH}");
    let far = format!("http://h.example/{PATH}");
    let failures = [
        vec!["webhook", "test", "slack"],
        vec!["webhook", "test", "gone"],
        vec!["webhook", "create", "slack", &gone, "--format", "slack"],
        vec!["webhook", "create", "bad", &invalid, "--format", "slack"],
        vec!["webhook", "create", "bad", &far, "--format", "pagerduty", "--key-file", &file],
        vec!["webhook", "create", "bad", &gone, "--format", "text", "--key-file", &file],
        vec!["webhook", "create", "bad", &gone, "--format", "pagerduty", "--authorization-file", &file],
    ];
    let mut shown: Vec<String> = Vec::new();
    for words in &failures {
        let output = server.try_run(words);
        assert!(!output.status.success(), "{words:?}");
        shown.extend([output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()));
    }
    server.restart("web_0");
    for output in ["table", "wide", "json"] {
        shown.push(server.run(&["webhook", "ls", "--output", output]));
        shown.push(server.run(&["webhook", "show", "pagerduty", "--output", output]));
        shown.push(server.run(&["webhook", "show", "gone", "--output", output]));
        shown.push(server.run(&["audit", "ls", "--output", output]));
    }
    let audit = server.run(&["audit", "export", "-"]);
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let metrics = forewarn_testkit::ask(server.api(), request).unwrap().body;
    assert!(metrics.contains("forewarn_webhook_pushes_total"), "{metrics}");
    shown.extend([audit.clone(), metrics, server.log()]);
    for text in &shown {
        assert!(!text.contains(PATH) && !text.contains(KEY), "{text}");
    }
    let host = format!("http://127.0.0.1:{}/…", chats[2].receiver.port());
    assert!(audit.contains("\"format\":\"pagerduty\"") && audit.contains(&host), "{audit}");
    let pager = show(&server, "pagerduty");
    assert_eq!(
        (&pager["url"], &pager["key"], &pager["authorization"]),
        (&host.into(), &true.into(), &false.into())
    );
}

/// The former words: `webhook add` and `rm`, `--schema`, and `schema` in a request.
#[test]
fn the_former_words_are_still_understood() {
    let (server, receiver) = (TestServer::start(program()), WebhookReceiver::start());
    server.run(&["webhook", "add", "old", &receiver.url("/"), "--schema", "eventgrid"]);
    let body = json!({ "name": "older", "url": receiver.url("/"), "schema": "eventgrid" }).to_string();
    let request = format!(
        "POST /v1/webhooks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = forewarn_testkit::ask(server.api(), &request).unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.body);
    for name in ["old", "older"] {
        assert_eq!(show(&server, name)["format"], "eventgrid");
    }
    server.run(&["webhook", "rm", "old"]);
    server.run(&["webhook", "delete", "older"]);
    assert_eq!(server.json(&["webhook", "ls"])["items"], json!([]));
    let help = server.run(&["webhook", "create", "--help"]);
    assert!(help.contains("--format") && !help.contains("--schema"), "{help}");
    let help = server.run(&["webhook", "--help"]);
    assert!(help.contains("create") && !help.contains(" add ") && !help.contains(" rm "), "{help}");
}

/// A chat webhook is delivered to after a restart, with its key.
/// promise: D1
#[test]
fn a_chat_survives_a_restart() {
    let (data, chat) = (TempDir::new().unwrap(), Chat::start(ChatService::PagerDuty));
    let start = || {
        let mut command = clean_command(program());
        dev(&mut command, &["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z", "--data-dir"]);
        command.arg(data.path());
        TestServer::spawn(program(), command)
    };
    let server = start();
    server.enrol(&["solo"]);
    chat.create(&server, "/hook");
    let id = server.restart("solo");
    chat.texts(1);
    server.kill();
    let server = start();
    assert_eq!(show(&server, "pagerduty")["state"], "healthy");
    server.run(&["event", "cancel", &id]);
    let ends = forewarn_testkit::wait_until("the alert is resolved", || {
        let told: Vec<_> = chat.receiver.taken().iter().map(Seen::json).collect();
        told.iter().any(|alert| alert["event_action"] == "resolve").then_some(told)
    });
    assert!(
        ends.iter().all(|alert| alert["dedup_key"] == id.as_str() && alert["routing_key"] == KEY),
        "{ends:?}"
    );
}
