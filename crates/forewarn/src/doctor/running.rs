//! A running server: whether it can be reached, whether it is the same version, and whether its own sides answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use forewarn_control::{ClockView, ServerView};
use forewarn_http_client::{Bytes, Method};

use super::report::Report;
use crate::client::{Client, Refused};
use crate::operator::{Options, az};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How far two clocks may be apart.
const APART_MAX: Duration = Duration::from_secs(10);

/// What a key is to be remedied with.
const UNAUTHORIZED: u16 = 401;

pub(super) fn look(report: &mut Report, options: &Options) {
    let why = "nobody can plan anything, or see what is planned";
    let client = match options.client() {
        Ok(client) => client.with_patience(PATIENCE),
        Err(problem) => return report.problem("api", &problem, why, "forewarn --api URL doctor"),
    };
    let about: ServerView = match client.get("/v1/server") {
        Ok(about) => about,
        Err(problem) => {
            if problem.downcast_ref::<Refused>().is_some_and(|refused| refused.status == UNAUTHORIZED) {
                let remedy = "forewarn --token TOKEN doctor, or FOREWARN_TOKEN";
                return report.finding("api", "the token is missing or wrong", why, remedy);
            }
            if problem.to_string().contains("Permission denied") {
                let what = format!("this user may not use the socket: {client}");
                return report.finding("api", what, why, format!("sudo forewarn --api {client} doctor"));
            }
            return report.problem("api", &problem, why, "systemctl status forewarn");
        }
    };
    report.well("api", format!("{client} answers ({})", about.mode));
    version(report, &about);
    ready(report, &client);
    clocks(report, &client);
    for place in &about.metadata {
        metadata(report, place);
    }
    if let Some(place) = &about.arm {
        azure(report, &client, place);
    }
}

fn version(report: &mut Report, about: &ServerView) {
    let (ours, theirs) = (env!("CARGO_PKG_VERSION"), about.version.as_str());
    if ours == theirs {
        return report.well("version", format!("client and server are {ours}"));
    }
    let what = format!("the server is version {theirs}, and this client {ours}");
    let remedy = "systemctl restart forewarn (if it runs the older one), or use the client of that version";
    report.finding("version", what, "one may not understand what the other says", remedy);
}

fn ready(report: &mut Report, client: &Client) {
    match client.send(Method::GET, "/readyz", &[], Bytes::new()) {
        Ok((200, _)) => report.well("ready", "the server can write"),
        Ok((status, _)) => report.finding(
            "ready",
            format!("the server answers {status} to /readyz"),
            "nothing new can be decided: the disk is full or fails",
            "df -h; journalctl -u forewarn -n 50",
        ),
        Err(problem) => report.problem("ready", &problem, "it may be stopping", "systemctl status forewarn"),
    }
}

fn clocks(report: &mut Report, client: &Client) {
    let clock: ClockView = match client.get("/v1/clock") {
        Ok(clock) => clock,
        Err(problem) => {
            return report.problem("clocks", &problem, "it may be stopping", "systemctl status forewarn");
        }
    };
    if clock.kind != "real" {
        return report.well("clocks", format!("the clock of the server is {}", clock.kind));
    }
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let apart = Duration::from_secs(here.abs_diff(u64::try_from(clock.now.0.seconds()).unwrap_or(0)));
    if apart > APART_MAX {
        let what = format!("the clock of the server and the clock here are {} s apart", apart.as_secs());
        let why = "times that you read and type do not mean what they mean there";
        return report.finding("clocks", what, why, "timedatectl set-ntp true, here and there");
    }
    report.well("clocks", "the clock of the server is right by the one here");
}

/// Whether clients of Azure are answered, and can believe who answers them.
fn azure(report: &mut Report, client: &Client, arm: &str) {
    let why = "az and other clients of Azure cannot come in";
    let asked = az::place(arm, client).and_then(|place| {
        let azure = Client::new(&place)?.with_patience(PATIENCE);
        // Without an authority of the server's own, it is one of the system's.
        let azure = match client.send(Method::GET, "/ca.pem", &[], Bytes::new())? {
            (200, pem) => azure.with_authority(pem.to_vec()),
            (_, _) => azure,
        };
        azure.get::<serde_json::Value>("/metadata/endpoints?api-version=2022-09-01")?;
        Ok(place)
    });
    match asked {
        Ok(place) => report.well("arm", format!("{place} answers, and its certificate is good")),
        Err(problem) => report.problem("arm", &problem, why, "journalctl -u forewarn -n 50"),
    }
}

/// Whoever is answered at all has found the endpoint: who is no machine is refused.
fn metadata(report: &mut Report, place: &str) {
    let why = "machines cannot ask for their events";
    let remedy = format!("curl -H Metadata:true {place}/metadata/versions; journalctl -u forewarn -n 50");
    let asked = Client::new(place).map(|client| client.with_patience(PATIENCE)).and_then(|client| {
        client.send(Method::GET, "/metadata/versions", &[("metadata", "true")], Bytes::new())
    });
    match asked {
        Ok((status, _)) if status < 500 => report.well("metadata", format!("{place} answers")),
        Ok((status, _)) => report.finding("metadata", format!("{place} answers {status}"), why, remedy),
        Err(problem) => {
            let text = format!("{problem:#}");
            let what = text.split("\n  hint: ").next().unwrap_or_default();
            report.finding("metadata", what, why, remedy);
        }
    }
}
