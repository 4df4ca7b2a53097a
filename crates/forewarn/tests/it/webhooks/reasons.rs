//! What is told of an event that failed: the machine, and what the driver program said.

use serde_json::json;

use crate::durable::site::{Site, document};
use forewarn_testkit::webhook_receiver::{WebhookReceiver, add};

/// promise: C6
#[test]
fn a_failure_is_told_with_the_reason_that_the_driver_program_gave() {
    let site = Site::new();
    site.bring_program("cat >/dev/null; echo '{\"result\":\"failed\",\"message\":\"no such domain\"}'\n");
    let (server, cloud, grid) = (site.start(), WebhookReceiver::start(), WebhookReceiver::start());
    document(&server);
    add(&server, "ops", &cloud, &[]);
    add(&server, "grid", &grid, &["--format", "eventgrid"]);
    server.run(&["vm", "restart", "front"]);
    let id = document(&server)["Events"][0]["EventId"].as_str().expect("an event").to_owned();
    server.run(&["event", "approve", &id]);
    let failures = json!({ "failures": [{ "machine": "front", "reason": "no such domain" }] });
    for (receiver, data) in [(&cloud, "/data"), (&grid, "/0/data")] {
        let all = receiver.until_taken(3);
        let told: Vec<_> = all.iter().map(|seen| seen.json().pointer(data).unwrap().clone()).collect();
        assert_eq!(told[2]["forewarn"], failures, "{}", told[2]);
        assert!(told[..2].iter().all(|data| data.get("forewarn").is_none()), "{told:?}");
    }
}
