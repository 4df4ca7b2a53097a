//! The agent: owns the watcher, tells it what happens, and does what it says.
//!
//! After each thing that happens the memory is kept, if it has changed, and only then anything is done. If it cannot be kept, the
//! agent goes on: a machine that is drained twice is better off than one that is not drained at all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use forewarn_agent_core::{Answer, Asking, Deed, Ending, Memory, Note, PeerWord, Run, Sight, Watcher, What};
use forewarn_cli_support::notify::{News, notify};
use forewarn_cli_support::visible::one_line;
use forewarn_client::http::error_chain;
use forewarn_client::{Client, Edition, Endpoint, Sighting, Turn};
use forewarn_imds::MalformedEvent;
use forewarn_types::EventId;
use tokio::sync::watch;

use super::approvals::Approvals;
use super::crew::{Crew, Ended};
use super::endpoint::{EndpointState, Trouble};
use super::link::Heard;
use super::notes::Notes;
use crate::board::Shown;
use crate::clock;
use crate::config::Config;
use crate::memory::Keeper;
use crate::metrics::Metrics;
use crate::peers::{Asker, PeerAddresses, PeerNews, PeerPoller};
use crate::status::{self, Status};

/// While events are in hand, what is shown is no older.
const GLANCE: Duration = Duration::from_secs(1);

/// Malformed events of one document that are named in the log.
const SKIPPED_LOGGED_MAX: usize = 20;

/// The agent.
pub(super) struct Agent {
    pub(super) config: Config,
    pub(super) watcher: Watcher,
    pub(super) crew: Crew,
    pub(super) approvals: Approvals,
    pub(super) metrics: Metrics,
    /// Nothing is kept where nothing is done.
    keeper: Option<Keeper>,
    is_kept: bool,
    notes: Notes,
    endpoint: EndpointState,
    place: Option<Endpoint>,
    /// In which it answers there.
    edition: Edition,
    name: Option<String>,
    board: watch::Sender<Arc<Shown>>,
    told_status: String,
    /// It asks nobody before the name of this machine is known.
    pub(super) poller: PeerPoller,
    addresses: PeerAddresses,
}

impl Agent {
    /// An agent that goes on where the one before it was; without a keeper, it only tells what it would do.
    pub(super) fn new(
        config: Config,
        memory: Memory,
        keeper: Option<Keeper>,
        crew: Crew,
        metrics: Metrics,
        addresses: PeerAddresses,
    ) -> (Self, watch::Receiver<Arc<Shown>>) {
        let watcher = Watcher::new(config.settings(""), memory);
        let endpoint = EndpointState::new();
        let status = Arc::new(Status::new(endpoint.view()));
        let shown = Shown { ready: false, drained: false, word: PeerWord::default(), status };
        let (board, shown) = watch::channel(Arc::new(shown));
        let event_log = config.event_log.clone().filter(|_| keeper.is_some());
        let agent = Self {
            notes: Notes::new(event_log),
            config,
            watcher,
            crew,
            approvals: Approvals::default(),
            metrics,
            is_kept: true,
            keeper,
            endpoint,
            place: None,
            edition: Edition::newest(),
            name: None,
            board,
            told_status: String::new(),
            poller: PeerPoller::default(),
            addresses,
        };
        (agent, shown)
    }

    pub(super) fn is_dry(&self) -> bool {
        self.keeper.is_none()
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.crew.is_idle() && self.approvals.is_idle()
    }

    /// The settings are others now.
    pub(super) fn change(&mut self, config: Config) {
        self.watcher.change(config.settings(self.name.as_deref().unwrap_or_default()));
        self.notes = Notes::new(config.event_log.clone().filter(|_| !self.is_dry()));
        self.config = config;
        let deeds = self.watcher.tick(clock::now());
        self.act(deeds);
    }

