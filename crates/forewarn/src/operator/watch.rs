//! `forewarn watch`: every change as it happens.

use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::{Context, Result};
use clap::Args;
use forewarn_cli_support::output::as_name;
use forewarn_control::TenantView;
use forewarn_types::Moment;
use serde::Deserialize;
use serde_json::Value;

use super::session::{Session, escaped};
use super::visible::{json, one_line};
use super::{DataFormat, Name, OutputFormat, sentences};

pub(crate) const EXAMPLES: &str = "\
Examples:
  forewarn watch
  forewarn watch --tenant web --output json | jq -r .text";

#[derive(Args)]
pub(crate) struct WatchArgs {
    /// Only changes of this tenant
    #[arg(long)]
    tenant: Option<Name>,
}

pub(super) fn run(session: &Session, arguments: &WatchArgs) -> Result<()> {
    if let Some(Name(name)) = &arguments.tenant {
        // With a misspelt name the command would wait forever.
        session.get::<TenantView>(&format!("/v1/tenants/{}", escaped(name)))?;
    }
    let query = arguments.tenant.as_ref().map(|Name(name)| format!("?tenant={}", escaped(name)));
    let path = format!("/v1/watch{}", query.unwrap_or_default());
    let mut failed = None;
    session.follow(&path, |data| match print_change(session, data) {
        Ok(next) => next,
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// Prints one change. Stops when the reader closes the pipe.
fn print_change(session: &Session, data: &str) -> Result<ControlFlow<()>> {
    let invalid = "invalid change in the stream";
    let text = match session.output() {
        OutputFormat::Data(DataFormat::Json) => format!("{}\n", json(data)),
        OutputFormat::Data(format) => format.element(&serde_json::from_str(data).context(invalid)?, events),
        OutputFormat::Text(_) => {
            format!("{}\n", one_line(&line(&serde_json::from_str(data).context(invalid)?)))
        }
    };
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => Err(error.into()),
    }
}

/// The ids of the events that a change is about.
fn events(change: &Value) -> Vec<String> {
    change["events"].as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(as_name).collect()
}

/// Characters of the longest common kind of change, so that columns align.
const KIND_CHARS: usize = 9;

/// Characters of a time.
const DATE_CHARS: usize = 20;

/// The printed fields of a change.
#[derive(Deserialize)]
struct WatchLine {
    at: Option<Moment>,
    kind: String,
    text: String,
    by: Option<String>,
}

fn line(change: &WatchLine) -> String {
    let at = change.at.map(sentences::date).unwrap_or_default();
    format!(
        "{at:<DATE_CHARS$}  {:<KIND_CHARS$}  {}{}",
        change.kind,
        change.text,
        caller(change.by.as_deref())
    )
}

/// The caller in brackets, unless it is Forewarn itself.
pub(super) fn caller(by: Option<&str>) -> String {
    match by {
        None | Some("" | ITSELF) => String::new(),
        Some(by) => format!(" [{by}]"),
    }
}

/// The caller of changes that Forewarn makes itself, such as at the end of a notice.
const ITSELF: &str = "forewarn";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_line() {
        let json =
            r#"{"at":"2026-01-01T00:00:30Z","kind":"enrolled","text":"web is enrolled","tenants":["web"]}"#;
        let change: WatchLine = serde_json::from_str(json).unwrap();
        assert_eq!(line(&change), "2026-01-01 00:00:30Z  enrolled   web is enrolled");
        let requested = WatchLine { by: Some("token alice".to_owned()), ..change };
        assert!(line(&requested).ends_with("web is enrolled [token alice]"));
        let missed: WatchLine = serde_json::from_str(r#"{"kind":"missed","text":"too old"}"#).unwrap();
        assert_eq!(line(&missed), "                      missed     too old");
    }
}
