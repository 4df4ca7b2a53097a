//! Discovery of the endpoint: tries each location in order and records why it failed.
//!
//! ```text
//!   the setting ─▶ SCHEDULEDEVENTSIP ─▶ 169.254.169.254 ─▶ DHCP option 245 in lease files ─▶ a DHCPDISCOVER of our own
//! ```
//!
//! An explicit setting is used without a probe, because the endpoint may be down temporarily. All other locations are
//! probed.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::headers::with_client_headers;
use crate::http::{HttpClient, HttpResponse, Limits, Request, Trust};
use crate::{dhcp, lease};

/// The environment variable with the endpoint: an address with an optional port, or a URL.
pub const VARIABLE: &str = "SCHEDULEDEVENTSIP";

/// Limits of a probe.
const PROBE: Limits =
    Limits { connect: Duration::from_secs(2), answer: Duration::from_secs(5), body_bytes: 64 * 1024 };

/// The locations to try, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The endpoint that was set, and where.
    pub explicit: Option<Found>,
    /// The value of `SCHEDULEDEVENTSIP`.
    pub variable: Option<String>,
    /// The well-known address.
    pub well_known: Option<Endpoint>,
    /// Lease files of DHCP clients, and directories with such files.
    pub lease_files: Vec<PathBuf>,
    /// True to send a DHCPDISCOVER. Needs permission to use port 68.
    pub discover: bool,
}

/// An endpoint, and the location where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The source of the address.
    pub by: DiscoverySource,
}

/// The source of an endpoint's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoverySource {
    /// The settings.
    Setting,
    /// An option of the command line.
    CommandLine,
    /// The variable `SCHEDULEDEVENTSIP`.
    Variable,
    /// The well-known address.
    WellKnown,
    /// Option 245 in this lease file.
    Lease(PathBuf),
    /// A DHCP server, on this interface.
    Dhcp(String),
}

/// No endpoint was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// The locations that were tried, in the order of the search.
    pub tried: Vec<FailedLocation>,
}

/// A location without an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedLocation {
    /// The location.
    pub location: String,
    /// The reason.
    pub reason: String,
}

impl Search {
    /// The default locations, and the environment variable.
    #[must_use]
    pub fn from_environment() -> Self {
        Self {
            explicit: None,
            variable: std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty()),
            well_known: Some(Endpoint::well_known()),
            lease_files: lease::DIRECTORIES.map(PathBuf::from).to_vec(),
            discover: true,
        }
    }

    /// Tries each location until an endpoint is found.
    ///
    /// # Errors
    /// [`NotFound`] with the reason for each location.
    pub async fn run(&self) -> Result<Found, NotFound> {
        self.search_locations(None).await
    }

    /// Like [`Search::run`], but skips an endpoint that did not work before. Explicit settings are still used.
    ///
    /// # Errors
    /// [`NotFound`] with the reason for each location.
    pub async fn run_past(&self, skipped: &Endpoint) -> Result<Found, NotFound> {
        self.search_locations(Some(skipped)).await
    }

    async fn search_locations(&self, skipped: Option<&Endpoint>) -> Result<Found, NotFound> {
        if let Some(found) = self.explicit.clone() {
            return Ok(found);
        }
        let mut not_found = NotFound { tried: Vec::new() };
        if let Some(text) = &self.variable {
            return match Endpoint::parse(text) {
                Ok(endpoint) => Ok(Found { endpoint, by: DiscoverySource::Variable }),
                // An invalid explicit setting is an error, not a reason to try other locations.
                Err(error) => {
                    not_found.add(format!("{VARIABLE}={text:?}"), error.to_string());
                    Err(not_found)
                }
            };
        }
        if let Some(endpoint) = self.well_known.clone() {
            match probe(&endpoint, skipped, is_metadata_service).await {
                Ok(()) => return Ok(Found { endpoint, by: DiscoverySource::WellKnown }),
                Err(reason) => not_found.add(endpoint.to_string(), reason),
            }
        }
        if let Some(found) = self.search_leases(skipped, &mut not_found).await {
            return Ok(found);
        }
        if let Some(found) = self.query_dhcp(skipped, &mut not_found).await {
            return Ok(found);
        }
        Err(not_found)
    }

    async fn search_leases(&self, skipped: Option<&Endpoint>, not_found: &mut NotFound) -> Option<Found> {
        for (path, address) in lease::read_leases(&self.lease_files) {
            match address {
                Ok(address) => {
                    match probe_dhcp_address(address, DiscoverySource::Lease(path.clone()), skipped).await {
                        Ok(found) => return Some(found),
                        Err(reason) => not_found.add(path.to_string_lossy(), reason),
                    }
                }
                Err(reason) => not_found.add(path.to_string_lossy(), reason),
            }
        }
        None
    }

    async fn query_dhcp(&self, skipped: Option<&Endpoint>, not_found: &mut NotFound) -> Option<Found> {
        if !self.discover {
            not_found.add("DHCP", "disabled in the settings");
            return None;
        }
        match dhcp::query().await {
            Ok((interface, address)) => {
                match probe_dhcp_address(address, DiscoverySource::Dhcp(interface), skipped).await {
                    Ok(found) => return Some(found),
                    Err(reason) => not_found.add("DHCP", reason),
                }
            }
            Err(reasons) => {
                reasons.into_iter().for_each(|(location, reason)| not_found.add(location, reason));
            }
        }
        None
    }
}