    /// Something is heard from the endpoint.
    pub(super) fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Nowhere(why) => self.endpoint.failed(Trouble::Nowhere, &why),
            Heard::Found { endpoint, by } => {
                self.endpoint.found(endpoint.to_string(), by);
                self.place = Some(endpoint);
                self.edition = Edition::newest();
            }
            Heard::Nameless(why) => self.endpoint.failed(Trouble::Nameless, &why),
            Heard::Name(name) => {
                self.endpoint.named(&name);
                self.watcher.change(self.config.settings(&name));
                self.poller.set_asker(self.make_asker(&name));
                self.name = Some(name);
            }
            Heard::Turn { turn, edition, server } => {
                self.endpoint.asked(edition, server);
                self.edition = edition;
                self.take(turn);
            }
        }
    }

    fn make_asker(&self, me: &str) -> Option<Asker> {
        let (places, key) = (self.config.peers.places.clone()?, self.config.peers.key.clone()?);
        Some(Asker::new(places, key, me, self.place.clone()?, self.addresses.clone()))
    }

    fn take(&mut self, turn: Turn) {
        match turn {
            Turn::News(sighting) => {
                self.metrics.polled("news");
                self.endpoint.answered(true);
                self.see(&sighting);
            }
            Turn::Quiet { date } => {
                self.metrics.polled("quiet");
                self.endpoint.answered(false);
                let deeds = self.watcher.synchronise(clock::now(), date);
                self.act(deeds);
            }
            Turn::Failed { error, .. } => {
                self.metrics.polled("failed");
                self.endpoint.failed(Trouble::Silent, &error_chain(&error));
            }
        }
    }

    fn see(&mut self, sighting: &Sighting) {
        let Sighting { document, edition, date, received } = sighting;
        // What its clock shows now: it may have taken a moment to get here.
        let date = date.plus(received.elapsed());
        let deeds = self.watcher.see(clock::now(), Sight { document, edition: *edition, date });
        self.act(deeds);
    }

    /// A hook has ended.
    pub(super) fn ended(&mut self, ended: &Ended) {
        let Ended { task, ending, took } = ended;
        let (phase, hook, event) = (task.phase.as_str(), &task.hook, task.event);
        let seconds = took.as_secs_f64();
        match &ending.result {
            Ok(()) => tracing::info!(%event, phase, hook, seconds, "a hook is done"),
            Err(why) => {
                let why = forewarn_cli_support::visible::flat(why);
                tracing::warn!(%event, phase, hook, seconds, why, "a hook has not done what it should");
            }
        }
        self.metrics.ended(task.phase, ending.result.is_ok(), *took);
        let deeds = self.watcher.ended(clock::now(), task, ending);
        self.act(deeds);
    }

    /// An approval was answered.
    pub(super) fn answered(&mut self, event: EventId, answer: Answer) {
        self.metrics.approved(answer == Answer::Taken);
        let deeds = self.watcher.answered(clock::now(), event, answer);
        self.act(deeds);
    }

    /// Takes news about peers.
    pub(super) fn heard(&mut self, news: PeerNews) {
        let deeds = match news {
            PeerNews::Report(report) => self.watcher.heard(clock::now(), report),
            PeerNews::RoundOver { begun } => {
                self.metrics.asked_peers();
                self.watcher.asked_all(clock::now(), begun)
            }
        };
        self.act(deeds);
    }

    /// Time has passed.
    pub(super) fn tick(&mut self) {
        let deeds = self.watcher.tick(clock::now());
        self.act(deeds);
    }

    /// How long nothing needs to be done, unless something happens.
    ///
    /// Timers stand still while the machine sleeps and the clock of the watcher does not: no pause is long while something is due.
    pub(super) fn pause(&self) -> Option<Duration> {
        let now = clock::now();
        let wake = self.watcher.next_wake(now).map(|at| at.since(now).min(GLANCE));
        let glance = (!self.watcher.memory().cases.is_empty()).then_some(GLANCE);
        let ask = (self.watcher.asking() != Asking::Nobody).then(|| self.poller.due_in());
        [wake, glance, ask].into_iter().flatten().min()
    }

    /// Asks peers how they are, if it is time.
    pub(super) fn ask_peers(&mut self) {
        self.poller.ask(&self.watcher.asking());
    }

    fn act(&mut self, deeds: Vec<Deed>) {
        self.keep();
        let mut deeds = VecDeque::from(deeds);
        while let Some(deed) = deeds.pop_front() {
            match deed {
                Deed::Run(run) if self.is_dry() => deeds.extend(self.would_run(&run)),
                Deed::Run(run) => self.run(run),
                Deed::Stop(task) => self.crew.stop(&task),
                Deed::Approve(event) if self.is_dry() => tracing::info!(%event, "would approve"),
                Deed::Approve(event) => self.approve(event),
                Deed::Note(note) => self.note(&note),
                Deed::Skip(events) => {
                    self.metrics.skipped(events.len());
                    log_skipped(&events);
                }
            }
        }
    }

    fn note(&mut self, note: &Note) {
        if matches!(note.what, What::Seen { .. }) {
            self.metrics.seen(&note.seen.kind);
        }
        self.notes.tell(note);
    }

    /// Keeps the memory, if it has changed.
    fn keep(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        let kept = keeper.keep(self.watcher.memory());
        match (&kept, self.is_kept) {
            (Err(error), true) => {
                tracing::error!(%error, "the memory could not be kept: after a restart, hooks may run again and nothing is undone");
            }
            (Ok(()), false) => tracing::info!("the memory is kept again"),
            (Ok(()), true) | (Err(_), false) => {}
        }
        self.is_kept = kept.is_ok();
        self.metrics.kept(self.is_kept);
    }

    fn run(&mut self, run: Run) {
        let (phase, hook, attempt, event) =
            (run.task.phase.as_str(), &run.task.hook, run.attempt, run.task.event);
        tracing::info!(%event, phase, hook, attempt, "a hook begins");
        let work = self.config.works.get(&run.task.hook).cloned();
        let own_phase =
            self.config.hooks.iter().find(|hook| hook.name == run.task.hook).map(|hook| hook.phase);
        let me = self.watcher.settings().me.clone();
        self.crew.start(&me, work, own_phase, run);
    }

    /// What would be run counts as done, so that it shows what would come then.
    fn would_run(&mut self, run: &Run) -> Vec<Deed> {
        let (phase, hook, event) = (run.task.phase.as_str(), &run.task.hook, run.task.event);
        tracing::info!(%event, phase, hook, "would run a hook");
        self.watcher.ended(clock::now(), &run.task, &Ending { result: Ok(()), memory: None })
    }

    fn approve(&mut self, event: EventId) {
        // Without an endpoint there are no events.
        if let Some(endpoint) = self.place.clone() {
            self.approvals.start(Client::new(endpoint).with_edition(self.edition), event);
        }
    }

    /// Shows how everything stands to whoever asks.
    pub(super) fn show(&mut self) {
        let now = clock::now();
        let drained = self.watcher.is_drained();
        let memory = self.watcher.memory();
        let cases = self.watcher.cases();
        let deadlines = cases.filter_map(|(case, deadline)| Some((case.seen.kind.as_str(), deadline?)));
        self.metrics.stands(drained, memory.cases.len(), deadlines);
        let ready = self.endpoint.is_enabled() && self.name.is_some() && self.is_kept;
        let word = self.watcher.word();
        let status = Status {
            name: self.name.clone(),
            dry_run: self.is_dry(),
            ready,
            drained,
            events: status::events(&self.watcher, &word, now),
            owed: memory.owed.keys().cloned().collect(),
            ..Status::new(self.endpoint.view())
        };
        self.tell_supervisor(&status);
        let status = Arc::new(status);
        self.board.send_replace(Arc::new(Shown { ready, drained, word, status }));
    }

    /// One line for `systemctl status`, whenever it is another.
    fn tell_supervisor(&mut self, status: &Status) {
        let who = status.name.as_deref().unwrap_or("this machine");
        let text = match (&status.endpoint, status.drained) {
            (_, true) => format!("{who} is drained; {} events in hand", status.events.len()),
            (endpoint, false) if endpoint.reachable => {
                format!("watches {who}; {} events in hand", status.events.len())
            }
            (_, false) => "the endpoint does not answer".to_owned(),
        };
        if text != self.told_status {
            notify(News::Status(&text));
            self.told_status = text;
        }
    }
}

/// Names events that are skipped, up to a limit.
fn log_skipped(events: &[MalformedEvent]) {
    for MalformedEvent { id, problem } in events.iter().take(SKIPPED_LOGGED_MAX) {
        let (event, problem) = (id.map_or("unknown".to_owned(), |id| id.to_string()), one_line(problem));
        tracing::warn!(event, problem, "skipped a malformed event");
    }
    if let Some(more) = events.len().checked_sub(SKIPPED_LOGGED_MAX).filter(|more| *more > 0) {
        tracing::warn!(more, "skipped more malformed events");
    }
}
