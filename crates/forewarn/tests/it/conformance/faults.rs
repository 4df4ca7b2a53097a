//! One fault for each check.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forewarn_imds::{parse_date, print_date};
use forewarn_types::Timestamp;
use serde_json::{Value, json};

use super::proxy::{Answered, Asked, Fault};

/// A fault, the check that must notice it, and other checks that notice it too.
pub(super) struct Broken {
    pub(super) check: &'static str,
    pub(super) also: &'static [&'static str],
    pub(super) fault: Fault,
}

type Server<'a> = &'a dyn Fn(&Asked) -> Answered;

fn broken(
    check: &'static str,
    fault: impl Fn(&Asked, Server<'_>) -> Answered + Send + Sync + 'static,
) -> Broken {
    Broken { check, also: &[], fault: Arc::new(fault) }
}

/// A fault that other checks notice too.
fn felt(also: &'static [&'static str], broken: Broken) -> Broken {
    Broken { also, ..broken }
}

/// A fault in the requests that match: the server never sees them, and they have this status.
fn answered(check: &'static str, status: u16, matches: fn(&Asked) -> bool) -> Broken {
    broken(check, move |asked, server| {
        let body = if status == 200 { "" } else { "{\"error\":\"broken\"}" };
        if matches(asked) { Answered::new(status, body) } else { server(asked) }
    })
}

/// A fault in the requests that match: the server sees another request.
fn changed(check: &'static str, matches: fn(&Asked) -> bool, change: fn(&Asked) -> Asked) -> Broken {
    broken(check, move |asked, server| if matches(asked) { server(&change(asked)) } else { server(asked) })
}

/// A fault in the responses to requests that match.
fn spoilt(check: &'static str, matches: fn(&Asked) -> bool, spoil: fn(Answered) -> Answered) -> Broken {
    broken(check, move |asked, server| {
        let answered = server(asked);
        if matches(asked) { spoil(answered) } else { answered }
    })
}

/// A fault in every document.
fn document(check: &'static str, change: fn(&Asked, &mut Value)) -> Broken {
    broken(check, move |asked, server| {
        let answered = server(asked);
        if asked.is_poll() && answered.status == 200 {
            answered.with_document(|document| change(asked, document))
        } else {
            answered
        }
    })
}

/// A fault in every event.
fn event(check: &'static str, change: fn(&mut Value)) -> Broken {
    broken(check, move |asked, server| {
        let answered = server(asked);
        if !asked.is_poll() || answered.status != 200 {
            return answered;
        }
        answered.with_document(|document| events(document).iter_mut().for_each(change))
    })
}

/// A fault in every event of the newest edition.
fn newest_event(check: &'static str, change: fn(&mut Value)) -> Broken {
    let Broken { fault, .. } = event(check, change);
    broken(check, move |asked, server| if asked.names(NEWEST) { fault(asked, server) } else { server(asked) })
}

fn events(document: &mut Value) -> &mut Vec<Value> {
    document["Events"].as_array_mut().unwrap()
}

const NEWEST: &str = "2020-07-01";

fn newest(asked: &Asked) -> Asked {
    let path = asked.target.split(['?', '%']).next().unwrap_or_default().to_owned();
    asked.at(&format!("{path}?api-version={NEWEST}"))
}

