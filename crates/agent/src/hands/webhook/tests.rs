//! Webhooks, against a receiver on the loopback that answers what it is told to.

use std::collections::VecDeque;
use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use forewarn_agent_core::{Ending, Phase};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;

use super::*;
use crate::hands::samples::{go_on, hands, job};
use crate::hands::{Job, Work};

/// Somebody who is told.
struct Receiver {
    address: std::net::SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
}

#[derive(Clone, Debug)]
struct Heard {
    target: String,
    headers: hyper::HeaderMap,
    body: Bytes,
}

type Answers = Arc<Mutex<VecDeque<(u16, Option<&'static str>)>>>;

impl Receiver {
    /// Answers so, one after the other, and 204 from then on. A status of 0 hangs up.
    async fn new(answers: &[(u16, Option<&'static str>)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers: Answers = Arc::new(Mutex::new(answers.iter().copied().collect()));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (answers, heard) = (Arc::clone(&answers), Arc::clone(&all));
                let service =
                    service_fn(move |request| answer(request, Arc::clone(&answers), Arc::clone(&heard)));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move { connection.await.ok() });
            }
        });
        Self { address, heard }
    }

    fn url(&self) -> String {
        format!("http://{}/hook?key=s3cret", self.address)
    }

    fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }

    fn body(&self) -> Value {
        serde_json::from_slice(&self.heard().pop().unwrap().body).unwrap()
    }
}

async fn answer(
    request: hyper::Request<Incoming>,
    answers: Answers,
    heard: Arc<Mutex<Vec<Heard>>>,
) -> Result<hyper::Response<Full<Bytes>>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    heard.lock().unwrap().push(Heard { target: head.uri.to_string(), headers: head.headers, body });
    let (status, retry_after) = answers.lock().unwrap().pop_front().unwrap_or((204, None));
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
    assert_eq!(work.check(), Ok(()));
    work
}

async fn perform(settings: &str, job: &Job) -> Ending {
    let (hands, _folder) = hands();
    work(settings).perform(job, &hands, go_on()).await
}

