//! Every route, for everybody.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::access::place::{Place, Request, json, read};
use forewarn_testkit::wait_until;

/// One kind of request, and what is answered to a viewer, an operator, an admin, an admin of `west`, and an operator of `web`.
struct Row(&'static str, &'static str, &'static str, [u16; 5]);

/// A table of everything that can be asked for. Both clusters have the same names, so that all of them ask for the same.
const TABLE: &[Row] = &[
    Row("GET /v1/hosts", "", "", [200, 200, 200, 200, 403]),
    Row("GET /v1/hosts/{name}", "/v1/hosts/h1", "", [200, 200, 200, 200, 403]),
    Row("GET /v1/machines", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/machines/{name}", "/v1/machines/web_0", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/machines/{tenant}/{name}", "/v1/machines/web/web_0", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/tenants", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/tenants/{name}", "/v1/tenants/web", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/tenants/{name}/document", "/v1/tenants/web/document", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/tenants/{name}/policy", "/v1/tenants/web/policy", "", [200, 200, 200, 200, 200]),
    Row("PUT /v1/tenants/{name}/policy", "/v1/tenants/web/policy", "{}", [403, 403, 200, 200, 403]),
    Row("GET /v1/scalesets", "", "", [200, 200, 200, 200, 200]),
    Row("POST /v1/scalesets", "", r#"{"name":"front"}"#, [403, 403, 409, 409, 403]),
    Row("GET /v1/scalesets/{name}", "/v1/scalesets/front", "", [200, 200, 200, 200, 403]),
    Row(
        "GET /v1/scalesets/{name}/explanation",
        "/v1/scalesets/front/explanation",
        "",
        [200, 200, 200, 200, 403],
    ),
    Row("PATCH /v1/scalesets/{name}", "/v1/scalesets/front", "{}", [403, 403, 200, 200, 403]),
    Row(
        "POST /v1/scalesets/{name}/scale",
        "/v1/scalesets/front/scale",
        r#"{"capacity":0}"#,
        [403, 200, 200, 200, 403],
    ),
    Row(
        "POST /v1/scalesets/{name}/upgrade",
        "/v1/scalesets/front/upgrade",
        r#"{"instances":"all"}"#,
        [403, 200, 200, 200, 403],
    ),
    Row(
        "POST /v1/scalesets/{name}/delete-instances",
        "/v1/scalesets/front/delete-instances",
        r#"{"instances":["front_0"]}"#,
        [403, 404, 404, 404, 403],
    ),
    Row("GET /v1", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/availabilitysets", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/availabilitysets/{name}", "/v1/availabilitysets/web", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/cloudservices", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/cloudservices/{name}", "/v1/cloudservices/web", "", [404, 404, 404, 404, 403]),
    Row("GET /v1/events", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/events/{id}", NO_EVENT, "", [404, 404, 404, 404, 403]),
    Row("GET /v1/events/{id}/explanation", NO_EXPLANATION, "", [404, 404, 404, 404, 403]),
    Row("GET /v1/machines/{name}/explanation", "/v1/machines/web_0/explanation", "", [200; 5]),
    Row("GET /v1/machines/{tenant}/{name}/explanation", "/v1/machines/web/web_0/explanation", "", [200; 5]),
    Row("GET /v1/audit", "", "", [200; 5]),
    Row("GET /v1/audit/export", "", "", [200, 200, 200, 403, 403]),
    Row("GET /v1/rollouts", "", "", [200, 200, 200, 200, 403]),
    Row("GET /v1/rollouts/{id}", "/v1/rollouts/7", "", [404, 404, 404, 404, 403]),
    Row("POST /v1/rollouts/preview", "", PREVIEW, [200, 200, 200, 200, 403]),
    Row("POST /v1/commands", "", r#"{"command":"start","machine":"web_0"}"#, [403, 200, 200, 200, 200]),
    Row("GET /v1/unfinished", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/watch", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/fleet", "", "", [200, 200, 200, 200, 403]),
    Row("POST /v1/fleet", "/v1/fleet?dry_run=true", "{}", [403, 403, 200, 200, 403]),
    Row("GET /v1/site", "", "", [200, 200, 200, 200, 403]),
    Row("PATCH /v1/site", "", "{}", [403, 403, 200, 200, 403]),
    Row("GET /v1/settings", "", "", [200, 200, 200, 200, 403]),
    Row("PATCH /v1/settings", "", "{}", [403, 403, 200, 200, 403]),
    Row("GET /v1/brake", "", "", [200, 200, 200, 200, 403]),
    Row("PUT /v1/brake", "", r#"{"brake":"off"}"#, [403, 200, 200, 200, 403]),
    Row("GET /v1/clock", "", "", [200, 200, 200, 200, 200]),
    Row("POST /v1/clock", "", r#"{"clock":"freeze"}"#, [403, 409, 409, 403, 403]),
    Row("GET /v1/clusters", "", "", [200, 200, 200, 200, 200]),
    Row("POST /v1/clusters", "", r#"{"name":"west"}"#, [403, 403, 409, 403, 403]),
    Row("GET /v1/clusters/{name}", "/v1/clusters/default", "", [200, 200, 200, 404, 200]),
    Row("PATCH /v1/clusters/{name}", "/v1/clusters/west", r#"{"name":"west"}"#, [403, 403, 200, 403, 403]),
    Row("DELETE /v1/clusters/{name}", "/v1/clusters/west", "", [403, 403, 409, 403, 403]),
    Row(
        "POST /v1/clusters/{name}/move",
        "/v1/clusters/west/move",
        r#"{"to":"one"}"#,
        [403, 409, 409, 403, 403],
    ),
    Row("GET /v1/servers", "", "", [409, 409, 409, 403, 403]),
    Row("GET /v1/servers/{name}", "/v1/servers/one", "", [409, 409, 409, 403, 403]),
    Row(
        "PUT /v1/servers/{name}/drain",
        "/v1/servers/one/drain",
        r#"{"drain":"on"}"#,
        [403, 409, 409, 403, 403],
    ),
    Row("DELETE /v1/servers/{name}", "/v1/servers/one", "", [403, 403, 409, 403, 403]),
    Row("GET /v1/realm", "", "", [409, 409, 409, 403, 403]),
    Row("PUT /v1/realm/format", "", r#"{"format":1}"#, [403, 403, 409, 403, 403]),
    Row("GET /v1/tokens", "", "", [403, 403, 200, 403, 403]),
    Row("POST /v1/tokens", "", r#"{"name":"viewer","role":"viewer"}"#, [403, 403, 409, 403, 403]),
    Row("GET /v1/tokens/{name}", "/v1/tokens/viewer", "", [403, 403, 200, 403, 403]),
    Row("DELETE /v1/tokens/{name}", "/v1/tokens/nobody", "", [403, 403, 404, 403, 403]),
    Row("GET /v1/webhooks", "", "", [200, 200, 200, 403, 403]),
    Row("POST /v1/webhooks", "", IN_THE_CLEAR, [403, 403, 409, 403, 403]),
    Row("GET /v1/webhooks/{name}", "/v1/webhooks/nobody", "", [404, 404, 404, 403, 403]),
    Row("DELETE /v1/webhooks/{name}", "/v1/webhooks/nobody", "", [403, 403, 404, 403, 403]),
    Row("POST /v1/webhooks/{name}/test", "/v1/webhooks/nobody/test", "{}", [403, 403, 404, 403, 403]),
    Row("GET /v1/backup", "", "", [403, 403, 200, 403, 403]),
    Row("POST /v1/reset", "", "", [403, 403, 409, 403, 403]),
    Row("GET /v1/state", "", "", [403, 403, 409, 403, 403]),
    Row("PUT /v1/state", "", "{}", [403, 403, 400, 403, 403]),
    Row("GET /v1/faults", "", "", [409, 409, 409, 409, 403]),
    Row("POST /v1/faults", "", r#"{"machine":"web_0","answer":"500"}"#, [403, 409, 409, 409, 403]),
    Row("DELETE /v1/faults", "", "", [403, 409, 409, 409, 403]),
    Row("GET /v1/faults/{id}", "/v1/faults/1", "", [409, 409, 409, 409, 403]),
    Row("DELETE /v1/faults/{id}", "/v1/faults/1", "", [403, 409, 409, 409, 403]),
    Row("GET /v1/stories", "", "", [409; 5]),
    Row("POST /v1/stories/run", "", r#"{"story":"host h1"}"#, [409; 5]),
    Row("GET /v1/server", "", "", [200, 200, 200, 200, 200]),
    Row("GET /v1/caller", "", "", [200; 5]),
    Row("GET /metrics", "", "", [200, 200, 200, 403, 403]),
    Row("GET /v1/openapi.json", "", "", FREE),
    Row("GET /healthz", "", "", FREE),
    Row("GET /readyz", "", "", FREE),
];

/// A body that changes nothing.
const PREVIEW: &str = r#"{"kind":"update","hosts":["h1"]}"#;

/// A webhook that is refused, and so asks nobody anything.
const IN_THE_CLEAR: &str = r#"{"name":"ops","url":"http://hooks.example/","authorization":"secret"}"#;

const NO_EVENT: &str = "/v1/events/00000000-0000-0000-0000-000000000000";

const NO_EXPLANATION: &str = "/v1/events/00000000-0000-0000-0000-000000000000/explanation";

/// For everybody, with a token or without.
const FREE: [u16; 5] = [200; 5];

impl Row {
    /// Method and target.
    fn line(&self) -> String {
        let Self(route, target, ..) = self;
        let (method, path) = route.split_once(' ').unwrap();
        format!("{method} {}", if target.is_empty() { path } else { target })
    }
}

/// promise: S2
#[test]
fn every_route_is_for_whom_it_is_said_to_be() {
    let place = Place::new();
    let server = place.start();
    place.add_west();
    let expired = place.token("expired --role admin --expires 1s");
    let revoked = place.token("revoked --role admin");
    let holders = [
        "viewer --role viewer",
        "operator --role operator",
        "admin --role admin",
        "west --role admin --cluster west",
        "web --role operator --tenant web",
    ];
    let tokens = holders.map(|words| place.token(words));
    place.out(&["token", "delete", "revoked"]);
    let wrong =
        format!("{}{}", &tokens[2][..tokens[2].len() - 1], if tokens[2].ends_with('0') { '1' } else { '0' });
    wait_until("the token expires", || (read(&server, &expired, "/v1/clock").status() == 401).then_some(()));
    let expired_answer = json(&read(&server, &expired, "/v1/clock"));
    assert!(expired_answer["detail"].as_str().unwrap().starts_with("the token has expired: expired\n"));

    let document = json(&read(&server, &tokens[2], "/v1/openapi.json"));
    let served: BTreeSet<String> = routes(&document);
    let told: BTreeSet<String> = TABLE.iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(served, told, "the table above has to have every route, and no other");

    let strangers = [None, Some(wrong.as_str()), Some(&expired), Some(&revoked), Some("")];
    let mut problems = Vec::new();
    for row in TABLE {
        let Row(route, _, body, statuses) = row;
        let line = row.line();
        let mut check = |who: &str, token: Option<&str>, expected: u16| {
            let answer = Request { line: &line, token, body, ..Request::default() }.send(&server);
            if answer.status() != expected {
                problems.push(format!(
                    "{route} for {who}: {} instead of {expected}: {}",
                    answer.status(),
                    answer.body
                ));
            }
        };
        for (number, token) in strangers.into_iter().enumerate() {
            let is_free = *statuses == FREE && !needs_token(&document, route);
            check(&format!("stranger {number}"), token, if is_free { 200 } else { 401 });
        }
        for ((holder, token), expected) in holders.iter().zip(&tokens).zip(statuses) {
            check(holder, Some(token), *expected);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Every route of the document.
fn routes(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(|method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

fn needs_token(document: &Value, route: &str) -> bool {
    let (method, path) = route.split_once(' ').unwrap();
    let security = &document["paths"][path][method.to_lowercase()]["security"];
    !security.as_array().unwrap().is_empty()
}

/// promise: C2
#[test]
fn every_change_says_how_it_can_be_repeated_and_edited() {
    let place = Place::new();
    let server = place.start();
    let document = json(&read(&server, &place.token("any --role viewer"), "/v1/openapi.json"));
    // Faults are not stored, and a key would not outlive the replacement of a state. Orders about the servers of a realm
    // are no changes of a stream, and may be repeated.
    let without_receipts = [
        "/v1/reset",
        "/v1/state",
        "/v1/faults",
        "/v1/faults/{id}",
        "/v1/clusters/{name}/move",
        "/v1/servers/{name}",
        "/v1/servers/{name}/drain",
        "/v1/realm/format",
    ];
    for Row(route, ..) in TABLE {
        let (method, path) = route.split_once(' ').unwrap();
        let is_kept = !without_receipts.contains(&path);
        let operation = &document["paths"][path][method.to_lowercase()];
        let parameters = operation["parameters"].as_array().unwrap();
        let has = |name: &str| parameters.iter().any(|one| one["name"] == name && one["in"] == "header");
        let answers = |status: &str| !operation["responses"][status].is_null();
        let is_question =
            ["POST /v1/rollouts/preview", "POST /v1/stories/run", "POST /v1/webhooks/{name}/test"]
                .contains(route);
        let is_change = method != "GET" && !is_question && is_kept;
        let is_edit = ["PUT", "PATCH", "DELETE"].contains(&method) && is_kept;
        assert_eq!((has("Idempotency-Key"), answers("422")), (is_change, is_change), "{route}");
        assert_eq!(has("If-Match"), answers("412"), "{route}");
        assert!(!is_edit || has("If-Match"), "{route}");
        assert_eq!(has("If-None-Match"), answers("304"), "{route}");
        // The age of a heartbeat is another one in each response.
        let is_item = path.ends_with('}') && path != "/v1/servers/{name}";
        let is_one = is_item || ["/v1/settings", "/v1/site", "/v1/brake"].contains(&path);
        assert_eq!(has("If-None-Match"), method == "GET" && (is_one || has("If-None-Match")), "{route}");
        assert!(method != "GET" || !is_one || has("If-None-Match"), "{route}");
    }
}