/// Faults in the handling of requests.
pub(super) fn of_requests() -> Vec<Broken> {
    let has_no_header = |asked: &Asked| !asked.has("metadata");
    vec![
        changed(
            "metadata-header-required",
            |asked| asked.is_poll() && asked.names(NEWEST) && !asked.has("metadata"),
            |asked| asked.with("metadata", Some("true")),
        ),
        spoilt("metadata-header-error", has_no_header, |answered| match answered.status {
            400 => Answered::new(400, "{\"error\":\"no header\"}"),
            _ => answered,
        }),
        answered("metadata-header-case", 400, |asked| asked.field("metadata") == Some("True")),
        answered("metadata-header-first", 404, |asked| {
            !asked.target.contains("/metadata") && !asked.has("metadata")
        }),
        answered("preview-without-header", 400, |asked| {
            asked.is_poll() && asked.names("2017-03-01") && !asked.has("metadata")
        }),
        answered("editions-served", 404, |asked| asked.is_poll() && asked.names("2019-04-01")),
        changed("version-required", |asked| asked.target.ends_with("/scheduledevents"), newest),
        changed("version-unknown", |asked| asked.names("latest"), newest),
        spoilt(
            "version-error",
            |asked| asked.names("latest"),
            |_| Answered::new(400, "{\"error\":\"version\"}"),
        ),
        changed("parameter-twice", |asked| asked.target.matches("api-version").count() == 2, newest),
        changed(
            "forwarded-refused",
            |asked| asked.has("x-forwarded-for"),
            |asked| asked.with("x-forwarded-for", None),
        ),
        changed("proxy-headers-refused", |asked| asked.has("via"), |asked| asked.with("via", None)),
        changed(
            "host-name-refused",
            |asked| asked.field("host") == Some("metadata.site.example"),
            |asked| asked.with("host", Some("localhost")),
        ),
        answered("path-unknown", 400, |asked| asked.target.contains("/metadata/nothing")),
        answered("path-outside", 400, |asked| {
            asked.target.contains("/nothing") && !asked.target.contains("/metadata")
        }),
        answered("path-case", 404, |asked| asked.target.contains("/metadata/scheduledEvents")),
        answered("path-encoded", 404, |asked| asked.target.contains("%3F")),
        answered("path-slash", 404, |asked| asked.target.contains("/scheduledevents/")),
        answered("method-refused", 405, |asked| asked.method == "PUT"),
        answered("head-refused", 200, |asked| asked.method == "HEAD"),
        spoilt("content-type", Asked::is_poll, |answered| answered.with("content-type", Some("text/json"))),
        spoilt("server-names-imds", |_| true, |answered| answered.with("server", Some("mock"))),
        spoilt("date-present", |_| true, |answered| answered.with("date", None)),
        changed(
            "etag-matched",
            |asked| asked.has("if-none-match"),
            |asked| asked.with("if-none-match", None),
        ),
        felt(
            &["version-error"],
            spoilt("error-json", |asked| asked.names("latest"), |_| Answered::new(400, "no")),
        ),
    ]
}

/// Faults in documents.
pub(super) fn of_documents() -> Vec<Broken> {
    vec![
        document("document-keys", |_, document| document["More"] = json!(1)),
        spoilt(
            "document-compact",
            |asked| asked.is_poll() && asked.has("metadata"),
            |answered| {
                let pretty =
                    serde_json::from_slice::<Value>(&answered.body).map(|document| format!("{document:#}"));
                Answered { body: pretty.unwrap_or_default().into_bytes(), ..answered }
            },
        ),
        document("incarnation-number", |_, document| {
            document["DocumentIncarnation"] = json!(document["DocumentIncarnation"].to_string());
        }),
        document("incarnation-of-all-editions", |asked, document| {
            let more = u64::from(asked.names("2019-08-01"));
            document["DocumentIncarnation"] = json!(document["DocumentIncarnation"].as_u64().unwrap() + more);
        }),
        counted("incarnation-unchanged", |count, document| {
            events(document).iter_mut().for_each(|event| event["Description"] = json!(format!("{count}")));
        }),
        document("incarnation-grows", |_, document| {
            document["DocumentIncarnation"] = json!(document["DocumentIncarnation"].as_u64().unwrap() * 10);
        }),
        document("event-keys", |asked, document| {
            for event in events(document).iter_mut().filter(|_| asked.names(NEWEST)) {
                let id = event.as_object_mut().unwrap().shift_remove("EventId").unwrap();
                event["EventId"] = id;
            }
        }),
        document("event-fields-of-edition", |asked, document| {
            for event in events(document).iter_mut().filter(|_| asked.names("2019-08-01")) {
                event["DurationInSeconds"] = json!(-1);
            }
        }),
        document("event-types-of-edition", |asked, document| {
            let first = events(document).first().cloned().filter(|_| asked.names("2017-03-01"));
            if let Some(mut first) = first {
                first["EventType"] = json!("Preempt");
                events(document).push(first);
            }
        }),
        event("event-id", |event| {
            event["EventId"] = json!(event["EventId"].as_str().unwrap().to_lowercase());
        }),
        document("event-id-stable", |asked, document| {
            for event in events(document).iter_mut().filter(|_| asked.names("2019-08-01")) {
                event["EventId"] = json!("28512AF7-C957-4500-9BC4-842D6FB531E4");
            }
        }),
        felt(
            &["incarnation-grows"],
            event("event-status", |event| {
                if event["EventType"] == "Redeploy" && event["EventStatus"] == "Scheduled" {
                    event["EventStatus"] = json!("Pending");
                }
            }),
        ),
        felt(
            &["redeploy-announced"],
            event("event-type", |event| {
                if event["EventType"] == "Redeploy" {
                    event["EventType"] = json!("Move");
                }
            }),
        ),
    ]
}

