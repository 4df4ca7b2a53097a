//! `forewarn webhook`: receivers to which events are pushed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, stdin};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use forewarn_control::shared::WebhookFormat;
use forewarn_control::{NewWebhook, Outcome, WebhookState, WebhookTest, WebhookTestRequest, WebhookView};
use forewarn_http_client::Method;
use forewarn_types::{EventKind, NotAnEventKind};

use super::sentences::Wording;
use super::session::{Session, escaped, parse};
use super::table::{Table, Width, listed};
use super::{Name, OutputFormat, not_empty, sentences};

const EXAMPLES: &str = "\
Examples:
  forewarn webhook create ops https://hooks.example/forewarn
  forewarn webhook create loss https://hooks.example/loss --type Terminate --type Preempt
  forewarn webhook create grid 'https://fn.example/api/events?code=KEY' --format eventgrid
  printf 'Bearer KEY' | forewarn webhook create ops https://hooks.example/a --authorization-file -
  forewarn webhook create chat https://hooks.slack.com/services/T0/B0/KEY --format slack
  forewarn webhook create pager --format pagerduty --key-file pagerduty.key";

/// Bytes of a secret, with a line end.
const SECRET_BYTES_MAX: u64 = 8 * 1024;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a webhook. Delivery starts when the receiver confirms the subscription; to a chat, at once
    #[command(before_help = EXAMPLES, alias = "add")]
    Create(NewWebhookArgs),
    /// List webhooks with their delivery status
    Ls,
    /// Show a webhook, without its secrets
    Show {
        /// Webhook
        name: Name,
    },
    /// Delete webhooks
    #[command(alias = "rm")]
    Delete {
        /// Webhooks
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Name>,
    },
    /// Send a test message to a webhook, after the handshake if it is not confirmed yet
    #[command(before_help = "Example:\n  forewarn webhook test ops")]
    Test {
        /// Webhook
        name: Name,
    },
}

#[derive(Args)]
pub(crate) struct NewWebhookArgs {
    /// Name of the webhook
    name: Name,
    /// URL of the receiver: https://HOST/PATH or http://…; the query (after `?`) is secret and not shown again; of a
    /// chat, only scheme and host are [default for pagerduty: https://events.pagerduty.com/v2/enqueue]
    url: Option<String>,
    /// Format of the messages
    #[arg(long, alias = "schema", value_parser = format_parser(), default_value = "cloudevents")]
    format: WebhookFormat,
    /// Only events of this cluster; repeatable [default: all]
    #[arg(long, value_name = "CLUSTER", value_parser = not_empty)]
    cluster: Vec<String>,
    /// Only events of this tenant or scale set; repeatable [default: all]
    #[arg(long, value_name = "TENANT")]
    tenant: Vec<Name>,
    /// Only events of this type; repeatable [default: all]
    #[arg(long = "type", value_name = "TYPE", value_parser = kind_parser(), ignore_case = true)]
    types: Vec<EventKind>,
    /// File with the Authorization header, such as `Bearer SECRET`; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    authorization_file: Option<OsString>,
    /// File with the routing key of PagerDuty, which `--format pagerduty` needs; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "authorization_file")]
    key_file: Option<OsString>,
}

/// Parses a format, and describes each in the help.
fn format_parser() -> impl TypedValueParser<Value = WebhookFormat> {
    let value = |format: WebhookFormat| PossibleValue::new(format.as_str()).help(format_help(format));
    let find = |word: String| {
        WebhookFormat::ALL.into_iter().find(|format| format.as_str() == word).ok_or("unknown format")
    };
    PossibleValuesParser::new(WebhookFormat::ALL.map(value)).try_map(find)
}

fn format_help(format: WebhookFormat) -> &'static str {
    match format {
        WebhookFormat::CloudEvents => "CloudEvents 1.0, structured JSON",
        WebhookFormat::EventGrid => "Azure Event Grid schema",
        WebhookFormat::Slack => "Incoming webhook of Slack",
        WebhookFormat::Teams => "Workflow of Microsoft Teams: Adaptive Card",
        WebhookFormat::PagerDuty => "PagerDuty Events API v2",
        WebhookFormat::Text => "Plain text",
    }
}

