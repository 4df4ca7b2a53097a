//! The REST calls of the article about terminate notification, byte for byte, and what old clients are shown.

use serde_json::{Value, json};

use forewarn_testkit::arm::{
    AFTER_5, ArmServer, GROUP, NEW, SET, SUBSCRIPTION, body, compute, instance, notification, refusal, set,
    shown_notification, text, wanted_set,
};

/// The body of the article, as it stands there.
const ARTICLE: &str = r#"{
  "properties": {
    "virtualMachineProfile": {
      "scheduledEventsProfile": {
        "terminateNotificationProfile": {
          "notBeforeTimeout": "PT5M",
          "enable": true
        }
      }
    }
  }
}
"#;

/// The path of the article.
fn article() -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/{SET}"
    )
}

/// What a scale set is besides what changes whenever somebody changes it.
fn lasting(mut set: Value) -> Value {
    let shown = set.as_object_mut().unwrap();
    shown.remove("etag");
    let properties = shown["properties"].as_object_mut().unwrap();
    properties.remove("provisioningState");
    properties["virtualMachineProfile"].as_object_mut().unwrap().remove("scheduledEventsProfile");
    set
}

/// promise: Z2
#[test]
fn the_put_of_the_article_changes_what_it_says_and_keeps_everything_else() {
    let place = ArmServer::start(crate::program());
    place.make_set(3);
    let before = place.get(&set(), NEW);
    let answer = place.ask("PUT", &article(), "2019-03-01", ARTICLE);
    assert_eq!(answer.status(), 200, "{answer:?}");
    let enabled = json!({ "notBeforeTimeout": "PT5M", "enable": true });
    assert_eq!(shown_notification(&body(&answer)), &enabled);
    place.finish(&answer);
    let after = place.get(&set(), NEW);
    assert_eq!(shown_notification(&after), &enabled);
    assert_eq!(lasting(after.clone()), lasting(before));
    assert_eq!(after["sku"]["capacity"], 3);
    assert_eq!(after["tags"]["made-by"], "a test");
    // It is true once the instances have it.
    place.act(&format!("{}/manualupgrade", set()), &json!({ "instanceIds": ["*"] }));
    let operation = place.begin("POST", &format!("{}/delete", set()), &json!({ "instanceIds": ["1"] }));
    let seen = place.one(&instance(0));
    assert_eq!((seen.what.as_str(), seen.whom), ("Terminate Scheduled", instance(1)));
    assert_eq!(seen.not_before, AFTER_5);
    assert_eq!(place.status(&operation), "InProgress");
}

/// promise: Z2
#[test]
fn the_put_of_the_article_on_a_name_that_nobody_knows_lacks_a_location() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let (code, message) = refusal(&place.ask("PUT", &article(), "2019-03-01", ARTICLE), 400);
    assert_eq!(code, "LocationRequired", "{message}");
    assert_eq!(refusal(&place.ask("GET", &article(), NEW, ""), 404).0, "ResourceNotFound");
}

/// promise: Z2
#[test]
fn a_version_that_does_not_know_the_profile_refuses_it_in_the_words_of_the_article() {
    let place = ArmServer::start(crate::program());
    place.make_set(1);
    let before = place.get(&set(), NEW);
    let (code, message) = refusal(&place.ask("PUT", &article(), "2018-10-01", ARTICLE), 400);
    assert_eq!(code, "BadRequest");
    assert!(
        message.contains(
            "Could not find member 'scheduledEventsProfile' on object of type 'VirtualMachineProfile'"
        ),
        "{message}"
    );
    let patched = place.ask("PATCH", &article(), "2018-10-01", ARTICLE);
    assert_eq!(refusal(&patched, 400).0, "BadRequest");
    assert_eq!(place.get(&set(), NEW), before, "a refusal changes nothing");
}

