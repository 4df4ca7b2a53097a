//! The virsh driver with a real libvirtd and real guests, on QEMU without KVM.
//!
//! | a guest | test |
//! |---|---|
//! | has another boot id after a reset, once, wherever the driver dies | `a_reset_gives_one_boot_wherever_the_driver_dies` |
//! | does not tick while it is paused | `a_pause_is_a_gap_in_the_heartbeat_and_ends` |
//! | feels its power button before it loses its power | `the_power_button_comes_before_the_end` |
//! | is driven through all orders by `forewarn driver check` | `the_driver_keeps_the_contract` |
//! | polls, approves and is driven by the whole server | `served` |
//!
//! They need root and packages, so they are ignored unless they are asked for; `cargo xtask libvirt` unpacks what they need and asks
//! for them, or says why it cannot. The libvirtd of the system is not touched.

mod host;
mod served;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{clean_command, wait_until};
use serde_json::json;

use super::support::{VirshDriver, done, order, order_with};
use host::LibvirtHost;

/// A host whose guest `web_0` runs and ticks.
fn running() -> LibvirtHost {
    let host = LibvirtHost::start();
    host.define("web_0", "");
    assert_eq!(host.driver.send(&order(1, "start")), done());
    host.await_boots("web_0", 1);
    host
}

fn state(driver: &VirshDriver, machine: &str) -> String {
    let response = driver.send(&json!({"verb": "state", "machine": machine, "host": "h1"}));
    response["state"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

/// promise: D2
#[test]
#[ignore = "needs root, libvirtd and QEMU; `cargo xtask libvirt` unpacks them"]
fn a_reset_gives_one_boot_wherever_the_driver_dies() {
    let host = running();
    assert_eq!(host.driver.send(&order(2, "reboot")), done());
    host.await_boots("web_0", 2);
    for (number, command) in (3..).zip(["suspend", "reset", "resume"]) {
        host.driver.dir.write("kill", &format!("{command}\n"));
        assert!(host.driver.send(&order(number, "reboot")).is_null(), "killed after {command}");
        assert!(!host.driver.dir.file("kill").exists(), "{command}");
        assert_eq!(host.driver.send(&order(number, "reboot")), done(), "killed after {command}");
        host.await_boots("web_0", usize::try_from(number).unwrap());
        // It has been done: nothing happens to the guest any more.
        assert_eq!(host.driver.send(&order(number, "reboot")), done());
    }
    // A guest that obeys its power button now has not been reset meanwhile: that button belongs to the last boot.
    assert_eq!(host.driver.send(&order(9, "stop")), done());
    let boots = host.boots("web_0");
    assert_eq!(boots.len(), 5, "{boots:?}");
    assert_eq!(host.presses("web_0").last(), boots.last());
    let mut ids = boots.clone();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), boots.len(), "a boot id came twice: {boots:?}");
}

#[test]
#[ignore = "needs root, libvirtd and QEMU; `cargo xtask libvirt` unpacks them"]
fn a_pause_is_a_gap_in_the_heartbeat_and_ends() {
    let host = running();
    let (pause, resume) = (order(2, "pause"), order(3, "resume"));
    assert_eq!((host.driver.send(&pause), state(&host.driver, "web_0").as_str()), (done(), "paused"));
    let ticks = host.ticks("web_0");
    assert_eq!((host.driver.send(&pause), state(&host.driver, "web_0").as_str()), (done(), "paused"));
    assert_eq!(host.ticks("web_0"), ticks, "a paused guest does not tick");
    assert_eq!((host.driver.send(&resume), state(&host.driver, "web_0").as_str()), (done(), "running"));
    assert_eq!((host.driver.send(&pause), state(&host.driver, "web_0").as_str()), (done(), "running"));
    wait_until("the guest ticks again", || (host.ticks("web_0") > ticks).then_some(()));

    let (gap, length) = (3.0, order_with(4, "pause", &json!({"seconds": 3})));
    let over = AtomicBool::new(false);
    let longest = std::thread::scope(|scope| {
        let watching = scope.spawn(|| longest_gap(&host, &over));
        assert_eq!(host.driver.send(&length), done());
        let ticks = host.ticks("web_0");
        wait_until("the guest ticks after the pause", || (host.ticks("web_0") > ticks).then_some(()));
        over.store(true, Ordering::Release);
        watching.join().unwrap()
    });
    let seconds = longest.as_secs_f64();
    assert!((gap - 0.1..gap + 20.0).contains(&seconds), "the heartbeat stopped for {seconds} s");
    assert_eq!(host.boots("web_0").len(), 1, "memory stays");
}

/// The longest time between two ticks, as the host sees them.
fn longest_gap(host: &LibvirtHost, over: &AtomicBool) -> Duration {
    let (mut ticks, mut last, mut longest) = (host.ticks("web_0"), Instant::now(), Duration::ZERO);
    while !over.load(Ordering::Acquire) {
        let now = host.ticks("web_0");
        if now != ticks {
            longest = longest.max(last.elapsed());
            (ticks, last) = (now, Instant::now());
        }
        std::thread::yield_now();
    }
    // The first tick after the pause may have come since the last look.
    longest.max(last.elapsed())
}

#[test]
#[ignore = "needs root, libvirtd and QEMU; `cargo xtask libvirt` unpacks them"]
fn the_power_button_comes_before_the_end() {
    let mut host = running();
    let delete = order(2, "delete");
    assert_eq!((host.driver.send(&delete), state(&host.driver, "web_0").as_str()), (done(), "stopped"));
    assert_eq!(host.presses("web_0"), host.boots("web_0"));
    assert!(host.console("web_0").contains("Power down"), "it has shut down by itself");
    assert_eq!(host.driver.send(&order(3, "start")), done());
    assert_eq!((host.driver.send(&delete), state(&host.driver, "web_0").as_str()), (done(), "running"));
    host.await_boots("web_0", 2);

    // A guest that does not obey loses its power after the grace period.
    host.define("deaf", "deaf");
    let deaf = |number, verb| order_with(number, verb, &json!({"machine": "deaf"}));
    assert_eq!(host.driver.send(&deaf(4, "start")), done());
    host.await_boots("deaf", 1);
    host.driver.set("GRACE", "3");
    let begin = Instant::now();
    assert_eq!(
        (host.driver.send(&deaf(5, "stop")), state(&host.driver, "deaf").as_str()),
        (done(), "stopped")
    );
    assert!(begin.elapsed() >= Duration::from_secs(3));
    assert_eq!(host.presses("deaf").first(), host.boots("deaf").first(), "pressed first");
    assert!(!host.console("deaf").contains("Power down"));
    // Without its definition, once the settings ask for that.
    host.driver.set("UNDEFINE", "yes");
    assert_eq!(
        (host.driver.send(&deaf(6, "delete")), state(&host.driver, "deaf").as_str()),
        (done(), "missing")
    );
}

#[test]
#[ignore = "needs root, libvirtd and QEMU; `cargo xtask libvirt` unpacks them"]
fn the_driver_keeps_the_contract() {
    let mut host = running();
    host.driver.set("GRACE", "5");
    let mut check = clean_command(crate::program());
    check.args([
        "driver",
        "check",
        VirshDriver::PROGRAM,
        "--machine",
        "web_0",
        "--host",
        "h1",
        "--yes",
        "--output",
        "json",
    ]);
    host.driver.configure(&mut check);
    let ran = run_with_input(&mut check, "");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let report: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let refused: Vec<_> =
        report["checks"].as_array().unwrap().iter().filter(|row| row["verdict"] == "refused").collect();
    assert!(refused.is_empty(), "{refused:?}");
}
