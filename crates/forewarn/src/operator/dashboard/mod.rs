//! `forewarn dashboard`: the web dashboard of the server of the context, in the browser of this computer.
//!
//! ```text
//!   browser ──cookie──▶ 127.0.0.1:PORT ──token of the context──▶ socket, http or https of the server
//! ```
//!
//! The browser never gets the token. It gets a session for a code that the command prints: other users of this computer
//! can reach the port, but do not see the code.

mod browser;
mod entrance;
mod forward;
mod problem;
mod proxy;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use forewarn_control::CallerView;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::session::{print, print_data};
use super::visible::visible;
use super::{GlobalOptions, OutputFormat};
use crate::client::{ApiError, Client};
use browser::OpenedFile;
use proxy::Proxy;

pub(crate) const EXAMPLES: &str = "\
Examples:
  forewarn dashboard
  forewarn --context prod dashboard --port 8080 --no-browser";

#[derive(Args)]
pub(crate) struct DashboardArgs {
    /// Port on 127.0.0.1 [default: a free port]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Only print the address, and open no browser
    #[arg(long)]
    no_browser: bool,
}

/// Prints addresses with a code.
pub(super) struct AddressPrinter {
    port: u16,
    output: OutputFormat,
}

impl AddressPrinter {
    fn url(&self, code: &str) -> String {
        format!("http://127.0.0.1:{}/#code={code}", self.port)
    }

    /// Prints an address on standard output; a line about it goes to standard error before.
    fn print(&self, note: &str, url: &str) -> Result<()> {
        eprintln!("{}", visible(note));
        match self.output {
            OutputFormat::Text(_) => print(&format!("{url}\n")),
            OutputFormat::Data(format) => {
                print_data(format, &json!({ "url": url }), |_| vec![url.to_owned()])
            }
        }
    }
}

pub(super) fn run(options: &GlobalOptions, arguments: &DashboardArgs) -> Result<()> {
    let client = Arc::new(options.client()?);
    check(&client)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port.unwrap_or(0)));
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| {
            anyhow!("cannot listen on {address}: {error}\n  hint: without --port, a free port is used")
        })?;
        let port = listener.local_addr()?.port();
        let proxy = Proxy::new(Arc::clone(&client), AddressPrinter { port, output: options.output() });
        let url = proxy.begin().context("cannot print the address")?;
        let _opened = if arguments.no_browser { None } else { OpenedFile::open(&url) };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            () = proxy.serve(listener) => {}
        }
        Ok(())
    })
}

/// Checks that the server responds, accepts the token, and has a dashboard.
fn check(client: &Client) -> Result<()> {
    let caller = client.get::<CallerView>("/v1/caller");
    caller.map(drop).map_err(|error| match error.downcast_ref::<ApiError>() {
        Some(ApiError { status: 404, .. }) => {
            anyhow!("{client} has no dashboard\n  hint: its version is older than that of this program")
        }
        Some(_) | None => error,
    })
}