/// promise: Z1
#[test]
fn an_old_client_gets_changes_and_puts_without_losing_what_it_does_not_know() {
    let place = ArmServer::start(crate::program());
    place.make_set(2);
    let enabled = json!({ "notBeforeTimeout": "PT9M", "enable": true });
    place.put(&set(), NEW, &notification(&enabled));
    let mut old = place.get(&set(), "2018-10-01");
    let profile = &old["properties"]["virtualMachineProfile"];
    assert!(profile.is_object() && profile.get("scheduledEventsProfile").is_none(), "{old}");
    // Instances and lists are answers, too.
    let listed = place.get(&format!("{}/virtualMachineScaleSets", compute()), "2018-10-01");
    assert!(!listed.to_string().contains("scheduledEventsProfile"), "{listed}");
    old["sku"]["capacity"] = json!(3);
    old["tags"]["changed-by"] = json!("an old client");
    let answered = place.put(&set(), "2018-10-01", &old);
    assert!(!answered.to_string().contains("scheduledEventsProfile"), "{answered}");
    let new = place.get(&set(), NEW);
    assert_eq!((&new["sku"]["capacity"], &new["tags"]["changed-by"]), (&json!(3), &json!("an old client")));
    assert_eq!(shown_notification(&new), &enabled);
    assert!(place.is_there(&instance(2)));
}

/// promise: Z1
#[test]
fn what_nobody_understands_is_kept_and_case_and_slashes_do_not_matter() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let mut wanted = wanted_set(1);
    wanted["properties"]["somethingNew"] = json!({ "deep": [1, { "er": null }, "x"], "on": true });
    wanted["properties"]["virtualMachineProfile"]["extensionProfile"] = json!({ "extensions": [] });
    place.put(&set(), NEW, &wanted);
    let shown = place.get(&set(), NEW);
    assert_eq!(shown["properties"]["somethingNew"]["on"], true);
    assert_eq!(shown["properties"]["somethingNew"]["deep"][2], "x");
    assert_eq!(shown["id"], set().as_str());
    assert_eq!(shown["type"], "Microsoft.Compute/virtualMachineScaleSets");
    let other = set()
        .replace("resourceGroups", "resourcegroups")
        .replace("/Microsoft.Compute/", "/microsoft.compute//");
    let again = place.get(&(other.replace(SET, &SET.to_uppercase()) + "/"), NEW);
    assert_eq!(again, shown);
}

#[test]
fn a_request_without_a_version_or_for_nothing_is_refused_in_the_envelope() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    assert_eq!(refusal(&place.ask_url("GET", &set(), ""), 400).0, "MissingApiVersionParameter");
    for bad in ["latest", "2019", "2014-01-01"] {
        let (code, _) = refusal(&place.ask("GET", &set(), bad, ""), 400);
        assert_eq!(code, "InvalidApiVersionParameter", "{bad}");
    }
    let (code, message) = refusal(&place.ask("GET", &set(), NEW, ""), 404);
    assert_eq!(code, "ResourceNotFound");
    let words = format!(
        "The Resource 'Microsoft.Compute/virtualMachineScaleSets/{SET}' under resource group '{GROUP}' was not found."
    );
    assert!(message.starts_with(&words), "{message}");
    let elsewhere = set().replace(GROUP, "nowhere");
    assert_eq!(refusal(&place.ask("GET", &elsewhere, NEW, ""), 404).0, "ResourceGroupNotFound");
    assert_eq!(refusal(&place.ask("PUT", &set(), NEW, "{"), 400).0, "InvalidRequestContent");
    assert_eq!(place.ask("DELETE", &set(), NEW, "").status(), 204);
}

#[test]
fn an_edit_of_something_that_has_changed_since_is_refused() {
    let place = ArmServer::start(crate::program());
    place.make_set(1);
    let first = text(&place.get(&set(), NEW)["etag"]);
    let target = format!("{}?api-version={NEW}", set());
    let patch = |etag: &str| {
        place.ask_with("PATCH", &target, &format!("If-Match: {etag}\r\n"), r#"{"tags":{"a":"b"}}"#)
    };
    let answer = patch(&first);
    assert_eq!(answer.status(), 200, "{answer:?}");
    place.finish(&answer);
    let second = text(&place.get(&set(), NEW)["etag"]);
    assert_ne!(first, second);
    let refused = patch(&first);
    assert_eq!(refused.status(), 412, "{refused:?}");
    assert_eq!(patch(&second).status(), 200);
    assert_eq!(patch("*").status(), 200);
    let create = place.ask_with("PUT", &target, "If-None-Match: *\r\n", &wanted_set(1).to_string());
    assert_eq!(create.status(), 412, "{create:?}");
}
