//! Answers of a server, written down and compared.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::access::place::Request;
use forewarn_testkit::arm::{NEW, SUBSCRIPTION};
use forewarn_testkit::{RawResponse, TestServer, ask, get, wait_until};

/// The clusters of the fixture.
pub(super) const CLUSTERS: [&str; 3] = ["default", "north", "south"];

/// Tenants with a machine that has read its document, so that reading it again changes nothing.
const ENROLLED: [&str; 8] = [
    "web/web_0",
    "db/db-0",
    "shop/FrontEnd_IN_0",
    "solo/solo",
    "north/alpha/alpha",
    "north/api/api_0",
    "north/vm-n/vm-n",
    "south/gamma/gamma",
];

const DOCUMENT: &str = "/metadata/scheduledevents?api-version=2020-07-01";
const FIRST_DOCUMENT: &str = "/metadata/scheduledevents?api-version=2017-03-01";
const INSTANCE: &str = "/metadata/instance?api-version=2021-02-01";

/// The endpoint that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Operator,
    Machine,
    Arm,
}

impl Endpoint {
    /// The file with its answers.
    fn file(self) -> &'static str {
        match self {
            Self::Operator => "operator.json",
            Self::Machine => "machines.json",
            Self::Arm => "arm.json",
        }
    }

    fn ask(self, server: &TestServer, target: &str) -> RawResponse {
        match self {
            Self::Operator | Self::Arm => send(server, &format!("GET {target}"), "", ""),
            Self::Machine => ask(server.metadata(), &get(target)).unwrap(),
        }
    }
}

pub(super) fn send(server: &TestServer, line: &str, headers: &str, body: &str) -> RawResponse {
    Request { line, headers, body, token: None }.send(server)
}

/// The answer to a GET as it is written down. The address of the server is another one at each start.
fn answer(server: &TestServer, endpoint: Endpoint, target: &str) -> Value {
    let answer = endpoint.ask(server, target);
    let text = answer.body.replace(&server.api().to_string(), "SERVER");
    // Documents are compared byte for byte.
    let body = match endpoint {
        Endpoint::Machine => Value::from(text),
        Endpoint::Operator | Endpoint::Arm => serde_json::from_str(&text).unwrap_or(Value::from(text)),
    };
    json!({ "target": target, "status": answer.status(), "body": numbered(target, body) })
}

/// A page of the audit log with numbers for entries. The entries are in the export, once.
fn numbered(target: &str, mut body: Value) -> Value {
    if target.starts_with("/v1/audit?") {
        for entry in body["items"].as_array_mut().unwrap() {
            *entry = entry["number"].clone();
        }
    }
    body
}

/// Writes down the answers to everything that can be asked.
pub(super) fn record(server: &TestServer, directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    for (endpoint, targets) in targets(server) {
        let answers: Vec<_> = targets.iter().map(|target| answer(server, endpoint, target)).collect();
        let refused = answers.iter().find(|answer| answer["status"] != 200);
        assert_eq!(refused, None, "nothing is asked that is not there");
        write(&directory.join(endpoint.file()), &answers);
    }
    fs::write(directory.join("audit.ndjson"), server.run(&["audit", "export", "-"])).unwrap();
}

/// One answer in each line: a difference between two versions of the file is readable.
pub(super) fn write(file: &Path, items: &[Value]) {
    let lines: Vec<_> = items.iter().map(Value::to_string).collect();
    fs::write(file, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
}

pub(super) fn read(file: &Path) -> Vec<Value> {
    serde_json::from_slice(&fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())))
        .unwrap()
}

/// Compares the pages of the audit log of a server, entry by entry, with an export.
pub(super) fn compare_entries(server: &TestServer, export: &str) {
    let lines: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for query in ["", "&cluster=default", "&cluster=north", "&cluster=south", "&tenant=alpha"] {
        let page = send(server, &format!("GET /v1/audit?order=oldest&limit=1000{query}"), "", "");
        let page: Value = serde_json::from_str(&page.body).unwrap();
        for entry in page["items"].as_array().unwrap() {
            let number = entry["number"].as_u64().unwrap();
            if let Some(line) = lines.iter().find(|line| line["number"] == number) {
                assert_eq!(entry, line, "{query}");
            }
        }
    }
}

