//! The virsh driver with the real virsh and the hypervisor that libvirt has for tests, `test:///default`.
//!
//! Its state begins anew with every connection: a guest `test` that runs. So only single steps can be seen here.

use forewarn_testkit::programs;
use serde_json::{Value, json};

use super::support::{VirshDriver, done, message, order_with};

fn on_test(number: u32, verb: &str) -> Value {
    order_with(number, verb, &json!({"machine": "test"}))
}

#[test]
fn the_real_virsh_takes_every_command() {
    if programs::find_or_skip("python3").is_none() || programs::find_or_skip("virsh").is_none() {
        return;
    }
    let mut driver = VirshDriver::with_test_uri();
    driver.set("UNDEFINE", "yes");
    for (number, verb) in
        (1..).zip(["pause", "resume", "reboot", "stop", "start", "deallocate", "redeploy", "delete"])
    {
        let response = driver.send(&on_test(number, verb));
        // A running guest cannot be undefined, and this hypervisor has forgotten that it is off.
        let is_forgotten =
            verb == "delete" && message_of(&response).starts_with("virsh undefine test on h1: ");
        assert!(response == done() || is_forgotten, "{verb}: {response}");
    }
    let state = |machine: &str| driver.send(&json!({"verb": "state", "machine": machine, "host": "h1"}));
    assert_eq!(state("test"), json!({"result": "done", "state": "running"}));
    assert_eq!(state("tes"), json!({"result": "done", "state": "missing"}));
    let missing = order_with(20, "stop", &json!({"machine": "1"}));
    assert_eq!(message(&driver.send(&missing), "failed"), "no such domain on h1: 1");
    let checked = driver.run(&["--check", "h1"], "");
    assert_eq!((checked.code, checked.out.as_str()), (Some(0), "test:///default\n"));
    driver.set("REMOTE_URI", "test:///no/such/file");
    assert_eq!(driver.run(&["--check", "h1"], "").code, Some(1));
    assert_eq!(driver.send(&on_test(21, "stop"))["result"], "unknown");
}

fn message_of(response: &Value) -> &str {
    response["message"].as_str().unwrap_or_default()
}
