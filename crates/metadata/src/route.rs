//! What a well-formed request of a known caller asks for: the checks from the `Metadata` header to the method, in their order.

use std::time::Duration;

use forewarn_imds::{Edition, Format, InstanceVersion, Methods, Problem, VersionList};

use crate::counts::Path;
use crate::request::{Head, Known, Method};
use crate::settings::{IdentityToken, Settings};

/// The longest that a request may wait for news.
const WAIT_SECONDS_MAX: u64 = 60;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The document, in that edition.
    Events { edition: Edition, known: Known, wait: Option<Wait> },
    /// To approve the events that the body names.
    Approve,
    /// What a machine may learn about itself.
    Instance { path: String, version: InstanceVersion, format: Format },
    /// The versions of instance metadata.
    Versions,
    /// The names of the machines of the tenant.
    Members,
    /// An identity token.
    Token { resource: String },
}

/// A caller that wants to wait for a document other than the one it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub at_most: Duration,
    pub incarnation: u64,
}

/// The paths that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place<'a> {
    Events,
    Instance(&'a str),
    Versions,
    Members,
    Token,
    /// Below `/metadata`, and nothing.
    Nowhere,
}

/// Which version was asked for, where a path has versions.
enum Version {
    None,
    Edition(Edition),
    Instance(InstanceVersion),
}

/// Finds out what was asked for, and under which path it is counted. `path` is the one of the head, but for a prefix that
/// named the caller; `has` says whether the instance metadata of the caller has something at a path.
pub(crate) fn route(
    head: &Head<'_>,
    path: &str,
    settings: &Settings,
    has: impl Fn(InstanceVersion, &str) -> bool,
) -> (Path, Result<Asked, Problem>) {
    match Place::at(path, settings) {
        Some(place) => (place.counted(), place.route(head, settings, has)),
        // Clients recognize this service by the answer to `GET /` without the header.
        None if !head.metadata => (Path::Other, Err(Problem::MetadataHeaderMissing)),
        None => (Path::Other, Err(Problem::NotFound)),
    }
}

/// The preview did not ask for the header.
fn is_exempt(place: Place<'_>, version: Option<&str>, settings: &Settings) -> bool {
    place == Place::Events
        && version
            .and_then(|text| edition(text, settings))
            .is_some_and(|edition| !edition.requires_metadata_header())
}

fn edition(text: &str, settings: &Settings) -> Option<Edition> {
    Edition::parse(text).filter(|edition| *edition >= settings.oldest_edition)
}

impl<'a> Place<'a> {
    /// The place of a path, compared without case; `None` outside of `/metadata`.
    fn at(path: &'a str, settings: &Settings) -> Option<Self> {
        let below = after(path, "/metadata")?;
        let place = if is_path(below, "/scheduledevents") {
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
            Self::Nowhere
        };
        Some(place)
    }

    /// The checks of a request below `/metadata`, in their order.
    fn route(
        self,
        head: &Head<'_>,
        settings: &Settings,
        has: impl Fn(InstanceVersion, &str) -> bool,
    ) -> Result<Asked, Problem> {
        let version = head.target.parameter("api-version");
        if !head.metadata && !is_exempt(self, version, settings) {
            return Err(match self {
                Self::Token => Problem::TokenHeaderMissing,
                Self::Events | Self::Instance(_) | Self::Versions | Self::Members | Self::Nowhere => {
                    Problem::MetadataHeaderMissing
                }
            });
        }
        if head.target.repeats_a_parameter() {
            return Err(Problem::ParameterTwice);
        }
        let version = self.version(version, settings)?;
        self.check_method(head.method).map_err(|problem| match (self, &version) {
            // That a path is not there comes before that it takes other methods.
            (Self::Instance(rest), Version::Instance(version)) if !has(*version, rest) => Problem::NotFound,
            (_, Version::Instance(_) | Version::Edition(_) | Version::None) => problem,
        })?;
        self.asked(head, version)
    }