/// Parses an event type, ignoring case.
fn kind_parser() -> impl TypedValueParser<Value = EventKind> {
    let find = |word: String| {
        let is_meant = |kind: &EventKind| kind.as_str().eq_ignore_ascii_case(&word);
        EventKind::ALL.into_iter().find(is_meant).ok_or(NotAnEventKind)
    };
    PossibleValuesParser::new(EventKind::ALL.map(EventKind::as_str)).try_map(find)
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Create(new) => create(session, new),
        Command::Ls => {
            session.list("/v1/webhooks", |webhooks: Vec<WebhookView>| Ok(table(&webhooks, session.width())))
        }
        Command::Show { name } => session.show(&path(&name), |webhook| Ok(facts(webhook))),
        Command::Delete { names } => names.iter().try_for_each(|name| {
            let response = session.change(Method::DELETE, &path(name), None::<&()>)?;
            let wording = Wording::deletion("webhook", &name.0);
            session.present(response, |outcome: Outcome| Ok(sentences::outcome(&outcome, &wording)))
        }),
        Command::Test { name } => test(session, &name),
    }
}

fn create(session: &Session, new: NewWebhookArgs) -> Result<()> {
    let (name, format) = (new.name.0.clone(), new.format);
    let wording = Wording {
        noun: format!("creation of webhook {name}"),
        done: format!("Webhook {name} created."),
        unchanged: format!("Webhook {name} already exists."),
    };
    let next = match format.handshake() {
        Some(_) => {
            format!(
                "Delivery starts when the receiver confirms the subscription: forewarn webhook show {name}"
            )
        }
        None => format!("To send a test message: forewarn webhook test {name}"),
    };
    let text = |outcome: Outcome| Ok(format!("{}{next}\n", sentences::outcome(&outcome, &wording)));
    session.send("/v1/webhooks", &request(new)?, text)
}

/// Sends a test message. A failed delivery is an error, also with JSON output.
fn test(session: &Session, name: &Name) -> Result<()> {
    let response = session.post(&format!("{}/test", path(name)), &WebhookTestRequest {})?;
    let tested: WebhookTest = parse(response.clone())?;
    if matches!(session.output(), OutputFormat::Data(_)) || tested.delivered {
        let text = |tested: WebhookTest| {
            Ok(format!("Webhook {} accepted a test message in {} ms.\n", name.0, tested.millis))
        };
        session.present(response, text)?;
    }
    match tested.error {
        Some(problem) => bail!("webhook {} did not accept the test message: {problem}", name.0),
        None => Ok(()),
    }
}

fn path(Name(name): &Name) -> String {
    format!("/v1/webhooks/{}", escaped(name))
}

fn request(new: NewWebhookArgs) -> Result<NewWebhook> {
    let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
    if new.url.is_none() && new.format.default_url().is_none() {
        bail!(
            "webhook {} needs a URL\n  hint: forewarn webhook create NAME URL --format {}",
            new.name.0,
            new.format
        );
    }
    Ok(NewWebhook {
        name: new.name.0,
        url: new.url,
        format: new.format,
        // An empty environment variable counts as unset.
        clusters: some(new.cluster.into_iter().filter(|name| !name.is_empty()).collect()),
        tenants: some(new.tenant.into_iter().map(|Name(name)| name).collect()),
        types: (!new.types.is_empty()).then_some(new.types),
        authorization: secret("Authorization header", new.authorization_file.as_deref())?,
        key: secret("routing key", new.key_file.as_deref())?,
    })
}

/// Reads a secret from a file or standard input. On the command line, other users could read it.
fn secret(what: &str, file: Option<&OsStr>) -> Result<Option<String>> {
    let Some(file) = file else { return Ok(None) };
    let mut text = String::new();
    let read = if file == "-" {
        stdin().lock().take(SECRET_BYTES_MAX).read_to_string(&mut text)
    } else {
        File::open(file).and_then(|open| open.take(SECRET_BYTES_MAX).read_to_string(&mut text))
    };
    read.with_context(|| format!("cannot read the {what}: {}", file.display()))?;
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

fn state(state: WebhookState) -> &'static str {
    match state {
        WebhookState::Unconfirmed => "unconfirmed",
        WebhookState::Healthy => "healthy",
        WebhookState::Failing => "failing",
    }
}

