//! Routing of well-formed requests of known callers: the checks from the `Metadata` header to the method, in their
//! order.

use std::time::Duration;

use forewarn_imds::{Edition, Format, InstanceVersion, Methods, RequestError, VersionList};

use crate::counts::Path;
use crate::request::{Head, KnownIncarnations, Method};
use crate::settings::{IdentityToken, Settings};

/// Maximum time that a request may wait for a change of the document.
const WAIT_SECONDS_MAX: u64 = 60;

/// Action of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Reads the document of an edition.
    Events {
        edition: Edition,
        known: KnownIncarnations,
        wait: Option<Wait>,
    },
    /// Approves the events in the body.
    Approve,
    Instance {
        path: String,
        version: InstanceVersion,
        format: Format,
    },
    /// Lists the versions of instance metadata.
    Versions,
    /// Lists the machines of the tenant.
    Members,
    /// Gets an identity token.
    Token {
        resource: String,
    },
}

/// Request to wait for a document other than the known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub at_most: Duration,
    pub incarnation: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route<'a> {
    Events,
    Instance(&'a str),
    Versions,
    Members,
    Token,
    /// An unknown path below `/metadata`.
    Unknown,
}

/// Requested version, where a path has versions.
enum Version {
    None,
    Edition(Edition),
    Instance(InstanceVersion),
}

/// Returns the action of a request, and the path under which it is counted. `path` is the path of the head without a
/// prefix that names the caller; `has` returns true if the instance metadata of the caller has a path.
pub(crate) fn route(
    head: &Head<'_>,
    path: &str,
    settings: &Settings,
    has: impl Fn(InstanceVersion, &str) -> bool,
) -> (Path, Result<Action, RequestError>) {
    match Route::at(path, settings) {
        Some(matched) => (matched.counted(), matched.route(head, settings, has)),
        // Clients recognise this service by its response to `GET /` without the header.
        None if !head.metadata => (Path::Other, Err(RequestError::MetadataHeaderMissing)),
        None => (Path::Other, Err(RequestError::NotFound)),
    }
}

/// The preview edition does not require the header.
fn is_exempt(matched: Route<'_>, version: Option<&str>, settings: &Settings) -> bool {
    matched == Route::Events
        && version
            .and_then(|text| edition(text, settings))
            .is_some_and(|edition| !edition.requires_metadata_header())
}

fn edition(text: &str, settings: &Settings) -> Option<Edition> {
    Edition::parse(text).filter(|edition| *edition >= settings.oldest_edition)
}

impl<'a> Route<'a> {
    /// The route of a path, compared without case; `None` outside `/metadata`.
    fn at(path: &'a str, settings: &Settings) -> Option<Self> {
        let below = after(path, "/metadata")?;
        let matched = if is_path(below, "/scheduledevents") {
            Self::Events
        } else if let Some(rest) = after(below, "/instance") {
            Self::Instance(rest)
        } else if is_path(below, "/versions") {
            Self::Versions
        } else if is_path(below, "/forewarn/members") {
            Self::Members
        } else if is_path(below, "/identity/oauth2/token") && settings.identity_token != IdentityToken::Off {
            Self::Token
        } else {
            Self::Unknown
        };
        Some(matched)
    }

    /// Checks a request below `/metadata`, in order.
    fn route(
        self,
        head: &Head<'_>,
        settings: &Settings,
        has: impl Fn(InstanceVersion, &str) -> bool,
    ) -> Result<Action, RequestError> {
        let version = head.target.parameter("api-version");
        if !head.metadata && !is_exempt(self, version, settings) {
            return Err(match self {
                Self::Token => RequestError::TokenHeaderMissing,
                Self::Events | Self::Instance(_) | Self::Versions | Self::Members | Self::Unknown => {
                    RequestError::MetadataHeaderMissing
                }
            });
        }
        if head.target.repeats_a_parameter() {
            return Err(RequestError::ParameterTwice);
        }
        let version = self.version(version, settings)?;
        self.check_method(head.method).map_err(|problem| match (self, &version) {
            // An unknown instance path is reported before a wrong method.
            (Self::Instance(rest), Version::Instance(version)) if !has(*version, rest) => {
                RequestError::NotFound
            }
            (_, Version::Instance(_) | Version::Edition(_) | Version::None) => problem,
        })?;
        self.action(head, version)
    }