    /// Where requests to it are counted.
    const fn counted(self) -> Path {
        match self {
            Self::Events => Path::Events,
            Self::Instance(_) => Path::Instance,
            Self::Versions => Path::Versions,
            Self::Members => Path::Members,
            Self::Token => Path::Token,
            Self::Nowhere => Path::Other,
        }
    }

    fn version(self, text: Option<&str>, settings: &Settings) -> Result<Version, Problem> {
        match self {
            Self::Events => {
                let edition = text.and_then(|text| edition(text, settings));
                edition.map(Version::Edition).ok_or(Problem::VersionInvalid(VersionList::ScheduledEvents))
            }
            Self::Instance(_) => {
                let version = text.and_then(InstanceVersion::parse);
                version.map(Version::Instance).ok_or(Problem::VersionInvalid(VersionList::Instance))
            }
            Self::Versions => Ok(Version::None),
            Self::Members | Self::Token | Self::Nowhere if text.is_some_and(VersionList::any_has) => {
                Ok(Version::None)
            }
            Self::Members | Self::Token | Self::Nowhere => {
                Err(Problem::VersionInvalid(VersionList::Instance))
            }
        }
    }

    fn check_method(self, method: Method) -> Result<(), Problem> {
        let methods = match self {
            Self::Nowhere => return Err(Problem::NotFound),
            Self::Events => Methods::GetPost,
            Self::Instance(_) | Self::Versions | Self::Members | Self::Token => Methods::Get,
        };
        match (method, methods) {
            (Method::Get, Methods::Get | Methods::GetPost) | (Method::Post, Methods::GetPost) => Ok(()),
            (Method::Post, Methods::Get)
            | (Method::Head | Method::Other, Methods::Get | Methods::GetPost) => {
                Err(Problem::MethodNotAllowed(methods))
            }
        }
    }

    fn asked(self, head: &Head<'_>, version: Version) -> Result<Asked, Problem> {
        match (self, version) {
            (Self::Events, Version::Edition(_)) if head.method == Method::Post => Ok(Asked::Approve),
            (Self::Events, Version::Edition(edition)) => {
                Ok(Asked::Events { edition, known: head.known.clone(), wait: wait(head)? })
            }
            (Self::Instance(rest), Version::Instance(version)) => {
                let format = head.target.parameter("format").map_or(Some(Format::Json), Format::parse);
                let format = format.ok_or(Problem::FormatInvalid)?;
                Ok(Asked::Instance { path: rest.to_owned(), version, format })
            }
            (Self::Versions, _) => Ok(Asked::Versions),
            (Self::Members, _) => Ok(Asked::Members),
            (Self::Token, _) => {
                let resource = head.target.parameter("resource").unwrap_or("https://management.azure.com/");
                Ok(Asked::Token { resource: resource.to_owned() })
            }
            (Self::Events | Self::Instance(_) | Self::Nowhere, _) => Err(Problem::NotFound),
        }
    }
}

/// What comes after the first segments of a path, if it has those.
fn after<'a>(path: &'a str, first: &str) -> Option<&'a str> {
    let (start, rest) = path.split_at_checked(first.len())?;
    let is_whole = rest.is_empty() || rest.starts_with('/');
    (start.eq_ignore_ascii_case(first) && is_whole).then_some(rest)
}

/// Whether it is that path, with or without a slash at its end.
fn is_path(path: &str, expected: &str) -> bool {
    after(path, expected).is_some_and(|rest| matches!(rest, "" | "/"))
}