/// Faults in the members of events.
pub(super) fn of_members() -> Vec<Broken> {
    vec![
        event("resource-type", |event| event["ResourceType"] = json!("VM")),
        event("resources", |event| event["Resources"] = json!([])),
        document("resources-underscore", |asked, document| {
            for event in events(document).iter_mut().filter(|_| asked.names("2017-03-01")) {
                for name in event["Resources"].as_array_mut().unwrap() {
                    *name = json!(name.as_str().unwrap().trim_start_matches('_'));
                }
            }
        }),
        event("not-before-format", |event| {
            if event["NotBefore"] != "" {
                event["NotBefore"] = json!("2030-01-24T21:20:44Z");
            }
        }),
        event("not-before-empty", |event| {
            if event["EventStatus"] == "Started" {
                event["NotBefore"] = json!("-");
            }
        }),
        felt(
            &["incarnation-unchanged"],
            counted("not-before-fixed", |count, document| {
                for event in events(document).iter_mut().filter(|event| event["EventStatus"] == "Scheduled") {
                    event["NotBefore"] = moved(event, i64::try_from(count).unwrap());
                }
            }),
        ),
        newest_event("description", |event| event["Description"] = json!(null)),
        newest_event("event-source", |event| event["EventSource"] = json!("Host")),
        newest_event("duration", |event| event["DurationInSeconds"] = json!("9")),
        event("minimum-notice", |event| {
            if event["EventType"] == "Reboot" && event["EventStatus"] == "Scheduled" {
                event["NotBefore"] = moved(event, -600);
            }
        }),
    ]
}

/// A fault that depends on the number of polls before.
fn counted(check: &'static str, change: fn(usize, &mut Value)) -> Broken {
    let count = AtomicUsize::new(0);
    broken(check, move |asked, server| {
        let answered = server(asked);
        if !asked.is_poll() || !asked.names(NEWEST) || answered.status != 200 {
            return answered;
        }
        let count = count.fetch_add(1, Ordering::Relaxed);
        answered.with_document(|document| change(count, document))
    })
}

/// The time of an event, that many seconds later.
fn moved(event: &Value, seconds: i64) -> Value {
    let time = parse_date(event["NotBefore"].as_str().unwrap()).unwrap();
    json!(print_date(Timestamp::from_millis(time.millis() + seconds * 1000)))
}

