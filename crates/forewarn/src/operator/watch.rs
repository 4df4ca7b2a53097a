//! `forewarn watch`: every change as it happens.

use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::{Context, Result, bail};
use clap::Args;
use forewarn_wire::operator::{Happening, TenantView};

use super::session::{Session, escaped};
use super::{Named, Output, say};
use crate::client::Followed;

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
    let followed = session.follow(&path, |data| match tell(session, data) {
        Ok(next) => next,
        Err(problem) => {
            failed = Some(problem);
            ControlFlow::Break(())
        }
    })?;
    match (failed, followed) {
        (Some(problem), _) => Err(problem),
        (None, Followed::UntilStopped) => Ok(()),
        (None, Followed::ToItsEnd) => bail!("the server has ended the stream"),
    }
}

/// Prints one change; there is no more to do when nobody reads.
fn tell(session: &Session, data: &str) -> Result<ControlFlow<()>> {
    let line = match session.output() {
        Output::Json => data.to_owned(),
        Output::Table | Output::Wide => {
            line(&serde_json::from_str(data).context("the stream is not understood")?)
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

fn line(happening: &Happening) -> String {
    format!("{}  {:<KIND_CHARS$}  {}", say::date(happening.at), happening.kind, happening.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_one_line() {
        let json =
            r#"{"at":"2026-01-01T00:00:30Z","kind":"enrolled","text":"web is enrolled","tenants":["web"]}"#;
        let happening: Happening = serde_json::from_str(json).unwrap();
        assert_eq!(line(&happening), "2026-01-01 00:00:30Z  enrolled   web is enrolled");
    }
}
