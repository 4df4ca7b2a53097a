//! Where the endpoint is: each place in its turn, and what was wrong there.
//!
//! ```text
//!   the setting ─▶ SCHEDULEDEVENTSIP ─▶ 169.254.169.254 ─▶ DHCP option 245 in lease files ─▶ a DHCPDISCOVER of our own
//! ```
//!
//! What somebody has set is believed and not tried: it may be down for now. Everything else is asked whether it is there.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::headers::with_client_headers;
use crate::http::{HttpClient, HttpResponse, Limits, Request, Trust};
use crate::{dhcp, lease};

/// The variable that names the endpoint: an address, with or without a port, or a URL.
pub const VARIABLE: &str = "SCHEDULEDEVENTSIP";

/// How long to wait for somebody who may not be there.
const PROBE: Limits =
    Limits { connect: Duration::from_secs(2), answer: Duration::from_secs(5), body_bytes: 64 * 1024 };

/// Where to look, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// What somebody has set.
    pub explicit: Option<Endpoint>,
    /// What `SCHEDULEDEVENTSIP` says.
    pub variable: Option<String>,
    /// Where it usually is.
    pub well_known: Option<Endpoint>,
    /// Lease files of DHCP clients, and directories with such files.
    pub lease_files: Vec<PathBuf>,
    /// Whether to ask for option 245 ourselves. Needs the permission to use port 68.
    pub discover: bool,
}

/// An endpoint, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub endpoint: Endpoint,
    /// Who said so.
    pub by: How,
}

/// How an endpoint was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// Somebody has set it.
    Setting,
    /// `SCHEDULEDEVENTSIP` says so.
    Variable,
    /// It is where it usually is.
    WellKnown,
    /// This lease file has option 245.
    Lease(PathBuf),
    /// A DHCP server told us, on this interface.
    Dhcp(String),
}

/// It is nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// Where it is not, in the order of the search.
    pub tried: Vec<Tried>,
}

/// A place where it is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Which.
    pub place: String,
    /// What is wrong there.
    pub why: String,
}

impl Search {
    /// The usual places, and what the environment says.
    #[must_use]
    pub fn from_environment() -> Self {
        Self {
            explicit: None,
            variable: std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty()),
            well_known: Some(Endpoint::well_known()),
            lease_files: lease::PLACES.map(PathBuf::from).to_vec(),
            discover: true,
        }
    }

    /// Looks in each place until it is found.
    ///
    /// # Errors
    /// When it is nowhere.
    pub async fn run(&self) -> Result<Found, NotFound> {
        self.look(None).await
    }

    /// The same, passing over one that was found before and was of no use. What somebody has set is still believed.
    ///
    /// # Errors
    /// When it is nowhere else.
    pub async fn run_past(&self, given_up: &Endpoint) -> Result<Found, NotFound> {
        self.look(Some(given_up)).await
    }

    async fn look(&self, given_up: Option<&Endpoint>) -> Result<Found, NotFound> {
        if let Some(endpoint) = self.explicit.clone() {
            return Ok(Found { endpoint, by: How::Setting });
        }
        let mut not_there = NotFound { tried: Vec::new() };
        if let Some(text) = &self.variable {
            return match Endpoint::parse(text) {
                Ok(endpoint) => Ok(Found { endpoint, by: How::Variable }),
                // Whoever has set it does not want any other.
                Err(problem) => {
                    not_there.add(format!("{VARIABLE}={text:?}"), problem.to_string());
                    Err(not_there)
                }
            };
        }
        if let Some(endpoint) = self.well_known.clone() {
            match probe(&endpoint, given_up, is_metadata_service).await {
                Ok(()) => return Ok(Found { endpoint, by: How::WellKnown }),
                Err(why) => not_there.add(endpoint.to_string(), why),
            }
        }
        if let Some(found) = self.look_at_leases(given_up, &mut not_there).await {
            return Ok(found);
        }
        if let Some(found) = self.ask_dhcp(given_up, &mut not_there).await {
            return Ok(found);
        }
        Err(not_there)
    }

    async fn look_at_leases(&self, given_up: Option<&Endpoint>, not_there: &mut NotFound) -> Option<Found> {
        for (path, address) in lease::look(&self.lease_files) {
            match address {
                Ok(address) => match found(address, How::Lease(path.clone()), given_up).await {
                    Ok(found) => return Some(found),
                    Err(why) => not_there.add(path.to_string_lossy(), why),
                },
                Err(why) => not_there.add(path.to_string_lossy(), why),
            }
        }
        None
    }

    async fn ask_dhcp(&self, given_up: Option<&Endpoint>, not_there: &mut NotFound) -> Option<Found> {
        if !self.discover {
            not_there.add("DHCP", "it was not asked, as the settings say");
            return None;
        }
        match dhcp::ask().await {
            Ok((interface, address)) => match found(address, How::Dhcp(interface), given_up).await {
                Ok(found) => return Some(found),
                Err(why) => not_there.add("DHCP", why),
            },
            Err(reasons) => reasons.into_iter().for_each(|(place, why)| not_there.add(place, why)),
        }
        None
    }
}