#[tokio::test(flavor = "current_thread")]
async fn a_cloud_event_is_sent() {
    let receiver = Receiver::new(&[]).await;
    let mut job = job("tell", Phase::Scheduled);
    job.me = "web 0".to_owned();
    assert_eq!(perform(&format!("url = '{}'", receiver.url()), &job).await.result, Ok(()));
    let heard = receiver.heard().pop().unwrap();
    assert_eq!(heard.target, "/hook?key=s3cret");
    assert_eq!(heard.headers["content-type"], "application/cloudevents+json");
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

#[tokio::test(flavor = "current_thread")]
async fn a_chat_gets_a_sentence() {
    let receiver = Receiver::new(&[]).await;
    let url = receiver.url();
    let of = async |settings: &str, phase| {
        perform(&format!("url = '{url}'\nformat = 'text'\n{settings}"), &job("tell", phase))
            .await
            .result
            .unwrap();
        receiver.body()["text"].as_str().unwrap().to_owned()
    };
    let expected = "Reboot of web_0 is scheduled, not before Wed, 24 Jan 2018 21:20:44 GMT. Host server is undergoing \
                    maintenance. (told by web_0, event 28512AF7-C957-4500-9BC4-842D6FB531E4)";
    assert_eq!(of("", Phase::Scheduled).await, expected);
    assert!(of("", Phase::Cancelled).await.starts_with("Reboot of web_0 was cancelled. "));
    assert_eq!(
        of("text = '{{event.type}} \"now\" on {{ forewarn.name }}'", Phase::Started).await,
        "Reboot \"now\" on web_0"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_template_is_filled_in_and_nothing_in_an_event_breaks_out_of_it() {
    let receiver = Receiver::new(&[]).await;
    let mut job = job("tell", Phase::Scheduled);
    job.run.seen.description = Some("\", \"admin\": true, \"x\": \"{{event.id}}\\ \n é".to_owned());
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
    let heard = receiver.heard().pop().unwrap();
    assert_eq!(
        (&heard.body[..], &heard.headers["content-type"]),
        (&b"Reboot!"[..], &"text/plain".parse().unwrap())
    );
}

#[tokio::test(flavor = "current_thread")]
async fn what_may_pass_is_tried_again() {
    let receiver = Receiver::new(&[(503, None), (0, None), (429, Some("1")), (500, None)]).await;
    let ending = perform(&format!("url = '{}'", receiver.url()), &job("tell", Phase::Scheduled)).await;
    assert_eq!(ending.result, Ok(()));
    let heard = receiver.heard();
    assert_eq!(heard.len(), 5);
    let ids: Vec<Value> = heard
        .iter()
        .map(|heard| serde_json::from_slice::<Value>(&heard.body).unwrap()["id"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "who gets it twice knows");
}

#[tokio::test(flavor = "current_thread")]
async fn what_does_not_pass_is_not_tried_again_and_no_secret_is_told() {
    for status in [301, 400, 401, 404, 410] {
        let receiver = Receiver::new(&[(status, None)]).await;
        let problem = perform(&format!("url = '{}'", receiver.url()), &job("tell", Phase::Scheduled))
            .await
            .result
            .unwrap_err();
        assert!(problem.starts_with(&format!("{} answers {status}", receiver.address)), "{problem}");
        assert!(!problem.contains("s3cret") && !problem.contains("hook"), "{problem}");
        assert_eq!(receiver.heard().len(), 1);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn when_the_time_is_up_the_last_reason_is_told() {
    let receiver = Receiver::new(&[(503, None); 1_000]).await;
    let mut job = job("tell", Phase::Scheduled);
    job.limit = Duration::from_secs(2);
    let problem = perform(&format!("url = '{}'", receiver.url()), &job).await.result.unwrap_err();
    assert_eq!(problem, format!("it has not ended within 2s: {} answers 503", receiver.address));
}

#[tokio::test(flavor = "current_thread")]
async fn secrets_come_from_files_that_not_everybody_can_read() {
    let receiver = Receiver::new(&[]).await;
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
    let heard = receiver.heard().pop().unwrap().headers;
    assert_eq!(
        (&heard["authorization"], &heard["x-team"], &heard["x-from"]),
        (&"Bearer s3cret".parse().unwrap(), &"ops".parse().unwrap(), &"agent".parse().unwrap())
    );
    assert!(!format!("{:?}", work(&settings)).contains("s3cret"));
    set(&headers, "Authorization: Bearer s3cret", 0o644);
    let problem = perform(&settings, &job).await.result.unwrap_err();
    assert!(problem.contains("hint: chmod o="), "{problem}");
    for wrong in ["Authorization", "Bad Name: s3cret", "X: s3cret\u{7f}", "Host: s3cret"] {
        set(&headers, wrong, 0o600);
        let problem = perform(&settings, &job).await.result.unwrap_err();
        assert!(!problem.contains("s3cret"), "{problem}");
    }
    assert_eq!(receiver.heard().len(), 1);
}

#[tokio::test(flavor = "current_thread")]
async fn nobody_at_the_other_end_is_a_reason() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut job = job("tell", Phase::Scheduled);
    job.limit = Duration::from_secs(1);
    let problem = perform(&format!("url = 'http://{nobody}/'"), &job).await.result.unwrap_err();
    assert!(problem.contains("cannot be reached"), "{problem}");
}

#[test]
fn settings_are_checked() {
    let check = |text: &str| toml::from_str::<WebhookWork>(text).unwrap().check();
    let good = "url = 'http://a/'\n";
    assert_eq!(check(good), Ok(()));
    for (text, told) in [
        ("", "one of `url` and `url_file`"),
        ("url = 'http://a/'\nurl_file = '/a'", "one of"),
        ("url = 'ftp://a/'", "begins with http://"),
        ("url_file = 'a'", "not a whole path"),
        ("url = 'http://a/'\nca = 'a'", "`ca` is not"),
        ("url = 'http://a/'\nformat = 'template'", "needs a `template`"),
        ("url = 'http://a/'\ntext = 'a'", "`text` is for format"),
        (
            "url = 'http://a/'\nformat = 'template'\ntemplate = '{{event.x}}'",
            "hint: one of event.id, event.type",
        ),
        ("url = 'http://a/'\nformat = 'template'\ntemplate = '{{event.id'", "not closed"),
        ("url = 'http://a/'\nformat = 'template'\ntemplate = '{\"a\": {{event.id}}}'", "between quotes"),
        ("url = 'http://a/'\nformat = 'text'\ntext = '{{EVENT_ID}}'", "there is no placeholder"),
        ("url = 'http://a/'\nheaders = { 'a b' = 'c' }", "the name of the header"),
        ("url = 'http://a/'\nheaders = { 'Host' = 'c' }", "not yours to set"),
    ] {
        let problem = check(text).unwrap_err();
        assert!(problem.contains(told), "{text}: {problem}");
    }
    assert!(toml::from_str::<WebhookWork>("url = 'http://a/'\nmethod = 'PUT'").is_err());
}
