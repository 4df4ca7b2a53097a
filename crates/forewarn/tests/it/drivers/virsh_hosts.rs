//! Orders of the virsh driver that concern two hosts, or a host itself.

use forewarn_testkit::programs;
use serde_json::{Value, json};

use super::support::{VirshDriver, done, message, order_with};

fn is_missing() -> bool {
    programs::find_or_skip("python3").is_none()
}

fn to_h2(number: u32, verb: &str) -> Value {
    order_with(number, verb, &json!({"to": "h2"}))
}

fn host_order(number: u32, verb: &str) -> Value {
    json!({
        "action": format!("{number:032x}"), "verb": verb, "host": "h1", "cause": "update", "work": "kernel 6.12.9",
    })
}

/// promise: D2
#[test]
fn a_guest_moves_once_wherever_the_driver_is_killed() {
    if is_missing() {
        return;
    }
    for (verb, boots) in [("migrate", 0), ("redeploy", 1)] {
        for (number, place) in (1..).zip((1..).flat_map(|call| [format!("{call}-"), call.to_string()])) {
            let driver = VirshDriver::new();
            driver.dir.write("kill", &place);
            assert_eq!(driver.repeat(&to_h2(number, verb)), done(), "{verb}, killed at {place}");
            let seen = (driver.state("h1", "web_0"), driver.state("h2", "web_0"), driver.boots("web_0"));
            assert_eq!(seen, (String::new(), "running".to_owned(), boots), "{verb}, killed at {place}");
            let acts = driver.acts();
            assert_eq!(
                (driver.send(&to_h2(number, verb)), driver.acts()),
                (done(), acts),
                "{verb}, repeated"
            );
            if driver.dir.file("kill").exists() {
                break;
            }
        }
    }
}

#[test]
fn a_guest_with_a_local_disk_stays_unless_its_storage_is_copied() {
    if is_missing() {
        return;
    }
    let mut driver = VirshDriver::new();
    let disks = "<disk type='file'><source file='/srv/images/web.qcow2'/><target dev='vda'/></disk>\
        <disk type='file' device='cdrom'><target dev='sda'/></disk>\
        <disk type='block'><source dev='/dev/mapper/san-web'/><target dev='vdb'/></disk>";
    driver.define("h1", "web_0", disks);
    for (number, verb) in (1..).zip(["migrate", "redeploy"]) {
        let response = driver.send(&to_h2(number, verb));
        let message = message(&response, "failed");
        assert!(message.contains("vda (/srv/images/web.qcow2), vdb (/dev/mapper/san-web);"), "{message}");
    }
    driver.set("SHARED_PATHS", "/srv/image /dev/mapper/san-web");
    let response = driver.send(&to_h2(3, "migrate"));
    assert!(message(&response, "failed").contains(": vda (/srv/images/web.qcow2);"), "{response}");
    assert_eq!((driver.state("h1", "web_0"), driver.acts()), ("running".to_owned(), vec![]));

    driver.set("SHARED_PATHS", "/srv/images/ /dev/mapper/san-web");
    assert_eq!(driver.send(&to_h2(4, "migrate")), done());
    let mut driver = VirshDriver::new();
    driver.define("h1", "web_0", disks);
    driver.set("COPY_STORAGE", "yes");
    assert_eq!(driver.send(&to_h2(5, "migrate")), done());
    let calls = driver.dir.read("calls");
    assert!(calls.contains("--live --copy-storage-all"), "{calls}");
}

#[test]
fn a_migration_that_fails_leaves_the_guest_where_it_was() {
    if is_missing() {
        return;
    }
    let driver = VirshDriver::new();
    driver.dir.write("refuse", "migrate");
    let response = driver.send(&to_h2(1, "migrate"));
    assert!(message(&response, "failed").starts_with("virsh migrate web_0 to h2: "), "{response}");
    assert_eq!(driver.state("h1", "web_0"), "running");
    driver.dir.write("unreachable", "h2\n");
    assert_eq!(driver.send(&to_h2(2, "migrate"))["result"], "unknown");
    driver.dir.write("unreachable", "");
    driver.guest("h2", "web_0", "paused");
    let response = driver.send(&to_h2(3, "migrate"));
    assert!(message(&response, "unknown").contains("a migration is in progress"), "{response}");
}

