//! Judgements about documents and their events, in every edition.

use forewarn_http_client::HttpResponse;
use forewarn_imds::{Edition, parse_date};
use forewarn_types::{EventId, EventKind};
use serde_json::Value;

use crate::catalogue as c;
use crate::check::Check;
use crate::endpoint::{Endpoint, Fetched, events_of, text};
use crate::report::Results;

/// Members of an event with the edition since which they exist, in their order.
const MEMBERS: [(&str, Edition); 9] = [
    ("EventId", Edition::V2017_03_01),
    ("EventStatus", Edition::V2017_03_01),
    ("EventType", Edition::V2017_03_01),
    ("ResourceType", Edition::V2017_03_01),
    ("Resources", Edition::V2017_03_01),
    ("NotBefore", Edition::V2017_03_01),
    ("Description", Edition::V2019_04_01),
    ("EventSource", Edition::V2019_08_01),
    ("DurationInSeconds", Edition::V2020_07_01),
];

/// How often all editions are read until no change comes in between.
const TRIES: u32 = 3;

/// Compares the documents of all editions.
pub(crate) async fn check_editions(endpoint: &Endpoint, results: &mut Results) {
    for _ in 0..TRIES {
        let Ok(before) = endpoint.document(Edition::newest()).await else { return };
        let mut older = Vec::new();
        for edition in Edition::ALL {
            if let Ok(fetched) = endpoint.document(edition).await {
                older.push((edition, fetched.document));
            }
        }
        let Ok(after) = endpoint.document(Edition::newest()).await else { return };
        if incarnation(&before.document) == incarnation(&after.document) {
            for (edition, document) in &older {
                compare(*edition, document, &before.document, results);
            }
            return;
        }
    }
}

/// Compares the document of an edition with the newest one.
fn compare(edition: Edition, document: &Value, newest: &Value, results: &mut Results) {
    let name = edition.as_str();
    let equal = incarnation(document) == incarnation(newest);
    let differs = || format!("edition {name} has {}, not {}", shown(document), shown(newest));
    results.judge(&c::INCARNATION_OF_ALL_EDITIONS, equal.then_some(()).ok_or_else(differs));
    let known = |event: &&Value| {
        text(event, "EventType").parse::<EventKind>().map_or(true, |kind| edition.knows(kind))
    };
    let expected: Vec<_> = events_of(newest).iter().filter(known).collect();
    let found = events_of(document);
    if events_of(newest).is_empty() && found.is_empty() {
        return;
    }
    let types = match found.iter().find(|event| !known(event)) {
        Some(event) => Err(format!("edition {name} has a {}", text(event, "EventType"))),
        None if found.len() != expected.len() => {
            Err(format!("edition {name} has {} events, not {}", found.len(), expected.len()))
        }
        None => Ok(()),
    };
    let complete = types.is_ok();
    results.judge(&c::EVENT_TYPES_OF_EDITION, types);
    for event in found {
        check_members(edition, event, results);
        check_not_before(edition, event, results);
    }
    for (event, expected) in found.iter().zip(expected).filter(|_| complete) {
        let (id, newest_id) = (text(event, "EventId"), text(expected, "EventId"));
        let same = (id == newest_id).then_some(());
        let changed = || format!("edition {name} has {id}, the newest {newest_id}");
        results.judge(&c::EVENT_ID_STABLE, same.ok_or_else(changed));
        results.judge(&c::RESOURCES_UNDERSCORE, check_names(edition, event, expected));
    }
}

/// Names of machines have a leading `_` in the first edition. Names of role instances (`Web_IN_0`) do not.
fn check_names(edition: Edition, event: &Value, newest: &Value) -> Result<(), String> {
    let in_edition = |name: &str| {
        let underlined = edition == Edition::V2017_03_01 && !name.contains("_IN_");
        if underlined { format!("_{name}") } else { name.to_owned() }
    };
    let wanted: Vec<_> = names(newest).iter().map(|name| in_edition(name)).collect();
    let found = names(event);
    let wrong = || format!("edition {} has {found:?}, not {wanted:?}", edition.as_str());
    (found.iter().eq(&wanted)).then_some(()).ok_or_else(wrong)
}

fn names(event: &Value) -> Vec<&str> {
    let list = event.get("Resources").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).collect()
}

/// Judges the response of one poll of the newest edition.
pub(crate) fn check_document(fetched: &Fetched, results: &mut Results) {
    let Fetched { response, document } = fetched;
    results.judge(&c::DOCUMENT_COMPACT, check_compact(response, document));
    let keys: Vec<_> = document.as_object().into_iter().flat_map(|members| members.keys()).collect();
    let in_order = keys == ["DocumentIncarnation", "Events"] && document["Events"].is_array();
    results
        .judge(&c::DOCUMENT_KEYS, in_order.then_some(()).ok_or_else(|| format!("the members are {keys:?}")));
    let number = incarnation(document).is_some_and(|number| number >= 1);
    results.judge(&c::INCARNATION_NUMBER, number.then_some(()).ok_or_else(|| shown(document)));
    for event in events_of(document) {
        check_event(event, results);
    }
}

/// Blanks outside texts change the length of the document.
fn check_compact(response: &HttpResponse, document: &Value) -> Result<(), String> {
    let compact = document.to_string();
    // A service may escape characters in another way, which changes the length too, but adds no blank.
    let blank = compact.len() != response.body.len() && has_blanks(&response.body);
    (!blank).then_some(()).ok_or_else(|| "there are blanks or line breaks between members".to_owned())
}

