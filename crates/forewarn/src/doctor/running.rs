//! A running server: its API, its version, its clock and its other listeners.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forewarn_control::{ClockView, ClusterView, ServerView};
use forewarn_http_client::{Bytes, Method};

use super::report::DoctorReport;
use crate::client::{ApiError, Client, api_error};
use crate::operator::{GlobalOptions, az};

/// The timeout of each request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest tolerated difference of the clocks.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(10);

/// The status of a request without a valid token.
const UNAUTHORIZED: u16 = 401;

pub(super) fn check(report: &mut DoctorReport, options: &GlobalOptions) {
    let why = "operators cannot use the API";
    let client = match options.client() {
        Ok(client) => client.with_timeout(TIMEOUT),
        Err(error) => return report.error("api", &error, why, "forewarn --api URL doctor"),
    };
    let about: ServerView = match client.get("/v1/server") {
        Ok(about) => about,
        Err(error) => {
            if error.downcast_ref::<ApiError>().is_some_and(|rejection| rejection.status == UNAUTHORIZED) {
                let remedy = "`forewarn context set NAME --token-file FILE`, or FOREWARN_TOKEN";
                return report.finding("api", "the token is missing or invalid", why, remedy);
            }
            if error.to_string().contains("Permission denied") {
                let what = format!("the current user may not use the socket: {client}");
                return report.finding("api", what, why, format!("sudo forewarn --api {client} doctor"));
            }
            return report.error("api", &error, why, "systemctl status forewarn");
        }
    };
    report.ok("api", format!("{client} responds ({})", about.mode));
    version(report, &about);
    ready(report, &client);
    clusters(report, &client);
    clocks(report, &client);
    for url in &about.metadata {
        metadata(report, url);
    }
    if let Some(url) = &about.arm {
        azure(report, &client, url);
    }
}

fn version(report: &mut DoctorReport, about: &ServerView) {
    let (ours, theirs) = (env!("CARGO_PKG_VERSION"), about.version.as_str());
    if ours == theirs {
        return report.ok("version", format!("client and server are version {ours}"));
    }
    let what = format!("the server is version {theirs}, this client is version {ours}");
    let remedy = "systemctl restart forewarn (if it runs the older one), or use the client of that version";
    report.finding("version", what, "requests and responses may be incompatible", remedy);
}

fn ready(report: &mut DoctorReport, client: &Client) {
    match client.send(Method::GET, "/readyz", &[], Bytes::new()) {
        Ok((200, _)) => report.ok("ready", "the server can write"),
        Ok((status, body)) => {
            // The reason may be a full disk, a driver that does not respond, or that all clusters have failed.
            let error = api_error(status, &body).context("not ready");
            report.error(
                "ready",
                &error,
                "the server rejects changes",
                "df -h; journalctl -u forewarn -n 50",
            );
        }
        Err(error) => {
            report.error("ready", &error, "the server may be stopping", "systemctl status forewarn");
        }
    }
}

/// Checks that the drivers of all clusters work. A server with a failed cluster is ready if another one works.
fn clusters(report: &mut DoctorReport, client: &Client) {
    let clusters: Vec<ClusterView> = match client.pages("/v1/clusters") {
        Ok(clusters) => clusters,
        Err(error) => {
            let remedy = "systemctl status forewarn";
            return report.error("clusters", &error, "clusters may have failed", remedy);
        }
    };
    if clusters.iter().all(|cluster| cluster.failure.is_none()) {
        return report.ok("clusters", "no cluster has failed");
    }
    for ClusterView { name, failure, .. } in clusters {
        let Some(reason) = failure else { continue };
        let why = "it serves documents, but rejects changes and starts nothing";
        let remedy = "systemctl restart forewarn, and report this with journalctl -u forewarn";
        report.finding("clusters", format!("the cluster {name} has failed: {reason}"), why, remedy);
    }
}

fn clocks(report: &mut DoctorReport, client: &Client) {
    let clock: ClockView = match client.get("/v1/clock") {
        Ok(clock) => clock,
        Err(error) => {
            let remedy = "systemctl status forewarn";
            return report.error("clocks", &error, "the server may be stopping", remedy);
        }
    };
    if clock.kind != "real" {
        return report.ok("clocks", format!("the server has a {} clock", clock.kind));
    }
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let skew = Duration::from_secs(here.abs_diff(u64::try_from(clock.now.0.seconds()).unwrap_or(0)));
    if skew > CLOCK_SKEW_MAX {
        let what = format!("the clocks of the server and of this computer differ by {} s", skew.as_secs());
        let why = "times in commands and output are off by that difference";
        return report.finding("clocks", what, why, "timedatectl set-ntp true, on both computers");
    }
    report.ok("clocks", "the clocks of the server and of this computer agree");
}

/// Checks that the Azure listener responds, with a certificate that clients can verify.
fn azure(report: &mut DoctorReport, client: &Client, arm: &str) {
    let why = "az and other Azure clients cannot connect";
    let checked = az::arm_url(arm, client).and_then(|url| {
        let azure = Client::new(&url)?.with_timeout(TIMEOUT);
        // Without /ca.pem, the certificate is from a CA of the system store.
        let azure = match client.send(Method::GET, "/ca.pem", &[], Bytes::new())? {
            (200, pem) => azure.with_ca(pem.to_vec()),
            (_, _) => azure,
        };
        azure.get::<serde_json::Value>("/metadata/endpoints?api-version=2022-09-01")?;
        Ok(url)
    });
    match checked {
        Ok(url) => report.ok("arm", format!("{url} responds, with a valid certificate")),
        Err(error) => report.error("arm", &error, why, "journalctl -u forewarn -n 50"),
    }
}

/// Checks that the metadata endpoint responds. This client is not a machine, so an error status below 500 is fine.
fn metadata(report: &mut DoctorReport, url: &str) {
    let why = "machines cannot poll for events";
    let remedy = format!("curl -H Metadata:true {url}/metadata/versions; journalctl -u forewarn -n 50");
    let response = Client::new(url).map(|client| client.with_timeout(TIMEOUT)).and_then(|client| {
        client.send(Method::GET, "/metadata/versions", &[("metadata", "true")], Bytes::new())
    });
    match response {
        Ok((status, _)) if status < 500 => report.ok("metadata", format!("{url} responds")),
        Ok((status, _)) => {
            report.finding("metadata", format!("{url} responds with status {status}"), why, remedy);
        }
        Err(error) => {
            let text = format!("{error:#}");
            let what = text.split("\n  hint: ").next().unwrap_or_default();
            report.finding("metadata", what, why, remedy);
        }
    }
}
