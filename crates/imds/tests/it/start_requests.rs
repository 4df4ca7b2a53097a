//! Start requests: what is understood, what is refused, and with which words.

use forewarn_imds::{
    BODY_BYTES_MAX, BadStartRequest as Bad, parse_start_requests as parse, render_start_requests as render,
};
use forewarn_types::EventId;

const ID: &str = "28512AF7-C957-4500-9BC4-842D6FB531E4";
const OTHER: &str = "A626E37F-793E-44E1-89B5-99AE0B96044C";

fn id(text: &str) -> EventId {
    EventId::parse(text).unwrap()
}

#[test]
fn a_request_is_written_compactly_and_read_back() {
    let (one, two) = (id(ID), id(OTHER));
    assert_eq!(render(&[one]), r#"{"StartRequests":[{"EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4"}]}"#);
    assert_eq!(
        render(&[one, two]),
        r#"{"StartRequests":[{"EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4"},{"EventId":"A626E37F-793E-44E1-89B5-99AE0B96044C"}]}"#
    );
    assert_eq!(parse(render(&[two, one, two]).as_bytes()), Ok(vec![two, one, two]));
}

/// promise: M2
#[test]
fn what_does_not_matter_is_ignored() {
    let lower = ID.to_lowercase();
    for body in [
        format!(r#"{{"DocumentIncarnation":"5","StartRequests":[{{"EventId":"{ID}"}}]}}"#),
        format!(r#"{{"DocumentIncarnation":5,"StartRequests":[{{"EventId":"{ID}"}}]}}"#),
        format!(r#"{{"DocumentIncarnation":null,"StartRequests":[{{"EventId":"{ID}"}}]}}"#),
        format!(r#"{{"DocumentIncarnation":{{"a":[1e999]}},"StartRequests":[{{"EventId":"{ID}"}}]}}"#),
        format!(r#"{{"a":1,"a":2,"StartRequests":[{{"EventId":"{lower}","EventType":"Freeze","x":[]}}]}}"#),
        format!("\n{{ \"StartRequests\" :\r\n\t[ {{ \"EventId\" : \"{lower}\" }} ]\n}}\n"),
        format!(
            r#"{{"startrequests":1,"EventId":5,"StartRequests":[{{"StartRequests":7,"EventId":"{ID}"}}]}}"#
        ),
        format!(r#"{{"Start\u0052equests":[{{"EventId":"\u0032{}"}}]}}"#, &ID[1..]),
    ] {
        assert_eq!(parse(body.as_bytes()), Ok(vec![id(ID)]), "{body}");
    }
}

/// promise: M2
#[test]
fn one_byte_order_mark_before_the_body_is_skipped() {
    let body = format!(r#"{{"StartRequests":[{{"EventId":"{ID}"}}]}}"#);
    assert_eq!(parse(format!("\u{feff}{body}").as_bytes()), Ok(vec![id(ID)]));
    assert_eq!(parse(format!("\u{feff}\r\n{body}").as_bytes()), Ok(vec![id(ID)]));
    assert_eq!(parse("\u{feff}".as_bytes()), Err(Bad::BodyEmpty));
    for wrong in [format!("\u{feff}\u{feff}{body}"), format!(" \u{feff}{body}"), format!("{body}\u{feff}")] {
        assert!(matches!(parse(wrong.as_bytes()), Err(Bad::NotJson { .. })), "{wrong}");
    }
    // Half a mark, and that of UTF-16.
    for wrong in [&b"\xef\xbb{}"[..], b"\xff\xfe{}"] {
        assert_eq!(parse(wrong), Err(Bad::NotUtf8));
    }
}

/// promise: M2
#[test]
fn what_cannot_be_understood_is_refused_with_its_reason() {
    let guid = format!(r#"{{"EventId":"{ID}"}}"#);
    for (body, bad) in [
        (String::new(), Bad::BodyEmpty),
        (" \r\n\t".to_owned(), Bad::BodyEmpty),
        ("{".to_owned(), Bad::NotJson { line: 1, column: 1 }),
        ("{\n  nonsense".to_owned(), Bad::NotJson { line: 2, column: 3 }),
        (format!(r#"{{"StartRequests":[{guid}]}} x"#), Bad::NotJson { line: 1, column: 72 }),
        (format!(r#"{{"StartRequests":[{guid}]}}{{}}"#), Bad::NotJson { line: 1, column: 71 }),
        ("[]".to_owned(), Bad::NotAnObject),
        ("1".to_owned(), Bad::NotAnObject),
        (r#""StartRequests""#.to_owned(), Bad::NotAnObject),
        ("{}".to_owned(), Bad::StartRequestsMissing),
        (format!(r#"{{"startRequests":[{guid}]}}"#), Bad::StartRequestsMissing),
        (format!(r#"{{"StartRequests":[{guid}],"StartRequests":[{guid}]}}"#), Bad::StartRequestsTwice),
        (format!(r#"{{"StartRequests":{guid}}}"#), Bad::StartRequestsNotAList),
        (r#"{"StartRequests":null}"#.to_owned(), Bad::StartRequestsNotAList),
        (r#"{"StartRequests":[]}"#.to_owned(), Bad::StartRequestsEmpty),
        (format!(r#"{{"StartRequests":["{ID}"]}}"#), Bad::EntryNotAnObject),
        (format!(r#"{{"StartRequests":[{guid},null]}}"#), Bad::EntryNotAnObject),
        (r#"{"StartRequests":[{}]}"#.to_owned(), Bad::EventIdMissing),
        (format!(r#"{{"StartRequests":[{{"eventId":"{ID}"}}]}}"#), Bad::EventIdMissing),
        (format!(r#"{{"StartRequests":[{{"EventId":"{ID}","EventId":"{ID}"}}]}}"#), Bad::EventIdTwice),
        (r#"{"StartRequests":[{"EventId":5}]}"#.to_owned(), Bad::EventIdNotAString),
        (r#"{"StartRequests":[{"EventId":""}]}"#.to_owned(), Bad::EventIdNotAGuid),
        (r#"{"StartRequests":[{"EventId":"28512AF7"}]}"#.to_owned(), Bad::EventIdNotAGuid),
    ] {
        assert_eq!(parse(body.as_bytes()), Err(bad), "{body}");
    }
}

#[test]
fn a_body_that_is_no_text_is_refused_even_where_it_would_be_ignored() {
    let mut body = br#"{"a":""#.to_vec();
    body.push(0xff);
    body.extend(format!(r#"","StartRequests":[{{"EventId":"{ID}"}}]}}"#).bytes());
    assert_eq!(parse(&body), Err(Bad::NotUtf8));
}

/// promise: M5
#[test]
fn a_body_may_be_as_long_as_the_limit_and_no_longer() {
    assert_eq!(BODY_BYTES_MAX, 131_072);
    let request = render(&[id(ID)]);
    let padded = |length: usize| format!("{request}{}", " ".repeat(length - request.len()));
    assert_eq!(parse(padded(131_072).as_bytes()), Ok(vec![id(ID)]));
    assert_eq!(parse(padded(131_073).as_bytes()), Err(Bad::BodyTooLong));
}

/// promise: M5
#[test]
fn a_body_may_be_nested_as_deep_as_the_limit_and_no_deeper() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"a":{open}{close},"StartRequests":[{{"EventId":"{ID}"}}]}}"#)
    };
    assert_eq!(parse(nested(8).as_bytes()), Ok(vec![id(ID)]));
    assert_eq!(parse(nested(9).as_bytes()), Err(Bad::TooDeep));
}

#[test]
fn a_request_may_name_as_many_events_as_the_limit_and_no_more() {
    assert_eq!(parse(render(&[id(ID); 2_000]).as_bytes()).map(|ids| ids.len()), Ok(2_000));
    assert_eq!(parse(render(&[id(ID); 2_001]).as_bytes()), Err(Bad::TooManyStartRequests));
}

#[test]
fn an_id_may_be_as_long_as_the_limit_and_no_longer() {
    let request = |id: String| format!(r#"{{"StartRequests":[{{"EventId":"{id}"}}]}}"#);
    for character in ["a", "é"] {
        assert_eq!(parse(request(character.repeat(64)).as_bytes()), Err(Bad::EventIdNotAGuid));
        assert_eq!(parse(request(character.repeat(65)).as_bytes()), Err(Bad::EventIdTooLong));
    }
}

#[test]
fn every_refusal_says_what_is_wrong() {
    for (bad, words) in [
        (Bad::BodyTooLong, "the body has more than 131072 bytes"),
        (Bad::BodyEmpty, "the body is empty"),
        (Bad::NotUtf8, "the body is not UTF-8"),
        (Bad::TooDeep, "the body is nested more than 8 levels deep"),
        (Bad::NotJson { line: 2, column: 13 }, "the body is not JSON, see line 2, column 13"),
        (Bad::NotAnObject, "the body must be an object"),
        (Bad::StartRequestsMissing, "StartRequests is missing"),
        (Bad::StartRequestsTwice, "StartRequests is given twice"),
        (Bad::StartRequestsNotAList, "StartRequests must be a list"),
        (Bad::StartRequestsEmpty, "StartRequests must not be empty"),
        (Bad::TooManyStartRequests, "StartRequests has more than 2000 entries"),
        (Bad::EntryNotAnObject, "each entry of StartRequests must be an object"),
        (Bad::EventIdMissing, "EventId is missing"),
        (Bad::EventIdTwice, "EventId is given twice"),
        (Bad::EventIdNotAString, "EventId must be a string"),
        (Bad::EventIdTooLong, "EventId has more than 64 characters"),
        (Bad::EventIdNotAGuid, "EventId is not a GUID"),
    ] {
        assert_eq!(bad.to_string(), words);
    }
}