    /// Path under which its requests are counted.
    const fn counted(self) -> Path {
        match self {
            Self::Events => Path::Events,
            Self::Instance(_) => Path::Instance,
            Self::Versions => Path::Versions,
            Self::Members => Path::Members,
            Self::Token => Path::Token,
            Self::Unknown => Path::Other,
        }
    }

    fn version(self, text: Option<&str>, settings: &Settings) -> Result<Version, RequestError> {
        match self {
            Self::Events => {
                let edition = text.and_then(|text| edition(text, settings));
                edition
                    .map(Version::Edition)
                    .ok_or(RequestError::VersionInvalid(VersionList::ScheduledEvents))
            }
            Self::Instance(_) => {
                let version = text.and_then(InstanceVersion::parse);
                version.map(Version::Instance).ok_or(RequestError::VersionInvalid(VersionList::Instance))
            }
            Self::Versions => Ok(Version::None),
            Self::Members | Self::Token | Self::Unknown if text.is_some_and(VersionList::any_has) => {
                Ok(Version::None)
            }
            Self::Members | Self::Token | Self::Unknown => {
                Err(RequestError::VersionInvalid(VersionList::Instance))
            }
        }
    }

    fn check_method(self, method: Method) -> Result<(), RequestError> {
        let methods = match self {
            Self::Unknown => return Err(RequestError::NotFound),
            Self::Events => Methods::GetPost,
            Self::Instance(_) | Self::Versions | Self::Members | Self::Token => Methods::Get,
        };
        match (method, methods) {
            (Method::Get, Methods::Get | Methods::GetPost) | (Method::Post, Methods::GetPost) => Ok(()),
            (Method::Post, Methods::Get)
            | (Method::Head | Method::Other, Methods::Get | Methods::GetPost) => {
                Err(RequestError::MethodNotAllowed(methods))
            }
        }
    }

    fn action(self, head: &Head<'_>, version: Version) -> Result<Action, RequestError> {
        match (self, version) {
            (Self::Events, Version::Edition(_)) if head.method == Method::Post => Ok(Action::Approve),
            (Self::Events, Version::Edition(edition)) => {
                Ok(Action::Events { edition, known: head.known.clone(), wait: wait(head)? })
            }
            (Self::Instance(rest), Version::Instance(version)) => {
                let format = head.target.parameter("format").map_or(Some(Format::Json), Format::parse);
                let format = format.ok_or(RequestError::FormatInvalid)?;
                Ok(Action::Instance { path: rest.to_owned(), version, format })
            }
            (Self::Versions, _) => Ok(Action::Versions),
            (Self::Members, _) => Ok(Action::Members),
            (Self::Token, _) => {
                let resource = head.target.parameter("resource").unwrap_or("https://management.azure.com/");
                Ok(Action::Token { resource: resource.to_owned() })
            }
            (Self::Events | Self::Instance(_) | Self::Unknown, _) => Err(RequestError::NotFound),
        }
    }
}

/// The rest of a path after its first segments, if it begins with them.
fn after<'a>(path: &'a str, first: &str) -> Option<&'a str> {
    let (start, rest) = path.split_at_checked(first.len())?;
    let is_whole = rest.is_empty() || rest.starts_with('/');
    (start.eq_ignore_ascii_case(first) && is_whole).then_some(rest)
}

/// Compares a path, with or without a trailing slash.
fn is_path(path: &str, expected: &str) -> bool {
    after(path, expected).is_some_and(|rest| matches!(rest, "" | "/"))
}

