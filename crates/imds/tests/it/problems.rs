//! Every refusal of the metadata endpoint, byte by byte.

use forewarn_imds::{BadStartRequest, Methods, RequestError, UnwantedHeader, VersionList};

/// What is refused has this status and this body, and the body is JSON.
fn assert_answers<const N: usize>(answers: [(RequestError, u16, &str); N]) {
    for (problem, status, body) in answers {
        assert_eq!((problem.status(), &*problem.body()), (status, body), "{problem:?}");
        let json: serde_json::Value = serde_json::from_str(body).unwrap();
        assert!(json["error"].is_string());
    }
}

/// promise: M2
#[test]
fn every_problem_before_the_path_is_looked_at_has_its_status_and_its_body() {
    let header = RequestError::UnwantedHeader;
    assert_answers([
        (
            RequestError::UnknownCaller,
            403,
            r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#,
        ),
        (RequestError::Malformed, 400, r#"{ "error": "Bad request: the request is malformed" }"#),
        (RequestError::UriTooLong, 414, r#"{ "error": "URI too long" }"#),
        (RequestError::HeadersTooLarge, 431, r#"{ "error": "Request header fields too large" }"#),
        (
            RequestError::ForeignHost { advice: None },
            400,
            r#"{ "error": "Bad request: Host must be an IP address, localhost, a single label or a configured name" }"#,
        ),
        (
            RequestError::ForeignHost { advice: Some("add the name to metadata.host_names") },
            400,
            r#"{ "error": "Bad request: Host must be an IP address, localhost, a single label or a configured name: add the name to metadata.host_names" }"#,
        ),
        (
            header(UnwantedHeader::XForwardedFor),
            400,
            r#"{ "error": "Bad request: X-Forwarded-For is not accepted" }"#,
        ),
        (header(UnwantedHeader::Forwarded), 400, r#"{ "error": "Bad request: Forwarded is not accepted" }"#),
        (header(UnwantedHeader::Via), 400, r#"{ "error": "Bad request: Via is not accepted" }"#),
        (header(UnwantedHeader::XRealIp), 400, r#"{ "error": "Bad request: X-Real-IP is not accepted" }"#),
        (header(UnwantedHeader::Origin), 400, r#"{ "error": "Bad request: Origin is not accepted" }"#),
        (
            header(UnwantedHeader::SecFetchSite),
            400,
            r#"{ "error": "Bad request: Sec-Fetch-Site is not accepted" }"#,
        ),
    ]);
}

/// promise: M2
#[test]
fn every_problem_with_what_is_asked_for_has_its_status_and_its_body() {
    assert_answers([
        (RequestError::NotFound, 404, r#"{ "error": "Not found" }"#),
        (
            RequestError::MetadataHeaderMissing,
            400,
            r#"{ "error": "Bad request: . Required metadata header not specified" }"#,
        ),
        (
            RequestError::TokenHeaderMissing,
            400,
            r#"{"error":"invalid_request","error_description":"Required metadata header not specified"}"#,
        ),
        (
            RequestError::ParameterTwice,
            400,
            r#"{ "error": "Bad request: a query parameter is given twice" }"#,
        ),
        (
            RequestError::VersionInvalid(VersionList::ScheduledEvents),
            400,
            r#"{ "error": "Bad request. api-version is invalid or was not specified in the request. For more information refer to aka.ms/azureimds", "newest-versions": [ "2020-07-01", "2019-08-01", "2019-04-01" ] }"#,
        ),
        (
            RequestError::VersionInvalid(VersionList::Instance),
            400,
            r#"{ "error": "Bad request. api-version is invalid or was not specified in the request. For more information refer to aka.ms/azureimds", "newest-versions": [ "2025-04-07", "2024-07-17", "2024-03-15" ] }"#,
        ),
        (RequestError::MethodNotAllowed(Methods::Get), 405, r#"{ "error": "Method not allowed" }"#),
        (RequestError::MethodNotAllowed(Methods::GetPost), 405, r#"{ "error": "Method not allowed" }"#),
        (
            RequestError::WaitInvalid,
            400,
            r#"{ "error": "Bad request: wait must be like 30s, at most 60s, and incarnation must be a number" }"#,
        ),
        (RequestError::FormatInvalid, 400, r#"{ "error": "Bad request: format must be json or text" }"#),
        (RequestError::LeafNeedsText, 400, r#"{ "error": "Bad request: a single value needs format=text" }"#),
        (RequestError::BodyTooLarge, 413, r#"{ "error": "Too large: a body has at most 131072 bytes" }"#),
        (
            RequestError::StartRequest(BadStartRequest::StartRequestsNotAList),
            400,
            r#"{ "error": "Bad request: StartRequests must be a list" }"#,
        ),
        (
            RequestError::StartRequest(BadStartRequest::NotJson { line: 1, column: 9 }),
            400,
            r#"{ "error": "Bad request: the body is not JSON, see line 1, column 9" }"#,
        ),
        (
            RequestError::UnknownEvent,
            400,
            r#"{ "error": "Bad request: EventId does not name an event of this machine" }"#,
        ),
        (
            RequestError::TooManyRequests { retry_after_seconds: 1 },
            429,
            r#"{ "error": "Too many requests" }"#,
        ),
        (RequestError::Unavailable { retry_after_seconds: 5 }, 503, r#"{ "error": "Service unavailable" }"#),
    ]);
}

#[test]
fn an_answer_to_a_wrong_method_lists_the_right_ones() {
    assert_eq!(RequestError::MethodNotAllowed(Methods::Get).allow(), Some("GET"));
    assert_eq!(RequestError::MethodNotAllowed(Methods::GetPost).allow(), Some("GET, POST"));
    assert_eq!(RequestError::NotFound.allow(), None);
}

#[test]
fn an_answer_that_may_be_better_later_says_when() {
    assert_eq!(RequestError::TooManyRequests { retry_after_seconds: 3 }.retry_after_seconds(), Some(3));
    assert_eq!(RequestError::Unavailable { retry_after_seconds: 7 }.retry_after_seconds(), Some(7));
    assert_eq!(RequestError::Malformed.retry_after_seconds(), None);
}

#[test]
fn an_over_long_body_has_a_status_of_its_own() {
    assert_eq!(RequestError::from(BadStartRequest::BodyTooLong), RequestError::BodyTooLarge);
    let empty = BadStartRequest::StartRequestsEmpty;
    assert_eq!(RequestError::from(empty), RequestError::StartRequest(empty));
}

#[test]
fn unwanted_headers_are_recognised_in_any_case_and_others_are_not() {
    for header in UnwantedHeader::ALL {
        assert_eq!(UnwantedHeader::named(header.as_str()), Some(header));
        assert_eq!(UnwantedHeader::named(&header.as_str().to_lowercase()), Some(header));
    }
    for fine in ["Metadata", "Sec-Fetch-Mode", "X-Forwarded-Proto", "User-Agent", ""] {
        assert_eq!(UnwantedHeader::named(fine), None);
    }
}
