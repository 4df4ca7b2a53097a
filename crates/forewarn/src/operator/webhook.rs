//! `forewarn webhook`: who is told of events without asking.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, stdin};

use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use forewarn_control::{NewWebhook, Outcome, SchemaWord, TestOrder, WebhookState, WebhookTest, WebhookView};
use forewarn_http_client::Method;
use forewarn_types::{EventKind, NotAnEventKind};

use super::session::{Session, escaped, understand};
use super::table::{Table, listed};
use super::{Named, Output, not_empty, say};

const EXAMPLES: &str = "\
Examples:
  forewarn webhook add ops https://hooks.example/forewarn
  forewarn webhook add ops https://hooks.example/forewarn --tenant web --type Terminate --type Preempt
  forewarn webhook add grid https://fn.example/api/events?code=KEY --schema eventgrid
  printf 'Bearer SECRET' | forewarn webhook add ops https://hooks.example/forewarn --authorization-file -";

/// Characters of what is sent as `Authorization`, and a line end.
const AUTHORIZATION_BYTES_MAX: u64 = 8 * 1024;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Have somebody told of events from now on, once it has said that it wants to be.
    #[command(after_help = EXAMPLES)]
    Add(New),
    /// List webhooks, and how it is with them.
    Ls,
    /// Show a webhook, without its secrets.
    Show {
        /// Its name.
        name: Named,
    },
    /// Tell them nothing any more.
    Rm {
        /// Their names.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Named>,
    },
    /// Send a webhook an event that says that it is a test, after a handshake if there was none.
    Test {
        /// Its name.
        name: Named,
    },
}

#[derive(Args)]
pub(crate) struct New {
    /// What to call it.
    name: Named,
    /// Where it is told: https://HOST/PATH, or http://…; what stands behind ? is not shown again.
    url: String,
    /// In which form.
    #[arg(long, value_enum, default_value_t = Schema::Cloudevents)]
    schema: Schema,
    /// Only of what happens in this cluster; may be said more than once. In all, if not said.
    #[arg(long, value_name = "CLUSTER", value_parser = not_empty)]
    cluster: Vec<String>,
    /// Only of this tenant, or this scale set; may be said more than once. Of all, if not said.
    #[arg(long, value_name = "TENANT")]
    tenant: Vec<Named>,
    /// Only of events of this type; may be said more than once. Of all, if not said.
    #[arg(long = "type", value_name = "TYPE", value_parser = kind_parser(), ignore_case = true)]
    types: Vec<EventKind>,
    /// Send what this file has as Authorization, such as `Bearer SECRET`; - is standard input. It is not shown again.
    #[arg(long, value_name = "FILE")]
    authorization_file: Option<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Schema {
    /// CloudEvents 1.0, as structured JSON.
    Cloudevents,
    /// That of Event Grid.
    Eventgrid,
}

/// Reads a type of events, in any case.
fn kind_parser() -> impl TypedValueParser<Value = EventKind> {
    let find = |word: String| {
        let is_meant = |kind: &EventKind| kind.as_str().eq_ignore_ascii_case(&word);
        EventKind::ALL.into_iter().find(is_meant).ok_or(NotAnEventKind)
    };
    PossibleValuesParser::new(EventKind::ALL.map(EventKind::as_str)).try_map(find)
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Add(new) => {
            let name = new.name.0.clone();
            let said = |outcome: Outcome| {
                let done = say::outcome(&outcome, &format!("webhook {name}"));
                Ok(format!("{done}It is asked whether it wants to be told: forewarn webhook show {name}\n"))
            };
            session.ask("/v1/webhooks", &wanted(new)?, said)
        }
        Command::Ls => session.list("/v1/webhooks", |webhooks: Vec<WebhookView>| Ok(table(&webhooks))),
        Command::Show { name } => session.show(&path(&name), |webhook| Ok(facts(webhook))),
        Command::Rm { names } => names.iter().try_for_each(|name| {
            let answer = session.change(Method::DELETE, &path(name), None::<&()>)?;
            let said =
                |outcome: Outcome| Ok(say::outcome(&outcome, &format!("webhook {} is removed", name.0)));
            session.present(answer, said)
        }),
        Command::Test { name } => test(session, &name),
    }
}

/// A test that fails is a failure, whatever is printed of it.
fn test(session: &Session, name: &Named) -> Result<()> {
    let answer = session.post(&format!("{}/test", path(name)), &TestOrder {})?;
    let tested: WebhookTest = understand(answer.clone())?;
    if session.output() == Output::Json || tested.delivered {
        let said = |tested: WebhookTest| {
            Ok(format!("Done: webhook {} has taken a test, in {} ms.\n", name.0, tested.millis))
        };
        session.present(answer, said)?;
    }
    match tested.problem {
        Some(problem) => bail!("the webhook has not taken a test: {}: {problem}", name.0),
        None => Ok(()),
    }
}

fn path(Named(name): &Named) -> String {
    format!("/v1/webhooks/{}", escaped(name))
}

