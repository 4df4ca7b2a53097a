//! "Why is that?" and "who did that?", as somebody at a terminal asks.

use crate::cli::support::{Server, shell};

/// Where the scale set web is for clients of Azure.
const WEB: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/forewarn/providers/Microsoft.Compute/virtualMachineScaleSets/web";

/// Sends the documented request that enables terminate notification; gives the status.
fn enable(server: &Server, place: &str, length: &str, version: &str) -> String {
    let profile =
        format!(r#"{{"terminateNotificationProfile":{{"notBeforeTimeout":"{length}","enable":true}}}}"#);
    let body =
        format!(r#"{{"properties":{{"virtualMachineProfile":{{"scheduledEventsProfile":{profile}}}}}}}"#);
    let api = &server.api;
    let line = format!(
        "curl -sS -o /dev/null -w '%{{http_code}}' -X PUT -H 'Content-Type: application/json' -d '{body}' '{api}{place}?api-version={version}'"
    );
    shell(server, &line).out
}

/// A machine asks for its events.
fn poll(server: &Server, machine: &str, version: &str) {
    let place = format!("{}/vm/{machine}/metadata/scheduledevents?api-version={version}", server.metadata);
    assert_eq!(shell(server, &format!("curl -fsS -o /dev/null -H Metadata:true '{place}'")).code, Some(0));
}

/// An event of web_0 that was announced to web.
fn restarted(server: &Server) -> String {
    server.enrol("web_0");
    server.json("vm restart web_0")["events"][0]["id"].as_str().unwrap().to_owned()
}

/// promise: C6
#[test]
fn who_restarted_a_machine_is_told_when_it_is_over() {
    let server = Server::start();
    let id = restarted(&server);
    server.out("event approve --tenant web");
    server.out("clock advance 1h");
    let told = server.out("vm explain web_0");
    let first = "The machine is running on h1. Last: 2026-01-01T00:00:30Z, Reboot of web_0 (restart by the owner) completed for web_0; \
                 because of entry 35, by anyone: restart, machine web_0.\n";
    assert!(told.starts_with(first), "{told}");
    assert!(told.contains("  2026-01-01 00:00:30Z  completed  Reboot of web_0"), "{told}");
    assert!(told.contains(", by anyone: restart, machine web_0\n"), "{told}");
    let json = server.json("vm explain web/web_0");
    assert_eq!(json["machine"]["boots"], 2);
    assert_eq!(json["history"][0]["origin"]["by"], "anyone");
    assert_eq!(json["history"][0]["events"][0], id.as_str());
}

/// promise: C6
#[test]
fn an_event_is_explained_while_it_waits_and_when_it_is_gone() {
    let server = Server::start();
    let id = restarted(&server);
    let told = server.out(&format!("event explain {}", &id[..4]));
    assert!(told.contains("\nrequested by  anyone: restart, machine web_0\n"), "{told}");
    assert!(told.contains("\nBlockers\n  Tenant web has not approved\n"), "{told}");
    assert!(told.contains("  web_0 is restarted: memory is lost, disks are kept\n"), "{told}");
    assert!(
        told.contains("  web_0: has not received the event; last poll 2026-01-01 00:00:00Z (now)"),
        "{told}"
    );
    // The clock stands still, and yet it is known who has seen it.
    server.enrol("web_1");
    let told = server.out(&format!("event explain {id}"));
    assert!(
        told.contains(
            "  web_1: has received the event; last poll 2026-01-01 00:00:00Z (now), with api-version 2020-07-01\n"
        ),
        "{told}"
    );
    server.out("clock advance 1h");
    let gone = server.json(&format!("event explain {}", &id[..8]));
    assert_eq!((gone["status"].as_str(), gone["id"].as_str()), (Some("Completed"), Some(id.as_str())));
    assert_eq!(gone["history"].as_array().unwrap().len(), 3);
    let nothing = server.run("event explain 00000000-0000-0000-0000-000000000000");
    assert_eq!(
        (nothing.code, nothing.err.as_str()),
        (Some(1), "forewarn: no such event: 00000000-0000-0000-0000-000000000000\n")
    );
    assert_eq!(server.run("event explain FFFFFFFF").code, Some(1));
}

/// promise: C6
#[test]
fn a_machine_that_is_gone_has_a_history_and_a_long_one_is_told_whole() {
    let server = Server::start();
    server.out("vm delete solo --wait");
    assert_eq!(server.run("vm show solo").code, Some(1));
    let told = server.out("vm explain solo");
    assert!(told.starts_with("The machine was removed. Last: "), "{told}");
    assert!(told.contains("requested: delete, machine solo [anyone]"), "{told}");
    let wrong = server.run("vm explain sola");
    assert_eq!(wrong.code, Some(1), "{}", wrong.out);
    assert!(wrong.err.starts_with("forewarn: no such machine: sola"), "{}", wrong.err);

    for _ in 0..5 {
        server.out("vm stop db-0");
        server.out("vm start db-0");
        server.out("clock advance 1h");
    }
    let (some, all) = (server.out("vm explain db-0"), server.out("vm explain db-0 --all"));
    assert!(some.ends_with("… and older: --all\n") && all.len() > some.len(), "{some}");
    let all = server.json("vm explain db-0 --all");
    let numbers: Vec<_> =
        all["history"].as_array().unwrap().iter().map(|step| step["number"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] > pair[1]) && numbers.len() > 20, "{numbers:?}");
}

/// promise: C6
#[test]
fn a_bad_request_is_explained_by_the_api_version() {
    let server = Server::start();
    server.enrol("web_0");
    assert_eq!(enable(&server, WEB, "PT10M", "2018-10-01"), "400");
    let note = "  A PUT of web was refused (BadRequest): api-version 2018-10-01 does not have scheduledEventsProfile, 2019-03-01 and newer do\n";
    let refused = "\nRejected requests\n  2026-01-01 00:00:00Z  PUT with api-version 2018-10-01, by anyone: BadRequest, \
                   Could not find member 'scheduledEventsProfile' on object of type 'VirtualMachineProfile'\n";
    for words in ["event explain web", "scaleset explain web", "event explain web_3", "vm explain web_3"] {
        let told = server.out(words);
        assert!(told.contains(note) && told.contains(&format!("{refused}    {WEB}\n")), "{words}: {told}");
    }
    let id = server.json("vm restart web_3")["events"][0]["id"].as_str().unwrap().to_owned();
    assert!(server.out(&format!("event explain {id}")).contains(note));
    let json = server.json("event explain web");
    assert_eq!((&json["refused"][0]["method"], &json["scale_set"]["name"]), (&"PUT".into(), &"web".into()));
    // One that could not even be made is explained too, and nothing else that is not there.
    let other = WEB.replace("/web", "/new");
    assert_eq!(enable(&server, &other, "PT10M", "2018-10-01"), "400");
    let told = server.out("event explain new");
    assert!(told.starts_with("There is no such scale set, and a request about it was refused.\n"), "{told}");
    let nothing = server.run("event explain nwe");
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(1), ""));
    assert!(nothing.err.starts_with("forewarn: no such machine: nwe"), "{}", nothing.err);
    let unknown = server.run("scaleset explain wbe");
    assert_eq!(unknown.err, "forewarn: no such scale set: wbe\n  hint: did you mean web?\n");
}