/// Compares the answers of a server with those that are written down; gives their number.
pub(super) fn compare(server: &TestServer, directory: &Path) -> usize {
    let mut compared = 0;
    // Operators first: a machine that reads its document leaves the time of that.
    for endpoint in [Endpoint::Operator, Endpoint::Arm, Endpoint::Machine] {
        for expected in read(&directory.join(endpoint.file())) {
            let target = expected["target"].as_str().unwrap();
            let wanted = by_meaning(target, &expected);
            if target.starts_with("/v1/webhooks") {
                // A webhook has its state as soon as the server has tried to reach it.
                wait_until(&format!("{target} is {wanted}"), || {
                    (by_meaning(target, &answer(server, endpoint, target)) == wanted).then_some(())
                });
            }
            assert_eq!(
                by_meaning(target, &answer(server, endpoint, target)),
                wanted,
                "{endpoint:?} {target}"
            );
            compared += 1;
        }
    }
    compared
}

/// An answer without what may differ between the server that wrote the fixture and this one, although nothing is lost. This
/// is the complete list; everything else is compared as it is.
///
/// | normalised | why |
/// |---|---|
/// | `error` of a webhook | it is that of the last attempt of this process |
/// | `failing_since` of a webhook without a handshake | it is that of this process |
/// | `next` of a page of the audit log | a cursor has no meaning outside: only its presence is compared |
/// | `head`, `swept` of a page of the audit log | were numbers; `swept` is absent if nothing was deleted |
/// | `next`, `swept` of an explanation | `next` as above; `swept` was a number, and is true if entries were deleted |
/// | `vmSize` in the metadata of a machine | was the same for all; now it is that of the body of Azure clients |
/// | conditions of a start in `coming` of an explanation | were computed from the event alone; now the rules decide them |
/// | `last_entry` of a webhook | was one number; now there is one per cluster, where its messages go on: `goes_on` tests it |
/// | `schema`, `key` of a webhook | is called `format` now; is new, and false |
/// | `enrolment` of the settings | is new; an old cluster has its default |
fn by_meaning(target: &str, answer: &Value) -> Value {
    let mut answer = answer.clone();
    let body = &mut answer["body"];
    if target.starts_with("/v1/webhooks") {
        match body.get_mut("items").and_then(Value::as_array_mut) {
            Some(items) => items.iter_mut().for_each(normalise_webhook),
            None => normalise_webhook(body),
        }
    }
    if target.starts_with("/v1/settings") && body["enrolment"] == "on-first-poll" {
        body.as_object_mut().unwrap().remove("enrolment");
    }
    if target.contains("/metadata/instance")
        && let Some(text) = body.as_str()
    {
        *body = text.replace("Standard_D2s_v3", "Standard_D2s_v5").into();
    }
    if target.starts_with("/v1/audit") {
        cursors_as_text(body);
    }
    if target.contains("/explanation") {
        let swept = body.get("swept").and_then(Value::as_u64).map(|number| number > 0);
        swept.into_iter().for_each(|swept| body["swept"] = swept.into());
        body.get_mut("coming")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .for_each(without_conditions);
    }
    if (target.starts_with("/v1/audit") || target.contains("/explanation"))
        && let Some(next) = body.get_mut("next")
    {
        *next = (!next.is_null()).into();
    }
    answer
}

/// Removes the conditions of a start from the text of upcoming work.
fn without_conditions(coming: &mut Value) {
    let text = coming["text"].as_str().unwrap();
    let begins = ["; it starts as soon as ", "; it is due as soon as ", "; as soon as "];
    if let Some(at) = begins.iter().find_map(|begin| text.find(begin)) {
        coming["text"] = text[..at].into();
    }
}

fn normalise_webhook(webhook: &mut Value) {
    let members = webhook.as_object_mut().unwrap();
    members.remove("error");
    if members["state"] == "unconfirmed" {
        members.remove("failing_since");
    }
    if let Some(schema) = members.remove("schema") {
        members.insert("format".to_owned(), schema);
    }
    members.remove("key").into_iter().for_each(|key| assert_eq!(key, false));
    ["last_entry", "last_entries"].iter().for_each(|key| drop(members.remove(*key)));
}

fn cursors_as_text(page: &mut Value) {
    let Some(members) = page.as_object_mut() else { return };
    for cursor in ["head", "swept"] {
        let number = members.get(cursor).and_then(Value::as_u64);
        number
            .into_iter()
            .for_each(|number| drop(members.insert(cursor.to_owned(), number.to_string().into())));
    }
    if members.get("swept").is_some_and(|swept| swept == "0") {
        members.remove("swept");
    }
}

/// Everything that can be asked.
fn targets(server: &TestServer) -> [(Endpoint, Vec<String>); 3] {
    [
        (Endpoint::Operator, operator_targets(server)),
        (Endpoint::Arm, arm_targets(server)),
        (Endpoint::Machine, machine_targets(server)),
    ]
}