fn wanted(new: New) -> Result<NewWebhook> {
    let some = |names: Vec<String>| (!names.is_empty()).then_some(names);
    Ok(NewWebhook {
        name: new.name.0,
        url: new.url,
        schema: match new.schema {
            Schema::Cloudevents => SchemaWord::CloudEvents,
            Schema::Eventgrid => SchemaWord::EventGrid,
        },
        // A variable that is empty counts as one that is not there.
        clusters: some(new.cluster.into_iter().filter(|name| !name.is_empty()).collect()),
        tenants: some(new.tenant.into_iter().map(|Named(name)| name).collect()),
        types: (!new.types.is_empty()).then_some(new.types),
        authorization: new.authorization_file.as_deref().map(authorization).transpose()?,
    })
}

/// What a file, or standard input, has to be sent. It is not on the command line, where everybody on the computer could read it.
fn authorization(file: &OsStr) -> Result<String> {
    let mut text = String::new();
    let read = if file == "-" {
        stdin().lock().take(AUTHORIZATION_BYTES_MAX).read_to_string(&mut text)
    } else {
        File::open(file).and_then(|open| open.take(AUTHORIZATION_BYTES_MAX).read_to_string(&mut text))
    };
    read.with_context(|| format!("cannot read what is sent as Authorization: {}", file.display()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn schema(word: SchemaWord) -> &'static str {
    match word {
        SchemaWord::CloudEvents => "cloudevents",
        SchemaWord::EventGrid => "eventgrid",
    }
}

fn state(state: WebhookState) -> &'static str {
    match state {
        WebhookState::Unconfirmed => "unconfirmed",
        WebhookState::Well => "well",
        WebhookState::Failing => "failing",
    }
}

/// What a webhook is told of: `everything`, or what it is limited to.
fn reach(webhook: &WebhookView) -> String {
    let types =
        webhook.types.as_ref().map(|types| types.iter().map(|kind| kind.as_str().to_owned()).collect());
    let some = |what: &str, names: &Option<Vec<String>>| {
        names.as_ref().map(|names| format!("{what} {}", names.join(", ")))
    };
    let parts =
        [some("types", &types), some("tenants", &webhook.tenants), some("clusters", &webhook.clusters)];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "everything".to_owned() } else { parts.join("; ") }
}

fn table(webhooks: &[WebhookView]) -> String {
    let mut table = Table::new(&["name", "state", "schema", "told of", "delivered", "lost", "url"]);
    for webhook in webhooks {
        table.row([
            webhook.name.clone(),
            state(webhook.state).to_owned(),
            schema(webhook.schema).to_owned(),
            reach(webhook),
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
        ("schema", schema(webhook.schema).to_owned()),
        ("clusters", all(&webhook.clusters)),
        ("tenants", all(&webhook.tenants)),
        ("types", all(&types)),
        ("authorization", if webhook.authorization { "is sent, and not shown" } else { "-" }.to_owned()),
        ("state", state(webhook.state).to_owned()),
        ("problem", webhook.problem.unwrap_or_else(|| "-".to_owned())),
        ("failing since", webhook.failing_since.map_or_else(|| "-".to_owned(), say::date)),
        ("told up to", format!("entry {} of the trail", webhook.told)),
        ("delivered", format!("{} since the server started", webhook.delivered)),
        ("lost", webhook.lost.to_string()),
        ("created", say::date(webhook.created)),
        ("by", webhook.by),
    ];
    Table::facts([("name", webhook.name)].into_iter().chain(facts)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhooks() -> Vec<WebhookView> {
        let json = r#"[
            {"name":"ops","url":"https://h/x?…","schema":"cloudevents","clusters":null,"tenants":null,"types":null,
             "authorization":true,"state":"well","problem":null,"failing_since":null,"told":7,"delivered":3,"lost":0,
             "created":"2026-01-01T00:00:00Z","by":"anyone"},
            {"name":"grid","url":"http://127.0.0.1:9/","schema":"eventgrid","clusters":["west"],"tenants":["web","db"],
             "types":["Freeze","Terminate"],"authorization":false,"state":"failing","problem":"it answers 500",
             "failing_since":"2026-01-01T01:00:00Z","told":7,"delivered":0,"lost":2,"created":"2026-01-01T00:00:00Z",
             "by":"token ci"}]"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn webhooks_are_listed_with_how_it_is_with_them() {
        assert_eq!(
            table(&webhooks()),
            "NAME  STATE    SCHEMA       TOLD OF                                                  DELIVERED  LOST  URL\n\
             ops   well     cloudevents  everything                                               3          0     https://h/x?…\n\
             grid  failing  eventgrid    types Freeze, Terminate; tenants web, db; clusters west  0          2     http://127.0.0.1:9/\n"
        );
    }

    #[test]
    fn a_webhook_is_shown_with_what_is_wrong_with_it() {
        let shown = facts(webhooks().remove(1));
        for line in [
            "problem        it answers 500",
            "failing since  2026-01-01 01:00:00Z",
            "types          Freeze, Terminate",
        ] {
            assert!(shown.lines().any(|found| found == line), "{line}\nin\n{shown}");
        }
    }
}
