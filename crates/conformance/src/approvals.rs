//! Checks of start requests: malformed ones, and approvals of the events that commands of the user have made.
//!
//! Events that the user's commands did not make are never approved.

use forewarn_http_client::{HttpResponse, Method};
use forewarn_imds::Edition;
use serde_json::json;

use crate::Assignment;
use crate::catalogue as c;
use crate::check::Check;
use crate::endpoint::{Endpoint, with};
use crate::events::run;
use crate::observer::Observer;
use crate::report::Results;
use crate::requests::status;

/// The id of no event.
const UNKNOWN_ID: &str = "0F0E0D0C-0B0A-4908-8706-050403020100";

/// Length of a body that no service should read.
const LONG_BODY: usize = 1024 * 1024;

/// Start requests that approve nothing, whatever events there are.
pub(crate) async fn check_malformed(endpoint: &Endpoint, results: &mut Results) {
    let newest = Edition::newest();
    let unknown = body(&[UNKNOWN_ID.to_owned()]);
    let mut bare = endpoint.bare(Method::POST, &Endpoint::events(newest));
    bare.body = unknown.clone().into();
    let judged = endpoint.send(&bare).await.and_then(|response| status(&response, 400));
    results.judge(&c::APPROVAL_NEEDS_HEADER, judged);
    let cases: [(&Check, &str); 7] = [
        (&c::APPROVAL_MALFORMED, "StartRequests"),
        (&c::APPROVAL_MALFORMED, "[]"),
        (&c::APPROVAL_MALFORMED, "{}"),
        (&c::APPROVAL_MALFORMED, r#"{"StartRequests":{"EventId":"0F0E0D0C-0B0A-4908-8706-050403020100"}}"#),
        (&c::APPROVAL_EMPTY_LIST, r#"{"StartRequests":[]}"#),
        (&c::APPROVAL_BAD_ID, r#"{"StartRequests":[{"EventId":"first"}]}"#),
        (&c::APPROVAL_UNKNOWN_EVENT, &unknown),
    ];
    for (check, body) in cases {
        let judged = endpoint.start(newest, body).await.and_then(|response| status(&response, 400));
        results.judge(check, judged.map_err(|why| format!("{body}: {why}")));
    }
    let judged = match endpoint.start(newest, &" ".repeat(LONG_BODY)).await {
        Ok(response) if response.status < 400 => Err(format!("the status is {}", response.status)),
        Ok(_) | Err(_) => Ok(()),
    };
    results.judge(&c::APPROVAL_TOO_LONG, judged);
}

/// Approves the events that commands have made.
pub(crate) async fn check(assignment: &Assignment, observer: &mut Observer<'_>, results: &mut Results) {
    let Some(first) = observer.approvable().into_iter().next() else { return };
    all_or_nothing(&first, observer, results).await;
    if approve_first(assignment, &first, observer, results).await.is_ok() {
        variations(&first, observer.endpoint(), results).await;
    }
    approve_several(assignment, observer, results).await;
    end(assignment, observer, results).await;
}

async fn all_or_nothing(first: &String, observer: &mut Observer<'_>, results: &mut Results) {
    let both = body(&[first.clone(), UNKNOWN_ID.to_owned()]);
    let response = observer.endpoint().start(Edition::newest(), &both).await;
    // A service that approves the known event must not be blamed for its start.
    observer.approve(std::slice::from_ref(first));
    let mut judged = response.and_then(|response| status(&response, 400));
    observer.observe(results).await;
    if judged.is_ok() && observer.status(first) != Some("Scheduled") {
        judged = Err(format!("{first} was approved"));
    }
    results.judge(&c::APPROVAL_ALL_OR_NOTHING, judged);
}

/// Approves an event, waits for its start, and approves it again. Fails if the second approval does.
async fn approve_first(
    assignment: &Assignment,
    first: &String,
    observer: &mut Observer<'_>,
    results: &mut Results,
) -> Result<(), ()> {
    let approval = body(std::slice::from_ref(first));
    let response = observer.endpoint().start(Edition::newest(), &approval).await;
    results.judge(&c::APPROVAL_ACCEPTED, response.clone().and_then(|response| status(&response, 200)));
    if let Ok(response) = response
        && response.status == 200
    {
        results.judge(&c::APPROVAL_EMPTY_BODY, empty(&response));
    }
    wait_for_start(assignment, std::slice::from_ref(first), &c::APPROVAL_STARTS, observer, results).await;
    let again = observer.endpoint().start(Edition::newest(), &approval).await;
    let again = again.and_then(|response| status(&response, 200));
    results.judge(&c::APPROVAL_REPEATED, again.clone());
    let variations = [
        &c::APPROVAL_ANY_CASE,
        &c::APPROVAL_ANY_CONTENT_TYPE,
        &c::APPROVAL_ANY_INCARNATION,
        &c::APPROVAL_ANY_EDITION,
    ];
    if again.is_err() {
        variations.iter().for_each(|check| results.cannot_run(check, "repeated approvals are refused"));
    }
    again.map_err(|_| ())
}

/// Approvals of an approved event in other forms.
async fn variations(first: &str, endpoint: &Endpoint, results: &mut Results) {
    let newest = Edition::newest();
    let lower = endpoint.start(newest, &body(&[first.to_lowercase()])).await;
    results.judge(&c::APPROVAL_ANY_CASE, lower.and_then(|response| status(&response, 200)));
    for kind in ["application/x-www-form-urlencoded", "text/plain"] {
        let request = with(endpoint.bare(Method::POST, &Endpoint::events(newest)), "metadata", "true");
        let mut request = with(request, "content-type", kind);
        request.body = body(&[first.to_owned()]).into();
        let judged = endpoint.send(&request).await.and_then(|response| status(&response, 200));
        results.judge(&c::APPROVAL_ANY_CONTENT_TYPE, judged.map_err(|why| format!("{kind}: {why}")));
    }
    for incarnation in [json!(1), json!("1"), json!(null)] {
        let text = json!({ "DocumentIncarnation": incarnation, "StartRequests": [{ "EventId": first }] });
        let judged =
            endpoint.start(newest, &text.to_string()).await.and_then(|response| status(&response, 200));
        results.judge(&c::APPROVAL_ANY_INCARNATION, judged.map_err(|why| format!("{incarnation}: {why}")));
    }
    for edition in Edition::ALL {
        let response = endpoint.start(edition, &body(&[first.to_owned()])).await;
        let judged = response.and_then(|response| status(&response, 200));
        results.judge(&c::APPROVAL_ANY_EDITION, judged.map_err(|why| format!("{}: {why}", edition.as_str())));
    }
}

async fn approve_several(assignment: &Assignment, observer: &mut Observer<'_>, results: &mut Results) {
    observer.observe(results).await;
    let rest = observer.approvable();
    if rest.len() < 2 {
        return;
    }
    observer.approve(&rest);
    let response = observer.endpoint().start(Edition::newest(), &body(&rest)).await;
    match response.and_then(|response| status(&response, 200)) {
        Ok(()) => wait_for_start(assignment, &rest, &c::APPROVAL_SEVERAL, observer, results).await,
        Err(why) => results.judge(&c::APPROVAL_SEVERAL, Err(why)),
    }
}

/// Waits until approved events have started, or are gone.
async fn wait_for_start(
    assignment: &Assignment,
    ids: &[String],
    check: &Check,
    observer: &mut Observer<'_>,
    results: &mut Results,
) {
    let waiting =
        |observer: &Observer<'_>| ids.iter().find(|id| observer.status(id) == Some("Scheduled")).cloned();
    let started = observer.until(assignment.patience, results, |observer| waiting(observer).is_none()).await;
    let patience = assignment.patience.as_secs();
    let why = || format!("{} was still scheduled after {patience} s", waiting(observer).unwrap_or_default());
    results.judge(check, started.then_some(()).ok_or_else(why));
}

async fn end(assignment: &Assignment, observer: &mut Observer<'_>, results: &mut Results) {
    let advanced = match &assignment.advance {
        Some(command) => run(command, assignment.patience).await.map(|()| true),
        None => Ok(false),
    };
    let first = observer.made.first().cloned().unwrap_or_default();
    let gone =
        observer.until(assignment.patience, results, |observer| observer.status(&first).is_none()).await;
    let seconds = assignment.patience.as_secs();
    match (gone, advanced) {
        (true, _) => results.judge(&c::EVENT_ENDS, Ok(())),
        (false, Ok(true)) => {
            results.judge(&c::EVENT_ENDS, Err(format!("{first} was visible after {seconds} s")));
        }
        (false, Ok(false)) => {
            results.cannot_run(
                &c::EVENT_ENDS,
                &format!("the event had not ended after {seconds} s of patience"),
            );
        }
        (false, Err(why)) => results.cannot_run(&c::EVENT_ENDS, &why),
    }
}

fn empty(response: &HttpResponse) -> Result<(), String> {
    let bytes = response.body.len();
    (bytes == 0).then_some(()).ok_or_else(|| format!("the body has {bytes} bytes"))
}

/// A start request for these events.
fn body(ids: &[String]) -> String {
    let requests: Vec<_> = ids.iter().map(|id| json!({ "EventId": id })).collect();
    json!({ "StartRequests": requests }).to_string()
}
