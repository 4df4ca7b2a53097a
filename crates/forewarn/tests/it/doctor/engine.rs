//! The engine of a realm, as the doctor sees it.

use forewarn_testkit::etcd::EtcdCluster;
use serde_json::json;

use super::place::Place;

/// The settings of a server in a realm, with which nothing is wrong.
fn settings(place: &Place, endpoints: &[String], more: &str) -> String {
    let endpoints = endpoints.iter().map(|url| format!("'{url}'")).collect::<Vec<_>>().join(", ");
    let server = "[server]\nname = 's0'\nlisten = '127.0.0.1:0'\n";
    place.settings().replace("kind = 'program'", "kind = 'program'\nshared = true")
        + &format!("[engine]\nendpoints = [{endpoints}]\n{more}{server}")
}

/// promise: X2
#[test]
fn an_etcd_with_which_nothing_is_wrong_has_no_finding() {
    let Some(etcd) = EtcdCluster::start(3) else { return };
    let place = Place::new();
    let said = place.doctor(&settings(&place, &etcd.endpoints(), ""));
    assert_eq!((said.code, said.findings().len()), (Some(0), 0), "{said:?}");
    for check in
        ["etcd version", "etcd members", "etcd space", "etcd alarms", "etcd reads", "etcd writes", "realm"]
    {
        assert!(said.checks().contains(&check.to_owned()), "{check}: {said:?}");
    }
    // Keys of the realm are none of the doctor's business.
    let all = json!({ "key": "AA==", "range_end": "AA==", "count_only": true });
    let found = etcd.post(0, "/v3/kv/range", None, &all);
    assert!(found["count"].is_null(), "it has written a key: {found}");
}

/// promise: X2
#[test]
fn a_newer_etcd_has_neither_a_warning_nor_a_finding_about_its_version() {
    let Some(etcd) = EtcdCluster::start_newer(1, &[]) else { return };
    let place = Place::new();
    let said = place.doctor(&settings(&place, &etcd.endpoints(), ""));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.results("etcd version"), ["ok"], "{said:?}");
    // One member is no replacement for three.
    assert_eq!(said.results("etcd members"), ["warning"], "{said:?}");
}

/// promise: X2
#[test]
fn a_member_of_etcd_that_does_not_answer_is_found() {
    let Some(mut etcd) = EtcdCluster::start(3) else { return };
    let place = Place::new();
    // The leader stays: without one, more than this would be wrong.
    let lost = (etcd.leader() + 1) % 3;
    etcd.kill(lost);
    let said = place.doctor(&settings(&place, &etcd.endpoints(), ""));
    said.expect("etcd", &etcd.endpoints()[lost].replace("http://", ""), "endpoint health");
}

/// promise: X2
#[test]
fn an_etcd_without_space_is_found() {
    let Some(etcd) = EtcdCluster::start(1) else { return };
    let place = Place::new();
    let alarm = json!({ "action": "ACTIVATE", "memberID": 0, "alarm": "NOSPACE" });
    etcd.post(0, "/v3/maintenance/alarm", None, &alarm);
    let said = place.doctor(&settings(&place, &etcd.endpoints(), ""));
    let found: Vec<_> = said.findings().iter().map(|one| one["check"].clone()).collect();
    assert!(said.code == Some(1) && found.contains(&json!("etcd alarms")), "{said:?}");
}

/// promise: X2
#[test]
fn a_certificate_that_etcd_does_not_accept_is_found() {
    let Some(etcd) = EtcdCluster::start_with_tls(1) else { return };
    let place = Place::new();
    let files = etcd.certificates();
    super::chmod(&files.client_key.display().to_string(), 0o600);
    let ca = format!("ca = {:?}\n", files.authority);
    let pair = format!("certificate = {:?}\nkey = {:?}\n", files.client_certificate, files.client_key);
    let said = place.doctor(&settings(&place, &etcd.endpoints(), &format!("{ca}{pair}")));
    assert_eq!((said.code, said.findings().len()), (Some(0), 0), "{said:?}");
    assert_eq!(said.results("certificate"), ["ok"], "{said:?}");
    let said = place.doctor(&settings(&place, &etcd.endpoints(), &ca));
    said.expect("etcd", "127.0.0.1:", "client certificate");
}

#[test]
fn a_driver_program_of_a_realm_must_be_shared() {
    let place = Place::new();
    let endpoints = ["http://127.0.0.1:1".to_owned()];
    let settings = settings(&place, &endpoints, "").replace("shared = true", "shared = false");
    place.doctor(&settings).expect("settings", "driver.shared is not set", "shared = true");
}