/// A member of each item of a list.
fn column(server: &TestServer, target: &str, list: &str, member: &str) -> Vec<String> {
    let shown = answer(server, Endpoint::Operator, target);
    let items = shown["body"][list].as_array().unwrap_or_else(|| panic!("{target}: {shown}")).clone();
    items
        .iter()
        .map(|item| item[member].as_str().map_or_else(|| item[member].to_string(), str::to_owned))
        .collect()
}

fn operator_targets(server: &TestServer) -> Vec<String> {
    let mut all: Vec<_> =
        ["clusters", "tokens", "webhooks", "clock"].map(|name| format!("/v1/{name}")).into();
    for list in ["clusters", "tokens", "webhooks"] {
        let names = column(server, &format!("/v1/{list}"), "items", "name");
        all.extend(names.iter().map(|name| format!("/v1/{list}/{name}")));
    }
    let pages = [
        "limit=1000",
        "limit=1000&order=oldest",
        "limit=7",
        "limit=7&order=oldest",
        "kind=command&by=anyone",
    ];
    all.extend(pages.map(|query| format!("/v1/audit?{query}")));
    for cluster in CLUSTERS {
        let of =
            |path: &str| format!("/v1/{path}{}cluster={cluster}", if path.contains('?') { '&' } else { '?' });
        let lists = [
            "hosts",
            "machines",
            "tenants",
            "events",
            "rollouts",
            "fleet",
            "settings",
            "brake",
            "site",
            "unfinished",
        ];
        all.extend(lists.map(of));
        all.push(of("audit?limit=1000"));
        for name in column(server, &of("hosts"), "items", "name") {
            all.push(of(&format!("audit?host={name}")));
        }
        for name in column(server, &of("tenants"), "items", "name") {
            let parts = ["/document", "/policy"];
            all.extend(parts.map(|part| of(&format!("tenants/{name}{part}"))));
            all.push(of(&format!("audit?tenant={name}")));
        }
        for machine in machines(server, cluster) {
            all.push(of(&format!("machines/{machine}/explanation")));
        }
        for id in column(server, &of("events"), "items", "id") {
            all.push(of(&format!("events/{id}")));
            all.push(of(&format!("events/{id}/explanation")));
            all.push(of(&format!("audit?event={id}")));
        }
        for id in column(server, &of("rollouts"), "items", "id") {
            all.push(of(&format!("rollouts/{id}")));
        }
    }
    all.extend(
        ["web?cluster=default", "api?cluster=north"]
            .map(|set| set.replace('?', "/explanation?"))
            .map(|set| format!("/v1/scalesets/{set}")),
    );
    all
}

/// `tenant/name` of each machine.
fn machines(server: &TestServer, cluster: &str) -> Vec<String> {
    let list = format!("/v1/machines?cluster={cluster}");
    let tenants = column(server, &list, "items", "tenant");
    let names = column(server, &list, "items", "name");
    tenants.iter().zip(names).map(|(tenant, name)| format!("{tenant}/{name}")).collect()
}

fn machine_targets(server: &TestServer) -> Vec<String> {
    let mut all = Vec::new();
    for cluster in CLUSTERS {
        for machine in machines(server, cluster) {
            // Machines of the first cluster are known by tenant and name alone.
            let cluster = if cluster == "default" { String::new() } else { format!("{cluster}/") };
            all.push(format!("/vm/{cluster}{machine}{INSTANCE}"));
        }
    }
    for machine in ENROLLED {
        all.extend([DOCUMENT, FIRST_DOCUMENT].map(|document| format!("/vm/{machine}{document}")));
    }
    all
}

fn arm_targets(server: &TestServer) -> Vec<String> {
    let groups = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups");
    let mut all =
        vec![format!("/subscriptions?api-version=2022-12-01"), format!("{groups}?api-version=2024-11-01")];
    let names = column(server, &format!("{groups}?api-version=2024-11-01"), "value", "name");
    all.extend(names.iter().map(|name| format!("{groups}/{name}?api-version=2024-11-01")));
    all.extend(names.iter().map(|name| format!("{groups}/{name}/resources?api-version=2024-11-01")));
    for kind in ["virtualMachines", "virtualMachineScaleSets", "availabilitySets"] {
        let version = format!("api-version={NEW}");
        all.push(format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/{kind}?{version}"));
        for group in &names {
            let list = format!("{groups}/{group}/providers/Microsoft.Compute/{kind}");
            for name in column(server, &format!("{list}?{version}"), "value", "name") {
                // The machines themselves are in the list of the subscription.
                let part = match kind {
                    "virtualMachines" => "/instanceView",
                    "virtualMachineScaleSets" => "/virtualMachines",
                    _ => "",
                };
                all.push(format!("{list}/{name}{part}?{version}"));
            }
        }
    }
    all
}
