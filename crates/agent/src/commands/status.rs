//! `forewarn-agent status`: shows the status of the agent on this machine.

use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use forewarn_cli_support::output::names_in;
use forewarn_cli_support::table::{Table, Width, listed, some};
use forewarn_cli_support::visible::{flat, json, one_line};
use forewarn_types::show_duration;
use serde_json::Value;

use super::listener::{ListenerOption, read_status};
use super::{DataFormat, GlobalOptions, OutputFormat, block_on, print, print_data};
use crate::obstacles::{NotApproved, short_id};
use crate::status::{EndpointView, EventView, Status};

/// Show the status of the agent on this machine
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  forewarn-agent status\n  forewarn-agent status --output json | jq .drained"
)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    at: ListenerOption,
}

pub(super) fn command(options: &GlobalOptions, arguments: &StatusArgs) -> Result<()> {
    let listener = arguments.at.listener(options)?;
    let body = block_on(listener.status_text())?;
    match options.output() {
        OutputFormat::Data(DataFormat::Json) => print(&json(&format!("{}\n", body.trim_end()))),
        OutputFormat::Data(format) => {
            let status: Value =
                serde_json::from_str(&body).context("the agent returned an invalid status")?;
            print_data(format, &status, |status| names_in(&status["events"], "id"))
        }
        OutputFormat::Text(width) => print(&format_status(&read_status(&body)?, width)),
    }
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
        ("agent works", yes(*ready)),
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
        Table::new(width, &headings).dropping(&["mine", "resources", "stage", "left", "approved"]);
    for event in events {
        table.row(row(event, width));
    }
    text.push_str(&format!("\n{table}{}", describe_obstacles(events)));
    let headings = ["event", "phase", "hook", "state", "attempts", "reason"];
    let mut hooks = Table::new(width, &headings).dropping(&["attempts", "reason", "phase"]);
    for event in events {
        for hook in &event.hooks {
            hooks.row([
                shown_id(&event.id, width),
                hook.phase.as_str().to_owned(),
                hook.name.clone(),
                hook.state.clone(),
                hook.attempts.to_string(),
                hook.reason.as_deref().map(flat).unwrap_or_default(),
            ]);
        }
    }
    if events.iter().any(|event| !event.hooks.is_empty()) {
        text.push_str(&format!("\n{hooks}"));
    }
    text
}

fn row(event: &EventView, width: Width) -> [String; 8] {
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
        shown_id(&event.id, width),
        event.kind.clone(),
        status,
        event.seconds_left.map(|left| show_duration(Duration::from_secs(left))).unwrap_or_default(),
        if event.mine { "yes" } else { "no" }.to_owned(),
        event.stage.clone().unwrap_or_default(),
        approved.to_owned(),
        some(&event.resources),
    ]
}

/// The reasons why events are not approved by this machine.
fn describe_obstacles(events: &[EventView]) -> String {
    let mut text = String::new();
    for event in events {
        let Some(NotApproved { reason, hint, .. }) = &event.not_approved else { continue };
        let (id, reason) = (short_id(&event.id), one_line(reason));
        text.push_str(&format!("\n{id} is not approved by this agent: {reason}\n"));
        text.extend(hint.as_ref().map(|hint| format!("  hint: {}\n", one_line(hint))));
    }
    text
}

/// A complete id in a wide table, else its first part.
pub(super) fn shown_id(id: &str, width: Width) -> String {
    match width {
        Width::Fit(_) => short_id(id),
        Width::Wide => id.to_owned(),
    }
}

fn describe_endpoint(endpoint: &EndpointView) -> String {
    let url = endpoint.url.as_deref().unwrap_or("not found");
    let server = endpoint.server.as_deref().map(|server| format!(" ({server})")).unwrap_or_default();
    match (&endpoint.error, endpoint.failing_since) {
        (Some(reason), Some(since)) => format!("{url}{server}, no response since {since}: {reason}"),
        (_, _) => format!("{url}{server}"),
    }
}
