//! One question for the document, and every answer that there may be.

use std::time::{Duration, SystemTime};

use forewarn_client::http::HttpError;
use forewarn_client::{Error, PollResponse};
use forewarn_imds::{DOCUMENT_BYTES_MAX, Edition, Unreadable};
use forewarn_types::Timestamp;

use crate::script::{DATE, FOREWARN, Script, Step, bytes, document, empty, say};

const THEN: Timestamp = Timestamp::from_millis(1_516_828_844_000);

fn incarnation(news: &PollResponse) -> u64 {
    let PollResponse::Document(observation) = news else { panic!("a document: {news:?}") };
    observation.document.incarnation
}

#[tokio::test]
async fn a_document_is_asked_for_with_the_header_and_remembered_by_its_tag() {
    let script = Script::of([document(7, ""), say(304, DATE, ""), document(8, FOREWARN)]).await;
    let mut client = script.client();
    let PollResponse::Document(observation) = client.poll().await.unwrap() else { panic!("a document") };
    assert_eq!(
        (observation.document.incarnation, observation.edition, observation.date),
        (7, Edition::newest(), THEN)
    );
    assert!(observation.received.elapsed() < Duration::from_secs(60));
    assert_eq!(client.server(), None);
    assert_eq!(client.poll().await.unwrap(), PollResponse::Unchanged { date: THEN });
    assert_eq!(incarnation(&client.poll().await.unwrap()), 8);
    assert_eq!(client.server(), Some("forewarn/0.1.0 IMDS"));

    let asked = script.asked();
    let first = &asked[0].text;
    assert!(
        first.starts_with("GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"),
        "{first}"
    );
    assert!(first.contains(&format!("host: {}\r\n", script.address)), "{first}");
    assert!(first.contains("\r\nuser-agent: forewarn-client/"), "{first}");
    assert!(!first.contains("if-none-match"), "{first}");
    assert!(asked[1].text.contains("if-none-match: \"7\"\r\n"), "{}", asked[1].text);
    assert!(asked.iter().all(|asked| asked.text.contains("\r\nmetadata: true\r\n") && asked.connection == 0));
}

#[tokio::test]
async fn the_time_that_is_left_follows_the_services_clock() {
    let event = |not_before: &str| {
        format!(
            r#"{{"EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4","EventStatus":"Scheduled","EventType":"Reboot",
            "ResourceType":"VirtualMachine","Resources":["a"],"NotBefore":"{not_before}"}}"#
        )
    };
    let events = ["Wed, 24 Jan 2018 21:35:44 GMT", "Wed, 24 Jan 2018 21:21:44 GMT", ""].map(event).join(",");
    let body = format!(r#"{{"DocumentIncarnation":3,"Events":[{events}]}}"#);
    let script = Script::of([say(200, DATE, &body)]).await;
    let PollResponse::Document(observation) = script.client().poll().await.unwrap() else {
        panic!("a document")
    };
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    let left: Vec<_> = observation.document.events.iter().map(|event| observation.left(event)).collect();
    let quarter = Duration::from_mins(15);
    // A minute has gone by, and however long this test was kept waiting.
    assert!(
        left[0].is_some_and(|left| left <= quarter - Duration::from_secs(60) && left > quarter / 2),
        "{left:?}"
    );
    assert_eq!(left[1..], [Some(Duration::ZERO), None]);
}

/// promise: M1, A3
#[tokio::test]
async fn an_empty_answer_is_no_news_and_no_error() {
    let script = Script::of([say(200, DATE, ""), say(200, DATE, " \r\n"), document(1, "")]).await;
    let mut client = script.client();
    for _ in 0..2 {
        assert_eq!(client.poll().await.unwrap(), PollResponse::Empty { date: THEN });
    }
    assert_eq!(incarnation(&client.poll().await.unwrap()), 1);
}

