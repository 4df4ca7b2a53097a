//! Note to an administrator: a chat and a receiver of `CloudEvents` are told.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::{script, settings};
use forewarn_testkit::agents::AgentNetwork;
use forewarn_testkit::agents::Beside;
use forewarn_testkit::wait_until;

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn a_chat_and_a_receiver_of_cloud_events_are_told() {
    let place = AgentNetwork::of(crate::program(), &["solo", "web_0"]);
    let at = place.address("web_0");
    let noting = settings("note-to-an-administrator").changed("10.0.0.9", &at);
    let world = place.prepare(&[("solo", noting)]);
    let agent = world.agent("solo");
    fs::write(agent.file("chat.url"), format!("http://{at}:8000/chat/secret\n")).unwrap();
    fs::set_permissions(agent.file("chat.url"), fs::Permissions::from_mode(0o600)).unwrap();
    let told = place.files().join("told.jsonl");
    let beside = Beside::new();
    let receiver = place.network().machine(1);
    agent.start();
    world.is_settled();
    // Nobody listens yet: it is tried again.
    let reboot = world.announce(&["vm", "restart", "solo"]);
    agent.has_said("preparing for event");
    beside.run(receiver, "python3", &[&script("receiver.py"), "8000", told.to_str().unwrap()]);
    world.is(&reboot, "Started");
    world.advance("1m");
    let notes: Vec<Value> = wait_until("all of it is told", || {
        let text = fs::read_to_string(&told).unwrap_or_default();
        let notes = text.lines().map(serde_json::from_str).collect::<Result<Vec<_>, _>>().ok()?;
        (notes.len() == 3).then_some(notes)
    });
    let chat: Vec<_> = notes.iter().filter(|note| note["path"] == "/chat/secret").collect();
    let text = chat[0]["body"]["text"].as_str().unwrap();
    assert!(text.starts_with("solo: Reboot by User, not before Thu, 01 Jan 2026 00:15:00 GMT."), "{text}");
    assert_eq!(chat[1]["body"]["text"], "solo: Reboot is over.");
    let books = notes.iter().find(|note| note["path"] == "/events").unwrap();
    assert!(books["type"].as_str().unwrap().starts_with("application/cloudevents+json"), "{books}");
    assert_eq!(books["body"]["specversion"], "1.0");
    assert_eq!(books["body"]["data"]["event"]["EventId"], reboot.as_str(), "{books}");
    assert!(!agent.log().contains("/chat/secret"), "the address of the chat is a secret");
}
