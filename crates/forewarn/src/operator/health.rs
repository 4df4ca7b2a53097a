//! `forewarn health`: readiness of the server, for health checks of containers.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use forewarn_http_client::{Bytes, Method};
use forewarn_types::Span;
use serde_json::json;

use super::{GlobalOptions, OutputFormat, print, visible};
use crate::client::{Client, api_error};

pub(super) const EXAMPLES: &str = "\
Examples:
  forewarn health                       for the health check of a container
  forewarn health --wait 30s            until a server that is starting is ready";

/// The timeout of each request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct HealthArgs {
    /// Time to wait until the server is ready [default: none]
    #[arg(long, value_name = "DURATION")]
    wait: Option<Span>,
}

pub(super) fn run(options: &GlobalOptions, arguments: &HealthArgs) -> Result<()> {
    let wait = arguments.wait.map_or(Duration::ZERO, |Span(wait)| wait);
    let begin = Instant::now();
    let reason = loop {
        let left = wait.saturating_sub(begin.elapsed());
        let timeout = if wait.is_zero() { TIMEOUT } else { left.clamp(PAUSE, TIMEOUT) };
        let client = options.client()?.with_timeout(timeout);
        let Err(error) = check(&client) else { return show_ready(options, &client) };
        if left.is_zero() {
            break format!("{error:#}");
        }
        std::thread::sleep(PAUSE.min(left));
    };
    if let OutputFormat::Data(format) = options.output() {
        let reason = reason.lines().next().unwrap_or_default();
        print(&format.element(&json!({ "ready": false, "reason": reason }), |_| Vec::new()))?;
    }
    bail!("not ready: {reason}")
}

fn check(client: &Client) -> Result<()> {
    match client.send(Method::GET, "/readyz", &[], Bytes::new())? {
        (200, _) => Ok(()),
        (status, body) => Err(api_error(status, &body)),
    }
}

fn show_ready(options: &GlobalOptions, client: &Client) -> Result<()> {
    match options.output() {
        OutputFormat::Data(format) => {
            let server = client.to_string();
            print(&format.element(&json!({ "ready": true, "server": &server }), |_| vec![server]))
        }
        OutputFormat::Text(_) => print(&visible(&format!("ready: {client}\n"))),
    }
}
