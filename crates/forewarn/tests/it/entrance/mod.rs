//! How clients of Azure come in: certificates, where things are, tokens, and the lines that `az` needs.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod lines;
mod place;
mod tokens;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use self::place::{Place, over_http};
use forewarn_testkit::TestServer;
use forewarn_testkit::command::stdout_of;
use forewarn_testkit::programs::find_or_skip;
use forewarn_testkit::tls::TlsClient;

const ENDPOINTS: &str = "/metadata/endpoints?api-version=";

/// The authority of a server, as operators get it.
fn authority_of(server: &TestServer) -> String {
    let (status, pem) = over_http(server, "/ca.pem");
    assert_eq!(status, 200, "{pem}");
    pem
}

/// promise: Z5
#[test]
fn an_authority_outlives_its_server_and_is_one_for_all_of_a_user() {
    let place = Place::new();
    let first = place.dev(&[]);
    let pem = authority_of(&first);
    let second = place.dev(&["--fleet", "none"]);
    assert_eq!(authority_of(&second), pem, "the other server of the same user");
    first.kill();
    let again = place.dev(&[]);
    assert_eq!(authority_of(&again), pem);
    for server in [&second, &again] {
        let client = TlsClient::new(server.arm(), &pem);
        for name in ["localhost", "127.0.0.1"] {
            assert_eq!(client.ask_as(name, "GET /aliases.json", "", "").0, 200, "{name}");
        }
    }
    let kept = place.path("state/forewarn/tls");
    assert_eq!(fs::read_to_string(format!("{kept}/ca.pem")).unwrap(), pem);
    for (name, mode) in [("", 0o700), ("ca-key.pem", 0o600)] {
        let found = fs::metadata(format!("{kept}/{name}")).unwrap().permissions().mode() & 0o777;
        assert_eq!(found, mode, "{name}");
    }
    let data = place.path("data");
    let keeping = place.dev(&["--data-dir", &data]);
    assert_ne!(authority_of(&keeping), pem, "a server that keeps things keeps its own");
    assert_eq!(fs::read_to_string(format!("{data}/tls/ca.pem")).unwrap(), authority_of(&keeping));
}

/// promise: Z5
#[test]
fn without_a_home_the_authority_goes_with_the_server_which_says_so() {
    let place = Place::new();
    let mut command = place.command();
    // A file is where a directory would have to be.
    fs::write(place.path("state"), "").unwrap();
    command.env("TMPDIR", place.path(""));
    place.say_dev(&mut command, &[]);
    let server = TestServer::spawn(crate::program(), command);
    assert!(
        server.log().contains("no home directory: the CA for Azure clients changes at every start"),
        "{}",
        server.log()
    );
    assert_eq!(TlsClient::new(server.arm(), &authority_of(&server)).get("/aliases.json").0, 200);
    let temporary = || {
        let names = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("forewarn-")).count()
    };
    assert_eq!(temporary(), 1);
    server.signal(rustix::process::Signal::INT);
    assert!(server.end().success());
    assert_eq!(temporary(), 0);
}