/// Two copies of a guest on one disk destroy it.
#[test]
fn a_guest_of_a_silent_host_starts_elsewhere_only_after_the_host_was_fenced() {
    if is_missing() {
        return;
    }
    let mut driver = VirshDriver::new();
    let definitions = driver.dir.path("definitions");
    driver.set("DEFINITIONS", &definitions);
    driver.dir.write("definitions/web_0.xml", &driver.dir.read("hosts/h1/web_0.xml"));
    driver.dir.write("unreachable", "h1\n");
    let response = driver.send(&to_h2(1, "redeploy"));
    assert!(message(&response, "unknown").contains("it may still write to its disks"), "{response}");
    let fence = host_order(2, "fence_host");
    assert!(message(&driver.send(&fence), "failed").contains("no command for fence_host"));
    assert_eq!(driver.state("h2", "web_0"), "");

    driver.set("FENCE_HOST", "true");
    assert_eq!(driver.send(&fence), done());
    assert_eq!(driver.send(&to_h2(1, "redeploy")), done());
    assert_eq!(driver.state("h2", "web_0"), "running");

    // A host that answers is not fenced any more, and a guest that runs on both is left to a person.
    driver.dir.write("unreachable", "");
    let response = driver.send(&to_h2(3, "redeploy"));
    assert_eq!((&response["result"], &response["repeat"]), (&json!("unknown"), &json!(false)), "{response}");
    driver.dir.write("unreachable", "h1\n");
    driver.guest("h2", "web_0", "off");
    assert_eq!(driver.send(&to_h2(4, "redeploy"))["result"], "unknown");
    assert_eq!(driver.run(&["--fenced", "h1"], "").code, Some(0));
    assert_eq!(driver.send(&to_h2(4, "redeploy")), done());
    for (number, verb) in [(5, "reboot"), (6, "start")] {
        driver.guest("h2", "web_0", "off");
        assert_eq!(driver.send(&to_h2(number, verb)), done(), "{verb}");
        assert_eq!(driver.state("h2", "web_0"), "running");
    }
}

#[test]
fn a_host_step_is_a_command_that_runs_once() {
    if is_missing() {
        return;
    }
    let mut driver = VirshDriver::new();
    for (number, verb) in (1..).zip(["update_host", "reboot_host", "fence_host"]) {
        let response = driver.send(&host_order(number, verb));
        let expected =
            format!("this driver has no command for {verb}; hint: set {verb} in the settings of the driver");
        assert_eq!(message(&response, "failed"), expected);
    }
    let body =
        "echo \"$1 $FOREWARN_CAUSE $FOREWARN_WORK\" >>DIR/steps; cat >>DIR/steps; exit $(cat DIR/code)";
    let step = driver.dir.script("step", body);
    driver.set("UPDATE_HOST", &format!("{step} '{{host}} with {{work}}'"));
    driver.dir.write("code", "75");
    let response = driver.send(&host_order(4, "update_host"));
    assert!(message(&response, "unknown").contains("exited with code 75"), "{response}");
    assert!(response["repeat"].is_null());
    driver.dir.write("code", "0");
    for _ in 0..2 {
        assert_eq!(driver.send(&host_order(4, "update_host")), done());
    }
    let steps = driver.dir.read("steps");
    assert_eq!(steps.matches("h1 with kernel 6.12.9 update kernel 6.12.9").count(), 2, "{steps}");
    assert!(steps.contains("\"cause\": \"update\""), "{steps}");
    driver.dir.write("code", "3");
    let failing = driver.dir.script("failing", "echo 'no such kernel' >&2; exit 3");
    driver.set("REBOOT_HOST", &failing);
    let response = driver.send(&host_order(5, "reboot_host"));
    assert!(message(&response, "failed").ends_with("exited with code 3: no such kernel"), "{response}");
}

/// promise: D2
#[test]
fn an_interrupted_host_step_waits_for_a_person() {
    if is_missing() {
        return;
    }
    let mut driver = VirshDriver::new();
    let step = driver.dir.script("step", "echo >>DIR/steps; [ -e DIR/again ] || kill -9 $PPID");
    driver.set("REBOOT_HOST", &step);
    let reboot = host_order(1, "reboot_host");
    assert!(driver.send(&reboot).is_null());
    driver.dir.write("again", "");
    let response = driver.send(&reboot);
    assert!(message(&response, "unknown").contains("was interrupted"), "{response}");
    assert_eq!((&response["repeat"], driver.dir.read("steps").lines().count()), (&json!(false), 1));
    driver.set("REPEAT_HOST_COMMANDS", "yes");
    assert_eq!((driver.send(&reboot), driver.dir.read("steps").lines().count()), (done(), 2));
}
