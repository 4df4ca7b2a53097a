//! Who is limited to a tenant or to a cluster sees and touches nothing of others, and cannot tell what is there.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::access::place::{self, Place, Request, order, read};
use forewarn_testkit::{DEADLINE, RawResponse, TestServer};

/// The ids of the events of a tenant.
fn events(server: &TestServer, token: &str, tenant: &str) -> Vec<String> {
    let listed = place::json(&read(server, token, &format!("/v1/events?tenant={tenant}")));
    let ids = listed["items"].as_array().unwrap().iter();
    ids.map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

fn column(answer: &RawResponse, member: &str) -> Vec<String> {
    let listed: Value = place::json(answer);
    let items = listed["items"].as_array().unwrap_or_else(|| panic!("{answer:?}")).iter();
    items.map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

/// Commands about what is there and what is not are refused in the same words.
fn touches_nothing(server: &TestServer, web: &str, foreign: &str, nothing: &str) {
    for (there, absent) in [
        (r#"{"command":"restart","machine":"db_0"}"#, r#"{"command":"restart","machine":"no_0"}"#),
        (r#"{"command":"delete","machine":"db/db_0"}"#, r#"{"command":"delete","machine":"no/no_0"}"#),
        (
            r#"{"command":"approve","tenant":"db","events":"all"}"#,
            r#"{"command":"approve","tenant":"no","events":"all"}"#,
        ),
        (
            &format!(r#"{{"command":"cancel","event":"{foreign}"}}"#),
            &format!(r#"{{"command":"cancel","event":"{nothing}"}}"#),
        ),
        (
            &format!(r#"{{"command":"force_start","event":"{foreign}"}}"#),
            &format!(r#"{{"command":"force_start","event":"{nothing}"}}"#),
        ),
        (r#"{"command":"update_hosts","hosts":["h1"]}"#, r#"{"command":"update_hosts","hosts":["no"]}"#),
        (r#"{"command":"brake_on"}"#, r#"{"command":"fail_host","host":"h3"}"#),
    ] {
        let (one, other) = (order(server, web, there), order(server, web, absent));
        assert_eq!((one.status(), &one.body), (other.status(), &other.body), "{there}");
        assert_eq!(one.status(), 403, "{there}");
    }
}

/// promise: S3
#[test]
fn who_is_limited_to_a_tenant_sees_nothing_of_others_and_cannot_tell_what_is_there() {
    let place = Place::new();
    let server = place.start();
    let (admin, web) = (place.token("admin --role admin"), place.token("web --role operator --tenant web"));
    place.enrol(&server);
    for machine in ["web_0", "db_0"] {
        let restart = format!(r#"{{"command":"restart","machine":"{machine}"}}"#);
        assert_eq!(order(&server, &admin, &restart).status(), 200);
    }
    let (own, foreign) = (events(&server, &admin, "web").remove(0), events(&server, &admin, "db").remove(0));

    let list = |target: &str, member: &str| column(&read(&server, &web, target), member);
    assert_eq!(list("/v1/tenants", "name"), ["web"]);
    assert_eq!(list("/v1/machines", "name"), ["web_0", "web_1"]);
    assert_eq!(list("/v1/machines?host=h2", "name"), ["web_1"], "its neighbour is not shown");
    assert_eq!(list("/v1/events", "id"), [own.as_str()]);
    assert_eq!(read(&server, &web, &format!("/v1/events/{own}")).status(), 200);
    let cluster = place::json(&read(&server, &web, "/v1/clusters/default"));
    assert_eq!(
        (&cluster["tenants"], &cluster["machines"], &cluster["hosts"]),
        (&1.into(), &2.into(), &Value::Null)
    );

    let nothing = "00000000-0000-4000-8000-000000000000";
    for (there, absent) in [
        ("/v1/tenants/db", "/v1/tenants/no"),
        ("/v1/tenants/db/document", "/v1/tenants/no/document"),
        ("/v1/tenants/db/policy", "/v1/tenants/no/policy"),
        ("/v1/machines/db_0", "/v1/machines/no_0"),
        ("/v1/machines/db/db_0", "/v1/machines/db/no_0"),
        ("/v1/machines?tenant=db", "/v1/machines?tenant=no"),
        ("/v1/machines?host=h3", "/v1/machines?host=no"),
        ("/v1/events?tenant=db", "/v1/events?tenant=no"),
        ("/v1/watch?tenant=db", "/v1/watch?tenant=no"),
        (&format!("/v1/events/{foreign}"), &format!("/v1/events/{nothing}")),
        ("/v1/machines/db_0/explanation", "/v1/machines/no_0/explanation"),
        ("/v1/machines/db/db_0/explanation", "/v1/machines/no/no_0/explanation"),
        (&format!("/v1/events/{foreign}/explanation"), &format!("/v1/events/{nothing}/explanation")),
        ("/v1/audit?tenant=db", "/v1/audit?tenant=no"),
        ("/v1/audit?machine=db_0", "/v1/audit?machine=no_0"),
        ("/v1/audit?machine=db/db_0", "/v1/audit?machine=no/no_0"),
        (&format!("/v1/audit?event={foreign}"), &format!("/v1/audit?event={nothing}")),
        (&format!("/v1/audit?event={}", &foreign[..8]), "/v1/audit?event=00000000"),
        ("/v1/hosts/h3", "/v1/hosts/no"),
        ("/v1/tokens/admin", "/v1/tokens/no"),
    ] {
        let (one, other) = (read(&server, &web, there), read(&server, &web, absent));
        assert_eq!((one.status(), &one.body), (other.status(), &other.body), "{there}");
        let is_empty = one.status() == 200 && place::json(&one)["items"] == json!([]);
        assert!(one.status() == 403 || is_empty, "{there}: {one:?}");
    }
    touches_nothing(&server, &web, &foreign, nothing);
    let approve = format!(r#"{{"command":"approve","tenant":"web","events":["{foreign}"]}}"#);
    assert_ne!(order(&server, &web, &approve).status(), 200, "an event of others by the name of one's own");
    assert_eq!(events(&server, &admin, "db"), [foreign.as_str()], "nothing has happened to it");
    assert_eq!(order(&server, &web, &format!(r#"{{"command":"cancel","event":"{own}"}}"#)).status(), 200);
    assert_eq!(
        order(&server, &admin, &format!(r#"{{"command":"cancel","event":"{foreign}"}}"#)).status(),
        200
    );
    let ended = |token: &str| place::json(&read(&server, token, "/v1/unfinished?work=0,1"))["ended"].clone();
    let (one, other) = (json!({ "work": 0, "how": "withdrawn" }), json!({ "work": 1, "how": "withdrawn" }));
    assert_eq!(ended(&admin), json!([one, other]));
    assert_eq!(ended(&web), json!([one]), "how the work on others ended");
}

/// promise: S3
#[test]
fn a_token_of_a_tenant_cannot_find_out_which_hosts_exist() {
    let place = Place::new();
    let server = place.start();
    let admin = place.token("admin --role admin");
    let front = place.token("front --role operator --tenant front");
    let send = |token: &str, line: &str, body: Value| {
        let (line, body) = (format!("POST {line}"), body.to_string());
        Request { line: &line, token: Some(token), body: &body, ..Request::default() }.send(&server)
    };
    let scale = |token: &str, host: &str, capacity: u16| {
        send(token, "/v1/scalesets/front/scale", json!({ "capacity": capacity, "hosts": [host] }))
    };
    let admit = |host: &str| {
        let instance = json!({ "host": host });
        let body = json!({ "command": "admit_instance", "scale_set": "front", "instance": instance });
        send(&front, "/v1/commands", body)
    };
    let alike = |there: &RawResponse, absent: &RawResponse, what: &str| {
        assert_eq!((there.status(), &there.body), (absent.status(), &absent.body), "{what}");
        assert_eq!(there.status(), 403, "{what}: {there:?}");
    };
    // With and without room: a capacity that is reached already, one that fits, one that does not.
    for capacity in [0, 1, 900] {
        alike(&scale(&front, "h3", capacity), &scale(&front, "no", capacity), &format!("{capacity}"));
    }
    alike(&admit("h3"), &admit("no"), "admit_instance");
    for (there, absent) in [
        ("/v1/audit?host=h3", "/v1/audit?host=no"),
        ("/v1/machines?host=h3", "/v1/machines?host=no"),
        ("/v1/hosts/h3", "/v1/hosts/no"),
        ("/v1/scalesets/web", "/v1/scalesets/no"),
        ("/v1/scalesets/web/explanation", "/v1/scalesets/no/explanation"),
        ("/v1/availabilitysets/web", "/v1/availabilitysets/no"),
        ("/v1/cloudservices/web", "/v1/cloudservices/no"),
    ] {
        let (one, other) = (read(&server, &front, there), read(&server, &front, absent));
        let now = |answer: &RawResponse| answer.body.clone();
        assert_eq!((one.status(), now(&one)), (other.status(), now(&other)), "{there}");
    }
    // Hosts that the server has chosen for it are its own to name.
    assert_eq!(scale(&admin, "h3", 1).status(), 200);
    let grown = scale(&front, "h3", 2);
    assert_ne!(grown.status(), 403, "{grown:?}");
    assert_eq!(send(&front, "/v1/scalesets/front/scale", json!({ "capacity": 2 })).status(), 200);
}

/// promise: S3
#[test]
fn who_is_limited_to_a_cluster_sees_no_other() {
    let place = Place::new();
    let server = place.start();
    place.add_west();
    place.out(&["cluster", "create", "xyz"]);
    let west = place.token("west --role admin --cluster west");
    assert_eq!(column(&read(&server, &west, "/v1/clusters"), "name"), ["west"]);
    for target in
        ["/v1/hosts?cluster=NAME", "/v1/settings?cluster=NAME", "/v1/watch?cluster=NAME", "/v1/clusters/NAME"]
    {
        let answer = |name: &str| read(&server, &west, &target.replace("NAME", name));
        let (there, absent) = (answer("xyz"), answer("abc"));
        assert_eq!(there.status(), 404, "{target}: {there:?}");
        assert_eq!(there.body.replace("xyz", "abc"), absent.body);
    }
    let delete = |target: &str| {
        let line = format!("POST {target}");
        let body = r#"{"command":"delete","machine":"web_0"}"#;
        Request { line: &line, token: Some(&west), body, ..Request::default() }.send(&server).status()
    };
    assert_eq!(delete("/v1/commands?cluster=default"), 404);
    assert_eq!(delete("/v1/commands"), 200, "without a name it is the first of its own");
    let left = |cluster: &str| place.out(&["--cluster", cluster, "vm", "ls"]).lines().count();
    assert_eq!((left("default"), left("west")), (5, 4), "with the heading");
    let issue = r#"{"name":"more","role":"viewer","clusters":["west"]}"#;
    let issued = Request { line: "POST /v1/tokens", token: Some(&west), body: issue, ..Request::default() };
    assert_eq!(issued.send(&server).status(), 403, "an admin of one cluster lets nobody in");
}

/// What is told to somebody, line by line.
fn listen(server: &TestServer, token: &str) -> impl Iterator<Item = String> {
    let mut stream = TcpStream::connect(server.api()).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let headers = "Connection: close\r\n";
    let request = Request { line: "GET /v1/watch", token: Some(token), headers, body: "" };
    stream.write_all(request.bytes().as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(|line| line.contains("listening")).expect("it listens");
    lines
}

/// promise: S3
#[test]
fn who_is_limited_to_a_tenant_hears_of_no_other() {
    let place = Place::new();
    let server = place.start();
    let (admin, web) = (place.token("admin --role admin"), place.token("web --role viewer --tenant web"));
    place.enrol(&server);
    let told = listen(&server, &web);
    for machine in ["db_0", "web_0"] {
        let restart = format!(r#"{{"command":"restart","machine":"{machine}"}}"#);
        assert_eq!(order(&server, &admin, &restart).status(), 200);
    }
    let mut data = told.filter(|line| line.starts_with("data:"));
    let first = data.next().expect("something is told");
    let first: Value = serde_json::from_str(first.trim_start_matches("data:")).unwrap();
    assert_eq!((&first["kind"], &first["tenants"][0]), (&"command".into(), &"web".into()), "{first}");
    assert_eq!(first["machines"][0], "web/web_0", "{first}");
}

/// promise: S3
#[test]
fn who_has_no_token_any_more_is_told_nothing_any_more() {
    let place = Place::new();
    let server = place.start();
    let (admin, viewer) = (place.token("admin --role admin"), place.token("viewer --role viewer"));
    let told = listen(&server, &viewer);
    place.out(&["token", "delete", "viewer"]);
    order(&server, &admin, r#"{"command":"brake_on"}"#);
    let rest: Vec<_> = told.collect();
    assert!(!rest.iter().any(|line| line.contains("brake")), "the stream has ended: {rest:?}");
}

/// promise: S3
#[test]
fn what_happened_in_a_cluster_stays_with_it_and_is_not_that_of_another_of_its_name() {
    let place = Place::new();
    let server = place.start();
    let admin = place.token("admin --role admin");
    let say = |words: &str| place.out(&words.split(' ').collect::<Vec<_>>());
    let furnish = || {
        say("cluster create west");
        say("--cluster west host create w1");
        say("--cluster west vm create box --host w1");
    };
    let history = |token: &str, cluster: &str| {
        let page =
            place::json(&read(&server, token, &format!("/v1/machines/box/explanation?cluster={cluster}")));
        page["history"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
    };
    furnish();
    say("--cluster west vm restart box --wait");
    let old = place.token("old --role viewer --cluster west");
    let before = history(&admin, "west");
    assert!(before.len() >= 4, "{before:?}");

    say("cluster rename west east");
    assert_eq!(history(&admin, "east"), before, "it is called otherwise");
    assert_eq!(history(&old, "east"), before, "also for who may see no other");

    furnish();
    let new = place.token("new --role viewer --cluster west");
    say("--cluster west vm stop box --wait");
    let audit = |token: &str| read(&server, token, "/v1/audit?limit=1000").body;
    assert!(audit(&old).contains("restart") && !audit(&old).contains("stop, machine"), "{}", audit(&old));
    assert!(audit(&new).contains("stop, machine") && !audit(&new).contains("restart"), "{}", audit(&new));
    let explained = Value::from(history(&new, "west")).to_string();
    assert!(explained.contains("stop, machine box") && !explained.contains("restart"), "{explained}");
}

/// promise: S3
#[test]
fn the_index_and_the_reply_to_an_approval_name_nothing_that_the_token_may_not_see() {
    let place = Place::new();
    let server = place.start();
    let (admin, web) = (place.token("admin --role admin"), place.token("web --role operator --tenant web"));
    assert_eq!(read(&server, "nonsense", "/v1").status(), 401);
    let links = |token: &str| {
        let index = place::json(&read(&server, token, "/v1"));
        index["links"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert!(links(&admin).contains(&"tokens".to_owned()));
    let own = links(&web);
    assert!(own.contains(&"machines".to_owned()) && !own.contains(&"tokens".to_owned()), "{own:?}");

    place.enrol(&server);
    let update = order(&server, &admin, r#"{"command":"update_hosts","hosts":["h2"]}"#);
    assert_eq!(update.status(), 200, "{update:?}");
    let approved =
        place::json(&order(&server, &web, r#"{"command":"approve","tenant":"web","events":"all"}"#));
    let start = &approved["starts"][0];
    assert_eq!((&start["state"], &start["unapproved_others"]), (&json!("waiting"), &json!(1)), "{approved}");
    assert_eq!(start.get("unapproved"), None, "{approved}");
    let shown = place::json(&read(&server, &web, "/v1/events?tenant=web"));
    let progress = shown["items"][0]["progress"].as_str().unwrap();
    assert_eq!(progress, "approved, waits for the approval of another tenant, or for the end of the notice");
}