#[tokio::test]
async fn the_same_document_without_a_tag_is_unchanged_and_another_by_the_same_number_is_not() {
    let event = r#"{"EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4","EventStatus":"Scheduled","EventType":"Reboot",
        "ResourceType":"VirtualMachine","Resources":["a"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT"}"#;
    let other = format!("{{\"DocumentIncarnation\":3,\"Events\":[{event}]}}");
    let script =
        Script::of([say(200, DATE, &empty(3)), say(200, DATE, &empty(3)), say(200, DATE, &other)]).await;
    let mut client = script.client();
    assert_eq!(incarnation(&client.poll().await.unwrap()), 3);
    assert_eq!(client.poll().await.unwrap(), PollResponse::Unchanged { date: THEN });
    assert_eq!(incarnation(&client.poll().await.unwrap()), 3);
    assert!(script.asked().iter().all(|asked| !asked.text.contains("if-none-match")));
}

#[tokio::test]
async fn where_no_date_is_told_or_one_that_is_none_our_own_clock_counts() {
    let script = Script::of([say(200, "", &empty(1)), say(200, "Date: today\r\n", &empty(2))]).await;
    let mut client = script.client();
    let own = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    for _ in 0..2 {
        let PollResponse::Document(observation) = client.poll().await.unwrap() else { panic!("a document") };
        let since = observation.date.since(Timestamp::from_millis(own.as_millis().try_into().unwrap()));
        assert!(since < Duration::from_secs(60) && observation.date > THEN, "{observation:?}");
    }
}

#[tokio::test]
async fn an_older_endpoint_names_its_editions_and_is_asked_for_the_newest_that_both_know() {
    let refusal = r#"{ "error": "Bad request. api-version is invalid", "newest-versions": [ "2031-01-01", "2019-04-01", "2019-01-01" ] }"#;
    let script = Script::of([say(400, "", refusal), document(1, ""), document(2, "")]).await;
    let mut client = script.client();
    let PollResponse::Document(observation) = client.poll().await.unwrap() else { panic!("a document") };
    assert_eq!((observation.edition, client.edition()), (Edition::V2019_04_01, Edition::V2019_04_01));
    client.poll().await.unwrap();
    let versions: Vec<_> = script.asked().iter().map(|asked| asked.text[42..52].to_owned()).collect();
    assert_eq!(versions, ["2020-07-01", "2019-04-01", "2019-04-01"], "remembered");
}

#[tokio::test]
async fn an_endpoint_that_names_none_is_asked_for_one_edition_less_each_time() {
    let no = || say(400, "", r#"{"error":"Bad request"}"#);
    let script = Script::of([no(), no(), document(1, ""), no()]).await;
    let mut client = script.client();
    for _ in 0..2 {
        let refused = client.poll().await.unwrap_err();
        assert!(
            matches!(&refused, Error::Rejected { status: 400, message } if message == "Bad request"),
            "{refused:?}"
        );
    }
    client.poll().await.unwrap();
    assert_eq!(client.edition(), Edition::V2019_04_01);
    client.poll().await.unwrap_err();
    assert_eq!(client.edition(), Edition::V2019_04_01, "it has worked: this is about something else");
}

#[tokio::test]
async fn what_passes_is_told_from_what_does_not() {
    let wait = "Retry-After: 3\r\n";
    let statuses = [410, 429, 500, 503];
    let script = Script::of(statuses.map(|status| say(status, wait, "{ \"error\": \"later\" }"))).await;
    let mut client = script.client();
    for expected in statuses {
        let error = client.poll().await.unwrap_err();
        let Error::Busy { status, message, retry_after } = &error else { panic!("{error:?}") };
        assert_eq!(
            (*status, message.as_str(), *retry_after),
            (expected, "later", Some(Duration::from_secs(3)))
        );
    }
    let script =
        Script::of([say(404, "", "<html>"), say(301, "Location: /x\r\n", ""), say(304, "", "")]).await;
    let mut client = script.client();
    for status in [404, 301, 304] {
        let error = client.poll().await.unwrap_err();
        assert!(
            matches!(error, Error::NotAnEndpoint { .. }) && error.to_string().contains(&status.to_string())
        );
    }
    assert_eq!(script.asked().len(), 3, "no redirect is followed");
}

#[tokio::test]
async fn an_answer_that_ends_too_early_is_none() {
    let cut = bytes(200, "", &empty(1)).replace("Content-Length: ", "Content-Length: 1");
    let script = Script::of([Step::SayAndClose(cut), document(2, "")]).await;
    let mut client = script.client();
    let error = client.poll().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { reason: HttpError::InvalidResponse(_), .. }), "{error:?}");
    assert_eq!(incarnation(&client.poll().await.unwrap()), 2);
}

#[tokio::test]
async fn what_is_no_document_is_refused_and_what_is_too_long_is_not_read() {
    let long = format!("HTTP/1.1 200 X\r\nContent-Length: {}\r\n\r\n{{", DOCUMENT_BYTES_MAX + 1);
    let chunk = format!("{DOCUMENT_BYTES_MAX:x}\r\n{}\r\n1\r\n \r\n", " ".repeat(DOCUMENT_BYTES_MAX));
    let chunks = format!("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}");
    let endless = format!("HTTP/1.1 200 X\r\nX: {}\r\n", "x".repeat(70_000));
    let script = Script::of([
        say(200, "", "{\"DocumentIncarnation\":"),
        say(200, "", &"[".repeat(100_000)),
        Step::Say(long),
        Step::Say(chunks),
        Step::Say("220 mail.example ready\r\n".to_owned()),
        Step::SayAndClose(endless),
    ])
    .await;
    let mut client = script.client();
    assert!(matches!(client.poll().await.unwrap_err(), Error::Unreadable(Unreadable::Form(_))));
    assert!(matches!(client.poll().await.unwrap_err(), Error::Unreadable(Unreadable::TooDeep)));
    for _ in 0..2 {
        assert!(matches!(client.poll().await.unwrap_err(), Error::Unreadable(Unreadable::TooLong(_))));
    }
    for _ in 0..2 {
        let error = client.poll().await.unwrap_err();
        assert!(
            matches!(error, Error::Unreachable { reason: HttpError::InvalidResponse(_), .. }),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_the_endpoint_closes_is_made_anew() {
    let close = |incarnation| bytes(200, "Connection: close\r\n", &empty(incarnation));
    let script = Script::of([
        Step::SayAndClose(close(1)),
        // Closed without a word.
        Step::SayAndClose(bytes(200, "", &empty(2))),
        document(3, ""),
        document(4, ""),
    ])
    .await;
    let mut client = script.client();
    for expected in 1..=4 {
        assert_eq!(incarnation(&client.poll().await.unwrap()), expected);
    }
    let connections: Vec<_> = script.asked().iter().map(|asked| asked.connection).collect();
    assert_eq!(connections, [0, 1, 2, 2]);
}

#[tokio::test]
async fn nobody_at_the_address_is_told_as_such() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = forewarn_client::Endpoint::parse(&free.local_addr().unwrap().to_string()).unwrap();
    drop(free);
    let error = forewarn_client::Client::new(endpoint).poll().await.unwrap_err();
    assert!(matches!(error, Error::Unreachable { reason: HttpError::Unreachable(_), .. }), "{error:?}");
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}
