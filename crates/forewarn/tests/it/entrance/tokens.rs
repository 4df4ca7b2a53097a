//! Who gets a token from `forewarn serve`, and what it is good for.

use serde_json::{Value, json};

use crate::entrance::place::Place;
use forewarn_testkit::TestServer;
use forewarn_testkit::tls::TlsClient;

const ARM: &str = "[arm]\nlisten = '127.0.0.1:0'\n";
const SUBSCRIPTIONS: &str = "/subscriptions?api-version=2022-12-01";
const GROUP: &str =
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourcegroups/made?api-version=2024-11-01";

fn client(place: &Place, server: &TestServer) -> TlsClient {
    TlsClient::new(server.arm(), &std::fs::read_to_string(place.path("data/tls/ca.pem")).unwrap())
}

/// What a server gives for a secret.
fn exchange(client: &TlsClient, secret: &str) -> (u16, Value) {
    let form = format!("grant_type=client_credentials&client_id=app&client_secret={secret}");
    client.post_form("/organizations/oauth2/v2.0/token", &form)
}

fn access(client: &TlsClient, secret: &str) -> String {
    let (status, body) = exchange(client, secret);
    assert_eq!(status, 200, "{body}");
    body["access_token"].as_str().unwrap().to_owned()
}

/// promise: Z5
#[test]
fn a_token_of_an_operators_is_exchanged_for_one_that_stands_for_it() {
    let place = Place::new();
    let server = place.serve(ARM);
    let (viewer, admin) = (place.token("look --role viewer"), place.token("make --role admin"));
    let stranger = client(&place, &server);
    let (status, body) = stranger.get(SUBSCRIPTIONS);
    assert_eq!((status, &body["error"]["code"]), (401, &"InvalidAuthenticationToken".into()));
    let signed = access(&stranger, &viewer);
    for bearer in [signed.as_str(), &viewer] {
        let looking = client(&place, &server).with(bearer);
        assert_eq!(looking.get(SUBSCRIPTIONS).0, 200, "the signed one, or the token itself");
        let (status, body) = looking.put(GROUP, &json!({ "location": "local" }));
        assert_eq!(status, 403, "it is for looking: {body}");
    }
    let making = client(&place, &server).with(&access(&stranger, &admin));
    assert_eq!(making.put(GROUP, &json!({ "location": "local" })).0, 201);
    let told = place.out(&["audit", "ls", "--output", "json"]);
    assert!(told.contains("token make"), "the trail says whose token it was: {told}");
    assert!(!told.contains(&signed) && !server.log().contains(&signed), "nobody reads it there");
}

/// promise: Z5
#[test]
fn it_is_good_until_its_token_is_revoked_and_survives_the_server() {
    let place = Place::new();
    let server = place.serve(ARM);
    let text = place.token("ci --role operator");
    let signed = access(&client(&place, &server), &text);
    server.kill();
    let server = place.serve(ARM);
    let ours = client(&place, &server).with(&signed);
    assert_eq!(ours.get(SUBSCRIPTIONS).0, 200, "the key is kept");
    place.out(&["token", "delete", "ci"]);
    assert_eq!(ours.get(SUBSCRIPTIONS).0, 401, "at once");
    assert_eq!(exchange(&ours, &text).0, 401);
    place.token("ci --role operator");
    assert_eq!(ours.get(SUBSCRIPTIONS).0, 401, "another one of that name is another one");
}

/// promise: Z5
#[test]
fn what_nobody_signed_and_what_somebody_else_signed_is_refused() {
    let (place, other) = (Place::new(), Place::new());
    let (server, stranger) = (place.serve(ARM), other.serve(ARM));
    let text = place.token("ci --role admin");
    let foreign = other.token("ci --role admin");
    let signed = access(&client(&place, &server), &text);
    let signed_elsewhere = access(&client(&other, &stranger), &foreign);
    let (head, _) = signed.rsplit_once('.').unwrap();
    let changed = signed.replace('.', ".e");
    for bearer in [&signed_elsewhere, &foreign, &format!("{head}."), &changed, "x", "", "fwt_1_0"] {
        assert_eq!(client(&place, &server).with(bearer).get(SUBSCRIPTIONS).0, 401, "{bearer}");
    }
    assert_eq!(client(&place, &server).with(&signed).get(SUBSCRIPTIONS).0, 200);
    for secret in ["", "x", &foreign, &signed] {
        let (status, body) = exchange(&client(&place, &server), secret);
        assert_eq!((status, &body["error"]), (401, &"invalid_client".into()), "{secret}");
    }
}

#[test]
fn names_in_the_settings_are_read_again_and_so_is_the_certificate() {
    let place = Place::new();
    let server = place.serve("[arm]\nlisten = '127.0.0.1:0'\nhost_names = ['azure.internal']\n");
    let ours = client(&place, &server);
    let ask = |name: &str| ours.ask_as(name, "GET /aliases.json", "", "").0;
    assert_eq!((ask("localhost"), ask("azure.internal")), (200, 200));
    let text = std::fs::read_to_string(place.path("config.toml")).unwrap();
    std::fs::write(place.path("config.toml"), text.replace("azure.internal", "other.internal")).unwrap();
    server.signal(rustix::process::Signal::HUP);
    forewarn_testkit::wait_until("the settings are read again", || {
        server.log().contains("changed=\"arm.host_names\"").then_some(())
    });
    assert_eq!(ask("other.internal"), 200, "the certificate has it, and so does the gate");
    let fields = "Host: azure.internal\r\n";
    assert_eq!(ours.ask_as("localhost", "GET /aliases.json", fields, "").0, 403);
}
