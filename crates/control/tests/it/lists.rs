//! Lists that select things: an empty list is an error and never selects everything.

use forewarn_control::{DeleteInstances, NamedCommand, NewScaleSet, NewToken, NewWebhook, Scale, Upgrade};
use serde::de::DeserializeOwned;

use forewarn_testkit::TestCluster;

/// Asserts that `T` rejects each body, and that each body becomes valid once its empty list has an entry.
fn rejects<T: DeserializeOwned + std::fmt::Debug>(bodies: &[(&str, &str)]) {
    for (body, entry) in bodies {
        let problem = serde_json::from_str::<T>(body).expect_err(body).to_string();
        assert!(problem.contains("at least one"), "{body}: {problem}");
        let filled = body.replace("[]", &format!("[{entry}]"));
        serde_json::from_str::<T>(&filled).unwrap_or_else(|problem| panic!("{filled}: {problem}"));
    }
}

/// promise: C3
#[test]
fn an_empty_list_selects_nothing_and_is_rejected() {
    rejects::<NamedCommand>(&[
        (r#"{"command":"approve","tenant":"web","events":[]}"#, r#""28512AF7-C957-4500-9BC4-842D6FB531E4""#),
        (r#"{"command":"update_hosts","hosts":[]}"#, r#""h1""#),
        (r#"{"command":"update_network","hosts":[]}"#, r#""h1""#),
        (r#"{"command":"migrate_hosts","hosts":[]}"#, r#""h1""#),
        (r#"{"command":"reboot_hosts","hosts":[]}"#, r#""h1""#),
        (r#"{"command":"start_rollout","kind":"update","hosts":[]}"#, r#""h1""#),
        (
            r#"{"command":"start_rollout","kind":"update","hosts":"all","terms":{"windows":[]}}"#,
            r#""22:00-06:00""#,
        ),
        (r#"{"command":"change_rollout","rollout":0,"terms":{"windows":[]}}"#, r#""22:00-06:00""#),
    ]);
    rejects::<Scale>(&[(r#"{"capacity":3,"hosts":[]}"#, r#""h1""#), (r#"{"capacity":3,"zones":[]}"#, "1")]);
    rejects::<NewScaleSet>(&[(r#"{"name":"s","hosts":[]}"#, r#""h1""#), (r#"{"name":"s","zones":[]}"#, "1")]);
    rejects::<Upgrade>(&[(r#"{"instances":[]}"#, r#""0""#)]);
    rejects::<DeleteInstances>(&[(r#"{"instances":[]}"#, r#""0""#)]);
    rejects::<NewToken>(&[
        (r#"{"name":"t","role":"operator","clusters":[]}"#, r#""west""#),
        (r#"{"name":"t","role":"operator","tenants":[]}"#, r#""web""#),
    ]);
    rejects::<NewWebhook>(&[
        (r#"{"name":"w","url":"https://h/x","clusters":[]}"#, r#""west""#),
        (r#"{"name":"w","url":"https://h/x","tenants":[]}"#, r#""web""#),
        (r#"{"name":"w","url":"https://h/x","types":[]}"#, r#""Freeze""#),
    ]);
}

/// promise: C3
#[test]
fn an_action_on_everything_says_all() {
    let missing = |problem: serde_json::Error, member: &str| {
        assert!(problem.to_string().contains(&format!("missing field `{member}`")), "{problem}");
    };
    missing(
        serde_json::from_str::<NamedCommand>(r#"{"command":"approve","tenant":"web"}"#).unwrap_err(),
        "events",
    );
    missing(serde_json::from_str::<Upgrade>("{}").unwrap_err(), "instances");
    serde_json::from_str::<Upgrade>(r#"{"instances":"all"}"#).unwrap();
    let wrong = r#"{"command":"approve","tenant":"web","events":null}"#;
    assert!(serde_json::from_str::<NamedCommand>(wrong).is_err());

    let mut town = TestCluster::with_fleet();
    let tenant = town.enrol("web");
    town.run_text(r#"{"command":"restart","machine":"web_0"}"#);
    town.run_text(r#"{"command":"restart","machine":"web_1"}"#);
    town.run_text(r#"{"command":"approve","tenant":"web","events":"all"}"#);
    let events = town.rules.tenant(tenant).unwrap().events();
    assert!(events.iter().all(|event| !event.is_unapproved()), "{events:?}");
}
