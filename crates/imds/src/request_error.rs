//! Error responses of the metadata endpoint: status and body, byte for byte.
//!
//! Bodies are fixed texts and numbers. No body repeats input of the caller, so nothing needs escaping.

use std::borrow::Cow;

use crate::start_request::{BODY_BYTES_MAX, BadStartRequest};
use crate::versions::VersionList;

/// The rule for the header `Host`.
const HOST_RULE: &str = "Host must be an IP address, localhost, a single label or a configured name";

/// The reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// No machine is known at the address of the caller.
    UnknownCaller,
    /// The request is not valid HTTP.
    Malformed,
    /// The target is too long.
    UriTooLong,
    /// The header fields are too many or too long.
    HeadersTooLarge,
    /// The `Host` is a name that another domain may have pointed to this server.
    ForeignHost {
        /// The way to make the name known. `None` if there is none.
        advice: Option<&'static str>,
    },
    /// The request came through a proxy or from a web page.
    UnwantedHeader(UnwantedHeader),
    /// The path does not exist.
    NotFound,
    /// `Metadata: true` is missing.
    MetadataHeaderMissing,
    /// The same for token requests, whose clients expect another body.
    TokenHeaderMissing,
    /// A query parameter is repeated.
    ParameterTwice,
    /// The `api-version` is missing, or not in the list of that path.
    VersionInvalid(VersionList),
    /// The path does not support the method.
    MethodNotAllowed(Methods),
    /// `wait` or `incarnation` is invalid.
    WaitInvalid,
    /// `format` is neither `json` nor `text`.
    FormatInvalid,
    /// A single value was requested as JSON.
    LeafNeedsText,
    /// The body is too long.
    BodyTooLarge,
    /// The body is not a list of start requests.
    StartRequest(BadStartRequest),
    /// A start request names an event that the caller cannot see.
    UnknownEvent,
    /// The machine sends too many requests.
    TooManyRequests {
        /// Time until the next attempt.
        retry_after_seconds: u32,
    },
    /// The request cannot be made durable at the moment.
    Unavailable {
        /// Time until the next attempt.
        retry_after_seconds: u32,
    },
}

/// The methods that a path supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Methods {
    /// Reading only.
    Get,
    /// Reading and approving.
    GetPost,
}

/// A header that no program inside a machine sends by itself: proxies and browsers add them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwantedHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded`.
    Forwarded,
    /// `Via`.
    Via,
    /// `X-Real-IP`.
    XRealIp,
    /// `Origin`.
    Origin,
    /// `Sec-Fetch-Site`.
    SecFetchSite,
}

impl RequestError {
    /// The status of the response.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Malformed
            | Self::ForeignHost { .. }
            | Self::UnwantedHeader(_)
            | Self::MetadataHeaderMissing
            | Self::TokenHeaderMissing
            | Self::ParameterTwice
            | Self::VersionInvalid(_)
            | Self::WaitInvalid
            | Self::FormatInvalid
            | Self::LeafNeedsText
            | Self::StartRequest(_)
            | Self::UnknownEvent => 400,
            Self::UnknownCaller => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed(_) => 405,
            Self::BodyTooLarge => 413,
            Self::UriTooLong => 414,
            Self::TooManyRequests { .. } => 429,
            Self::HeadersTooLarge => 431,
            Self::Unavailable { .. } => 503,
        }
    }

    /// The body of the response: JSON.
    #[must_use]
    pub fn body(self) -> Cow<'static, str> {
        match self {
            Self::UnknownCaller => {
                r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#.into()
            }
            Self::Malformed => bad_request("the request is malformed"),
            Self::UriTooLong => r#"{ "error": "URI too long" }"#.into(),
            Self::HeadersTooLarge => r#"{ "error": "Request header fields too large" }"#.into(),
            Self::ForeignHost { advice: None } => bad_request(HOST_RULE),
            Self::ForeignHost { advice: Some(advice) } => bad_request(&format!("{HOST_RULE}: {advice}")),
            Self::UnwantedHeader(header) => bad_request(&format!("{} is not accepted", header.as_str())),
            Self::NotFound => r#"{ "error": "Not found" }"#.into(),
            Self::MetadataHeaderMissing => bad_request(". Required metadata header not specified"),
            Self::TokenHeaderMissing => {
                r#"{"error":"invalid_request","error_description":"Required metadata header not specified"}"#
                    .into()
            }
            Self::ParameterTwice => bad_request("a query parameter is given twice"),
            Self::VersionInvalid(list) => version_invalid(list).into(),
            Self::MethodNotAllowed(_) => r#"{ "error": "Method not allowed" }"#.into(),
            Self::WaitInvalid => {
                bad_request("wait must be like 30s, at most 60s, and incarnation must be a number")
            }
            Self::FormatInvalid => bad_request("format must be json or text"),
            Self::LeafNeedsText => bad_request("a single value needs format=text"),
            Self::BodyTooLarge => {
                format!(r#"{{ "error": "Too large: a body has at most {BODY_BYTES_MAX} bytes" }}"#).into()
            }
            Self::StartRequest(bad) => bad_request(&bad.to_string()),
            Self::UnknownEvent => bad_request("EventId does not name an event of this machine"),
            Self::TooManyRequests { .. } => r#"{ "error": "Too many requests" }"#.into(),
            Self::Unavailable { .. } => r#"{ "error": "Service unavailable" }"#.into(),
        }
    }

    /// The value of `Allow`; `None` if the response has none.
    #[must_use]
    pub const fn allow(self) -> Option<&'static str> {
        if let Self::MethodNotAllowed(methods) = self { Some(methods.as_str()) } else { None }
    }

    /// The value of `Retry-After`; `None` if the response has none.
    #[must_use]
    pub const fn retry_after_seconds(self) -> Option<u32> {
        if let Self::TooManyRequests { retry_after_seconds } | Self::Unavailable { retry_after_seconds } =
            self
        {
            Some(retry_after_seconds)
        } else {
            None
        }
    }
}

/// A body that is too long has a status of its own.
impl From<BadStartRequest> for RequestError {
    fn from(bad: BadStartRequest) -> Self {
        if bad == BadStartRequest::BodyTooLong { Self::BodyTooLarge } else { Self::StartRequest(bad) }
    }
}

impl Methods {
    /// The methods in the form of `Allow`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::GetPost => "GET, POST",
        }
    }
}

impl UnwantedHeader {
    /// Every unwanted header.
    pub const ALL: [Self; 6] =
        [Self::XForwardedFor, Self::Forwarded, Self::Via, Self::XRealIp, Self::Origin, Self::SecFetchSite];

    /// The unwanted header of that name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|header| header.as_str().eq_ignore_ascii_case(name))
    }

    /// The name of the header.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "X-Forwarded-For",
            Self::Forwarded => "Forwarded",
            Self::Via => "Via",
            Self::XRealIp => "X-Real-IP",
            Self::Origin => "Origin",
            Self::SecFetchSite => "Sec-Fetch-Site",
        }
    }
}

fn bad_request(message: &str) -> Cow<'static, str> {
    format!(r#"{{ "error": "Bad request: {message}" }}"#).into()
}

fn version_invalid(list: VersionList) -> String {
    let newest: Vec<_> = list.newest().map(|version| format!(r#""{version}""#)).collect();
    format!(
        "{{ \"error\": \"Bad request. api-version is invalid or was not specified in the request. \
         For more information refer to aka.ms/azureimds\", \"newest-versions\": [ {} ] }}",
        newest.join(", ")
    )
}
