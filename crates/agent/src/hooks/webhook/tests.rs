//! Webhooks, against a receiver on loopback with scripted responses.

use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use forewarn_agent_core::{HookOutcome, Phase};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;

use super::*;
use crate::hooks::fixtures::{self, job, never_stop, runtime};
use crate::hooks::{Job, Work};

struct TestReceiver {
    address: std::net::SocketAddr,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
}

#[derive(Clone, Debug)]
struct ReceivedRequest {
    target: String,
    headers: hyper::HeaderMap,
    body: Bytes,
}

type PlannedResponses = Arc<Mutex<VecDeque<(u16, Option<&'static str>)>>>;

impl TestReceiver {
    /// Sends these responses in order, then 204. A status of 0 closes the connection.
    async fn new(responses: &[(u16, Option<&'static str>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let responses: PlannedResponses = Arc::new(Mutex::new(responses.iter().copied().collect()));
        let received = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&received);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (responses, received) = (Arc::clone(&responses), Arc::clone(&all));
                let service = service_fn(move |request| {
                    respond(request, Arc::clone(&responses), Arc::clone(&received))
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move { connection.await.ok() });
            }
        });
        Self { address, received }
    }

    fn url(&self) -> String {
        format!("http://{}/hook?key=s3cret", self.address)
    }

    fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }

    fn body(&self) -> Value {
        serde_json::from_slice(&self.received().pop().unwrap().body).unwrap()
    }
}

async fn respond(
    request: hyper::Request<Incoming>,
    responses: PlannedResponses,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
) -> Result<hyper::Response<Full<Bytes>>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    received.lock().unwrap().push(ReceivedRequest {
        target: head.uri.to_string(),
        headers: head.headers,
        body,
    });
    let (status, retry_after) = responses.lock().unwrap().pop_front().unwrap_or((204, None));
    if status == 0 {
        return Err(std::io::ErrorKind::ConnectionReset.into());
    }
    let mut response = hyper::Response::builder().status(status);
    if let Some(seconds) = retry_after {
        response = response.header("retry-after", seconds);
    }
    Ok(response.body(Full::new(Bytes::from("s3cret"))).unwrap())
}

fn work(settings: &str) -> Work {
    let work = Work::Webhook(toml::from_str(settings).unwrap());
    assert_eq!(work.errors(), [""; 0]);
    work
}

async fn perform(settings: &str, job: &Job) -> HookOutcome {
    let (runtime, _folder) = runtime();
    work(settings).perform(job, &runtime, never_stop()).await
}

/// promise: A7
#[tokio::test(flavor = "current_thread")]
async fn a_cloud_event_is_sent() {
    let receiver = TestReceiver::new(&[]).await;
    let mut job = job("tell", Phase::Scheduled);
    job.me = "web 0".to_owned();
    assert_eq!(perform(&format!("url = '{}'", receiver.url()), &job).await.result, Ok(()));
    let received = receiver.received().pop().unwrap();
    assert_eq!(received.target, "/hook?key=s3cret");
    assert_eq!(received.headers["content-type"], "application/cloudevents+json");
    let event = receiver.body();
    for (key, value) in [
        ("specversion", "1.0"),
        ("id", "28512AF7-C957-4500-9BC4-842D6FB531E4/scheduled/tell"),
        ("source", "/forewarn-agent/web%200"),
        ("type", "dev.forewarn.agent.scheduled"),
        ("subject", "28512AF7-C957-4500-9BC4-842D6FB531E4"),
        ("datacontenttype", "application/json"),
    ] {
        assert_eq!(event[key], value, "{event}");
    }
    assert!(event["time"].as_str().unwrap().ends_with('Z'));
    assert_eq!(event["data"]["machine"], "web 0");
    assert_eq!(event["data"]["event"]["NotBefore"], "Wed, 24 Jan 2018 21:20:44 GMT");
}

