//! Changes, told one by one.

use crate::town::Town;

/// What has been told since, in short.
fn told(town: &mut Town) -> Vec<(String, String)> {
    town.told.drain(..).map(|happening| (happening.kind, happening.text)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_fleet_that_joins_is_told() {
    let mut town = Town::with_fleet();
    let expected = [
        ("admitted", "host h1 has joined"),
        ("admitted", "host h2 has joined"),
        ("admitted", "tenant solo has joined"),
        ("admitted", "machine solo has joined"),
        ("admitted", "tenant web has joined"),
        ("admitted", "machine web_0 has joined"),
        ("admitted", "machine web_1 has joined"),
    ];
    assert_eq!(told(&mut town), pairs(&expected));
}

#[test]
fn the_life_of_an_event_is_told_in_words() {
    let mut town = Town::with_fleet();
    told(&mut town);
    town.enrol("web");
    town.say(r#"{"command":"restart","machine":"web_0"}"#);
    let id = town.told[1].events[0].clone();
    assert!(town.told.iter().all(|happening| happening.tenants == ["web"]));
    town.say(r#"{"command":"approve","tenant":"web"}"#);
    town.finish();
    let approved = format!("web has approved {id}, by its owner");
    let expected = [
        ("enrolled", "web is enrolled"),
        ("announced", "Reboot of web_0 (restart by the owner) is announced, not before 2026-01-01T00:15:00Z"),
        ("approved", &approved),
        ("started", "Reboot of web_0 (restart by the owner) has started, by approval"),
        ("completed", "Reboot of web_0 (restart by the owner) is done for web_0"),
    ];
    assert_eq!(told(&mut town), pairs(&expected));
}

#[test]
fn what_befalls_hosts_is_told_in_words() {
    let mut town = Town::with_fleet();
    town.enrol("web");
    told(&mut town);
    town.say(r#"{"command":"degrade_host","host":"h2"}"#);
    town.say(r#"{"command":"recover_host","host":"h2"}"#);
    town.say(r#"{"command":"brake_on"}"#);
    town.say(r#"{"command":"change_settings","failure":"redeploy"}"#);
    town.say(r#"{"command":"change_model","scale_set":"web","terminate":"5m"}"#);
    let expected = [
        ("health", "host h2 is expected to fail"),
        ("health", "host h2 is well"),
        ("brake", "the brake is on: nothing starts"),
        ("changed", "there are other settings"),
        ("changed", "scale set web has model 2"),
    ];
    let all = told(&mut town);
    for pair in pairs(&expected) {
        assert!(all.contains(&pair), "{pair:?}: {all:#?}");
    }
}

#[test]
fn what_is_taken_back_names_who_was_told() {
    let mut town = Town::with_fleet();
    town.enrol("solo");
    town.enrol("web");
    town.say(r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let announced = town.told.last().unwrap().clone();
    assert_eq!(
        (announced.kind.as_str(), announced.tenants.as_slice()),
        ("announced", &["solo".to_owned(), "web".to_owned()][..])
    );
    assert_eq!(announced.events.len(), 2);
    let event = announced.events[0].clone();
    town.say(&format!(r#"{{"command":"cancel","event":"{event}"}}"#));
    let withdrawn = town.told.iter().find(|happening| happening.kind == "withdrawn").unwrap();
    assert_eq!(withdrawn.text, "Freeze of solo, web_0 (update of h1) is cancelled");
    assert_eq!(withdrawn.tenants, ["solo", "web"]);
    let json = serde_json::to_string(withdrawn).unwrap();
    assert!(json.starts_with(r#"{"at":"2026-01-01T00:00:00Z","kind":"withdrawn","text":"#), "{json}");
}
