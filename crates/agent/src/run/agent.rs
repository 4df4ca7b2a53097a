//! The agent: owns the watcher, feeds it with inputs, and performs its effects.
//!
//! After each input the memory is stored if it has changed, and only then effects are performed. If it cannot be
//! stored, the agent continues: draining twice is better than not draining at all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use forewarn_agent_core::{
    ApprovalResult, Effect, EventLogEntry, EventLogKind, HookOutcome, Memory, PeerStatus, PeersToPoll, Run,
    Watcher,
};
use forewarn_cli_support::notify::{Notification, notify};
use forewarn_cli_support::visible::one_line;
use forewarn_client::http::error_chain;
use forewarn_client::{Client, Edition, Endpoint, Observation, PollStep};
use forewarn_imds::MalformedEvent;
use forewarn_types::EventId;
use tokio::sync::watch;

use super::approvals::Approvals;
use super::endpoint::{EndpointFailure, EndpointState};
use super::event_log::EventLog;
use super::hook_tasks::{CompletedHook, HookTasks};
use super::poller::EndpointNews;
use crate::clock;
use crate::config::Config;
use crate::memory::MemoryFile;
use crate::metrics::Metrics;
use crate::peers::{PeerAddresses, PeerClient, PeerNews, PeerPoller};
use crate::status::{self, Status};
use crate::status_board::{PublishedStatus, RetryRequest};

/// Maximum age of the published status while events are pending.
const REFRESH_MAX: Duration = Duration::from_secs(1);

/// Limit of malformed events of one document that are logged.
const SKIPPED_LOGGED_MAX: usize = 20;

pub(super) struct Agent {
    pub(super) config: Config,
    pub(super) watcher: Watcher,
    pub(super) hook_tasks: HookTasks,
    pub(super) approvals: Approvals,
    pub(super) metrics: Metrics,
    /// The state file; `None` in a dry run.
    memory_file: Option<MemoryFile>,
    is_stored: bool,
    event_log: EventLog,
    endpoint: EndpointState,
    endpoint_address: Option<Endpoint>,
    /// The edition of the endpoint's documents.
    edition: Edition,
    name: Option<String>,
    status_board: watch::Sender<Arc<PublishedStatus>>,
    last_summary: String,
    /// Idle until the name of this machine is known.
    pub(super) poller: PeerPoller,
    addresses: PeerAddresses,
}

impl Agent {
    /// Creates an agent that continues from a stored memory; without a state file it is a dry run.
    pub(super) fn new(
        config: Config,
        memory: Memory,
        memory_file: Option<MemoryFile>,
        hook_tasks: HookTasks,
        metrics: Metrics,
        addresses: PeerAddresses,
    ) -> (Self, watch::Receiver<Arc<PublishedStatus>>) {
        let watcher = Watcher::new(config.settings(""), memory);
        let endpoint = EndpointState::new();
        let status = Arc::new(Status::new(endpoint.view()));
        let published =
            PublishedStatus { ready: false, drained: false, peer_status: PeerStatus::default(), status };
        let (status_board, published) = watch::channel(Arc::new(published));
        let event_log = config.event_log.clone().filter(|_| memory_file.is_some());
        let agent = Self {
            event_log: EventLog::new(event_log),
            config,
            watcher,
            hook_tasks,
            approvals: Approvals::default(),
            metrics,
            is_stored: true,
            memory_file,
            endpoint,
            endpoint_address: None,
            edition: Edition::newest(),
            name: None,
            status_board,
            last_summary: String::new(),
            poller: PeerPoller::default(),
            addresses,
        };
        (agent, published)
    }

    pub(super) fn is_dry(&self) -> bool {
        self.memory_file.is_none()
    }