/// promise: A7
#[tokio::test(flavor = "current_thread")]
async fn a_chat_gets_a_sentence() {
    let receiver = TestReceiver::new(&[]).await;
    let url = receiver.url();
    let of = async |settings: &str, phase| {
        perform(&format!("url = '{url}'\nformat = 'text'\n{settings}"), &job("tell", phase))
            .await
            .result
            .unwrap();
        receiver.body()["text"].as_str().unwrap().to_owned()
    };
    let expected = "Reboot of web_0 is scheduled, not before Wed, 24 Jan 2018 21:20:44 GMT. Host server is undergoing \
                    maintenance. (reported by web_0, event 28512AF7-C957-4500-9BC4-842D6FB531E4)";
    assert_eq!(of("", Phase::Scheduled).await, expected);
    assert!(of("", Phase::Cancelled).await.starts_with("Reboot of web_0 was cancelled. "));
    assert_eq!(
        of("text = '{{event.type}} \"now\" on {{ forewarn.name }}'", Phase::Started).await,
        "Reboot \"now\" on web_0"
    );
}

/// promise: A7
#[tokio::test(flavor = "current_thread")]
async fn a_template_is_filled_in_and_nothing_in_an_event_breaks_out_of_it() {
    let receiver = TestReceiver::new(&[]).await;
    let mut job = job("tell", Phase::Scheduled);
    job.run.observed.description = Some("\", \"admin\": true, \"x\": \"{{event.id}}\\ \n é".to_owned());
    let template =
        r#"{"id": "{{event.id}}", "why": "{{event.description}}", "left": "{{forewarn.seconds_left}}"}"#;
    let settings = format!("url = '{}'\nformat = 'template'\ntemplate = '{template}'", receiver.url());
    assert_eq!(perform(&settings, &job).await.result, Ok(()));
    let body = receiver.body();
    assert_eq!(body["why"], "\", \"admin\": true, \"x\": \"{{event.id}}\\   é");
    assert_eq!(body.as_object().unwrap().len(), 3);
    let settings = format!(
        "url = '{}'\nformat = 'template'\ncontent_type = 'text/plain'\ntemplate = '{{{{event.type}}}}!'",
        receiver.url()
    );
    assert_eq!(perform(&settings, &job).await.result, Ok(()));
    let received = receiver.received().pop().unwrap();
    assert_eq!(
        (&received.body[..], &received.headers["content-type"]),
        (&b"Reboot!"[..], &"text/plain".parse().unwrap())
    );
}