/// promise: C6
#[test]
fn a_terminate_that_nobody_saw_is_explained() {
    let server = Server::start();
    // Nobody has asked.
    let told = server.out("event explain web");
    assert!(told.contains("\n  Tenant web is not enrolled: its machines get no notice of events"), "{told}");
    server.out("scaleset delete-instances web 4 --wait");
    let told = server.out("event explain web/web_4");
    assert!(told.starts_with("The machine was removed."), "{told}");
    let note = "\n  It was deleted without a Terminate event: tenant web is not enrolled\n";
    assert!(told.contains(note), "{told}");
    // It asks, in an edition in which there is no Terminate.
    poll(&server, "web_0", "2017-11-01");
    server.out("scaleset delete-instances web 0");
    let note = "\n  Machine web_0 polls with api-version 2017-11-01, which does not include Terminate events: 2019-01-01 does\n";
    let id = server.json("event ls")["items"][0]["id"].as_str().unwrap().to_owned();
    for words in
        ["event explain web_0".to_owned(), "event explain web".to_owned(), format!("event explain {id}")]
    {
        let told = server.out(&words);
        assert!(told.contains(note), "{words}: {told}");
    }
    // It runs a model without a notice.
    server.out("scaleset create new --instances 2");
    poll(&server, "new_0", "2020-07-01");
    let told = server.out("event explain new");
    assert!(told.contains("\n  Model 1 has no notice of deletion: a delete causes no Terminate event; enable: `forewarn scaleset set new"), "{told}");
    server.out("scaleset set new --terminate-notification on");
    server.out("scaleset delete-instances new 1 --wait");
    let told = server.out("event explain new/new_1");
    let note =
        "\n  It was deleted without a Terminate event: new_1 runs model 1 of 2: no notice of deletion\n";
    assert!(told.contains(note), "{told}");
}

/// promise: C6
#[test]
fn a_not_before_that_surprises_is_explained_by_the_model_that_counts() {
    let server = Server::start();
    server.enrol("web_0");
    for (length, version) in [("PT6M", 2), ("PT5M", 3), ("PT7M", 4), ("PT10M", 5)] {
        assert_eq!(enable(&server, WEB, length, "2019-03-01"), "200");
        assert_eq!(server.json("scaleset show web")["model"], version);
        if version == 3 {
            server.out("scaleset upgrade web 3");
        }
    }
    let said = server.json("scaleset delete-instances web 3");
    let event = &said["events"][0];
    assert_eq!(event["not_before"], "2026-01-01T00:05:00Z");
    let note = "\n  Instance web_3 runs model 3 of 5: PT5M, where model 5 has PT10M; upgrade: `forewarn scaleset upgrade web web_3`, \
                or `az vmss update-instances --resource-group forewarn --name web --instance-ids 3`\n";
    for what in ["web_3", "web", event["id"].as_str().unwrap()] {
        let told = server.out(&format!("event explain {what}"));
        assert!(told.contains(note), "{what}: {told}");
    }
    // What the hint says is what helps.
    server.out(&format!("event cancel {}", event["id"].as_str().unwrap()));
    server.out("scaleset upgrade web web_3");
    let said = server.json("scaleset delete-instances web 3");
    assert_eq!(said["events"][0]["not_before"], "2026-01-01T00:10:00Z");
    assert!(!server.out("event explain web_3").contains("runs model"));
}
