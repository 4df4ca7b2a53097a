//! Orders of the virsh driver on one host: each takes effect once, wherever the driver is killed.

use forewarn_testkit::{programs, wait_until};
use serde_json::json;

use super::support::{VirshDriver, done, message, order, order_with, seconds_of};

/// Verbs on one host: the state before, the state after, and the boots of the guest.
const EFFECTS: [(&str, &str, &str, usize); 12] = [
    ("pause", "running", "paused", 0),
    ("pause", "off", "off", 0),
    ("resume", "paused", "running", 0),
    ("resume", "running", "running", 0),
    ("resume", "off", "off", 0),
    ("reboot", "running", "running", 1),
    ("redeploy", "running", "running", 1),
    ("stop", "running", "off", 0),
    ("stop", "paused", "off", 0),
    ("deallocate", "running", "off", 0),
    ("start", "off", "running", 1),
    ("delete", "running", "off", 0),
];

fn is_missing() -> bool {
    programs::find_or_skip("python3").is_none()
}

#[test]
fn every_order_takes_effect_and_a_repetition_does_nothing() {
    if is_missing() {
        return;
    }
    for (number, (verb, before, after, boots)) in (1..).zip(EFFECTS) {
        let driver = VirshDriver::new();
        driver.guest("h1", "web_0", before);
        assert_eq!(driver.send(&order(number, verb)), done(), "{verb} {before}");
        let seen = (driver.state("h1", "web_0"), driver.boots("web_0"));
        assert_eq!(seen, (after.to_owned(), boots), "{verb} {before}");
        // An effect of the same order would show: the guest is in its state before again.
        let acts = driver.acts();
        driver.guest("h1", "web_0", before);
        assert_eq!(driver.send(&order(number, verb)), done(), "{verb} {before}");
        assert_eq!((driver.state("h1", "web_0"), driver.acts()), (before.to_owned(), acts), "{verb}");
    }
}

/// promise: D2
#[test]
fn an_order_takes_effect_once_wherever_the_driver_is_killed() {
    if is_missing() {
        return;
    }
    for (verb, before, after, boots) in EFFECTS {
        // Before and after each call of virsh that changes something, until the order has fewer of them.
        for (number, place) in (1..).zip((1..).flat_map(|call| [format!("{call}-"), call.to_string()])) {
            let driver = VirshDriver::new();
            driver.guest("h1", "web_0", before);
            driver.dir.write("kill", &place);
            assert_eq!(driver.repeat(&order(number, verb)), done(), "{verb} {before}, killed at {place}");
            let seen = (driver.state("h1", "web_0"), driver.boots("web_0"));
            assert_eq!(seen, (after.to_owned(), boots), "{verb} {before}, killed at {place}");
            if driver.dir.file("kill").exists() {
                break;
            }
        }
    }
}

/// promise: D2
#[test]
fn a_reset_that_nothing_can_tell_waits_for_a_person() {
    if is_missing() {
        return;
    }
    let driver = VirshDriver::new();
    driver.dir.write("no-monitor", "");
    assert_eq!(driver.send(&order(1, "reboot")), done());
    assert_eq!(driver.boots("web_0"), 1);

    // Killed after the reset, and before it: the record is the same.
    for (number, place, boots) in [(2, "1", 2), (3, "1-", 2)] {
        driver.dir.write("kill", place);
        assert!(driver.send(&order(number, "reboot")).is_null());
        assert_eq!(driver.boots("web_0"), boots, "{place}");
        for _ in 0..2 {
            let response = driver.send(&order(number, "reboot"));
            assert!(message(&response, "unknown").contains("nothing tells if it has happened"), "{response}");
            assert_eq!(response["repeat"], false);
        }
        assert_eq!(driver.boots("web_0"), boots, "{place}");
    }
    let action = |number: u32| format!("{number:032x}");
    assert_eq!(driver.run(&["--mark-done", &action(2)], "").code, Some(0));
    assert_eq!((driver.send(&order(2, "reboot")), driver.boots("web_0")), (done(), 2));
    assert_eq!(driver.run(&["--forget", &action(3)], "").code, Some(0));
    assert_eq!((driver.send(&order(3, "reboot")), driver.boots("web_0")), (done(), 3));
    assert_eq!(driver.run(&["--forget", &action(9)], "").code, Some(1));
}

#[test]
fn a_pause_with_a_length_ends_by_itself() {
    if is_missing() {
        return;
    }
    let driver = VirshDriver::new();
    let pause = order_with(1, "pause", &json!({"seconds": 1}));
    let seconds = seconds_of(|| assert_eq!(driver.send(&pause), done()));
    assert!(seconds >= 1.0, "{seconds}");
    assert_eq!(driver.acts(), ["h1 suspend", "h1 resume"]);

    // Killed during the pause: the guest stays paused, and the repeated order ends it.
    let pause = order_with(2, "pause", &json!({"seconds": 3}));
    let mut first = driver.start(&pause);
    let record = format!("state/actions/00/{:032x}.json", 2);
    wait_until("the pause is on record", || driver.dir.read(&record).contains("until").then_some(()));
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(driver.state("h1", "web_0"), "paused");
    assert_eq!(driver.send(&pause), done());
    assert_eq!(driver.state("h1", "web_0"), "running");
    assert_eq!(driver.acts().len(), 4, "{:?}", driver.acts());
}

