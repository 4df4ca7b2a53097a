//! `forewarn-agent retry`: has the agent on this machine run failed hooks again.

use anyhow::{Context, Result};
use clap::Args;
use forewarn_cli_support::output::names_in;
use forewarn_client::http::{HeaderName, HeaderValue, Request};
use forewarn_types::EventId;

use super::event_ids::resolve_id;
use super::listener::ListenerOption;
use super::{GlobalOptions, OutputFormat, block_on, print, print_data};
use crate::status::RetriedHook;

/// Run failed hooks again, each once: of one event, or of all events
///
/// The agent becomes ready, and approves, as after a success at the first attempt. Changed settings take effect after a
/// reload only: systemctl reload forewarn-agent.
#[derive(Debug, Args)]
#[command(before_help = "Examples:\n  forewarn-agent retry\n  forewarn-agent retry 28512AF7")]
pub(super) struct RetryArgs {
    /// Event id, or a prefix of at least four characters [default: all events]
    #[arg(value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    at: ListenerOption,
}

pub(super) fn command(options: &GlobalOptions, arguments: &RetryArgs) -> Result<()> {
    let listener = arguments.at.listener(options)?;
    let body = block_on(async {
        let target = match &arguments.id {
            None => "/retry".to_owned(),
            Some(text) => {
                let status = listener.status().await?;
                let known: Vec<_> =
                    status.events.iter().filter_map(|event| EventId::parse(&event.id)).collect();
                format!("/retry/{}", resolve_id(&known, text, "forewarn-agent status")?)
            }
        };
        let name = (HeaderName::from_static("forewarn-agent"), HeaderValue::from_static("retry"));
        listener.send(&Request::post(target, "").with(name.0, name.1)).await
    })?;
    let hooks: Vec<RetriedHook> =
        serde_json::from_str(&body).context("the agent returned an invalid response")?;
    match options.output() {
        OutputFormat::Data(format) => print_data(format, &hooks, |hooks| names_in(hooks, "hook")),
        OutputFormat::Text(_) if hooks.is_empty() => {
            eprintln!("no hook has failed");
            Ok(())
        }
        OutputFormat::Text(_) => {
            let line = |RetriedHook { event, phase, hook }: &RetriedHook| {
                format!("{hook} runs again, in the phase {} of {event}\n", phase.as_str())
            };
            print(&hooks.iter().map(line).collect::<String>())?;
            eprintln!("forewarn-agent status shows the results");
            Ok(())
        }
    }
}
