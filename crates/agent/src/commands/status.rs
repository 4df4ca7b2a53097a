//! `forewarn-agent status`: how the agent is that runs on this machine.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use forewarn_cli_support::table::{Table, listed, some};
use forewarn_cli_support::visible::json;
use forewarn_client::http::{HttpClient, Limits, Request, Trust, Url};
use forewarn_types::show_duration;

use super::{Options, block_on, print};
use crate::config::Config;
use crate::status::{EndpointView, EventView, Status};

/// Bytes of a status that are read.
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long the agent may take to answer.
const LIMITS: Limits =
    Limits { connect: Duration::from_secs(2), answer: Duration::from_secs(5), body_bytes: BYTES_MAX };

/// Show how the agent is that runs on this machine.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  forewarn-agent status\n  forewarn-agent status --json | jq .drained")]
pub(super) struct Arguments {
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// Where the agent listens, instead of what the settings say.
    #[arg(long, value_name = "ADDRESS")]
    at: Option<SocketAddr>,
}

pub(super) fn command(options: &Options, arguments: &Arguments) -> Result<()> {
    let address = match arguments.at {
        Some(address) => address,
        None => place(&options.load()?)?,
    };
    let body = block_on(ask(address))?;
    if arguments.json {
        return print(&json(&format!("{}\n", body.trim_end())));
    }
    let status: Status = serde_json::from_str(&body).context("the agent answers something else")?;
    print(&shown(&status))
}

fn place(config: &Config) -> Result<SocketAddr> {
    let Some(mut address) = config.listen else {
        bail!("an agent with these settings tells nobody how it is: listen = \"off\"")
    };
    // Who listens everywhere listens here as well.
    if address.ip().is_unspecified() {
        let here =
            if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        address.set_ip(here);
    }
    Ok(address)
}

async fn ask(address: SocketAddr) -> Result<String> {
    let url = Url::parse(&format!("http://{address}/status"))?;
    let mut line = HttpClient::new(url, Trust::system());
    let answer = line.send(&Request::get("/status"), LIMITS).await.map_err(|problem| {
        anyhow!(
            "no agent answers at {address}: {problem}\n  \
             hint: systemctl status forewarn-agent; or `forewarn-agent run` in a terminal"
        )
    })?;
    if answer.status != 200 {
        bail!("whoever answers at {address} is not an agent: it answers {}", answer.status);
    }
    String::from_utf8(answer.body.to_vec()).context("the agent answers something that is no text")
}

/// For people.
fn shown(status: &Status) -> String {
    let Status { version, name, dry_run, ready, drained, endpoint, events, owed, at } = status;
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let facts = [
        ("machine", name.clone().unwrap_or_else(|| "not known yet".to_owned())),
        ("agent", format!("{version}{}", if *dry_run { ", which does nothing (--dry-run)" } else { "" })),
        ("endpoint", told(endpoint)),
        ("Scheduled Events", if endpoint.enabled { "enabled" } else { "not enabled yet" }.to_owned()),
        ("ready", yes(*ready)),
        ("drained", yes(*drained)),
        ("to be undone", listed(owed)),
        ("at", at.to_string()),
    ];
    let mut text = Table::facts(facts).to_string();
    if events.is_empty() {
        text.push_str("\nno event is pending\n");
        return text;
    }
    let mut table =
        Table::new(&["event", "type", "status", "left", "mine", "stage", "approved", "resources"]);
    for event in events {
        table.row(row(event));
    }
    text.push_str(&format!("\n{table}"));
    let mut hooks = Table::new(&["event", "phase", "hook", "state", "attempts", "why"]);
    for event in events {
        for hook in &event.hooks {
            hooks.row([
                short(&event.id),
                hook.phase.as_str().to_owned(),
                hook.name.clone(),
                hook.state.clone(),
                hook.attempts.to_string(),
                hook.why.clone().unwrap_or_default(),
            ]);
        }
    }
    if events.iter().any(|event| !event.hooks.is_empty()) {
        text.push_str(&format!("\n{hooks}"));
    }
    text
}

fn row(event: &EventView) -> [String; 8] {
    use forewarn_agent_core::{Consent, Gone};
    let approved = match event.consent {
        Consent::None => "no",
        Consent::Tried => "trying",
        Consent::Given => "yes",
        Consent::ByPeer => "by a peer",
    };
    let status = match event.gone {
        None => event.status.clone(),
        Some(Gone::Completed) => "completed".to_owned(),
        Some(Gone::Cancelled) => "cancelled".to_owned(),
    };
    [
        short(&event.id),
        event.kind.clone(),
        status,
        event.seconds_left.map(|left| show_duration(Duration::from_secs(left))).unwrap_or_default(),
        if event.mine { "yes" } else { "no" }.to_owned(),
        event.stage.clone().unwrap_or_default(),
        approved.to_owned(),
        some(&event.resources),
    ]
}

/// As much of an id as tells it from the others.
fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

fn told(endpoint: &EndpointView) -> String {
    let url = endpoint.url.as_deref().unwrap_or("not found yet");
    let server = endpoint.server.as_deref().map(|server| format!(" ({server})")).unwrap_or_default();
    match (&endpoint.error, endpoint.failing_since) {
        (Some(why), Some(since)) => format!("{url}{server}, does not answer since {since}: {why}"),
        (_, _) => format!("{url}{server}"),
    }
}
