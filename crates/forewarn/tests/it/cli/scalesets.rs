//! Scale sets and availability sets, and what else a fleet is made of, without a fleet file.

use serde_json::{Value, json};

use crate::cli::support::{Server, curl, shell};

/// The document that a machine reads.
fn document(server: &Server, machine: &str) -> Value {
    let place = format!("{}/vm/{machine}/metadata/scheduledevents", server.metadata);
    curl(&format!("curl -H Metadata:true '{place}?api-version=2020-07-01'"))
}

/// The events of a document: kind and resources.
fn events(document: &Value) -> Vec<(String, String)> {
    let events = document["Events"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    events.iter().map(|event| (text(&event["EventType"]), text(&event["Resources"][0]))).collect()
}

/// The instances of a scale set: name, and a member of each.
fn instances(server: &Server, set: &str, member: &str) -> Vec<(String, Value)> {
    let shown = server.json(&format!("scaleset show {set}"));
    let instances = shown["instances"].as_array().unwrap().clone();
    instances.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one[member].clone())).collect()
}

#[test]
fn a_scale_set_is_made_with_instances_that_are_spread() {
    let server = Server::start();
    let made = server.out("scaleset create new --instances 6 --terminate-delay 10m --restart automatic");
    assert_eq!(made, "Scale set new created with 6 instances.\n");
    let hosts = instances(&server, "new", "host");
    // These have one machine each of the demo fleet, the others more.
    let expected = ["h3", "h5", "h6", "h7", "h9", "h10"];
    assert_eq!(hosts.iter().map(|(_, host)| host.as_str().unwrap()).collect::<Vec<_>>(), expected);
    let domains: Vec<_> = instances(&server, "new", "update_domain").into_iter().map(|(_, ud)| ud).collect();
    assert_eq!(domains, [0, 1, 2, 3, 4, 0].map(Value::from));
    let shown = server.json("scaleset show new");
    assert_eq!((&shown["terminate"], &shown["policy"]["restart"]), (&json!("10m"), &json!("automatic")));
    assert_eq!((&shown["capacity"], &shown["tenants"]), (&json!(6), &json!(["new"])));
    let listed = server.json("scaleset ls")["items"].as_array().unwrap().clone();
    assert!(listed.iter().any(|set| set["name"] == "new" && set["instances"].is_null()), "{listed:?}");
    assert!(server.out("scaleset ls --output wide").lines().next().unwrap().ends_with("TENANTS"));
    assert!(server.out("scaleset show new").contains("\nnew_5  new     h10   0   2   running"));
    let taken = server.run("scaleset create new --instances 1");
    assert_eq!((taken.code, taken.err.as_str()), (Some(1), "forewarn: the name is taken: new\n"));
    assert_eq!(instances(&server, "new", "host"), hosts);
}

/// promise: T6
#[test]
fn a_scale_set_grows_and_is_already_so() {
    let server = Server::start();
    assert_eq!(server.out("scaleset scale web 7"), "web scaled to 7 instances.\n");
    assert_eq!(server.out("scaleset scale web 7"), "web already has 7 instances.\n");
    assert_eq!(server.json("scaleset scale web 7")["changes"], 0);
    let hosts = instances(&server, "web", "host");
    assert_eq!(hosts.last().unwrap().0, "web_6");
    let on_one = server.run("scaleset scale web 9 --hosts h10");
    assert_eq!(on_one.code, Some(0), "{}", on_one.err);
    assert_eq!(instances(&server, "web", "host")[8], ("web_8".to_owned(), json!("h10")));
    for (host, zone) in [("z1", 71), ("z2", 72)] {
        server.out(&format!("host create {host} --zone {zone}"));
    }
    server.out("scaleset scale web 12 --zones 71 72 --fault-domains 1");
    let places: Vec<_> =
        instances(&server, "web", "host").split_off(9).into_iter().map(|(_, host)| host).collect();
    assert_eq!(places, ["z1", "z2", "z1"]);
    let domains: Vec<_> = instances(&server, "web", "fault_domain").split_off(9);
    assert!(domains.iter().all(|(_, domain)| *domain == 0), "{domains:?}");
}

