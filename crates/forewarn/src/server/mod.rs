//! Servers: `forewarn dev` and `forewarn serve`. They differ in their clock, their driver and their listeners.

mod address_listeners;
pub(crate) mod config;
pub(crate) mod dev;
mod greeting;
pub(crate) mod local;
mod machine_names;
pub(crate) mod open_listeners;
mod reload;
pub(crate) mod resources;
pub(crate) mod serve;

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use forewarn_azure::http::LISTENER;
use forewarn_cli_support::log;
use forewarn_cli_support::notify::{Notification, notify};
use forewarn_control::Fleet;
use forewarn_lifecycle::Seed;
use forewarn_server::{Plan, Service, StartError};
pub(crate) use resources::{files_allowed, files_needed};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The reaction of a server to SIGHUP.
enum HangupAction<'a> {
    /// Ends with its terminal, the default of the signal.
    End,
    Do(&'a mut dyn FnMut(&Service)),
}

/// Runs a server until a signal stops it. Calls `ready` when all listeners are open.
fn run(
    plan: Plan,
    ready: impl AsyncFnOnce(&Service) -> Result<()>,
    mut on_hangup: HangupAction<'_>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // From here on signals are queued: none ends the server in the middle of its start.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut hangup = match on_hangup {
            HangupAction::End => None,
            HangupAction::Do(_) => Some(signal(SignalKind::hangup())?),
        };
        let service = Service::start(plan).await?;
        if let Err(error) = ready(&service).await {
            service.stop().await;
            return Err(error);
        }
        notify(Notification::Ready);
        loop {
            tokio::select! {
                _ = interrupt.recv() => break tracing::info!("interrupted, stopping"),
                _ = terminate.recv() => break tracing::info!("terminated, stopping"),
                () = next(&mut hangup) => {
                    notify(Notification::Reloading);
                    if let HangupAction::Do(act) = &mut on_hangup {
                        act(&service);
                    }
                    notify(Notification::Ready);
                }
            }
        }
        notify(Notification::Stopping);
        service.stop().await;
        Ok(())
    })
}

/// Waits for the next signal; forever without a signal handler.
async fn next(signals: &mut Option<Signal>) {
    let received = match signals {
        Some(signals) => signals.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending::<()>().await;
    }
}

/// Adds a hint to an error about an address in use.
fn with_port_hint(error: anyhow::Error, hint: &str) -> anyhow::Error {
    let mut causes = error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    if causes.any(|cause| cause.kind() == std::io::ErrorKind::AddrInUse) {
        return anyhow::anyhow!("{error:#}\n  hint: {hint}");
    }
    error
}

/// The address of the dashboard for browsers. None for a socket, which `forewarn dashboard` can use.
fn dashboard_url(api: &str) -> Option<String> {
    api.starts_with("http").then(|| format!("{api}{}", forewarn_dashboard::PAGE))
}

/// Writes the listener addresses to a file, atomically.
fn write_addresses(file: &Path, service: &Service) -> Result<()> {
    let addresses = serde_json::json!({
        "metadata": service.metadata_url(),
        "api": service.api_url(),
        "api_listeners": service.api_urls().collect::<Vec<_>>(),
        "arm": service.extension_url(LISTENER),
    });
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".new");
    let written =
        fs::write(&unfinished, format!("{addresses}\n")).and_then(|()| fs::rename(&unfinished, file));
    written.with_context(|| format!("cannot write the listener addresses: {}", file.display()))
}

pub(crate) fn read_fleet(file: &Path) -> Result<Fleet> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the fleet file: {}", file.display()))?;
    Fleet::parse(&text).with_context(|| format!("invalid fleet file: {}", file.display()))
}

/// Adds the line of the fleet file to an error about one of its entries.
pub(crate) fn with_fleet_line(error: anyhow::Error, file: &Path) -> anyhow::Error {
    let entry = error.downcast_ref::<StartError>().and_then(StartError::entry);
    let line = entry.and_then(|entry| entry.line_in_file(&fs::read_to_string(file).ok()?));
    match line {
        Some(line) => error.context(format!("{}:{line}", file.display())),
        None => error,
    }
}

/// Reads a file, at most one byte more than `bytes_max`: the parser rejects a file that is too long.
fn read(file: &Path, bytes_max: usize) -> Result<String> {
    let mut text = String::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    fs::File::open(file)?.take(limit).read_to_string(&mut text)?;
    Ok(text)
}

pub(crate) fn random_seed() -> Result<Seed> {
    let mut seed = [0; 16];
    getrandom::fill(&mut seed).context("cannot get random bytes from the operating system")?;
    Ok(Seed(seed))
}
