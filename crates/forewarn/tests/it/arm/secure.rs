//! TLS, and the line that points `az` at a server.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use forewarn_testkit::arm::{ArmServer, GROUP, NEW, SUBSCRIPTION, body, instance, set, text};
use forewarn_testkit::az::exports;
use forewarn_testkit::programs::find_or_skip;

/// Runs `curl`; gives what it prints.
fn curl(place: &ArmServer, words: &[&str]) -> Option<Output> {
    let curl = find_or_skip("curl")?;
    let mut command = Command::new(curl);
    command.args(["--silent", "--show-error", "--max-time", "60"]).args(words).stdin(Stdio::null());
    command.current_dir(place.directory());
    Some(command.output().expect("it runs"))
}

fn printed(output: &Output) -> String {
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn value_of(exports: &[(String, String)], name: &str) -> String {
    let found = exports.iter().find(|(key, _)| key == name);
    found.unwrap_or_else(|| panic!("not exported: {name}: {exports:?}")).1.clone()
}

/// promise: Z6
#[test]
fn the_line_of_a_user_exports_what_clients_need() {
    let place = ArmServer::start(crate::program());
    let exports = exports(&place);
    let authority = value_of(&exports, "REQUESTS_CA_BUNDLE");
    let pem = std::fs::read_to_string(&authority).unwrap();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{pem}");
    assert!(Path::new(&authority).starts_with(place.directory()), "{authority}");
    assert_eq!(value_of(&exports, "NODE_EXTRA_CA_CERTS"), authority);
    // Who a caller is, is asked here, and not where machines ask.
    let identity = value_of(&exports, "AZURE_POD_IDENTITY_AUTHORITY_HOST");
    assert_eq!(identity.trim_end_matches('/'), place.server.api_url());
    // What is told of the cloud leads to the listener with TLS.
    let file = value_of(&exports, "ARM_CLOUD_METADATA_URL");
    let told = std::fs::read_to_string(file.strip_prefix("file://").expect("a file")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(text(&told[0]["resourceManager"]).trim_end_matches('/'), place.arm());
    assert!(Path::new(&value_of(&exports, "AZURE_CONFIG_DIR")).starts_with(place.directory()));
}

#[test]
fn the_cloud_is_described_without_tls_too_in_each_of_its_three_shapes() {
    let place = ArmServer::start(crate::program());
    let get = |version: &str| body(&place.ask("GET", "/metadata/endpoints", version, ""));
    let one = get("2022-09-01");
    assert_eq!(text(&one["resourceManager"]).trim_end_matches('/'), place.arm());
    assert_eq!(get("2019-05-01"), json!([one]));
    assert!(get("2015-01-01")["authentication"]["loginEndpoint"].is_string());
    let aliases = place.ask("GET", "/aliases.json", NEW, "");
    assert!(aliases.body.contains("UbuntuLTS"), "{aliases:?}");
}

/// promise: Z2
#[test]
fn the_put_of_the_article_is_answered_over_tls() {
    let place = ArmServer::start(crate::program());
    place.make_set(1);
    let authority = value_of(&exports(&place), "REQUESTS_CA_BUNDLE");
    let url = format!("{}{}?api-version=2019-03-01", place.arm(), set());
    let sent = r#"{"properties":{"virtualMachineProfile":{"scheduledEventsProfile":{"terminateNotificationProfile":{"notBeforeTimeout":"PT5M","enable":true}}}}}"#;
    let words = ["--cacert", &authority, "--include", "-X", "PUT", "-H", "Authorization: Bearer anything"];
    let more = ["-H", "Content-Type: application/json", "-d", sent, &url];
    let Some(output) = curl(&place, &[&words[..], &more].concat()) else { return };
    let answer = printed(&output);
    assert!(answer.contains(" 200"), "{answer}");
    assert!(answer.contains(r#""notBeforeTimeout":"PT5M""#), "{answer}");
    // Whoever asks over TLS is told to go on so.
    let operation = answer.lines().find(|line| line.to_lowercase().starts_with("azure-asyncoperation: "));
    let operation = operation.unwrap_or_else(|| panic!("{answer}")).split_once(": ").unwrap().1.trim();
    assert!(operation.starts_with("https://127.0.0.1:"), "{operation}");
    let words = ["--cacert", &authority, "-H", "Authorization: Bearer anything", operation];
    let output = curl(&place, &words).expect("it was there before");
    let ended: Value = serde_json::from_str(&printed(&output)).unwrap();
    assert_eq!(ended["status"], "Succeeded");
    assert!(place.is_there(&instance(0)));
}

#[test]
fn who_does_not_know_the_authority_does_not_believe_the_server_and_the_name_is_on_the_certificate() {
    let place = ArmServer::start(crate::program());
    place.make_group();
    let path = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}?api-version=2024-11-01");
    let arm = place.arm();
    let Some(output) = curl(&place, &[&format!("{arm}{path}")]) else { return };
    assert_eq!(output.status.code(), Some(60), "{}", String::from_utf8_lossy(&output.stderr));
    let authority = value_of(&exports(&place), "REQUESTS_CA_BUNDLE");
    let named = arm.replace("127.0.0.1", "localhost");
    let words =
        ["--cacert", &authority, "-H", "Authorization: Bearer anything", "--ipv4", &format!("{named}{path}")];
    let output = curl(&place, &words).expect("it was there before");
    let group: Value = serde_json::from_str(&printed(&output)).unwrap();
    assert_eq!(group["name"], GROUP, "{group}");
}

/// promise: Z6
#[test]
fn the_authority_outlives_the_server() {
    let place = ArmServer::start_durable(crate::program());
    let authority = value_of(&exports(&place), "REQUESTS_CA_BUNDLE");
    let before = std::fs::read_to_string(&authority).unwrap();
    let arm = place.arm();
    let place = place.kill_and_start();
    assert_eq!(place.arm(), arm);
    let after = std::fs::read_to_string(value_of(&exports(&place), "REQUESTS_CA_BUNDLE")).unwrap();
    assert_eq!(before, after);
    assert_eq!(place.ask("GET", &format!("/subscriptions/{SUBSCRIPTION}"), NEW, "").status(), 200);
}