/// promise: T6
#[test]
fn what_has_no_place_is_refused_whole() {
    let server = Server::start_with("--fleet none");
    let nowhere = server.run("scaleset create web --instances 2");
    assert_eq!(nowhere.code, Some(1));
    assert!(
        nowhere
            .err
            .starts_with("forewarn: no host can take more instances of web: 2 of 2 do not fit\n  hint: "),
        "{}",
        nowhere.err
    );
    assert_eq!(server.json("scaleset ls")["items"], json!([]), "nothing of it was done");
    server.out("host create h1");
    server.out("scaleset create web --instances 2");
    server.out("host fail h1");
    assert_eq!(server.run("scaleset scale web 3").code, Some(1));
    for usage in
        ["scaleset scale web 1001", "scaleset scale web -1", "scaleset upgrade web", "scaleset create"]
    {
        assert_eq!(server.run(usage).code, Some(2), "{usage}");
    }
    let unknown = server.run("scaleset scale wbe 1");
    assert_eq!(unknown.err, "forewarn: no such scale set: wbe\n  hint: did you mean web?\n");
}

/// promise: T6
#[test]
fn who_goes_is_told_and_approves() {
    let server = Server::start();
    server.enrol("web_0");
    let said = server.out("scaleset scale web 3");
    assert!(said.contains("Terminate of web_4 is announced: event "), "{said}");
    assert!(said.contains("Terminate of web_3 is announced: event ") && said.contains("(in 5m)"), "{said}");
    let seen = document(&server, "web_1");
    let expected = [("Terminate", "web_4"), ("Terminate", "web_3")];
    assert_eq!(events(&seen), expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())));
    // They are going: nobody else goes for the same wish, and a new one is another.
    assert_eq!(server.out("scaleset scale web 3"), "web already has 3 instances.\n");
    assert_eq!(server.out("scaleset delete-instances web 4"), "Already being deleted: 4 of web.\n");
    assert_eq!(server.out("scaleset scale web 4"), "web scaled to 4 instances.\n");
    let leaving: Vec<_> =
        instances(&server, "web", "leaving").into_iter().filter(|(_, is)| *is == true).collect();
    assert_eq!(leaving.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["web_3", "web_4"]);
    assert_eq!(server.json("scaleset show web")["leaving"], 2);

    let approve = |event: &Value, by: &str| {
        let place = format!("{}/vm/{by}/metadata/scheduledevents?api-version=2020-07-01", server.metadata);
        let body = json!({ "StartRequests": [{ "EventId": event["EventId"] }] });
        let approved = shell(&server, &format!("curl -fsS -H Metadata:true -d '{body}' '{place}'"));
        assert_eq!(approved.code, Some(0), "{}", approved.err);
    };
    // Deletions of one tenant that wait, wait for each other.
    approve(&seen["Events"][0], "web_4");
    assert_eq!(events(&document(&server, "web_1")).len(), 2);
    assert!(
        document(&server, "web_1")["Events"]
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event["EventStatus"] == "Scheduled")
    );
    approve(&seen["Events"][1], "web_3");
    server.out("clock next");
    let names: Vec<_> = instances(&server, "web", "host").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["web_0", "web_1", "web_2", "web_5"]);
    let shown = server.json("scaleset show web");
    assert_eq!((&shown["capacity"], &shown["leaving"]), (&json!(4), &json!(0)));
    assert_eq!(events(&document(&server, "web_1")), []);
}

