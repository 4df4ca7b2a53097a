//! `forewarn watch`: every change as it happens.

use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::{Context, Result};
use clap::Args;
use forewarn_control::TenantView;
use forewarn_types::Moment;
use serde::Deserialize;

use super::session::{Session, escaped};
use super::visible::{json, one_line};
use super::{Named, Output, say};

pub(crate) const EXAMPLES: &str = "\
Examples:
  forewarn watch
  forewarn watch --tenant web --output json | jq -r .text";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Only what concerns this tenant.
    #[arg(long)]
    tenant: Option<Named>,
}

pub(super) fn run(session: &Session, arguments: &Arguments) -> Result<()> {
    if let Some(Named(name)) = &arguments.tenant {
        // Nothing would ever happen to a tenant whose name is misspelt.
        session.get::<TenantView>(&format!("/v1/tenants/{}", escaped(name)))?;
    }
    let query = arguments.tenant.as_ref().map(|Named(name)| format!("?tenant={}", escaped(name)));
    let path = format!("/v1/watch{}", query.unwrap_or_default());
    let mut failed = None;
    session.follow(&path, |data| match tell(session, data) {
        Ok(next) => next,
        Err(problem) => {
            failed = Some(problem);
            ControlFlow::Break(())
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// Prints one change; there is no more to do when nobody reads.
fn tell(session: &Session, data: &str) -> Result<ControlFlow<()>> {
    let line = match session.output() {
        Output::Json => json(data),
        Output::Table | Output::Wide => {
            one_line(&line(&serde_json::from_str(data).context("the stream is not understood")?))
        }
    };
    let mut out = io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(problem) => Err(problem.into()),
    }
}

/// Characters of the longest common kind of change: lines stand below each other without knowing what comes.
const KIND_CHARS: usize = 9;

/// Characters of a moment.
const DATE_CHARS: usize = 20;

/// What is shown of something that has happened.
#[derive(Deserialize)]
struct Told {
    at: Option<Moment>,
    kind: String,
    text: String,
    by: Option<String>,
}

fn line(told: &Told) -> String {
    let at = told.at.map(say::date).unwrap_or_default();
    format!("{at:<DATE_CHARS$}  {:<KIND_CHARS$}  {}{}", told.kind, told.text, who(told.by.as_deref()))
}

/// Who it was, unless it was Forewarn itself.
pub(super) fn who(by: Option<&str>) -> String {
    match by {
        None | Some("" | ITSELF) => String::new(),
        Some(by) => format!(" [{by}]"),
    }
}

/// Who it is that acts because time has passed, or because it was told to.
const ITSELF: &str = "forewarn";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_line() {
        let json =
            r#"{"at":"2026-01-01T00:00:30Z","kind":"enrolled","text":"web is enrolled","tenants":["web"]}"#;
        let told: Told = serde_json::from_str(json).unwrap();
        assert_eq!(line(&told), "2026-01-01 00:00:30Z  enrolled   web is enrolled");
        let asked = Told { by: Some("token alice".to_owned()), ..told };
        assert!(line(&asked).ends_with("web is enrolled [token alice]"));
        let missed: Told = serde_json::from_str(r#"{"kind":"missed","text":"too old"}"#).unwrap();
        assert_eq!(line(&missed), "                      missed     too old");
    }
}