/// promise: Z5
#[test]
fn the_strictest_clients_believe_the_certificate() {
    let Some(openssl) = find_or_skip("openssl") else { return };
    let place = Place::new();
    let server = place.dev(&[]);
    fs::write(place.path("ca.pem"), authority_of(&server)).unwrap();
    let at = server.arm().to_string();
    let shown = stdout_of(
        Command::new(&openssl).args(["s_client", "-connect", &at]).stdin(std::process::Stdio::null()),
    );
    let begin = shown.find("-----BEGIN").expect("a certificate");
    let end = shown.find("-----END CERTIFICATE-----").expect("a certificate");
    fs::write(place.path("leaf.pem"), format!("{}-----END CERTIFICATE-----\n", &shown[begin..end])).unwrap();
    let verify = ["verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", "localhost"];
    let mut command = Command::new(&openssl);
    command.args(verify).args(["-CAfile", &place.path("ca.pem"), &place.path("leaf.pem")]);
    assert!(stdout_of(&mut command).ends_with("leaf.pem: OK\n"));
    let text =
        stdout_of(Command::new(&openssl).args(["x509", "-noout", "-text", "-in", &place.path("leaf.pem")]));
    for part in
        ["Authority Key Identifier", "DNS:localhost", "IP Address:127.0.0.1", "IP Address:0:0:0:0:0:0:0:1"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// promise: Z5
#[test]
fn where_things_are_is_told_to_everybody_in_three_shapes() {
    let place = Place::new();
    let server = place.dev(&[]);
    let client = TlsClient::new(server.arm(), &authority_of(&server));
    let base = format!("https://localhost:{}", server.arm().port());
    for (version, pointer) in [
        ("2015-01-01", "/authentication/loginEndpoint"),
        ("2019-05-01", "/0/resourceManager"),
        ("2022-09-01", "/resourceManager"),
    ] {
        let (status, found) = client.get(&format!("{ENDPOINTS}{version}"));
        assert_eq!(status, 200, "{version}");
        assert_eq!(
            found.pointer(pointer).unwrap().as_str().unwrap().trim_end_matches('/'),
            base,
            "{version}"
        );
        let (status, by_operators) = over_http(&server, &format!("{ENDPOINTS}{version}"));
        assert_eq!(
            (status, serde_json::from_str::<Value>(&by_operators).unwrap()),
            (200, found),
            "{version}"
        );
    }
    let (_, aliases) = client.get("/aliases.json");
    assert_eq!(aliases["outputs"]["aliases"]["value"]["Linux"]["UbuntuLTS"]["publisher"], "Canonical");
    assert_eq!(over_http(&server, "/aliases.json").0, 200);
    assert_eq!(over_http(&server, "/_local/ca.pem").1, authority_of(&server));
    let about: Value = serde_json::from_str(&over_http(&server, "/v1/server").1).unwrap();
    assert_eq!(about["arm"], format!("https://{}", server.arm()));
}

/// promise: Z5
#[test]
fn in_dev_everybody_is_let_in_by_both_doors() {
    let place = Place::new();
    let server = place.dev(&[]);
    let path = "/subscriptions?api-version=2022-12-01";
    let client = TlsClient::new(server.arm(), &authority_of(&server));
    let (status, found) = client.get(path);
    assert_eq!(status, 200, "{found}");
    let client = client.with("whatever");
    assert_eq!(client.get(path), (200, found.clone()));
    let (status, in_clear) = over_http(&server, path);
    assert_eq!((status, serde_json::from_str::<Value>(&in_clear).unwrap()), (200, found));
    let (_, tenants) = client.get("/tenants?api-version=2022-12-01");
    assert_eq!(tenants["value"][0]["tenantId"], "f0e4a14d-0000-4000-8000-000000000000");
}

/// promise: S1
#[test]
fn a_browser_and_a_foreign_name_are_refused_here_too() {
    let place = Place::new();
    let server = place.dev(&[]);
    let client = TlsClient::new(server.arm(), &authority_of(&server));
    let line = "GET /subscriptions?api-version=2022-12-01";
    for fields in
        ["Origin: https://evil.example\r\n", "Sec-Fetch-Site: same-origin\r\n", "Host: evil.example\r\n"]
    {
        let (status, body) = client.ask_as("localhost", line, fields, "");
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &body["error"]["code"]), (403, &"Forbidden".into()), "{fields}");
    }
}

/// promise: S1
#[test]
fn a_listener_that_is_off_is_not_there() {
    let place = Place::new();
    let server = TestServer::start(crate::program());
    assert_eq!(over_http(&server, &format!("{ENDPOINTS}2022-09-01")).0, 404);
    assert_eq!(over_http(&server, "/ca.pem").0, 404);
    assert_eq!(over_http(&server, "/subscriptions?api-version=2022-12-01").0, 200, "in clear it is");
    let output = place.command().args(["--api", server.api_url(), "az", "env"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("no listener for Azure clients\n  hint: "), "{said}");
    let quiet = place.serve("");
    for path in ["/aliases.json", "/subscriptions?api-version=2022-12-01"] {
        let nothing = over_http(&quiet, "/nothing");
        assert_eq!(over_http(&quiet, path), nothing, "what nobody asked for is not there at all");
    }
    assert!(!std::path::Path::new(&place.path("data/tls")).exists());
}