/// Probes an address from a DHCP server. Any HTTP response is accepted.
async fn probe_dhcp_address(
    address: Ipv4Addr,
    by: DiscoverySource,
    skipped: Option<&Endpoint>,
) -> Result<Found, String> {
    let endpoint = Endpoint::at(address.into());
    match probe(&endpoint, skipped, |_| Ok(())).await {
        Ok(()) => Ok(Found { endpoint, by }),
        Err(reason) => Err(format!("option 245 names {endpoint}, which {reason}")),
    }
}

async fn probe(
    endpoint: &Endpoint,
    skipped: Option<&Endpoint>,
    judge: impl Fn(&HttpResponse) -> Result<(), String>,
) -> Result<(), String> {
    if skipped == Some(endpoint) {
        return Err("was tried before and did not work".to_owned());
    }
    let mut client = HttpClient::new(endpoint.url().clone(), Trust::system());
    let request = with_client_headers(Request::get(endpoint.target("/metadata/versions")));
    let response = client.send(&request, PROBE).await.map_err(|error| error.to_string())?;
    judge(&response)
}

/// Other clouds run other services at the same address.
fn is_metadata_service(response: &HttpResponse) -> Result<(), String> {
    let names_itself = response.header("server").is_some_and(|server| server.contains("IMDS"));
    let is_one = match response.status {
        200 => serde_json::from_slice::<serde_json::Value>(&response.body)
            .is_ok_and(|body| body.get("apiVersions").is_some()),
        // It exists, but rejects requests at the moment.
        400 | 403 | 410 | 429 | 500..=599 => true,
        _ => false,
    };
    if names_itself || is_one {
        return Ok(());
    }
    Err(format!("is another service: GET /metadata/versions returned {}", response.status))
}

impl NotFound {
    fn add(&mut self, location: impl Into<String>, reason: impl Into<String>) {
        self.tried.push(FailedLocation { location: location.into(), reason: reason.into() });
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("no Scheduled Events endpoint found")?;
        for FailedLocation { location, reason } in &self.tried {
            write!(out, "\n  {location}: {reason}")?;
        }
        write!(
            out,
            "\n  hint: set {VARIABLE}, `endpoint` in the settings, or --endpoint, to the address of your endpoint; \
             for `forewarn dev`, to http://127.0.0.1:1338/vm/NAME"
        )
    }
}

impl std::error::Error for NotFound {}

impl fmt::Display for DiscoverySource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting => out.write_str("in the settings"),
            Self::CommandLine => out.write_str("on the command line"),
            Self::Variable => write!(out, "in {VARIABLE}"),
            Self::WellKnown => out.write_str("at the well-known address"),
            Self::Lease(path) => write!(out, "by DHCP option 245 in {}", path.display()),
            Self::Dhcp(interface) => write!(out, "by DHCP option 245 on {interface}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Bytes, HeaderMap, HeaderValue};

    fn nothing() -> Search {
        Search { explicit: None, variable: None, well_known: None, lease_files: Vec::new(), discover: false }
    }

    /// promise: A6
    #[tokio::test]
    async fn what_is_set_comes_first_and_is_not_tried() {
        let far = Endpoint::parse("http://192.0.2.1").unwrap();
        for by in [DiscoverySource::Setting, DiscoverySource::CommandLine] {
            let set = Found { endpoint: far.clone(), by };
            let search =
                Search { explicit: Some(set.clone()), variable: Some("10.0.0.9".to_owned()), ..nothing() };
            assert_eq!(search.run().await, Ok(set));
        }
        for (text, shown) in [("10.0.0.9", "http://10.0.0.9"), ("http://h:81/p", "http://h:81/p")] {
            let search = Search { variable: Some(text.to_owned()), ..nothing() };
            let found = search.run().await.unwrap();
            assert_eq!((found.endpoint.to_string().as_str(), found.by), (shown, DiscoverySource::Variable));
        }
    }

    #[tokio::test]
    async fn where_nothing_is_found_the_hint_names_no_place_that_was_tried() {
        let told = nothing().run().await.unwrap_err().to_string();
        assert!(told.contains("--endpoint, to the address of your endpoint"), "{told}");
        assert!(!told.contains("169.254.169.254"), "{told}");
    }

    #[tokio::test]
    async fn an_invalid_variable_is_an_error() {
        let search = Search { variable: Some("https://h".to_owned()), ..nothing() };
        let message = search.run().await.unwrap_err().to_string();
        assert!(
            message.contains("SCHEDULEDEVENTSIP=\"https://h\": an endpoint does not use TLS"),
            "{message}"
        );
        assert!(!message.contains("DHCP"), "{message}");
    }

    #[test]
    fn services_of_other_clouds_are_not_taken_for_it() {
        let judge = |status, server: Option<&'static str>, body: &'static str| {
            let mut headers = HeaderMap::new();
            server.map(|server| headers.insert("server", HeaderValue::from_static(server)));
            is_metadata_service(&HttpResponse { status, headers, body: Bytes::from_static(body.as_bytes()) })
                .is_ok()
        };
        assert!(judge(200, None, r#"{"apiVersions":["2017-03-01"]}"#));
        assert!(judge(429, None, "") && judge(403, Some("forewarn/0.1.0 IMDS"), "{}"));
        assert!(judge(404, Some("Microsoft-IIS/10.0 IMDS"), ""));
        for (status, body) in [(200, "latest"), (200, "{}"), (404, ""), (401, ""), (302, "")] {
            assert!(!judge(status, Some("EC2ws"), body), "{status} {body}");
        }
    }
}