/// promise: T5
#[test]
fn an_instance_keeps_its_notice_until_it_is_upgraded() {
    let server = Server::start();
    server.enrol("web_0");
    assert_eq!(server.out("scaleset set web --terminate-delay 10m"), "web updated.\n");
    assert_eq!(server.out("scaleset set web --terminate-delay 10m"), "web already has these settings.\n");
    assert_eq!(
        server.out("scaleset set web --terminate-notification on"),
        "web already has these settings.\n"
    );
    let shown = server.json("scaleset show web");
    assert_eq!(
        (&shown["model"], &shown["outdated"], &shown["terminate"]),
        (&json!(2), &json!(5), &json!("10m"))
    );
    assert_eq!(instances(&server, "web", "terminate")[0].1, "5m");
    assert!(server.out("scaleset delete-instances web 0").contains("(in 5m)"));
    assert_eq!(server.out("scaleset upgrade web 1 web_2"), "Upgraded 1, web_2 of web.\n");
    assert!(server.out("scaleset delete-instances web web/web_1").contains("(in 10m)"));
    assert_eq!(instances(&server, "web", "latest").iter().filter(|(_, is)| *is == true).count(), 2);
    assert_eq!(server.out("scaleset upgrade web --all"), "Upgraded all instances of web.\n");
    assert_eq!(
        server.out("scaleset upgrade web --all"),
        "Nothing to upgrade: all instances of web have the latest model.\n"
    );
    assert_eq!(server.json("scaleset show web")["outdated"], 0);
    server.out("scaleset set web --terminate-notification off --os-image on");
    let shown = server.json("scaleset show web");
    assert_eq!((&shown["terminate"], &shown["os_image"]), (&Value::Null, &json!(true)));
    let nobody = server.run("scaleset upgrade web 9");
    assert_eq!(
        (nobody.code, nobody.err.as_str()),
        (Some(1), "forewarn: no such instance of this scale set: 9\n")
    );
    let nothing = server.run("scaleset set web");
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(1), ""));
}

/// promise: T5
#[test]
fn where_upgrades_are_automatic_a_model_reaches_everybody() {
    let server = Server::start();
    server.out("scaleset create auto --instances 2 --upgrade automatic --orchestration flexible");
    server.out("scaleset set auto --terminate-notification on");
    assert_eq!(instances(&server, "auto", "terminate")[1].1, "5m");
    assert_eq!(server.json("scaleset show auto")["outdated"], 0);
}

#[test]
fn a_rolling_upgrade_rests_between_batches_and_can_be_hurried() {
    let server = Server::start();
    server.out("scaleset create new --instances 5 --upgrade rolling --batch-pause 1h");
    let shown = server.json("scaleset show new");
    assert_eq!(shown["upgrade"], json!({ "rolling": { "batch_percent": 20, "pause": "1h" } }));
    assert_eq!(server.out("scaleset set new --batch-percent 40"), "new updated.\n");
    assert_eq!(
        server.out("scaleset set new --upgrade rolling --batch-pause 1h"),
        "new already has these settings.\n"
    );
    server.out("scaleset set new --terminate-notification on");
    let models = |server: &Server| -> Vec<Value> {
        instances(server, "new", "model").into_iter().map(|(_, model)| model).collect()
    };
    assert_eq!(models(&server), [2, 2, 1, 1, 1]);
    let shown = server.out("scaleset show new");
    assert!(shown.contains("upgrade             rolling, 40 % at a time, 1h between\n"), "{shown}");
    assert!(shown.contains("next batch          2026-01-01 01:00:00Z\n"), "{shown}");
    server.out("clock advance 1h");
    assert_eq!(models(&server), [2, 2, 2, 2, 1]);
    server.out("scaleset set new --upgrade automatic");
    assert_eq!(models(&server), [2, 2, 2, 2, 2]);
    assert_eq!(server.json("scaleset show new")["next_batch"], Value::Null);
    for wrong in ["--upgrade manual --batch-percent 30", "--batch-pause 5m", "--batch-percent 0"] {
        assert_eq!(server.run(&format!("scaleset set new {wrong}")).code, Some(2), "{wrong}");
    }
    let long = server.run("scaleset set new --upgrade rolling --batch-pause 8d");
    assert_eq!(
        (long.code, long.err.as_str()),
        (Some(1), "forewarn: the pause is too long: at most 7 days\n")
    );
}

#[test]
fn spot_machines_are_not_told_of_their_deletion() {
    let server = Server::start();
    let refused = server.run("scaleset create cheap --instances 2 --spot delete --terminate-delay 5m");
    assert_eq!(refused.code, Some(1));
    assert_eq!(refused.err, "forewarn: terminate notification is not available for spot machines: cheap\n");
    assert_eq!(server.run("scaleset show cheap").code, Some(1), "nothing of it was done");
    server.out("scaleset create cheap --instances 2 --spot delete");
    assert_eq!(server.json("scaleset show cheap")["spot"], "delete");
    assert_eq!(server.run("scaleset set cheap --terminate-notification on").code, Some(1));
    let both = server.run("scaleset create x --terminate-notification off --terminate-delay 5m");
    assert_eq!((both.code, both.out.as_str()), (Some(2), ""), "{}", both.err);
    let long = server.run("scaleset set web --terminate-delay 20m");
    assert_eq!(long.err, "forewarn: notice of deletion must be 5 to 15 minutes, not 20m\n");
    // One that is being evicted for good is gone already.
    server.enrol("cheap_0");
    server.out("vm evict cheap_1");
    assert_eq!(server.json("scaleset show cheap")["capacity"], 1);
}