/// promise: A7
#[tokio::test(flavor = "current_thread")]
async fn what_may_pass_is_tried_again() {
    let receiver = TestReceiver::new(&[(503, None), (0, None), (429, Some("1")), (500, None)]).await;
    let hook_outcome = perform(&format!("url = '{}'", receiver.url()), &job("tell", Phase::Scheduled)).await;
    assert_eq!(hook_outcome.result, Ok(()));
    let received = receiver.received();
    assert_eq!(received.len(), 5);
    let ids: Vec<Value> = received
        .iter()
        .map(|received| serde_json::from_slice::<Value>(&received.body).unwrap()["id"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "who gets it twice knows");
}

/// promise: A7
#[tokio::test(flavor = "current_thread")]
async fn permanent_errors_are_not_retried_and_reveal_no_secret() {
    for status in [301, 400, 401, 404, 410] {
        let receiver = TestReceiver::new(&[(status, None)]).await;
        let error = perform(&format!("url = '{}'", receiver.url()), &job("tell", Phase::Scheduled))
            .await
            .result
            .unwrap_err();
        assert!(error.starts_with(&format!("{} returned {status}", receiver.address)), "{error}");
        assert!(!error.contains("s3cret") && !error.contains("hook"), "{error}");
        assert_eq!(receiver.received().len(), 1);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_timeout_reports_the_last_error() {
    let receiver = TestReceiver::new(&[(503, None); 1_000]).await;
    let mut job = job("tell", Phase::Scheduled);
    job.limit = Duration::from_secs(2);
    let error = perform(&format!("url = '{}'", receiver.url()), &job).await.result.unwrap_err();
    assert_eq!(error, format!("timed out after 2s: {} returned 503", receiver.address));
}

#[tokio::test(flavor = "current_thread")]
async fn secrets_come_from_files_that_are_not_world_readable() {
    let receiver = TestReceiver::new(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let (url, headers) = (folder.path().join("url"), folder.path().join("headers"));
    let set = |path: &PathBuf, text: &str, mode| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&url, &format!("{}\n", receiver.url()), 0o600);
    set(&headers, "# for the pager\nAuthorization: Bearer s3cret\n\nX-Team:ops\n", 0o640);
    let settings = format!(
        "url_file = '{}'\nheaders_file = '{}'\nheaders = {{ 'X-From' = 'agent' }}",
        url.display(),
        headers.display()
    );
    let job = job("tell", Phase::Scheduled);
    assert_eq!(perform(&settings, &job).await.result, Ok(()));
    let received = receiver.received().pop().unwrap().headers;
    assert_eq!(
        (&received["authorization"], &received["x-team"], &received["x-from"]),
        (&"Bearer s3cret".parse().unwrap(), &"ops".parse().unwrap(), &"agent".parse().unwrap())
    );
    assert!(!format!("{:?}", work(&settings)).contains("s3cret"));
    set(&headers, "Authorization: Bearer s3cret", 0o644);
    let error = perform(&settings, &job).await.result.unwrap_err();
    assert!(error.contains("hint: chmod o="), "{error}");
    for wrong in ["Authorization", "Bad Name: s3cret", "X: s3cret\u{7f}", "Host: s3cret"] {
        set(&headers, wrong, 0o600);
        let error = perform(&settings, &job).await.result.unwrap_err();
        assert!(!error.contains("s3cret"), "{error}");
    }
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test(flavor = "current_thread")]
async fn a_refused_connection_is_an_error() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut job = job("tell", Phase::Scheduled);
    job.limit = Duration::from_secs(1);
    let error = perform(&format!("url = 'http://{closed}/'"), &job).await.result.unwrap_err();
    assert!(error.contains("cannot be reached"), "{error}");
}

#[test]
fn settings_are_checked() {
    let check = |text: &str| fixtures::all_or_none(&toml::from_str::<WebhookWork>(text).unwrap().errors());
    let good = "url = 'http://a/'\n";
    assert_eq!(check(good), Ok(()));
    for (text, expected) in [
        ("", "one of `url` and `url_file`"),
        ("url = 'http://a/'\nurl_file = '/a'", "one of"),
        ("url = 'ftp://a/'", "must begin with http://"),
        ("url_file = 'a'", "not an absolute path"),
        ("url = 'http://a/'\nca = 'a'", "`ca` is not"),
        ("url = 'http://a/'\nformat = 'template'", "needs `template`"),
        ("url = 'http://a/'\ntext = 'a'", "`text` needs format"),
        (
            "url = 'http://a/'\nformat = 'template'\ntemplate = '{{event.x}}'",
            "hint: one of event.id, event.type",
        ),
        ("url = 'http://a/'\nformat = 'template'\ntemplate = '{{event.id'", "unclosed placeholder"),
        ("url = 'http://a/'\nformat = 'template'\ntemplate = '{\"a\": {{event.id}}}'", "between quotes"),
        ("url = 'http://a/'\nformat = 'text'\ntext = '{{EVENT_ID}}'", "unknown placeholder"),
        ("url = 'http://a/'\nheaders = { 'a b' = 'c' }", "invalid name of the header"),
        ("url = 'http://a/'\nheaders = { 'Host' = 'c' }", "is reserved"),
    ] {
        let error = check(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert!(toml::from_str::<WebhookWork>("url = 'http://a/'\nmethod = 'PUT'").is_err());
}
