//! `forewarn-agent run`: from settings to an agent that runs until it is told to stop.

mod agent;
mod approvals;
mod crew;
mod endpoint;
mod link;
mod notes;
mod reload;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use forewarn_agent_core::Memory;
use forewarn_cli_support::log::Volume;
use forewarn_cli_support::notify::{News, notify, watchdog};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, interval_at, sleep, timeout};

use crate::config::Config;
use crate::hands::{GRACE, Hands};
use crate::memory::{self, Found, Keeper};
use crate::metrics::Metrics;
use crate::peers::PeerAddresses;
use crate::web;
use agent::Agent;
pub(crate) use crew::{Crew, Ended};
use link::Heard;
pub(crate) use link::search;
use reload::Reload;

/// How long hooks that are told to stop have: to end, and to be ended.
const STOP_MAX: Duration = GRACE.saturating_mul(2).saturating_add(Duration::from_secs(1));

/// Runs an agent.
pub(crate) fn command(config: Config, dry_run: bool, volume: Volume) -> Result<()> {
    volume.set(config.level);
    for note in &config.notes {
        tracing::warn!(
            note = forewarn_cli_support::visible::flat(note),
            "something is odd about the settings"
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(config, dry_run, volume))
}

async fn run(config: Config, dry_run: bool, volume: Volume) -> Result<()> {
    // From here on a signal waits until it is looked at: none ends the agent half-way.
    let mut signals = Signals::new()?;
    let (keeper, memory) = if dry_run {
        (None, memory::look(&config.state).unwrap_or_default())
    } else {
        let (keeper, memory) = recall(&config)?;
        (Some(keeper), memory)
    };
    let hands = hands(&config);
    if !dry_run {
        let ended = hands.end_left_over().await;
        if ended > 0 {
            tracing::warn!(ended, "hooks of an agent before this one still ran: they were ended");
        }
    }
    let metrics = Metrics::new();
    let crew = Crew::new(hands);
    let listener = listen(&config, dry_run).await?;
    let reload = Reload::new(volume);
    let heard = link::start(&config);
    let (hooks, events, key) = (config.hooks.len(), memory.cases.len(), config.peers.key.clone());
    let addresses = PeerAddresses::of(config.peers.places.as_ref());
    let (mut agent, shown) = Agent::new(config, memory, keeper, crew, metrics.clone(), addresses.clone());
    agent.show();
    let (stop, stopped) = watch::channel(false);
    if let Some(listener) = listener {
        tokio::spawn(web::serve(listener, shown, move || metrics.text(), key, addresses, stopped));
    }
    notify(News::Ready);
    tracing::info!(hooks, events, dry_run, "the agent runs");
    let done = attend(&mut agent, heard, &mut signals, reload).await;
    notify(News::Stopping);
    stop.send_replace(true);
    end(&mut agent).await;
    tracing::info!("the agent has ended");
    done
}

/// The hands of an agent, with a place for what they have to remember.
fn hands(config: &Config) -> Hands {
    Hands::new(memory::beside(&config.state, ".notes"))
}

/// What the life before has left.
fn recall(config: &Config) -> Result<(Keeper, Memory)> {
    let (keeper, found) = Keeper::open(&config.state)?;
    let memory = match found {
        Found::Nothing => Memory::default(),
        Found::Memory(memory) => memory,
        Found::Damaged { aside, why } => {
            let aside = aside.display();
            tracing::error!(%aside, why, "the memory is damaged: it was put aside, and the agent goes on without it");
            Memory::default()
        }
    };
    Ok((keeper, memory))
}

async fn listen(config: &Config, dry_run: bool) -> Result<Option<TcpListener>> {
    let Some(address) = config.listen else { return Ok(None) };
    match TcpListener::bind(address).await {
        Ok(listener) => {
            let address = listener.local_addr()?;
            tracing::info!(%address, "the agent tells how it is");
            Ok(Some(listener))
        }
        Err(_) if dry_run => Ok(None),
        Err(problem) => Err(problem).with_context(|| {
            format!("cannot listen at {address}\n  hint: another agent may; listen = \"…\" in the settings names another address")
        }),
    }
}

/// What may end or change an agent from outside.
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

/// Takes one thing after the other, until it is told to stop.
async fn attend(
    agent: &mut Agent,
    mut heard: mpsc::Receiver<Heard>,
    signals: &mut Signals,
    mut reload: Reload,
) -> Result<()> {
    let mut well = watchdog().map(|every| interval_at(Instant::now(), every));
    loop {
        reload.run_if_idle(agent);
        agent.ask_peers();
        agent.show();
        let pause = agent.pause();
        tokio::select! {
            heard = heard.recv() => match heard {
                Some(heard) => agent.hear(heard),
                None => bail!("the endpoint is no longer asked: this is a mistake of the agent"),
            },
            ended = agent.crew.next() => agent.ended(&ended),
            (event, answer) = agent.approvals.next() => agent.answered(event, answer),
            news = agent.poller.next() => agent.heard(news),
            () = doze(pause) => agent.tick(),
            () = next(&mut well) => notify(News::Watchdog),
            _ = signals.interrupt.recv() => {
                tracing::info!("interrupted; the agent stops");
                return Ok(());
            }
            _ = signals.terminate.recv() => {
                tracing::info!("the agent is told to stop");
                return Ok(());
            }
            _ = signals.hangup.recv() => reload.want(agent),
        }
    }
}

async fn doze(pause: Option<Duration>) {
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

/// Tells hooks that run to stop. What becomes of them is not kept: the next life runs them again.
async fn end(agent: &mut Agent) {
    agent.crew.stop_all();
    let all = async {
        while !agent.crew.is_idle() {
            let Ended { task, .. } = agent.crew.next().await;
            tracing::warn!(hook = task.hook, "a hook was ended in the middle: the next start runs it again");
        }
    };
    if timeout(STOP_MAX, all).await.is_err() {
        tracing::warn!("hooks do not end: they are left to the operating system");
    }
}
