//! Tests of the verbs: `create`, `delete`, `ls`, `show` and `set` mean the same for every noun, and old words still
//! work.

use serde_json::json;

use super::support::Server;

/// promise: X2
#[test]
fn every_noun_has_the_same_verbs() {
    let server = Server::start();
    server.enrol("web_0");
    for line in [
        "vm create new --host h1",
        "vm ls",
        "vm show new",
        "vm set new --tag role=test",
        "vm delete new",
        "host create h77",
        "host ls",
        "host show h77",
        "host set h77 --cpus 8",
        "host delete h77",
        "tenant ls",
        "tenant show web",
        "tenant set web --restart automatic --window 01:00-05:00",
        "scaleset create small",
        "scaleset ls",
        "scaleset show small",
        "scaleset set small --os-image on",
        "scaleset delete small",
        "availabilityset create rack",
        "availabilityset ls",
        "availabilityset show rack",
        "availabilityset delete rack",
        "cloudservice create desk",
        "cloudservice ls",
        "cloudservice show desk",
        "cloudservice delete desk",
        "rollout start h1",
        "rollout ls",
        "rollout show 0",
        "rollout set 0 --at-once 3",
        "cluster create west",
        "cluster ls",
        "cluster show west",
        "cluster delete west",
        "token create ci --role viewer",
        "token ls",
        "token show ci",
        "token delete ci",
        "fault create web_0 --answer 500",
        "fault ls",
        "fault show 1",
        "fault delete 1",
        "settings show",
        "settings set --failure redeploy",
        "brake show",
    ] {
        let ran = server.run(line);
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        assert!(!ran.out.is_empty(), "{line}");
    }
}

#[test]
fn old_words_still_work() {
    let server = Server::start();
    for (line, expected) in [
        ("host add h77", "Host h77 created.\n"),
        ("host rm h77", "Host h77 deleted.\n"),
        ("cluster create west", "Cluster west created.\n"),
        ("cluster rm west", "Cluster west deleted.\n"),
        ("scaleset create small", "Scale set small created with 0 instances.\n"),
        ("scaleset update small --os-image on", "small updated.\n"),
        ("scaleset rm small", "Scale set small deleted.\n"),
        ("availabilityset create rack", "Availability set rack created.\n"),
        ("availabilityset add rack rack-0 --host h1", "Machine rack/rack-0 created.\n"),
        ("vm describe rack-0 --tag a=b", "Addresses and tags of rack-0 changed.\n"),
        ("vm update rack-0 --os-image on", "rack-0 updated.\n"),
        ("tenant policy rack --restart automatic", "Policy of rack changed.\n"),
        ("fault add rack-0 --answer 500", "Fault 1: next poll of rack/rack-0: 500.\n"),
        ("fault clear --id 1", "1 fault cleared.\n"),
    ] {
        assert_eq!(server.out(line), expected, "{line}");
    }
    server.out("token create ci --role viewer");
    assert_eq!(server.out("token revoke ci"), "Token ci deleted.\n");
    server.enrol("web_0");
    server.out("rollout start h1 h2");
    assert_eq!(server.out("rollout status 0"), server.out("rollout show 0"));
    assert_eq!(server.out("rollout change 0 --at-once 1"), "Rollout 0 changed.\n");
    assert!(server.out("vm reboot web_1").starts_with("Reboot of web_1 is announced: event "));
}

#[test]
fn a_capacity_and_a_size_can_be_set_and_removed() {
    let server = Server::start_with("--fleet none");
    server.out("host create h1 --cpus 8 --memory 16GiB");
    server.out("vm create solo --host h1 --cpus 2 --memory 4GiB");
    assert_eq!(server.out("host set h1 --memory 32GiB"), "Capacity of host h1 changed.\n");
    let room = &server.json("host show h1")["room"];
    assert_eq!((&room["cpus"], &room["memory_mib"]), (&json!(8), &json!(32 * 1024)));
    assert_eq!(server.out("host set h1 --memory 32GiB"), "Host h1 already has this capacity.\n");
    server.out("host set h1 --cpus none");
    assert_eq!(server.json("host show h1")["room"]["cpus"], json!(null));
    let changed = server.out("vm set solo --cpus 4 --tag role=db --terminate-notification on");
    let expected = "solo updated.\nSize of solo changed.\nAddresses and tags of solo changed.\n";
    assert_eq!(changed, expected, "three changes");
    let solo = server.json("vm show solo");
    assert_eq!((&solo["cpus"], &solo["memory"]), (&json!(4), &json!("4GiB")), "the memory stays");
    assert_eq!((&solo["tags"], &solo["terminate"]), (&json!({ "role": "db" }), &json!("5m")));
    let crowded = server.run("host set h1 --cpus 1");
    assert!(crowded.err.contains("warning: h1 has more than its capacity"), "{}", crowded.err);
    server.out("scaleset create web --instances 2");
    let resized = server.out("scaleset set web --memory 1GiB --os-image on");
    assert_eq!(resized, "web updated.\nSize of the instances of web changed.\n");
    assert_eq!(server.json("scaleset show web")["memory"], "1GiB");
    assert_eq!(server.json("vm show web_1")["memory"], "1GiB");
}

#[test]
fn a_fault_and_the_brake_are_shown() {
    let server = Server::start();
    server.out("fault create web_0 --next 2 --answer 503");
    assert_eq!(server.json("fault show 1")["answer"], "503");
    assert!(server.out("fault show 1").contains("requests  next 2 polls\n"));
    let gone = server.run("fault show 9");
    assert!(gone.err.starts_with("forewarn: no such fault: 9\n  hint: "), "{}", gone.err);
    assert_eq!(server.out("fault delete 1"), "Fault 1 deleted.\n");
    assert_eq!(server.run("fault delete 1").code, Some(1));
    assert_eq!(server.out("brake show"), "brake  off\n");
    server.out("brake on");
    assert_eq!(server.out("brake show"), "brake  on: no event starts\n");
    let planned = server.out("vm restart solo");
    assert!(planned.ends_with("The brake is on: nothing starts until `forewarn brake off`.\n"), "{planned}");
}
