//! SIGKILL in the middle of a rolling upgrade: the pause between two batches is as long as it was.

use forewarn_types::Moment;
use serde_json::{Value, json};

use crate::durable::place::Place;
use forewarn_testkit::TestServer;
use forewarn_testkit::operator::{clock, read, value, write};

const HOUR_MILLIS: i64 = 3_600_000;

fn order(server: &TestServer, command: &Value) -> Value {
    value(&write(server.api(), "/v1/commands", command).unwrap())
}

fn advance(server: &TestServer, by: &str) {
    value(&write(server.api(), "/v1/clock", &json!({"clock": "advance", "by": by})).unwrap());
}

/// The models that the instances have, and when the next batch is.
fn look(server: &TestServer) -> (Vec<u64>, Option<i64>) {
    let shown = value(&read(server.api(), "/v1/scalesets/web").unwrap());
    let models = shown["instances"].as_array().unwrap().iter().map(|one| one["model"].as_u64().unwrap());
    let next: Option<Moment> = serde_json::from_value(shown["next_batch"].clone()).unwrap();
    (models.collect(), next.map(|moment| moment.0.millis()))
}

/// promise: T5
#[test]
fn a_pause_between_batches_survives_the_death_of_the_server() {
    let place = Place::new();
    let server = place.start();
    let rolling = json!({"rolling": {"batch_percent": 34, "pause": "1h"}});
    order(&server, &json!({"command": "admit_scale_set", "name": "web", "upgrade": rolling}));
    for host in ["h0", "h1", "h2", "h3"] {
        order(&server, &json!({"command": "admit_instance", "scale_set": "web", "instance": {"host": host}}));
    }
    order(&server, &json!({"command": "revise_model", "scale_set": "web"}));
    let begun = clock(&server);
    assert_eq!(look(&server), (vec![2, 2, 1, 1], Some(begun + HOUR_MILLIS)));
    server.kill();
    let server = place.start();
    assert_eq!(look(&server), (vec![2, 2, 1, 1], Some(begun + HOUR_MILLIS)));
    let early = begun + HOUR_MILLIS - clock(&server) - 1_000;
    advance(&server, &format!("{}s", early / 1_000));
    assert_eq!(look(&server).0, [2, 2, 1, 1]);
    server.kill();
    let server = place.start();
    assert_eq!(look(&server).0, [2, 2, 1, 1]);
    advance(&server, "2s");
    assert_eq!(look(&server), (vec![2; 4], None));
    server.kill();
    assert_eq!(look(&place.start()), (vec![2; 4], None));
}