fn has_blanks(json: &[u8]) -> bool {
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        match (in_text, escaped, byte) {
            (true, true, _) => escaped = false,
            (true, false, b'\\') => escaped = true,
            (true, false, b'"') => in_text = false,
            (false, _, b'"') => in_text = true,
            (false, _, b' ' | b'\n' | b'\r' | b'\t') => return true,
            (true, false, _) | (false, _, _) => {}
        }
    }
    false
}

/// Judges an event of the newest edition.
fn check_event(event: &Value, results: &mut Results) {
    let mut one_of = |check: &Check, member: &str, words: &[&str]| {
        let found = event.get(member).unwrap_or(&Value::Null);
        let known = words.iter().any(|word| found == word);
        results.judge(check, known.then_some(()).ok_or_else(|| format!("`{member}` is {found}")));
    };
    one_of(&c::EVENT_STATUS, "EventStatus", &["Scheduled", "Started"]);
    one_of(&c::EVENT_TYPE, "EventType", &EventKind::ALL.map(EventKind::as_str));
    one_of(&c::RESOURCE_TYPE, "ResourceType", &["VirtualMachine"]);
    one_of(&c::EVENT_SOURCE, "EventSource", &["Platform", "User"]);
    let id = text(event, "EventId");
    results
        .judge(&c::EVENT_ID, is_upper_guid(id).then_some(()).ok_or_else(|| format!("`EventId` is {id:?}")));
    let listed = event.get("Resources").and_then(Value::as_array);
    let named = listed.is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string));
    let unnamed = || format!("`Resources` is {}", event.get("Resources").unwrap_or(&Value::Null));
    results.judge(&c::RESOURCES, named.then_some(()).ok_or_else(unnamed));
    let description = event.get("Description").unwrap_or(&Value::Null);
    let is_text = description.is_string().then_some(());
    results.judge(&c::DESCRIPTION, is_text.ok_or_else(|| format!("`Description` is {description}")));
    let duration = event.get("DurationInSeconds").unwrap_or(&Value::Null);
    let counted = duration.as_i64().is_some_and(|seconds| seconds >= -1);
    results.judge(
        &c::DURATION,
        counted.then_some(()).ok_or_else(|| format!("`DurationInSeconds` is {duration}")),
    );
    check_members(Edition::newest(), event, results);
    check_not_before(Edition::newest(), event, results);
}

/// Judges which members an event has.
fn check_members(edition: Edition, event: &Value, results: &mut Results) {
    let found: Vec<_> = event.as_object().into_iter().flat_map(|members| members.keys()).collect();
    let wanted: Vec<_> =
        MEMBERS.iter().filter(|(_, since)| edition >= *since).map(|(name, _)| *name).collect();
    let later = MEMBERS.iter().filter(|(_, since)| edition < *since);
    let later: Vec<_> = later.map(|(name, _)| *name).filter(|name| event.get(name).is_some()).collect();
    let name = edition.as_str();
    if edition == Edition::newest() {
        let differ = || format!("the members are {found:?}");
        results.judge(&c::EVENT_KEYS, (found == wanted).then_some(()).ok_or_else(differ));
    } else {
        let premature = || format!("edition {name} has {later:?}");
        results.judge(&c::EVENT_FIELDS_OF_EDITION, later.is_empty().then_some(()).ok_or_else(premature));
    }
}

fn check_not_before(edition: Edition, event: &Value, results: &mut Results) {
    let time = event.get("NotBefore").unwrap_or(&Value::Null);
    let in_edition = |why: String| format!("edition {}: {why}", edition.as_str());
    if text(event, "EventStatus") == "Started" {
        let empty = (time == "").then_some(()).ok_or_else(|| in_edition(format!("`NotBefore` is {time}")));
        results.judge(&c::NOT_BEFORE_EMPTY, empty);
    } else {
        let valid = time.as_str().is_some_and(|text| text.ends_with(" GMT") && parse_date(text).is_some());
        let judged = valid.then_some(()).ok_or_else(|| in_edition(format!("`NotBefore` is {time}")));
        results.judge(&c::NOT_BEFORE_FORMAT, judged);
    }
}

/// The number of a document; `None` if it has none.
pub(crate) fn incarnation(document: &Value) -> Option<u64> {
    document.get("DocumentIncarnation").and_then(Value::as_u64)
}

fn shown(document: &Value) -> String {
    format!("`DocumentIncarnation` {}", document.get("DocumentIncarnation").unwrap_or(&Value::Null))
}

/// Returns true for a GUID without lower-case letters.
fn is_upper_guid(text: &str) -> bool {
    EventId::parse(text).is_some_and(|id| id.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_found_outside_texts_only() {
        for compact in [r#"{"a":"b c","d":1}"#, r#"{"a":"\" ","d":[]}"#, "[]"] {
            assert!(!has_blanks(compact.as_bytes()), "{compact}");
        }
        for wide in [r#"{"a": 1}"#, "[1,\n2]", r#"{"a":"b\\" }"#] {
            assert!(has_blanks(wide.as_bytes()), "{wide}");
        }
    }

    #[test]
    fn an_upper_case_guid_is_recognized() {
        assert!(is_upper_guid("28512AF7-C957-4500-9BC4-842D6FB531E4"));
        for wrong in
            ["", "28512af7-c957-4500-9bc4-842d6fb531e4", "28512AF7C95745009BC4842D6FB531E4", "1-2-3-4-5"]
        {
            assert!(!is_upper_guid(wrong), "{wrong}");
        }
    }
}
