//! Servers: `forewarn dev` and `forewarn serve`. One engine; they differ in their clock, their machines and their doors.

pub(crate) mod config;
pub(crate) mod dev;
mod greeting;
mod reload;
mod resources;
pub(crate) mod serve;

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use forewarn_azure::http::LISTENER;
use forewarn_cli_support::log;
use forewarn_cli_support::notify::{News, notify};
use forewarn_control::{FLEET_BYTES_MAX, Fleet};
use forewarn_lifecycle::Seed;
use forewarn_server::{Plan, Service, StartError};
pub(crate) use resources::{files_allowed, files_needed};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a server does when it is told that something has changed (SIGHUP).
enum OnHangup<'a> {
    /// It ends, as the terminal does that it was started from.
    End,
    /// It does that.
    Do(&'a mut dyn FnMut(&Service)),
}

/// Runs a server until it is told to stop. `ready` is called once both sides listen.
fn run(
    plan: Plan,
    ready: impl AsyncFnOnce(&Service) -> Result<()>,
    mut on_hangup: OnHangup<'_>,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // From here on a signal waits until it is looked at: none ends the server half-way.
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut hangup = match on_hangup {
            OnHangup::End => None,
            OnHangup::Do(_) => Some(signal(SignalKind::hangup())?),
        };
        let service = Service::start(plan).await?;
        if let Err(problem) = ready(&service).await {
            service.stop().await;
            return Err(problem);
        }
        notify(News::Ready);
        loop {
            tokio::select! {
                _ = interrupt.recv() => break tracing::info!("interrupted; stopping"),
                _ = terminate.recv() => break tracing::info!("told to stop"),
                () = next(&mut hangup) => {
                    notify(News::Reloading);
                    if let OnHangup::Do(act) = &mut on_hangup {
                        act(&service);
                    }
                    notify(News::Ready);
                }
            }
        }
        notify(News::Stopping);
        service.stop().await;
        Ok(())
    })
}

/// The next signal of a kind that is listened to.
async fn next(signals: &mut Option<Signal>) {
    let received = match signals {
        Some(signals) => signals.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending::<()>().await;
    }
}

/// The same problem; with a hint, if it is that something else listens there already.
fn advised(problem: anyhow::Error, hint: &str) -> anyhow::Error {
    let mut causes = problem.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    if causes.any(|cause| cause.kind() == std::io::ErrorKind::AddrInUse) {
        return anyhow::anyhow!("{problem:#}\n  hint: {hint}");
    }
    problem
}

/// Writes where a server is, whole or not at all.
fn write_addresses(file: &Path, service: &Service) -> Result<()> {
    let addresses = serde_json::json!({
        "metadata": service.metadata_url(),
        "api": service.api_url(),
        "api_doors": service.api_urls().collect::<Vec<_>>(),
        "arm": service.extension_url(LISTENER),
    });
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".new");
    let written =
        fs::write(&unfinished, format!("{addresses}\n")).and_then(|()| fs::rename(&unfinished, file));
    written.with_context(|| format!("cannot write the addresses: {}", file.display()))
}

fn read_fleet(file: &Path) -> Result<Fleet> {
    let text =
        read(file, FLEET_BYTES_MAX).with_context(|| format!("cannot read the fleet: {}", file.display()))?;
    Fleet::parse(&text).with_context(|| format!("not a fleet: {}", file.display()))
}

/// The same problem with the line of the fleet file that is the reason, if an entry of the file is.
pub(crate) fn with_fleet_line(problem: anyhow::Error, file: &Path) -> anyhow::Error {
    let place = problem.downcast_ref::<StartError>().and_then(StartError::entry);
    let line = place.and_then(|place| place.line_in_file(&read(file, FLEET_BYTES_MAX).ok()?));
    match line {
        Some(line) => problem.context(format!("{}:{line}", file.display())),
        None => problem,
    }
}

/// Reads a file of at most that many bytes; one byte more is read, so that it shows.
fn read(file: &Path, bytes_max: usize) -> Result<String> {
    let mut text = String::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    fs::File::open(file)?.take(limit).read_to_string(&mut text)?;
    Ok(text)
}

/// A secret that nobody can guess.
pub(crate) fn random_seed() -> Result<Seed> {
    let mut seed = [0; 16];
    let read = fs::File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut seed));
    read.context("no random numbers to be had: /dev/urandom")?;
    Ok(Seed(seed))
}