fn wait(head: &Head<'_>) -> Result<Option<Wait>, Problem> {
    let Some(wait) = head.target.parameter("wait") else { return Ok(None) };
    let seconds = wait.strip_suffix('s').and_then(number).filter(|seconds| *seconds <= WAIT_SECONDS_MAX);
    let incarnation = head.target.parameter("incarnation").and_then(number);
    let (seconds, incarnation) = seconds.zip(incarnation).ok_or(Problem::WaitInvalid)?;
    Ok(Some(Wait { at_most: Duration::from_secs(seconds), incarnation }))
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request;

    fn ask(request: &str, settings: &Settings) -> Result<Asked, Problem> {
        let (line, fields) = request.split_once('|').unwrap_or((request, "Metadata: true\r\n"));
        let whole = format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let head = request::read(whole.as_bytes(), &[]).expect("well-formed").expect("complete");
        route(&head, &head.target.path, settings, |_, path| matches!(path, "" | "/compute")).1
    }

    #[test]
    fn of_two_mistakes_the_first_in_the_order_of_checks_is_told() {
        let events = Problem::VersionInvalid(VersionList::ScheduledEvents);
        let instance = Problem::VersionInvalid(VersionList::Instance);
        let cases = [
            ("GET /|", Problem::MetadataHeaderMissing),
            ("PUT /elsewhere?a=1&a=1|", Problem::MetadataHeaderMissing),
            ("GET /metadatax?api-version=2017-03-01|", Problem::MetadataHeaderMissing),
            ("PUT /elsewhere?a=1&a=1", Problem::NotFound),
            ("GET /metadatax", Problem::NotFound),
            ("PUT /metadata/nothing?a=1&a=1|", Problem::MetadataHeaderMissing),
            ("PUT /metadata/nothing?a=1&a=1", Problem::ParameterTwice),
            ("PUT /metadata/scheduledevents?a=1", events),
            ("PUT /metadata/instance?a=1", instance),
            ("PUT /metadata/nothing?a=1", instance),
            ("PUT /metadata/nothing?api-version=2019-01-01", Problem::NotFound),
            ("PUT /metadata/nothing?api-version=2017-04-02", Problem::NotFound),
            (
                "PUT /metadata/scheduledevents?api-version=2019-01-01",
                Problem::MethodNotAllowed(Methods::GetPost),
            ),
            ("POST /metadata/instance/nothing?api-version=2019-02-01", Problem::NotFound),
            (
                "POST /metadata/instance/compute?api-version=2019-02-01",
                Problem::MethodNotAllowed(Methods::Get),
            ),
            ("POST /metadata/versions", Problem::MethodNotAllowed(Methods::Get)),
            ("GET /metadata/scheduledevents?api-version=2019-01-01&wait=x", Problem::WaitInvalid),
            ("GET /metadata/instance?api-version=2019-02-01&format=x", Problem::FormatInvalid),
            ("GET /metadata/identity/oauth2/token?api-version=2018-02-01", Problem::NotFound),
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
        assert_eq!(ask(preview, &settings), Err(Problem::MetadataHeaderMissing));
        for request in [
            "GET /metadata/scheduledevents?api-version=2017-03-01&api-version=2017-03-01|",
            "GET /metadata/scheduledevents?api-version=2017-08-01|",
            "GET /metadata/instance?api-version=2017-03-01|",
            "GET /metadata/scheduledevents?api-version=2017-03-01|Metadata: true\r\nMetadata: true\r\nX: y\r\n",
        ] {
            let missing = Err(Problem::MetadataHeaderMissing);
            assert_eq!(ask(request, &Settings::default()) == missing, !request.contains("X: y"), "{request}");
        }
    }

    #[test]
    fn waiting_has_a_limit_and_needs_to_know_for_what() {
        let ask_wait = |query: &str| {
            let request = format!("GET /metadata/scheduledevents?api-version=2020-07-01&{query}");
            ask(&request, &Settings::default())
        };
        for query in ["wait=61s&incarnation=1", "wait=s&incarnation=1", "wait=5&incarnation=1", "wait=5s"] {
            assert_eq!(ask_wait(query), Err(Problem::WaitInvalid), "{query}");
        }
        let Ok(Asked::Events { wait: Some(wait), .. }) = ask_wait("wait=60s&incarnation=4") else {
            panic!("a request that waits");
        };
        assert_eq!((wait.at_most, wait.incarnation), (Duration::from_secs(60), 4));
    }
}
