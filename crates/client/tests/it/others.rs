//! Approving, names, members, and looking for the endpoint.

use forewarn_client::{DiscoverySource, Edition, Endpoint, Error, Found, Search};
use forewarn_types::EventId;

use crate::script::{FOREWARN, Script, document, say};

fn id(last: char) -> EventId {
    EventId::parse(&format!("28512AF7-C957-4500-9BC4-842D6FB531E{last}")).unwrap()
}

#[tokio::test]
async fn an_approval_names_its_events_and_what_is_refused_comes_with_the_servers_words() {
    let script = Script::of([
        say(200, "", ""),
        say(400, "", r#"{ "error": "Bad request: EventId does not name an event of this machine" }"#),
        say(503, "Retry-After: 1\r\n", ""),
    ])
    .await;
    let mut client = script.client();
    client.approve(&[]).await.unwrap();
    client.approve(&[id('4'), id('5')]).await.unwrap();
    let refused = client.approve(&[id('4')]).await.unwrap_err();
    let Error::Rejected { status: 400, message } = &refused else { panic!("{refused:?}") };
    assert!(message.contains("does not name an event of this machine"));
    assert!(matches!(client.approve(&[id('4')]).await.unwrap_err(), Error::Busy { status: 503, .. }));

    let asked = script.asked();
    assert_eq!(asked.len(), 3, "nothing is asked about nothing");
    let first = &asked[0].text;
    assert!(
        first.starts_with("POST /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"),
        "{first}"
    );
    assert!(
        first.contains("\r\nmetadata: true\r\n") && first.contains("\r\ncontent-type: application/json\r\n")
    );
    let body = first.split_once("\r\n\r\n").unwrap().1;
    let expected =
        format!("{{\"StartRequests\":[{{\"EventId\":\"{}\"}},{{\"EventId\":\"{}\"}}]}}", id('4'), id('5'));
    assert_eq!(body, expected);
    assert_eq!(client.edition().as_str(), "2020-07-01", "an unknown event is no matter of editions");
}

#[tokio::test]
async fn an_approval_does_not_wait_behind_a_long_poll() {
    let mut script = Script::of([document(1, FOREWARN)]).await;
    let mut client = script.client();
    client.poll_step().await;
    let mut sibling = client.sibling();
    let waiting = tokio::spawn(async move { client.poll_step().await });
    script.until_asked(2).await;
    let approving = tokio::spawn(async move { sibling.approve(&[id('4')]).await });
    script.until_asked(3).await;
    assert!(!waiting.is_finished());
    let asked = script.asked();
    assert!(asked[1].text.contains("wait=30s") && asked[2].text.starts_with("POST "));
    assert_ne!(asked[1].connection, asked[2].connection);
    waiting.abort();
    approving.abort();
}

#[tokio::test]
async fn an_approval_follows_the_editions_that_are_named() {
    let refusal = r#"{"error":"api-version","newest-versions":["2019-08-01"]}"#;
    let script = Script::of([say(400, "", refusal), say(200, "", "")]).await;
    script.client().approve(&[id('4')]).await.unwrap();
    assert!(script.asked()[1].text.contains("api-version=2019-08-01"));
}

#[tokio::test]
async fn an_approval_begins_with_the_edition_that_it_is_told() {
    let script = Script::of([say(200, "", "")]).await;
    let mut client = script.client().with_edition(Edition::V2019_04_01);
    assert_eq!(client.edition(), Edition::V2019_04_01);
    client.approve(&[id('4')]).await.unwrap();
    assert!(script.asked()[0].text.contains("api-version=2019-04-01"));
}

#[tokio::test]
async fn one_that_was_given_up_is_passed_over_unless_somebody_has_set_it() {
    let versions = r#"{"apiVersions":["2017-03-01"]}"#;
    let script = Script::of([say(200, "", versions)]).await;
    let found = |by| Ok(Found { endpoint: script.endpoint(), by });
    let mut search = Search {
        explicit: None,
        variable: None,
        well_known: Some(script.endpoint()),
        lease_files: Vec::new(),
        discover: false,
    };
    let told = search.run_past(&script.endpoint()).await.unwrap_err().to_string();
    assert!(told.contains(": was tried before and did not work"), "{told}");
    assert!(script.asked().is_empty());
    let other = Endpoint::parse("http://192.0.2.1").unwrap();
    assert_eq!(search.run_past(&other).await, found(DiscoverySource::WellKnown));
    search.explicit = found(DiscoverySource::Setting).ok();
    assert_eq!(search.run_past(&script.endpoint()).await, found(DiscoverySource::Setting));
}

#[tokio::test]
async fn the_name_of_this_machine_is_asked_for_as_text() {
    let script =
        Script::of([say(200, "", "web_0"), say(200, "", "a\nb"), say(200, "", ""), say(404, "", "")]).await;
    let mut client = script.client();
    assert_eq!(client.name().await.unwrap(), "web_0");
    for _ in 0..3 {
        assert!(matches!(client.name().await.unwrap_err(), Error::NotAnEndpoint { .. }));
    }
    let asked = &script.asked()[0].text;
    assert!(
        asked.starts_with("GET /metadata/instance/compute/name?api-version=2017-08-01&format=text "),
        "{asked}"
    );
    assert!(asked.contains("\r\nmetadata: true\r\n"));
}

#[tokio::test]
async fn members_are_told_by_forewarn_and_by_nobody_else() {
    let script = Script::of([
        say(200, FOREWARN, r#"{"members":["web_0","web_1"]}"#),
        say(200, FOREWARN, r#"{"members":["web_0",7]}"#),
        say(404, "", ""),
        say(200, "Server: IMDS\r\n", r#"{"members":["web_0"]}"#),
    ])
    .await;
    let mut client = script.client();
    assert_eq!(client.members().await.unwrap(), ["web_0", "web_1"]);
    assert!(matches!(client.members().await.unwrap_err(), Error::NotAnEndpoint { .. }));
    for _ in 0..2 {
        assert!(matches!(client.members().await.unwrap_err(), Error::Unsupported));
    }
}

#[tokio::test]
async fn a_prefix_stands_before_everything() {
    let script = Script::of([say(200, "", "web_0"), document(1, "")]).await;
    let endpoint = Endpoint::parse(&format!("http://{}/vm/web_0", script.address)).unwrap();
    let mut client = forewarn_client::Client::new(endpoint);
    client.name().await.unwrap();
    client.poll().await.unwrap();
    let asked = script.asked();
    assert!(asked.iter().all(|asked| asked.text.starts_with("GET /vm/web_0/metadata/")), "{asked:?}");
}

/// promise: A6
#[tokio::test]
async fn the_usual_place_is_asked_whether_it_is_one() {
    let versions = r#"{"apiVersions":["2017-03-01"]}"#;
    let script = Script::of([say(200, "", versions), say(404, "Server: EC2ws\r\n", "")]).await;
    let search = Search {
        explicit: None,
        variable: None,
        well_known: Some(script.endpoint()),
        lease_files: vec!["/nowhere/at/all".into()],
        discover: false,
    };
    assert_eq!(search.run().await, Ok(Found { endpoint: script.endpoint(), by: DiscoverySource::WellKnown }));
    let asked = &script.asked()[0].text;
    assert!(
        asked.starts_with("GET /metadata/versions HTTP/1.1\r\n") && asked.contains("\r\nmetadata: true\r\n")
    );

    let told = search.run().await.unwrap_err().to_string();
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 5, "{told}");
    assert!(lines[1].contains("is another service: GET /metadata/versions returned 404"), "{told}");
    assert!(
        lines[2].starts_with("  /nowhere/at/all: ")
            && lines[3].starts_with("  DHCP: disabled in the settings"),
        "{told}"
    );
    assert!(lines[4].contains("SCHEDULEDEVENTSIP"), "{told}");
}