/// Whoever answers at an address that a DHCP server named is believed.
async fn found(address: Ipv4Addr, by: How, given_up: Option<&Endpoint>) -> Result<Found, String> {
    let endpoint = Endpoint::at(address.into());
    match probe(&endpoint, given_up, |_| Ok(())).await {
        Ok(()) => Ok(Found { endpoint, by }),
        Err(why) => Err(format!("option 245 names {endpoint}, which {why}")),
    }
}

async fn probe(
    endpoint: &Endpoint,
    given_up: Option<&Endpoint>,
    judge: impl Fn(&HttpResponse) -> Result<(), String>,
) -> Result<(), String> {
    if given_up == Some(endpoint) {
        return Err("was asked before, and was of no use".to_owned());
    }
    let mut line = HttpClient::new(endpoint.url().clone(), Trust::system());
    let request = with_client_headers(Request::get(endpoint.target("/metadata/versions")));
    let answer = line.send(&request, PROBE).await.map_err(|trouble| trouble.to_string())?;
    judge(&answer)
}

/// Other clouds have other services at the same address.
fn is_metadata_service(answer: &HttpResponse) -> Result<(), String> {
    let names_itself = answer.header("server").is_some_and(|server| server.contains("IMDS"));
    let is_one = match answer.status {
        200 => serde_json::from_slice::<serde_json::Value>(&answer.body)
            .is_ok_and(|body| body.get("apiVersions").is_some()),
        // It is there, and does not want to at the moment.
        400 | 403 | 410 | 429 | 500..=599 => true,
        _ => false,
    };
    if names_itself || is_one {
        return Ok(());
    }
    Err(format!("is another service: GET /metadata/versions is answered with {}", answer.status))
}

impl NotFound {
    fn add(&mut self, place: impl Into<String>, why: impl Into<String>) {
        self.tried.push(Tried { place: place.into(), why: why.into() });
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("there is no endpoint of Scheduled Events")?;
        for Tried { place, why } in &self.tried {
            write!(out, "\n  {place}: {why}")?;
        }
        write!(out, "\n  hint: name it in {VARIABLE}, or in the settings: http://169.254.169.254")
    }
}

impl std::error::Error for NotFound {}

impl fmt::Display for How {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting => out.write_str("as it is set"),
            Self::Variable => write!(out, "as {VARIABLE} says"),
            Self::WellKnown => out.write_str("where it usually is"),
            Self::Lease(path) => write!(out, "by DHCP option 245 in {}", path.display()),
            Self::Dhcp(interface) => write!(out, "by DHCP option 245, asked for on {interface}"),
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

    #[tokio::test]
    async fn what_is_set_comes_first_and_is_not_tried() {
        let far = Endpoint::parse("http://192.0.2.1").unwrap();
        let search =
            Search { explicit: Some(far.clone()), variable: Some("10.0.0.9".to_owned()), ..nothing() };
        assert_eq!(search.run().await, Ok(Found { endpoint: far, by: How::Setting }));
        for (text, shown) in [("10.0.0.9", "http://10.0.0.9"), ("http://h:81/p", "http://h:81/p")] {
            let search = Search { variable: Some(text.to_owned()), ..nothing() };
            let found = search.run().await.unwrap();
            assert_eq!((found.endpoint.to_string().as_str(), found.by), (shown, How::Variable));
        }
    }

    #[tokio::test]
    async fn a_variable_that_cannot_be_read_is_told_and_nothing_else_is_taken_for_it() {
        let search = Search { variable: Some("https://h".to_owned()), ..nothing() };
        let told = search.run().await.unwrap_err().to_string();
        assert!(
            told.contains("SCHEDULEDEVENTSIP=\"https://h\": an endpoint is spoken to in the clear"),
            "{told}"
        );
        assert!(!told.contains("DHCP"), "{told}");
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
