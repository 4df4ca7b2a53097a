//! `forewarn-agent run`: runs the agent until it is stopped.

mod agent;
mod approvals;
mod endpoint;
mod event_log;
mod hook_tasks;
mod poller;
mod reload;

use std::time::Duration;

use anyhow::{Result, bail};
use forewarn_agent_core::Memory;
use forewarn_cli_support::log::LevelHandle;
use forewarn_cli_support::notify::{Notification, notify, watchdog};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, interval_at, sleep, timeout};

use crate::config::Config;
use crate::hooks::{GRACE, HookRuntime};
use crate::memory::{self, LoadedMemory, MemoryFile};
use crate::metrics::Metrics;
use crate::peers::PeerAddresses;
use crate::status_board::{Board, RetryRequest};
use crate::web;
use agent::Agent;
pub(crate) use hook_tasks::{CompletedHook, HookTasks};
use poller::EndpointNews;
pub(crate) use poller::search;
use reload::Reload;

/// Time for hooks to stop: after SIGTERM, and after SIGKILL.
const STOP_MAX: Duration = GRACE.saturating_mul(2).saturating_add(Duration::from_secs(1));

pub(crate) fn command(config: Config, dry_run: bool, volume: LevelHandle) -> Result<()> {
    volume.set(config.level);
    for note in &config.notes {
        tracing::warn!(note = forewarn_cli_support::visible::flat(note), "suspicious setting");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(config, dry_run, volume))
}

async fn run(config: Config, dry_run: bool, volume: LevelHandle) -> Result<()> {
    // Signals are queued from here on, so that none stops the agent halfway.
    let mut signals = Signals::new()?;
    let (memory_file, memory) = if dry_run {
        (None, memory::read_only(&config.state).unwrap_or_default())
    } else {
        let (memory_file, memory) = open_memory(&config)?;
        (Some(memory_file), memory)
    };
    let runtime = runtime(&config);
    if !dry_run {
        let processes = runtime.kill_leftovers().await;
        if processes > 0 {
            tracing::warn!(processes, "killed hooks of a previous agent");
        }
    }
    let metrics = Metrics::new();
    let hook_tasks = HookTasks::new(runtime);
    let listener = listen(&config, dry_run).await?;
    let reload = Reload::new(volume);
    let news = poller::start(&config);
    let (hooks, events, key) = (config.hooks.len(), memory.cases.len(), config.peers.key.clone());
    let addresses = PeerAddresses::of(config.peers.discovery.as_ref());
    let (mut agent, published) =
        Agent::new(config, memory, memory_file, hook_tasks, metrics.clone(), addresses.clone());
    agent.publish();
    let (stop, stopped) = watch::channel(false);
    let (retries, requests) = mpsc::channel(1);
    if let Some(listener) = listener {
        let board = Board { published, retries };
        tokio::spawn(web::serve(listener, board, move || metrics.text(), key, addresses, stopped));
    }
    notify(Notification::Ready);
    tracing::info!(hooks, events, dry_run, "agent started");
    let done = run_loop(&mut agent, news, requests, &mut signals, reload).await;
    notify(Notification::Stopping);
    stop.send_replace(true);
    end(&mut agent).await;
    tracing::info!("agent stopped");
    done
}

/// Creates the hook runtime, with a directory for undo notes.
fn runtime(config: &Config) -> HookRuntime {
    HookRuntime::new(memory::with_suffix(&config.state, ".notes"))
}

/// Opens the state file.
fn open_memory(config: &Config) -> Result<(MemoryFile, Memory)> {
    let (memory_file, loaded) = MemoryFile::open(&config.state)?;
    let memory = match loaded {
        LoadedMemory::Missing => Memory::default(),
        LoadedMemory::Memory(memory) => memory,
        LoadedMemory::Damaged { moved_to, reason } => {
            let moved_to = moved_to.display();
            tracing::error!(%moved_to, reason, "state file damaged: moved aside, starting without it");
            Memory::default()
        }
    };
    Ok((memory_file, memory))
}

async fn listen(config: &Config, dry_run: bool) -> Result<Option<TcpListener>> {
    let Some(address) = config.listen else { return Ok(None) };
    match TcpListener::bind(address).await {
        Ok(listener) => {
            let address = listener.local_addr()?;
            tracing::info!(%address, "status listener started");
            Ok(Some(listener))
        }
        Err(_) if dry_run => Ok(None),
        Err(error) => bail!(
            "cannot listen at {address}: {error}\n  hint: another agent may use it; set listen = \"…\" in the settings"
        ),
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// Handles inputs one after the other, until the agent is stopped.
async fn run_loop(
    agent: &mut Agent,
    mut news: mpsc::Receiver<EndpointNews>,
    mut retries: mpsc::Receiver<RetryRequest>,
    signals: &mut Signals,
    mut reload: Reload,
) -> Result<()> {
    let mut watchdog_ticks = watchdog().map(|every| interval_at(Instant::now(), every));
    loop {
        reload.run_if_idle(agent);
        agent.poll_peers();
        agent.publish();
        let pause = agent.pause();
        tokio::select! {
            news = news.recv() => match news {
                Some(news) => agent.on_endpoint(news),
                None => bail!("internal error of the agent: the poller has stopped"),
            },
            completed = agent.hook_tasks.next() => agent.on_hook_result(&completed),
            (event, result) = agent.approvals.next() => agent.on_approval_result(event, result),
            news = agent.poller.next() => agent.on_peers(news),
            Some(request) = retries.recv() => agent.on_retry(request),
            () = sleep_for(pause) => agent.tick(),
            () = next(&mut watchdog_ticks) => notify(Notification::Watchdog),
            _ = signals.interrupt.recv() => {
                tracing::info!("interrupted, agent stops");
                return Ok(());
            }
            _ = signals.terminate.recv() => {
                tracing::info!("SIGTERM received, agent stops");
                return Ok(());
            }
            _ = signals.hangup.recv() => reload.request(agent),
        }
    }
}

async fn sleep_for(pause: Option<Duration>) {
    match pause {
        Some(pause) => sleep(pause).await,
        None => std::future::pending().await,
    }
}

async fn next(ticks: &mut Option<Interval>) {
    match ticks {
        Some(ticks) => drop(ticks.tick().await),
        None => std::future::pending().await,
    }
}

/// Stops all hooks. Their results are not stored, so that the next start runs them again.
async fn end(agent: &mut Agent) {
    agent.hook_tasks.stop_all();
    let all = async {
        while !agent.hook_tasks.is_idle() {
            let CompletedHook { task, .. } = agent.hook_tasks.next().await;
            tracing::warn!(hook = task.hook, "hook stopped early: the next start runs it again");
        }
    };
    if timeout(STOP_MAX, all).await.is_err() {
        tracing::warn!("hooks did not stop in time");
    }
}
