//! SIGKILL again and again in the middle of a rollout with terms: it goes on with it, and touches no domain early or twice.

use std::collections::{BTreeMap, BTreeSet};

use forewarn_types::Moment;
use serde_json::{Value, json};

use crate::durable::place::Place;
use forewarn_testkit::TestServer;
use forewarn_testkit::operator::{clock, machine, read, value, write};

/// Machines of one tenant, where they are, and their update domain.
const MACHINES: [(&str, &str, u16); 5] =
    [("db-0", "h0", 0), ("db-1", "h1", 1), ("db-2", "h2", 2), ("db-3", "h3", 0), ("db-4", "h4", 1)];

/// How long the rollout rests between two groups.
const REST_MILLIS: i64 = 10 * 60_000;

/// More kills than it can need.
const KILLS_MAX: usize = 400;

fn order(server: &TestServer, command: &Value) -> Value {
    value(&write(server.api(), "/v1/commands", command).unwrap())
}

/// What was seen so far, written down by somebody who outlives every server.
#[derive(Default)]
struct Books {
    /// When each event was said to start at the earliest.
    not_before: BTreeMap<String, i64>,
    /// Which machines were in an event.
    told: BTreeSet<String>,
    /// When a group was last seen to be over, at the earliest.
    group_over: Option<i64>,
    busy: bool,
    kills: usize,
}

impl Books {
    fn look(&mut self, server: &TestServer) {
        let now = clock(server);
        let document = server.document(MACHINES[0].0);
        let events = document["Events"].as_array().unwrap();
        assert!(events.len() <= 1, "two update domains at once: {events:?}");
        for event in events {
            let id = event["EventId"].as_str().unwrap().to_owned();
            if event["EventStatus"] == "Started" {
                assert!(now >= self.not_before[&id], "early: {event}");
            } else if !self.not_before.contains_key(&id) {
                self.announced(server, now, event, id);
            }
        }
        if events.is_empty() && self.busy {
            self.group_over = Some(now);
        }
        self.busy = !events.is_empty();
        for (name, ..) in MACHINES {
            let boots = machine(server, name)["boots"].as_u64().unwrap();
            assert!(boots <= 2, "{name} was restarted twice");
        }
    }

    fn announced(&mut self, server: &TestServer, now: i64, event: &Value, id: String) {
        let names = event["Resources"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let domains: BTreeSet<_> =
            names.clone().map(|name| MACHINES.iter().find(|(known, ..)| *known == name).unwrap().2).collect();
        assert_eq!(domains.len(), 1, "{event}");
        for name in names {
            assert!(self.told.insert(name.to_owned()), "{name} is told twice");
            assert_eq!(machine(server, name)["boots"], 1, "{name} was touched before it was told");
        }
        // It may have been announced a moment before it was seen, but not before the rest was over.
        let rollout = value(&read(server.api(), "/v1/rollouts/0").unwrap());
        assert_eq!(rollout["state"], "going", "{rollout}");
        let seen = value(&read(server.api(), &format!("/v1/events/{id}")).unwrap());
        let not_before: Moment = serde_json::from_value(seen["not_before"].clone()).unwrap();
        let announced = not_before.0.millis() - 15 * 60_000;
        assert!(announced <= now);
        if let Some(over) = self.group_over.take() {
            assert!(announced >= over.min(now) - STEP_MILLIS + REST_MILLIS, "it did not rest: {event}");
        }
        self.not_before.insert(id, not_before.0.millis());
    }

    /// Sets the clock forward a little and kills the server: after that, or while it does it.
    fn kill(&mut self, server: TestServer) {
        let api = server.api();
        let advance = json!({"clock": "advance", "by": "2m30s"});
        if self.kills.is_multiple_of(2) {
            value(&write(api, "/v1/clock", &advance).unwrap());
            server.kill();
        } else {
            std::thread::scope(|scope| {
                // Nobody knows whether this is answered.
                scope.spawn(|| drop(write(api, "/v1/clock", &advance)));
                server.kill();
            });
        }
        self.kills += 1;
    }
}

/// How far the clock goes with each kill.
const STEP_MILLIS: i64 = 150_000;

/// promise: R1
#[test]
fn a_rollout_goes_on_after_every_kill_and_touches_no_domain_early_or_twice() {
    let place = Place::new();
    let server = place.start();
    order(&server, &json!({"command": "admit_availability_set", "name": "db"}));
    for (name, host, update_domain) in MACHINES {
        let new = json!({"name": name, "host": host, "update_domain": update_domain});
        order(&server, &json!({"command": "admit_machine", "tenant": "db", "machine": new}));
    }
    server.document(MACHINES[0].0);
    let terms = json!({"pause_between": "10m", "windows": ["00:00-12:00"], "tenant_share": 50});
    let hosts: Vec<_> = MACHINES.iter().map(|(_, host, _)| *host).collect();
    let start = json!({"command": "start_rollout", "kind": "reboot", "hosts": hosts, "terms": terms});
    assert_eq!(order(&server, &start)["rollouts"], json!([0]));
    let mut books = Books::default();
    books.look(&server);
    let mut server = server;
    while books.kills < KILLS_MAX {
        books.kill(server);
        server = place.start();
        books.look(&server);
        let rollout = value(&read(server.api(), "/v1/rollouts/0").unwrap());
        if rollout["state"] == "finished" {
            assert_eq!(rollout["done"].as_array().unwrap().len(), MACHINES.len(), "{rollout}");
            assert_eq!((&rollout["failures"], &rollout["groups"]), (&json!(0), &json!(3)), "{rollout}");
            break;
        }
    }
    assert_eq!(books.told.len(), MACHINES.len(), "after {} kills", books.kills);
    for (name, ..) in MACHINES {
        assert_eq!(machine(&server, name)["boots"], 2, "{name}");
    }
    assert!(books.kills > 20, "too little happened: {} kills", books.kills);
}
