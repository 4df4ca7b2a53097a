//! `forewarn az env`: lines that a shell understands, and that lead to the server.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::entrance::place::Place;
use forewarn_testkit::TestServer;
use forewarn_testkit::command::stdout_of;
use forewarn_testkit::tls::Authority;
use forewarn_testkit::tls::TlsClient;

/// What is set in a shell that has evaluated the lines.
fn variables(lines: &str) -> BTreeMap<String, String> {
    let script = "eval \"$LINES_OF_FOREWARN\"; env -0";
    let mut command = Command::new("sh");
    command.args(["-c", script]).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    let all = stdout_of(command.env("LINES_OF_FOREWARN", lines));
    let pairs = all.split('\0').filter_map(|line| line.split_once('='));
    let of_azure =
        |name: &str| ["AZURE_", "ARM_", "REQUESTS_", "NODE_"].iter().any(|start| name.starts_with(start));
    pairs
        .filter(|(name, _)| of_azure(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn lines(place: &Place, server: &TestServer, more: &[&str]) -> String {
    stdout_of(place.command().args(["--api", server.api_url(), "az", "env"]).args(more))
}

/// promise: Z6
#[test]
fn a_shell_that_evaluates_the_lines_has_all_that_az_needs() {
    let place = Place::new();
    let server = place.dev(&[]);
    let printed = lines(&place, &server, &[]);
    assert!(printed.ends_with("# then: az login --identity\n"), "{printed}");
    let set = variables(&printed);
    let authority = fs::read_to_string(&set["REQUESTS_CA_BUNDLE"]).unwrap();
    assert_eq!(set["NODE_EXTRA_CA_CERTS"], set["REQUESTS_CA_BUNDLE"]);
    let client = TlsClient::new(server.arm(), &authority);
    assert_eq!(client.get("/aliases.json").0, 200, "whoever believes that file believes the server");
    let file = set["ARM_CLOUD_METADATA_URL"].strip_prefix("file://").expect("a file");
    let endpoints: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(endpoints[0]["resourceManager"], format!("https://{}", server.arm()));
    assert_eq!(set["AZURE_POD_IDENTITY_AUTHORITY_HOST"], format!("http://{}", server.api()));
    assert_eq!(set["AZURE_CORE_INSTANCE_DISCOVERY"], "false");
    assert_eq!(set["AZURE_CORE_USE_MSAL_MANAGED_IDENTITY"], "true", "for az 2.71 to 2.74");
    let token = "GET /metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://r/ HTTP/1.1\r\n";
    let request = format!("{token}Host: localhost\r\nMetadata: true\r\n\r\n");
    assert_eq!(
        forewarn_testkit::ask(server.api(), &request).unwrap().status(),
        200,
        "for whom there is no machine"
    );
    assert!(
        set["AZURE_CONFIG_DIR"].starts_with(&place.path("state/forewarn/az/")),
        "az keeps its own elsewhere"
    );
    let by_flag: Value = serde_json::from_str(&lines(&place, &server, &["--json"])).unwrap();
    assert_eq!(
        by_flag,
        serde_json::from_str::<Value>(&lines(&place, &server, &["--output", "json"])).unwrap()
    );
    let told = by_flag["variables"].as_object().unwrap().iter();
    assert_eq!(
        told.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect::<BTreeMap<_, _>>(),
        set
    );
}

/// promise: Z6
#[test]
fn what_was_set_can_be_taken_back_without_a_server() {
    let place = Place::new();
    let server = place.dev(&[]);
    let set = lines(&place, &server, &[]);
    drop(server);
    let unset = stdout_of(place.command().args(["az", "env", "--unset"]));
    assert!(!variables(&set).is_empty());
    assert_eq!(variables(&format!("{set}\n{unset}")), BTreeMap::new());
    let fish = stdout_of(place.command().args(["az", "env", "--unset", "--shell", "fish"]));
    assert!(fish.starts_with("set -e AZURE_CONFIG_DIR;\n"), "{fish}");
}

#[test]
fn other_shells_are_told_in_their_own_words() {
    let place = Place::new();
    let server = place.dev(&[]);
    let fish = lines(&place, &server, &["--shell", "fish"]);
    assert!(fish.starts_with("set -gx AZURE_CONFIG_DIR '/"), "{fish}");
    let powershell = lines(&place, &server, &["--shell", "powershell", "--service-principal"]);
    assert!(powershell.contains("$Env:AZURE_CORE_USE_MSAL_MANAGED_IDENTITY = 'true';\n"), "{powershell}");
    assert!(powershell.contains("\n# then, az 2.53 and earlier: az cloud register "), "{powershell}");
    assert!(powershell.starts_with("$Env:AZURE_CONFIG_DIR = '/"), "{powershell}");
}

/// promise: Z6
#[test]
fn a_service_principal_logs_in_with_every_version_of_az() {
    let place = Place::new();
    let server = place.dev(&[]);
    let printed = lines(&place, &server, &["--service-principal"]);
    let newer = "\n# then, az 2.54 and later: az login --service-principal --username forewarn --password x --tenant forewarn\n";
    assert!(printed.contains(newer), "{printed}");
    let older = printed.lines().last().unwrap();
    assert!(older.starts_with("# then, az 2.53 and earlier: az cloud register "), "{older}");
    let directory = format!("https://{}/adfs", server.arm());
    assert!(older.contains(&format!(" --endpoint-active-directory {directory} ")), "{older}");
    // That version asks there whether the directory is one.
    let set = variables(&printed);
    let client = TlsClient::new(server.arm(), &fs::read_to_string(&set["REQUESTS_CA_BUNDLE"]).unwrap());
    let (status, found) = client.get("/adfs/adfs/.well-known/openid-configuration");
    let token = format!("https://localhost:{}/adfs/oauth2/token", server.arm().port());
    assert_eq!((status, &found["token_endpoint"]), (200, &token.into()));
    let both = place.command().args(["az", "env", "--unset", "--service-principal"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
}

/// promise: Z6
#[test]
fn directories_of_servers_that_are_gone_are_removed() {
    let place = Place::new();
    let (first, other) = (place.dev(&[]), place.dev(&[]));
    let directory =
        |server: &TestServer| variables(&lines(&place, server, &[]))["REQUESTS_CA_BUNDLE"].clone();
    let (of_first, of_other) = (directory(&first), directory(&other));
    assert!(fs::exists(&of_first).unwrap(), "both servers run");
    first.kill();
    assert_eq!(directory(&other), of_other);
    assert!(!fs::exists(&of_first).unwrap(), "{of_first}");
    assert!(fs::exists(&of_other).unwrap(), "{of_other}");
}

/// promise: Z6
#[test]
fn where_tokens_are_asked_for_it_is_said_how_to_log_in_with_one() {
    let place = Place::new();
    let server = place.serve("[arm]\nlisten = '127.0.0.1:0'\n");
    let printed = place.out(&["az", "env"]);
    let set = variables(&printed);
    assert!(!set.contains_key("AZURE_POD_IDENTITY_AUTHORITY_HOST"), "{printed}");
    assert!(printed.ends_with(
        "# then: az login --service-principal --username forewarn --password \"$FOREWARN_TOKEN\" --tenant forewarn\n"
    ));
    let authority = fs::read_to_string(&set["REQUESTS_CA_BUNDLE"]).unwrap();
    assert_eq!(authority, fs::read_to_string(place.path("data/tls/ca.pem")).unwrap());
    let tenant =
        TlsClient::new(server.arm(), &authority).get("/forewarn/v2.0/.well-known/openid-configuration");
    assert_eq!(tenant.0, 200);
    // Whatever else it finds here.
    let api = format!("unix:{}", place.path("api.sock"));
    let doctor = place.command().args(["--api", &api, "doctor"]).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("arm             ok       https://127.0.0.1:"), "{doctor}");
}

#[test]
fn an_authority_of_somebody_elses_is_named_by_whoever_knows_it() {
    let place = Place::new();
    let authority = Authority::new("company");
    let leaf = authority.leaf(&["127.0.0.1"]);
    for (name, text) in
        [("company.pem", authority.pem()), ("leaf.pem", leaf.certificate), ("leaf-key.pem", leaf.key)]
    {
        fs::write(place.path(name), text).unwrap();
    }
    let (certificate, key) = (place.path("leaf.pem"), place.path("leaf-key.pem"));
    let tls = format!("tls = {{ certificate = {certificate:?}, key = {key:?} }}");
    let _server = place.serve(&format!("[arm]\nlisten = '127.0.0.1:0'\n{tls}\n"));
    let api = format!("unix:{}", place.path("api.sock"));
    let refused = place.command().args(["--api", &api, "az", "env"]).output().unwrap();
    assert!(!refused.status.success() && String::from_utf8(refused.stderr).unwrap().contains("hint: "));
    let set = variables(&place.out(&["--ca", &place.path("company.pem"), "az", "env"]));
    assert_eq!(set["REQUESTS_CA_BUNDLE"], place.path("company.pem"));
}