/// The filter of a webhook: `all events`, or its limits.
fn filter(webhook: &WebhookView) -> String {
    let types =
        webhook.types.as_ref().map(|types| types.iter().map(|kind| kind.as_str().to_owned()).collect());
    let some = |what: &str, names: &Option<Vec<String>>| {
        names.as_ref().map(|names| format!("{what} {}", names.join(", ")))
    };
    let parts =
        [some("types", &types), some("tenants", &webhook.tenants), some("clusters", &webhook.clusters)];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "all events".to_owned() } else { parts.join("; ") }
}

fn table(webhooks: &[WebhookView], width: Width) -> String {
    let dropped = ["format", "delivered", "events", "lost", "url"];
    let mut table = Table::new(width, &["name", "state", "format", "events", "delivered", "lost", "url"])
        .dropping(&dropped);
    for webhook in webhooks {
        table.row([
            webhook.name.clone(),
            state(webhook.state).to_owned(),
            webhook.format.to_string(),
            filter(webhook),
            webhook.delivered.to_string(),
            webhook.lost.to_string(),
            webhook.url.clone(),
        ]);
    }
    table.to_string()
}

fn facts(webhook: WebhookView) -> String {
    let all = |names: &Option<Vec<String>>| names.as_ref().map_or_else(|| "all".to_owned(), listed);
    let types: Option<Vec<String>> =
        webhook.types.as_ref().map(|types| types.iter().map(|kind| kind.as_str().to_owned()).collect());
    let facts = [
        ("url", webhook.url),
        ("format", webhook.format.to_string()),
        ("clusters", all(&webhook.clusters)),
        ("tenants", all(&webhook.tenants)),
        ("types", all(&types)),
        ("authorization", if webhook.authorization { "set (not shown)" } else { "-" }.to_owned()),
        ("key", if webhook.key { "set (not shown)" } else { "-" }.to_owned()),
        ("state", state(webhook.state).to_owned()),
        ("error", webhook.error.unwrap_or_else(|| "-".to_owned())),
        ("failing since", webhook.failing_since.map_or_else(|| "-".to_owned(), sentences::date)),
        ("position", position(&webhook.last_entries)),
        ("delivered", format!("{} since the server started", webhook.delivered)),
        ("lost", webhook.lost.to_string()),
        ("created", sentences::date(webhook.created)),
        ("by", webhook.by),
    ];
    Table::facts([("name", webhook.name)].into_iter().chain(facts)).to_string()
}

/// The last entry of the audit log of each cluster that was delivered.
fn position(last_entries: &BTreeMap<String, u64>) -> String {
    let entries = last_entries.iter().map(|(cluster, entry)| format!("entry {entry} of {cluster}"));
    entries.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhooks() -> Vec<WebhookView> {
        let json = r#"[
            {"name":"ops","url":"https://h/x?…","schema":"cloudevents","clusters":null,"tenants":null,"types":null,
             "authorization":true,"state":"healthy","error":null,"failing_since":null,"last_entries":{"default":7,"west":2},"delivered":3,"lost":0,
             "created":"2026-01-01T00:00:00Z","by":"anyone"},
            {"name":"grid","url":"http://127.0.0.1:9/","format":"eventgrid","clusters":["west"],"tenants":["web","db"],
             "types":["Freeze","Terminate"],"authorization":false,"state":"failing","error":"it answers 500",
             "failing_since":"2026-01-01T01:00:00Z","last_entries":{"default":7,"west":2},"delivered":0,"lost":2,"created":"2026-01-01T00:00:00Z",
             "by":"token ci"}]"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn webhooks_are_listed_with_their_status() {
        assert_eq!(
            table(&webhooks(), Width::Wide),
            "NAME  STATE    FORMAT       EVENTS                                                   DELIVERED  LOST  URL\n\
             ops   healthy  cloudevents  all events                                               3          0     https://h/x?…\n\
             grid  failing  eventgrid    types Freeze, Terminate; tenants web, db; clusters west  0          2     http://127.0.0.1:9/\n"
        );
    }

    #[test]
    fn a_webhook_is_shown_with_its_error() {
        let shown = facts(webhooks().remove(1));
        for line in [
            "error          it answers 500",
            "failing since  2026-01-01 01:00:00Z",
            "types          Freeze, Terminate",
            "position       entry 7 of default, entry 2 of west",
        ] {
            assert!(shown.lines().any(|found| found == line), "{line}\nin\n{shown}");
        }
    }
}