    /// True if no hook runs and no approval is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.hook_tasks.is_idle() && self.approvals.is_idle()
    }

    pub(super) fn change(&mut self, config: Config) {
        self.watcher.change(config.settings(self.name.as_deref().unwrap_or_default()));
        self.event_log = EventLog::new(config.event_log.clone().filter(|_| !self.is_dry()));
        self.config = config;
        let effects = self.watcher.tick(clock::now());
        self.act(effects);
    }

    /// Handles news from the endpoint.
    pub(super) fn on_endpoint(&mut self, news: EndpointNews) {
        match news {
            EndpointNews::NotFound(reason) => self.endpoint.on_failure(EndpointFailure::NotFound, &reason),
            EndpointNews::Found { endpoint, by } => {
                self.endpoint.on_found(endpoint.to_string(), by);
                self.endpoint_address = Some(endpoint);
                self.edition = Edition::newest();
            }
            EndpointNews::NoName(reason) => self.endpoint.on_failure(EndpointFailure::NoName, &reason),
            EndpointNews::Name(name) => {
                self.endpoint.on_name(&name);
                self.watcher.change(self.config.settings(&name));
                self.poller.set_client(self.make_client(&name));
                self.name = Some(name);
            }
            EndpointNews::Polled { step, edition, server } => {
                self.endpoint.set_server(edition, server);
                self.edition = edition;
                self.on_poll(step);
            }
        }
    }

    fn make_client(&self, me: &str) -> Option<PeerClient> {
        let (discovery, key) = (self.config.peers.discovery.clone()?, self.config.peers.key.clone()?);
        Some(PeerClient::new(discovery, key, me, self.endpoint_address.clone()?, self.addresses.clone()))
    }

    fn on_poll(&mut self, step: PollStep) {
        match step {
            PollStep::Changed(observation) => {
                self.metrics.count_poll("news");
                self.endpoint.on_response(true);
                self.observe(&observation);
            }
            PollStep::Unchanged { date } => {
                self.metrics.count_poll("quiet");
                self.endpoint.on_response(false);
                let effects = self.watcher.on_clock(clock::now(), date);
                self.act(effects);
            }
            PollStep::Failed { error, .. } => {
                self.metrics.count_poll("failed");
                self.endpoint.on_failure(EndpointFailure::NoResponse, &error_chain(&error));
            }
        }
    }

    fn observe(&mut self, observation: &Observation) {
        let Observation { document, edition, date, received } = observation;
        // The time by the service's clock now: the response may have waited in the channel.
        let date = date.plus(received.elapsed());
        let effects = self
            .watcher
            .observe(clock::now(), forewarn_agent_core::Observation { document, edition: *edition, date });
        self.act(effects);
    }

    /// Handles the result of a hook.
    pub(super) fn on_hook_result(&mut self, completed: &CompletedHook) {
        let CompletedHook { task, hook_outcome, took } = completed;
        let (phase, hook, event) = (task.phase.as_str(), &task.hook, task.event);
        let seconds = took.as_secs_f64();
        match &hook_outcome.result {
            Ok(()) => tracing::info!(%event, phase, hook, seconds, "hook succeeded"),
            Err(reason) => {
                let reason = forewarn_cli_support::visible::flat(reason);
                tracing::warn!(%event, phase, hook, seconds, reason, "hook attempt failed");
            }
        }
        self.metrics.count_hook(task.phase, hook_outcome.result.is_ok(), *took);
        let effects = self.watcher.on_hook_result(clock::now(), task, hook_outcome);
        self.act(effects);
    }

    /// Handles the response to an approval.
    pub(super) fn on_approval_result(&mut self, event: EventId, result: ApprovalResult) {
        self.metrics.count_approval(result == ApprovalResult::Accepted);
        let effects = self.watcher.on_approval_result(clock::now(), event, result);
        self.act(effects);
    }

    /// Handles news about peers.
    pub(super) fn on_peers(&mut self, news: PeerNews) {
        let effects = match news {
            PeerNews::Report(report) => self.watcher.on_peer_report(clock::now(), report),
            PeerNews::RoundEnded { begun } => {
                self.metrics.count_peer_round();
                self.watcher.on_round_end(clock::now(), begun)
            }
        };
        self.act(effects);
    }

    /// Runs failed hooks again.
    pub(super) fn on_retry(&mut self, request: RetryRequest) {
        let (tasks, effects) = self.watcher.retry(clock::now(), request.event);
        tracing::info!(hooks = tasks.len(), "retry of failed hooks requested");
        self.act(effects);
        // The client may have disconnected.
        request.retried.send(tasks).ok();
    }

    /// Handles the passing of time.
    pub(super) fn tick(&mut self) {
        let effects = self.watcher.tick(clock::now());
        self.act(effects);
    }

    /// Time until the agent has work to do without a further input.
    ///
    /// Timers stop while the machine is suspended and the clock of the watcher does not, so pauses are kept short.
    pub(super) fn pause(&self) -> Option<Duration> {
        let now = clock::now();
        let wake = self.watcher.next_wake(now).map(|at| at.since(now).min(REFRESH_MAX));
        let refresh = (!self.watcher.memory().cases.is_empty()).then_some(REFRESH_MAX);
        let poll = (self.watcher.peers_to_poll() != PeersToPoll::None).then(|| self.poller.due_in());
        [wake, refresh, poll].into_iter().flatten().min()
    }

    /// Polls peers if a round is due.
    pub(super) fn poll_peers(&mut self) {
        self.poller.poll(&self.watcher.peers_to_poll());
    }

    fn act(&mut self, effects: Vec<Effect>) {
        self.store_memory();
        let mut effects = VecDeque::from(effects);
        while let Some(effect) = effects.pop_front() {
            match effect {
                Effect::Run(run) if self.is_dry() => effects.extend(self.would_run(&run)),
                Effect::Run(run) => self.run(run),
                Effect::Stop(task) => self.hook_tasks.stop(&task),
                Effect::Approve(event) if self.is_dry() => {
                    tracing::info!(%event, "dry run: would approve event");
                }
                Effect::Approve(event) => self.approve(event),
                Effect::Log(entry) => self.entry(&entry),
                Effect::Skip(events) => {
                    self.metrics.count_skipped(events.len());
                    log_skipped(&events);
                }
            }
        }
    }

    fn entry(&mut self, entry: &EventLogEntry) {
        if matches!(entry.kind, EventLogKind::Observed { .. }) {
            self.metrics.count_event(&entry.observed.kind);
        }
        self.event_log.write(entry);
    }

    /// Stores the memory if it has changed.
    fn store_memory(&mut self) {
        let Some(memory_file) = &mut self.memory_file else { return };
        let stored = memory_file.store(self.watcher.memory());
        match (&stored, self.is_stored) {
            (Err(error), true) => {
                tracing::error!(%error, "cannot store the state: after a restart hooks may run again and nothing is undone");
            }
            (Ok(()), false) => tracing::info!("state stored again"),
            (Ok(()), true) | (Err(_), false) => {}
        }
        self.is_stored = stored.is_ok();
        self.metrics.set_stored(self.is_stored);
    }

    fn run(&mut self, run: Run) {
        let (phase, hook, attempt, event) =
            (run.task.phase.as_str(), &run.task.hook, run.attempt, run.task.event);
        tracing::info!(%event, phase, hook, attempt, "hook started");
        let work = self.config.works.get(&run.task.hook).cloned();
        let own_phase =
            self.config.hooks.iter().find(|hook| hook.name == run.task.hook).map(|hook| hook.phase);
        let me = self.watcher.settings().me.clone();
        self.hook_tasks.start(&me, work, own_phase, run);
    }

    /// Logs a hook in a dry run and counts it as done, so that later effects are shown.
    fn would_run(&mut self, run: &Run) -> Vec<Effect> {
        let (phase, hook, event) = (run.task.phase.as_str(), &run.task.hook, run.task.event);
        tracing::info!(%event, phase, hook, "dry run: would run hook");
        self.watcher.on_hook_result(clock::now(), &run.task, &HookOutcome { result: Ok(()), memory: None })
    }

    fn approve(&mut self, event: EventId) {
        // Without an endpoint there are no events.
        if let Some(endpoint) = self.endpoint_address.clone() {
            self.approvals.start(Client::new(endpoint).with_edition(self.edition), event);
        }
    }

    /// Publishes the current status.
    pub(super) fn publish(&mut self) {
        let now = clock::now();
        let drained = self.watcher.is_drained();
        let memory = self.watcher.memory();
        let cases = self.watcher.cases();
        let deadlines = cases.filter_map(|(case, deadline)| Some((case.observed.kind.as_str(), deadline?)));
        self.metrics.set_gauges(drained, memory.cases.len(), deadlines);
        let ready = self.endpoint.is_enabled() && self.name.is_some() && self.is_stored;
        let peer_status = self.watcher.peer_status();
        let status = Status {
            name: self.name.clone(),
            dry_run: self.is_dry(),
            ready,
            drained,
            events: status::events(&self.watcher, &peer_status, now),
            pending_undo: memory.pending_undo.keys().cloned().collect(),
            ..Status::new(self.endpoint.view())
        };
        self.notify_supervisor(&status);
        let status = Arc::new(status);
        self.status_board.send_replace(Arc::new(PublishedStatus { ready, drained, peer_status, status }));
    }

    /// Reports a changed summary to the supervisor, for `systemctl status`.
    fn notify_supervisor(&mut self, status: &Status) {
        let name = status.name.as_deref().unwrap_or("this machine");
        let text = match (&status.endpoint, status.drained) {
            (_, true) => format!("{name} is drained; {} events pending", status.events.len()),
            (endpoint, false) if endpoint.reachable => {
                format!("watching {name}; {} events pending", status.events.len())
            }
            (_, false) => "the endpoint does not respond".to_owned(),
        };
        if text != self.last_summary {
            notify(Notification::Status(&text));
            self.last_summary = text;
        }
    }
}

/// Logs malformed events, up to a limit.
fn log_skipped(events: &[MalformedEvent]) {
    for MalformedEvent { id, error } in events.iter().take(SKIPPED_LOGGED_MAX) {
        let (event, error) = (id.map_or("unknown".to_owned(), |id| id.to_string()), one_line(error));
        tracing::warn!(event, error, "skipped malformed event");
    }
    if let Some(more) = events.len().checked_sub(SKIPPED_LOGGED_MAX).filter(|more| *more > 0) {
        tracing::warn!(more, "skipped more malformed events");
    }
}