#[test]
fn the_power_button_is_pressed_before_the_power_is_cut() {
    if is_missing() {
        return;
    }
    for (number, verb) in (1..).zip(["stop", "deallocate", "delete"]) {
        let driver = VirshDriver::new();
        assert_eq!(driver.send(&order(number, verb)), done());
        assert_eq!(driver.acts(), ["h1 shutdown"], "{verb}");

        let driver = VirshDriver::new();
        driver.dir.write("deaf", "");
        let seconds = seconds_of(|| assert_eq!(driver.send(&order(number, verb)), done()));
        assert!(seconds >= 0.2, "it waits for the grace period: {seconds}");
        assert_eq!(driver.acts(), ["h1 shutdown", "h1 destroy"], "{verb}");
    }
}

#[test]
fn a_definition_is_removed_only_if_the_settings_say_so() {
    if is_missing() {
        return;
    }
    let mut driver = VirshDriver::new();
    assert_eq!(driver.send(&order(1, "delete")), done());
    assert_eq!(driver.state("h1", "web_0"), "off");
    driver.set("UNDEFINE", "yes");
    assert_eq!(driver.send(&order(2, "delete")), done());
    assert_eq!(driver.state("h1", "web_0"), "");
    assert_eq!(driver.send(&order(3, "delete")), done(), "it is gone already");
}

/// promise: D2
#[test]
fn an_incomplete_request_does_nothing() {
    if is_missing() {
        return;
    }
    let driver = VirshDriver::new();
    let whole = order(1, "stop").to_string();
    let cut = (0..whole.len()).step_by(17).map(|end| whole[..end].to_owned());
    let without = ["action", "verb", "machine", "host", "boots"].into_iter().map(|member| {
        let mut order = order(1, "stop");
        order.as_object_mut().unwrap().remove(member);
        order.to_string()
    });
    let other = [
        json!([]).to_string(),
        order(1, "migrate").to_string(),
        order_with(1, "stop", &json!({"action": "../../etc"})).to_string(),
        order_with(1, "stop", &json!({"machine": "--help"})).to_string(),
        order_with(1, "pause", &json!({"seconds": "9"})).to_string(),
        format!("{whole}{whole}"),
        " ".repeat(70_000),
    ];
    for text in cut.chain(without).chain(other) {
        let ran = driver.run(&[], &text);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{text}");
        assert!(ran.err.contains("incomplete request, nothing was done"), "{text}: {}", ran.err);
    }
    assert_eq!(driver.dir.read("calls"), "");
    assert!(!driver.dir.file("state").exists());
}

#[test]
fn a_refused_order_leaves_the_guest_as_it_was_and_says_why() {
    if is_missing() {
        return;
    }
    let driver = VirshDriver::new();
    for (number, (verb, refused)) in (1..).zip([("pause", "suspend"), ("reboot", "reset")]) {
        driver.dir.write("refuse", refused);
        let response = driver.send(&order(number, verb));
        assert!(message(&response, "failed").contains("Requested operation is not valid"), "{response}");
        assert_eq!((driver.state("h1", "web_0"), driver.boots("web_0")), ("running".to_owned(), 0));
    }
    driver.dir.write("refuse", "");
    assert_eq!(driver.send(&order(1, "pause")), done(), "nothing of it is on record");

    let missing = order_with(9, "stop", &json!({"machine": "web_9"}));
    assert_eq!(message(&driver.send(&missing), "failed"), "no such domain on h1: web_9");
    assert_eq!(
        message(&driver.send(&order(10, "dance")), "failed"),
        "this driver does not know the verb dance"
    );
    assert!(message(&driver.send(&order(11, "reimage")), "failed").contains("no command for reimage"));
    let other = order(1, "stop");
    assert_eq!(driver.send(&other)["repeat"], false, "the name of an action has one order");
}

#[test]
fn the_state_is_read_and_a_number_is_a_name() {
    if is_missing() {
        return;
    }
    let driver = VirshDriver::new();
    driver.guest("h1", "7", "paused");
    let state = |machine: &str, host: &str| {
        driver.send(&json!({"verb": "state", "machine": machine, "host": host}))["state"].clone()
    };
    assert_eq!(state("web_0", "h1"), "running");
    assert_eq!(state("7", "h1"), "paused");
    assert_eq!(state("web", "h1"), "missing");
    assert_eq!(state("web_0", "h2"), "missing");
    let elsewhere = driver.send(&json!({"verb": "state", "machine": "web_0", "host": "h9"}));
    assert!(message(&elsewhere, "unknown").contains("failed to connect"));
    assert!(driver.dir.read("calls").lines().all(|call| !call.ends_with(" 7")), "looked up by its id");
}

#[test]
fn invalid_settings_are_reported_and_nothing_is_done() {
    if is_missing() {
        return;
    }
    for (name, value) in [("GRACE", "soon"), ("GRACE", "-1"), ("UNDEFINE", "maybe"), ("CONFIG", "/no/file")] {
        let mut driver = VirshDriver::new();
        driver.set(name, value);
        let response = driver.send(&order(1, "delete"));
        assert!(message(&response, "unknown").contains(value), "{response}");
        assert!(!driver.acts().contains(&"h1 destroy".to_owned()), "{name}");
    }
    let driver = VirshDriver::new();
    for (text, problem) in [
        ("[driver]\ngrase = 3\n", "unknown setting: grase"),
        ("[drivers]\n", "unknown section in the settings: drivers"),
        ("grace = 3\n", "cannot read the settings"),
    ] {
        let file = driver.dir.write("other.conf", text);
        let mut command = driver.command();
        command.env("FOREWARN_VIRSH_CONFIG", file);
        let ran = forewarn_testkit::command::run_with_input(&mut command, &order(1, "stop").to_string());
        assert!(ran.out.contains(problem), "{text}: {ran:?}");
    }
    assert_eq!(driver.state("h1", "web_0"), "running");
}