#[test]
fn deletes_are_waited_for_on_a_clock_that_runs() {
    let server = Server::start();
    server.enrol("web_0");
    server.out("clock scale 1000x");
    let ran = server.run("scaleset delete-instances web 1 3 --wait");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.ends_with("Deletion of 1, 3 of web completed.\n"), "{}", ran.out);
    let names: Vec<_> = instances(&server, "web", "host").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["web_0", "web_2", "web_4"]);
    let ran = server.run("scaleset scale web 0 --wait --output json");
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(serde_json::from_str::<Value>(&ran.out).unwrap()["work"].as_array().unwrap().len(), 3);
    assert_eq!(server.out("scaleset delete web"), "Scale set web deleted.\n");
    assert_eq!(server.run("scaleset delete web").code, Some(1));
}

/// promise: C2
#[test]
fn a_scale_set_is_edited_only_as_it_was_read() {
    let server = Server::start();
    let api = &server.api;
    let send = |method: &str, path: &str, header: &str, body: &str| {
        let kind = "Content-Type: application/json";
        let line = format!(
            "curl -sS -o /dev/null -w '%{{http_code}} %header{{etag}}' -X {method} -H '{kind}' -H '{header}' -d '{body}' '{api}{path}'"
        );
        shell(&server, &line).out
    };
    let read = || send("GET", "/v1/scalesets/web", "X-Nothing: x", "").split_once(' ').unwrap().1.to_owned();
    let tag = read();
    assert!(tag.starts_with('"'), "{tag}");
    let patch = |tag: &str, body: &str| {
        let answered = send("PATCH", "/v1/scalesets/web", &format!("If-Match: {tag}"), body);
        answered.trim().to_owned()
    };
    assert_eq!(patch("\"other\"", r#"{"terminate":"9m"}"#), "412");
    assert_eq!(patch(&tag, r#"{"terminate":"9m"}"#), "200");
    assert_eq!(patch(&tag, r#"{"terminate":"8m"}"#), "412", "it is not any more what was read");
    assert_eq!(patch(&read(), r#"{"terminate":null}"#), "200");
    assert_eq!(patch("*", r#"{"capacity":3}"#), "400");
    // The same request under the same key is carried out once, also where it could not be again.
    let create = || send("POST", "/v1/scalesets", "Idempotency-Key: k1", r#"{"name":"new","instances":2}"#);
    assert_eq!((create().trim(), create().trim()), ("200", "200"));
    let scale = |key: &str, body: &str| {
        send("POST", "/v1/scalesets/new/scale", &format!("Idempotency-Key: {key}"), body).trim().to_owned()
    };
    assert_eq!(scale("k2", r#"{"capacity":3}"#), "200");
    assert_eq!(scale("k3", r#"{"capacity":0}"#), "200");
    server.out("clock advance 1h");
    server.out("scaleset delete new");
    assert_eq!(scale("k2", r#"{"capacity":3}"#), "200", "it was answered before");
    assert_eq!(scale("k2", r#"{"capacity":4}"#), "422");
    assert_eq!(scale("k4", r#"{"capacity":3}"#), "404");
    assert_eq!(create().trim(), "200");
    assert_eq!(server.run("scaleset show new").code, Some(1), "it was not made again");
}

#[test]
fn availability_sets_and_cloud_services_are_made_of_machines() {
    let server = Server::start();
    assert_eq!(
        server.out("availabilityset create sql --redeploy automatic"),
        "Availability set sql created.\n"
    );
    let add =
        "availabilityset add-vm sql sql-0 --host h1 --update-domain 1 --fault-domain 2 --terminate-delay 5m";
    assert_eq!(server.out(add), "Machine sql/sql-0 created.\n");
    let clash = server.run("availabilityset add-vm sql sql-1 --host h1 --update-domain 0");
    assert_eq!(clash.err, "forewarn: on host h1, sql already has update domain 1, so 0 cannot go there\n");
    let shown = server.json("availabilityset show sql");
    assert_eq!((&shown["size"], &shown["policy"]["redeploy"]), (&json!(1), &json!("automatic")));
    assert_eq!(shown["machines"][0]["fault_domain"], 2);
    assert!(server.out("availabilityset ls").contains("\ndb    3         3               3 "));
    assert_eq!(server.json("availabilityset ls")["items"].as_array().unwrap().len(), 2);
    assert!(server.out("availabilityset ls --output wide").contains("AUTOMATIC APPROVAL"));
    assert!(server.out("availabilityset show db").contains("\ndb-2  h6    2   2   running"));
    assert_eq!(server.run("availabilityset show web").code, Some(1), "a scale set is none");
    assert_eq!(server.run("availabilityset delete sql").code, Some(1), "it has a machine");
    server.out("vm delete sql/sql-0");
    server.out("clock advance 1h");
    assert_eq!(server.out("availabilityset delete sql"), "Availability set sql deleted.\n");

    server.out("cloudservice create desk");
    server.out("cloudservice add-instance desk Desk_IN_0 --host h2 --tag role=desk");
    assert_eq!(server.json("tenant show desk")["kind"], "cloud service");
    let listed = server.out("cloudservice ls");
    assert!(listed.contains("\ndesk  1         1               1 "), "{listed}");
    assert!(!listed.contains("db") && !server.out("availabilityset ls").contains("desk"), "{listed}");
    assert!(server.out("cloudservice show desk").contains("\nDesk_IN_0  h2    0   0   running"));
    let other = server.run("cloudservice show db");
    assert_eq!((other.code, other.err.as_str()), (Some(1), "forewarn: not a cloud service: db\n"));
    server.out("vm delete Desk_IN_0");
    server.out("clock advance 1h");
    assert_eq!(server.out("cloudservice delete desk"), "Cloud service desk deleted.\n");
}

#[test]
fn a_fleet_can_be_made_without_a_file() {
    let server = Server::start_with("--fleet none");
    assert_eq!(server.out("host create h1"), "Host h1 created.\n");
    server.out("host create h2 --zone 2");
    assert_eq!(server.json("host show h2")["zone"], 2);
    assert_eq!(
        server.out("vm create solo --host h1 --address 10.0.0.4 --tag role=front"),
        "Machine solo created.\n"
    );
    server.out("vm create cheap --host h2 --spot deallocate --all-down asked");
    let solo = server.json("vm show solo");
    assert_eq!((&solo["addresses"], &solo["tags"]), (&json!(["10.0.0.4"]), &json!({ "role": "front" })));
    assert_eq!(server.json("vm show cheap")["spot"], "deallocate");
    assert_eq!(
        server.out("vm set solo --address 10.0.0.5 --address ::1"),
        "Addresses and tags of solo changed.\n"
    );
    let solo = server.json("vm show solo");
    assert_eq!(
        (&solo["addresses"], &solo["tags"]),
        (&json!(["10.0.0.5", "::1"]), &json!({ "role": "front" }))
    );
    server.out("vm set solo --no-addresses --tag a=b");
    assert_eq!(server.json("vm show solo")["addresses"], json!([]));
    assert_eq!(server.run("vm set solo").code, Some(2));
    assert_eq!(server.out("vm set solo --terminate-notification on"), "solo updated.\n");
    server.out("vm set solo --os-image on");
    let solo = server.json("vm show solo");
    assert_eq!((&solo["terminate"], &solo["os_image"]), (&json!("5m"), &json!(true)));
    assert_eq!(server.out("tenant set solo --restart automatic"), "Policy of solo changed.\n");
    assert_eq!(server.out("tenant set solo --restart automatic"), "solo already has this policy.\n");
    assert_eq!(server.json("tenant show solo")["policy"]["restart"], "automatic");
    let in_use = server.run("host delete h1");
    assert!(in_use.err.starts_with("forewarn: the host still has machines: h1: "), "{}", in_use.err);
    server.out("host create h3");
    assert_eq!(server.out("host delete h3"), "Host h3 deleted.\n");
}