/// Faults in the life of events.
pub(super) fn of_events() -> Vec<Broken> {
    let mut all: Vec<_> = [
        ("freeze-announced", "Freeze"),
        ("reboot-announced", "Reboot"),
        ("redeploy-announced", "Redeploy"),
        ("preempt-announced", "Preempt"),
        ("terminate-announced", "Terminate"),
    ]
    .into_iter()
    .map(|(check, kind)| {
        let hidden = broken(check, move |asked, server| {
            let answered = server(asked);
            if !asked.is_poll() || answered.status != 200 {
                return answered;
            }
            answered.with_document(|document| events(document).retain(|event| event["EventType"] != kind))
        });
        felt(&["incarnation-grows"], hidden)
    })
    .collect();
    let kept = std::sync::Mutex::new(None);
    let kept_forever = broken("event-ends", move |asked, server| {
        let answered = server(asked);
        if !asked.is_poll() || !asked.names(NEWEST) || answered.status != 200 {
            return answered;
        }
        answered.with_document(|document| {
            let mut kept = kept.lock().unwrap();
            let found = events(document).iter().find(|event| event["EventStatus"] == "Started").cloned();
            *kept = kept.take().or(found);
            if let Some(event) = kept.clone() {
                let is_known = events(document).iter().any(|known| known["EventId"] == event["EventId"]);
                events(document).extend(Some(event).filter(|_| !is_known));
            }
        })
    });
    all.push(felt(&["incarnation-grows"], kept_forever));
    all
}

const UNKNOWN: &str = "0F0E0D0C-0B0A-4908-8706-050403020100";

/// Faults in the handling of start requests.
pub(super) fn of_approvals() -> Vec<Broken> {
    let once = AtomicUsize::new(0);
    let twice = AtomicUsize::new(0);
    let is_plain = |asked: &Asked| asked.ids().len() == 1 && asked.ids() != [UNKNOWN];
    vec![
        answered("approval-needs-header", 200, |asked| asked.is_approval() && !asked.has("metadata")),
        answered("approval-malformed", 200, |asked| asked.is_approval() && asked.body == b"[]"),
        answered("approval-empty-list", 200, |asked| asked.body == b"{\"StartRequests\":[]}"),
        answered("approval-bad-id", 200, |asked| asked.ids() == ["first"]),
        answered("approval-unknown-event", 200, |asked| asked.has("metadata") && asked.ids() == [UNKNOWN]),
        answered("approval-too-long", 200, |asked| asked.body.len() > 1_000_000),
        broken("approval-all-or-nothing", |asked, server| {
            let ids = asked.ids();
            if ids.len() == 2 && ids[1] == UNKNOWN {
                server(&asked.with_ids(&ids[..1]));
            }
            server(asked)
        }),
        broken("approval-accepted", move |asked, server| {
            let answered = server(asked);
            let first =
                is_plain(asked) && answered.status == 200 && once.fetch_add(1, Ordering::Relaxed) == 0;
            if first { Answered { status: 202, ..answered } } else { answered }
        }),
        spoilt(
            "approval-empty-body",
            |asked| asked.is_approval() && asked.ids().len() == 1,
            |answered| match answered.status {
                200 => Answered::new(200, "{}"),
                _ => answered,
            },
        ),
        answered("approval-starts", 200, |asked| {
            asked.ids().len() == 1 && asked.ids() != [UNKNOWN] && asked.ids() != ["first"]
        }),
        broken("approval-repeated", move |asked, server| {
            let answered = server(asked);
            let known =
                is_plain(asked) && answered.status == 200 && twice.fetch_add(1, Ordering::Relaxed) > 0;
            if known { Answered::new(400, "{\"error\":\"approved\"}") } else { answered }
        }),
        answered("approval-any-case", 400, |asked| {
            asked.ids().iter().any(|id| id.to_uppercase() != *id && id != "first")
        }),
        answered("approval-any-content-type", 400, |asked| {
            asked.field("content-type").is_some_and(|kind| !kind.contains("json"))
        }),
        answered("approval-any-incarnation", 400, |asked| {
            String::from_utf8_lossy(&asked.body).contains("\"DocumentIncarnation\":null")
        }),
        answered("approval-any-edition", 400, |asked| asked.is_approval() && asked.names("2017-11-01")),
        broken("approval-several", |asked, server| {
            let ids = asked.ids();
            let several = ids.len() > 1 && !ids.iter().any(|id| id == UNKNOWN);
            if several { server(&asked.with_ids(&ids[..1])) } else { server(asked) }
        }),
    ]
}
