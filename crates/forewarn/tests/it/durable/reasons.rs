//! The reason of a failure: what a driver program says is shown wherever the failure is, and survives a kill.

use serde_json::Value;

use crate::durable::site::{Site, document};
use forewarn_testkit::{NEWEST, TestServer, approve, post, wait_until};

/// Fails for one machine, with a message that would play tricks on a terminal; does it for the other once it may.
const FAILS: &str = r#"order=$(cat)
cd "$HANDS" || exit 1
case $order in
*'"machine":"back"'*)
    while [ -e hold ]; do sleep 0.01; done
    echo '{"result":"done"}' ;;
*) printf '{"result":"failed","message":"no such domain\\n\\u001b[2J\\u202egnp.exe"}' ;;
esac
"#;

const REASON: &str = r"no such domain\n\u{1b}[2J\u{202e}gnp.exe";

/// What a command prints on both outputs, whether it fails or not.
fn said(server: &TestServer, words: &[&str]) -> String {
    let output = server.try_run(words);
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
}

/// The completion of the machine that failed, in the trail.
fn failure(server: &TestServer) -> Option<Value> {
    let page = server.json(&["audit", "ls", "--machine", "shop/front", "--kind", "completed"]);
    page["items"].as_array()?.first().cloned()
}

/// promise: C6
#[test]
fn a_command_that_waits_says_why_it_failed() {
    let site = Site::new();
    site.bring_program(FAILS);
    let server = site.start();
    let output = server.try_run(&["vm", "restart", "front", "--wait"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains(&format!("failed: {REASON}.")), "{printed}");

    let told = server.json_of(&["vm", "restart", "front", "--wait"]);
    let ended = &told["ended"][0];
    assert_eq!(ended["how"], "failed", "{told}");
    assert_eq!(ended["failures"][0]["machine"], "shop/front", "{told}");
    assert_eq!(ended["failures"][0]["reason"], REASON, "{told}");
}

/// promise: C6
#[test]
fn a_rollout_that_is_waited_for_says_why_it_failed() {
    let site = Site::new();
    site.bring_program(FAILS);
    let server = site.start();
    let output = server.try_run(&["rollout", "start", "h1", "--kind", "reboot", "--no-work", "--wait"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains(&format!("\n  shop/front: {REASON}\n")), "{printed}");
}

/// promise: C6
#[test]
fn the_reason_of_a_failure_is_in_the_trail_and_in_explanations_after_a_kill() {
    let site = Site::new();
    site.bring_program(FAILS);
    std::fs::write(site.file("hold"), "").unwrap();
    let server = site.start();
    document(&server);
    server.run(&["host", "reboot", "h1", "--no-work"]);
    let id = document(&server)["Events"][0]["EventId"].as_str().unwrap().to_owned();
    assert_eq!(server.say(&post(NEWEST, &approve(&[&id]))).short(), (200, ""));
    wait_until("the failure is in the trail", || failure(&server));
    server.kill();

    let server = site.start();
    let entry = failure(&server).expect("it was committed with the completion");
    assert_eq!(entry["reason"], REASON, "{entry}");
    assert!(entry["text"].as_str().unwrap().ends_with(&format!("failed for front: {REASON}")), "{entry}");
    // One machine has failed, the other is not done: the event is under way.
    let event = server.json(&["event", "explain", &id]);
    assert_eq!(event["failures"][0]["machine"], "shop/front", "{event}");
    assert_eq!(event["failures"][0]["reason"], REASON, "{event}");
    std::fs::remove_file(site.file("hold")).unwrap();
    wait_until("the event ends", || document(&server)["Events"].as_array()?.is_empty().then_some(()));
    // The event ended with the other machine, and another process: a webhook is told of the failure all the same.
    let page = server.json(&["audit", "ls", "--event", &id, "--kind", "completed"]);
    let notices = page["items"][0]["notices"].as_array().expect("the event is over").clone();
    assert_eq!((notices.len(), &notices[0]["status"]), (1, &"Completed".into()), "{page}");
    assert_eq!(notices[0]["failures"][0]["machine"], "front", "{page}");
    assert_eq!(notices[0]["failures"][0]["reason"], REASON, "{page}");
    for words in [&["vm", "explain", "front"][..], &["event", "explain", &id], &["audit", "ls"]] {
        let text = said(&server, words);
        assert!(text.contains(REASON), "{words:?}: {text}");
        let json = server.json(words).to_string();
        assert!(json.contains(&Value::from(REASON).to_string()), "{words:?}: {json}");
    }
    assert!(server.run(&["audit", "verify"]).starts_with("Verified"));
}

/// promise: C6
#[test]
fn an_order_that_has_to_be_repeated_is_explained_with_its_reason() {
    let site = Site::new();
    site.bring_program("cat >/dev/null; echo '{\"result\":\"unknown\",\"message\":\"no route to h1\"}'\n");
    let server = site.start();
    // Nobody has enrolled: there is no event, and the machine is still explained.
    server.run(&["vm", "restart", "front"]);
    wait_until("the trouble is shown", || {
        said(&server, &["vm", "explain", "front"]).contains("no route to h1").then_some(())
    });
    let coming = &server.json(&["vm", "explain", "front"])["coming"][0];
    assert!(coming["text"].as_str().is_some_and(|text| text.contains("no route to h1")), "{coming}");
    assert!(coming["error"].as_str().is_some_and(|text| text.contains("no route to h1")), "{coming}");
}
