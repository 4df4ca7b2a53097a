//! Faults and operators: the commands, the API, servers without faults, and webhooks.

use forewarn_testkit::webhook_receiver::{WebhookReceiver, add, show};
use forewarn_testkit::{NEWEST, SOLO_FLEET, ServeDir, ask, operator};
use serde_json::{Value, json};

use super::{faults_left, inject, server};

#[test]
fn faults_are_added_listed_and_cleared() {
    let server = server();
    assert_eq!(
        server.run(&["fault", "create", "web_0", "--next", "3", "--answer", "500"]),
        "Fault 1: next 3 polls of web/web_0: 500.\n"
    );
    server.run(&["fault", "create", "solo", "--request", "any", "--answer", "hang"]);
    server.run(&["fault", "create", "solo", "--answer", "hide=1m"]);
    server.get("web_0", NEWEST);
    assert_eq!(
        server.run(&["fault", "ls"]),
        "ID  TARGET     REQUESTS      ANSWER   USED\n\
         1   web/web_0  next 2 polls  500      1\n\
         2   solo/solo  next request  hang     0\n\
         3   solo/solo  all polls     hide=1m  0\n"
    );
    assert_eq!(server.run(&["fault", "clear", "--id", "1"]), "1 fault cleared.\n");
    assert_eq!(server.run(&["fault", "clear", "solo"]), "2 faults cleared.\n");
    assert_eq!(server.run(&["fault", "clear"]), "No fault to clear.\n");
    for (words, reason) in [
        ("fault clear --id 1", "no such fault: 1"),
        ("fault clear nobody", "no such machine: nobody"),
        ("fault create nobody --answer 500", "no such machine: nobody"),
        ("fault create --webhook nothing --answer duplicate", "no such webhook: nothing"),
        ("fault create solo --answer 200", "not a fault: \"200\""),
        ("fault create solo --answer slow=1h", "at most 10m"),
        ("fault create solo --answer duplicate", "duplicate is no fault of a machine"),
        (
            "fault create solo --request any --answer jump",
            "jump alters a document, so it applies to polls only",
        ),
    ] {
        let output = server.try_run(&words.split(' ').collect::<Vec<_>>());
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && text.contains(reason), "{words}: {text}");
    }
}

#[test]
fn the_api_checks_faults_and_limits_their_number() {
    let server = server();
    let post = |body: Value| {
        let answer = operator::write(server.api(), "/v1/faults", &body).unwrap();
        (answer.status(), serde_json::from_str::<Value>(&answer.body).unwrap())
    };
    for (body, status) in [
        (json!({}), 400),
        (json!({"answer": "500"}), 409),
        (json!({"machine": "solo", "webhook": "ops", "answer": "500"}), 409),
        (json!({"machine": "solo", "answer": "500", "next": 0}), 400),
        (json!({"machine": "solo", "answer": "500", "next": 1_000_001}), 400),
        (json!({"machine": "solo", "answer": "500", "other": 1}), 400),
        (json!({"machine": "nobody", "answer": "500"}), 404),
    ] {
        assert_eq!(post(body.clone()).0, status, "{body}");
    }
    let fault = json!({"machine": "solo", "answer": "500", "next": 1_000_000});
    let expected = json!({
        "id": 1, "machine": "solo/solo", "webhook": null, "request": "poll", "answer": "500",
        "left": 1_000_000, "used": 0,
    });
    assert_eq!(post(fault.clone()), (200, expected));
    for _ in 1..1_000 {
        assert_eq!(post(fault.clone()).0, 200);
    }
    let (status, problem) = post(fault);
    assert_eq!((status, problem["hint"].as_str()), (409, Some("`forewarn fault clear`")));
    let cleared = ask(server.api(), "DELETE /v1/faults HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(cleared.short(), (200, r#"{"cleared":1000}"#));
}

#[test]
fn a_real_server_injects_no_faults() {
    let place = ServeDir::new(crate::program(), SOLO_FLEET);
    let _server = place.start(
        "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\n[api]\nsocket = 'DIR/api.sock'\n\
         [driver]\nkind = 'simulated'\n[[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n",
    );
    for words in [&["fault", "ls"][..], &["fault", "create", "solo", "--answer", "500"], &["fault", "clear"]]
    {
        let output = place.run(words);
        let text = String::from_utf8(output.stderr).unwrap();
        let reason = "this server injects no faults\n  hint: only a server for development does";
        assert!(!output.status.success() && text.contains(reason), "{words:?}: {text}");
    }
}

#[test]
fn messages_of_a_webhook_are_sent_twice() {
    let (server, receiver) = (server(), WebhookReceiver::start());
    server.enrol(&["solo", "web_0", "db-0"]);
    add(&server, "ops", &receiver, &[]);
    let fault = inject(&server, "--webhook ops --next 2 --answer duplicate");
    assert_eq!(
        (&fault["webhook"], &fault["request"], &fault["left"]),
        (&json!("ops"), &Value::Null, &json!(2))
    );
    for machine in ["solo", "web_0", "db-0"] {
        server.restart(machine);
    }
    let taken = receiver.until_taken(5);
    let ids: Vec<_> = taken.iter().map(forewarn_testkit::webhook_receiver::Seen::id).collect();
    assert_eq!((&ids[0], &ids[2]), (&ids[1], &ids[3]));
    assert!(ids[0] != ids[2] && ids[2] != ids[4], "{ids:?}");
    assert_eq!((&taken[0].body, &taken[2].body), (&taken[1].body, &taken[3].body));
    forewarn_testkit::wait_until("three are delivered", || {
        (show(&server, "ops")["delivered"] == 3).then_some(())
    });
    assert_eq!((receiver.taken().len(), faults_left(&server)), (5, 0));
    inject(&server, "--webhook ops --answer duplicate");
    server.run(&["webhook", "delete", "ops"]);
    assert_eq!(faults_left(&server), 0, "they go with the webhook");
}