fn wait(head: &Head<'_>) -> Result<Option<Wait>, RequestError> {
    let Some(wait) = head.target.parameter("wait") else { return Ok(None) };
    let seconds = wait.strip_suffix('s').and_then(number).filter(|seconds| *seconds <= WAIT_SECONDS_MAX);
    let incarnation = head.target.parameter("incarnation").and_then(number);
    let (seconds, incarnation) = seconds.zip(incarnation).ok_or(RequestError::WaitInvalid)?;
    Ok(Some(Wait { at_most: Duration::from_secs(seconds), incarnation }))
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request;
    use forewarn_url::OwnHosts;

    fn ask(request: &str, settings: &Settings) -> Result<Action, RequestError> {
        let (line, fields) = request.split_once('|').unwrap_or((request, "Metadata: true\r\n"));
        let whole = format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let head =
            request::read(whole.as_bytes(), &OwnHosts::default()).expect("well-formed").expect("complete");
        route(&head, &head.target.path, settings, |_, path| matches!(path, "" | "/compute")).1
    }

    #[test]
    fn of_two_errors_the_first_in_the_order_of_checks_is_reported() {
        let events = RequestError::VersionInvalid(VersionList::ScheduledEvents);
        let instance = RequestError::VersionInvalid(VersionList::Instance);
        let cases = [
            ("GET /|", RequestError::MetadataHeaderMissing),
            ("PUT /elsewhere?a=1&a=1|", RequestError::MetadataHeaderMissing),
            ("GET /metadatax?api-version=2017-03-01|", RequestError::MetadataHeaderMissing),
            ("PUT /elsewhere?a=1&a=1", RequestError::NotFound),
            ("GET /metadatax", RequestError::NotFound),
            ("PUT /metadata/nothing?a=1&a=1|", RequestError::MetadataHeaderMissing),
            ("PUT /metadata/nothing?a=1&a=1", RequestError::ParameterTwice),
            ("PUT /metadata/scheduledevents?a=1", events),
            ("PUT /metadata/instance?a=1", instance),
            ("PUT /metadata/nothing?a=1", instance),
            ("PUT /metadata/nothing?api-version=2019-01-01", RequestError::NotFound),
            ("PUT /metadata/nothing?api-version=2017-04-02", RequestError::NotFound),
            (
                "PUT /metadata/scheduledevents?api-version=2019-01-01",
                RequestError::MethodNotAllowed(Methods::GetPost),
            ),
            ("POST /metadata/instance/nothing?api-version=2019-02-01", RequestError::NotFound),
            (
                "POST /metadata/instance/compute?api-version=2019-02-01",
                RequestError::MethodNotAllowed(Methods::Get),
            ),
            ("POST /metadata/versions", RequestError::MethodNotAllowed(Methods::Get)),
            ("GET /metadata/scheduledevents?api-version=2019-01-01&wait=x", RequestError::WaitInvalid),
            ("GET /metadata/instance?api-version=2019-02-01&format=x", RequestError::FormatInvalid),
            ("GET /metadata/identity/oauth2/token?api-version=2018-02-01", RequestError::NotFound),
        ];
        for (request, problem) in cases {
            assert_eq!(ask(request, &Settings::default()), Err(problem), "{request}");
        }
    }

    #[test]
    fn only_a_valid_preview_does_without_the_header() {
        let preview = "GET /metadata/scheduledevents?api-version=2017-03-01|";
        assert!(ask(preview, &Settings::default()).is_ok());
        let settings = Settings { oldest_edition: Edition::V2017_08_01, ..Settings::default() };
        assert_eq!(ask(preview, &settings), Err(RequestError::MetadataHeaderMissing));
        for request in [
            "GET /metadata/scheduledevents?api-version=2017-03-01&api-version=2017-03-01|",
            "GET /metadata/scheduledevents?api-version=2017-08-01|",
            "GET /metadata/instance?api-version=2017-03-01|",
            "GET /metadata/scheduledevents?api-version=2017-03-01|Metadata: true\r\nMetadata: true\r\nX: y\r\n",
        ] {
            let missing = Err(RequestError::MetadataHeaderMissing);
            assert_eq!(ask(request, &Settings::default()) == missing, !request.contains("X: y"), "{request}");
        }
    }

    #[test]
    fn waiting_is_limited_and_needs_an_incarnation() {
        let ask_wait = |query: &str| {
            let request = format!("GET /metadata/scheduledevents?api-version=2020-07-01&{query}");
            ask(&request, &Settings::default())
        };
        for query in ["wait=61s&incarnation=1", "wait=s&incarnation=1", "wait=5&incarnation=1", "wait=5s"] {
            assert_eq!(ask_wait(query), Err(RequestError::WaitInvalid), "{query}");
        }
        let Ok(Action::Events { wait: Some(wait), .. }) = ask_wait("wait=60s&incarnation=4") else {
            panic!("a request that waits");
        };
        assert_eq!((wait.at_most, wait.incarnation), (Duration::from_secs(60), 4));
    }
}
