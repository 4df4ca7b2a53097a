//! `forewarn-agent status`: shows the status of the agent on this machine.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use forewarn_cli_support::output::names_in;
use forewarn_cli_support::table::{Table, Width, listed, some};
use forewarn_cli_support::visible::json;
use forewarn_client::http::{HttpClient, Limits, Request, Trust, Url};
use forewarn_types::{TcpAddress, show_duration};
use serde_json::Value;

use super::{DataFormat, GlobalOptions, OutputFormat, block_on, print, print_data};
use crate::config::Config;
use crate::status::{EndpointView, EventView, Status};

/// Size limit of a status.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Timeouts of the request.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(2), answer: Duration::from_secs(5), body_bytes: BYTES_MAX };

/// Show the status of the agent on this machine
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  forewarn-agent status\n  forewarn-agent status --output json | jq .drained"
)]
pub(super) struct StatusArgs {
    /// Address of the agent's listener; overrides the settings [default: 127.0.0.1:9911]
    #[arg(long, value_name = "ADDRESS")]
    at: Option<TcpAddress>,
}

pub(super) fn command(options: &GlobalOptions, arguments: &StatusArgs) -> Result<()> {
    let address = match arguments.at {
        Some(TcpAddress(address)) => address,
        None => listener_address(&options.load()?)?,
    };
    let body = block_on(request_status(address))?;
    let invalid = "the agent returned an invalid status";
    match options.output() {
        OutputFormat::Data(DataFormat::Json) => print(&json(&format!("{}\n", body.trim_end()))),
        OutputFormat::Data(format) => {
            let status: Value = serde_json::from_str(&body).context(invalid)?;
            print_data(format, &status, |status| names_in(&status["events"], "id"))
        }
        OutputFormat::Text(width) => {
            print(&format_status(&serde_json::from_str(&body).context(invalid)?, width))
        }
    }
}

fn listener_address(config: &Config) -> Result<SocketAddr> {
    let Some(mut address) = config.listen else {
        bail!("an agent with these settings has no status listener: listen = \"off\"")
    };
    // An agent that listens on all addresses is reached on loopback.
    if address.ip().is_unspecified() {
        let here =
            if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        address.set_ip(here);
    }
    Ok(address)
}

async fn request_status(address: SocketAddr) -> Result<String> {
    let url = Url::parse(&format!("http://{address}/status"))?;
    let mut client = HttpClient::new(url, Trust::system());
    let response = client.send(&Request::get("/status"), LIMITS).await.map_err(|error| {
        anyhow!(
            "cannot connect to the agent at {address}: {error}\n  \
             hint: systemctl status forewarn-agent; or `forewarn-agent run` in a terminal"
        )
    })?;
    if response.status != 200 {
        bail!("the service at {address} is not an agent: it returned {}", response.status);
    }
    String::from_utf8(response.body.to_vec()).context("the agent returned a status that is not UTF-8")
}

/// Formats a status as text.
fn format_status(status: &Status, width: Width) -> String {
    let Status { version, name, dry_run, ready, drained, endpoint, events, pending_undo, at } = status;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let facts = [
        ("machine", name.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("agent", format!("{version}{}", if *dry_run { ", dry run" } else { "" })),
        ("endpoint", describe_endpoint(endpoint)),
        ("Scheduled Events", if endpoint.enabled { "enabled" } else { "not enabled yet" }.to_owned()),
        ("ready", yes(*ready)),
        ("drained", yes(*drained)),
        ("pending undo", listed(pending_undo)),
        ("at", at.to_string()),
    ];
    let mut text = Table::facts(facts).to_string();
    if events.is_empty() {
        text.push_str("\nno event is pending\n");
        return text;
    }
    let headings = ["event", "type", "status", "left", "mine", "stage", "approved", "resources"];
    let mut table =
        Table::new(width, &headings).dropping(&["resources", "mine", "stage", "left", "approved"]);
    for event in events {
        table.row(row(event));
    }
    text.push_str(&format!("\n{table}"));
    let headings = ["event", "phase", "hook", "state", "attempts", "reason"];
    let mut hooks = Table::new(width, &headings).dropping(&["attempts", "reason", "phase"]);
    for event in events {
        for hook in &event.hooks {
            hooks.row([
                short_id(&event.id),
                hook.phase.as_str().to_owned(),
                hook.name.clone(),
                hook.state.clone(),
                hook.attempts.to_string(),
                hook.reason.clone().unwrap_or_default(),
            ]);
        }
    }
    if events.iter().any(|event| !event.hooks.is_empty()) {
        text.push_str(&format!("\n{hooks}"));
    }
    text
}

fn row(event: &EventView) -> [String; 8] {
    use forewarn_agent_core::{Consent, EventOutcome};
    let approved = match event.consent {
        Consent::None => "no",
        Consent::Tried => "trying",
        Consent::Given => "yes",
        Consent::ByPeer => "by a peer",
    };
    let status = match event.outcome {
        None => event.status.clone(),
        Some(EventOutcome::Completed) => "completed".to_owned(),
        Some(EventOutcome::Cancelled) => "cancelled".to_owned(),
    };
    [
        short_id(&event.id),
        event.kind.clone(),
        status,
        event.seconds_left.map(|left| show_duration(Duration::from_secs(left))).unwrap_or_default(),
        if event.mine { "yes" } else { "no" }.to_owned(),
        event.stage.clone().unwrap_or_default(),
        approved.to_owned(),
        some(&event.resources),
    ]
}

/// The first part of an id.
pub(super) fn short_id(id: &str) -> String {
    id.chars().take(8).collect()
}

fn describe_endpoint(endpoint: &EndpointView) -> String {
    let url = endpoint.url.as_deref().unwrap_or("not found");
    let server = endpoint.server.as_deref().map(|server| format!(" ({server})")).unwrap_or_default();
    match (&endpoint.error, endpoint.failing_since) {
        (Some(reason), Some(since)) => format!("{url}{server}, no response since {since}: {reason}"),
        (_, _) => format!("{url}{server}"),
    }
}
