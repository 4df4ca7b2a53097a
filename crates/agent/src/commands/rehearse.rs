//! `forewarn-agent rehearse`: runs all hooks for a simulated event and undoes them.
//!
//! The rehearsal uses the watcher, the rules and the hooks of the real agent, but simulated documents and a temporary
//! memory; nothing is approved. Hooks really run: a unit is stopped, and started again by the undo. A rehearsal is
//! rejected while a real event is pending. An interrupt ends it early, with the undo.

mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use forewarn_agent_core::{
    Approval, Effect, EventLogEntry, EventLogKind, Memory, Observation, ObservedEvent, Settings, Treatment,
    Watcher,
};
use forewarn_cli_support::log;
use forewarn_cli_support::visible::{one_line, visible};
use forewarn_client::{Client, MalformedEvent, PollResponse};
use forewarn_imds::{Edition, ReadDocument, ReadEvent, Word};
use forewarn_types::{EventId, EventKind, Span};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{GlobalOptions, StateOption, block_on};
use crate::config::Config;
use crate::hooks::HookRuntime;
use crate::run::{HookTasks, search};
use crate::{clock, memory, random};
use report::RehearsalReport;

/// Timeout of the check for real events.
const CHECK_MAX: Duration = Duration::from_secs(5);

/// The file with the host name of this machine.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// The description of the simulated event.
const DESCRIPTION: &str = "This is a rehearsal: nothing will happen to this machine.";

/// Run all hooks for a simulated event, undo them, and report timings
///
/// The hooks really run. Nothing is approved.
#[derive(Debug, Args)]
#[command(
    before_help = "Examples:\n  forewarn-agent rehearse\n  forewarn-agent rehearse --type Preempt --left 30s\n  forewarn-agent rehearse --cancelled --output json"
)]
pub(super) struct RehearseArgs {
    /// Type of the event
    #[arg(long = "type", value_name = "TYPE", value_parser = kind_parser(), default_value = "Reboot")]
    kind: EventKind,
    /// Time until the event would start
    #[arg(long, value_name = "TIME", default_value = "15m")]
    left: Span,
    /// Expected length of the interruption [default: unknown]
    #[arg(long, value_name = "TIME")]
    duration: Option<Span>,
    /// Cancel the event instead of starting it
    #[arg(long)]
    cancelled: bool,
    #[command(flatten)]
    state: StateOption,
}

/// A parser for event types whose help describes their effects.
fn kind_parser() -> impl TypedValueParser<Value = EventKind> {
    let values = EventKind::ALL.map(|kind| PossibleValue::new(kind.as_str()).help(impact(kind)));
    PossibleValuesParser::new(values).try_map(|word| word.parse::<EventKind>())
}

/// The effect of an event on the machine.
const fn impact(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Freeze => "Paused for a few seconds",
        EventKind::Reboot => "Restarted",
        EventKind::Redeploy => "Moved to another host, without its temporary disk",
        EventKind::Preempt => "The spot machine is evicted",
        EventKind::Terminate => "Deleted",
    }
}

pub(super) fn command(options: &GlobalOptions, arguments: &RehearseArgs) -> Result<()> {
    let config = options.load_with(&arguments.state)?;
    log::start(config.format, config.level);
    let report = block_on(async {
        let me = check(&config).await?;
        let notes_directory = NotesDirectory::new()?;
        let mut rehearsal = Rehearsal::new(&config, &me, arguments, &notes_directory)?;
        rehearsal.run(arguments.cancelled).await
    })?;
    report.print(options.output())?;
    match report.failed() {
        0 if report.is_interrupted() => bail!("interrupted"),
        0 => Ok(()),
        1 => bail!("1 hook failed"),
        failed => bail!("{failed} hooks failed"),
    }
}

/// Fails if a real event is pending; otherwise returns the name of this machine.
async fn check(config: &Config) -> Result<String> {
    let read = tokio::time::timeout(CHECK_MAX, read_endpoint(config)).await;
    let memory = memory::read_only(&config.state)
        .map_err(|error| anyhow!("{error:#}\n  hint: run this as the user of the agent"))?;
    let (me, events) = match read {
        Ok(Ok(known)) => known,
        Ok(Err(error)) => return check_without_endpoint(config, &memory, &format!("{error:#}")),
        Err(_) => return check_without_endpoint(config, &memory, "no response"),
    };
    let Memory { cases, pending_undo } = memory;
    if cases.iter().any(|case| case.observed.names(&me)) {
        bail!("cannot rehearse: a real event is pending\n  hint: forewarn-agent events");
    }
    if let Some(hook) = pending_undo.keys().next() {
        bail!(
            "cannot rehearse: the undo of a real event is pending: {hook}\n  hint: a running agent undoes it"
        );
    }
    for event in &events {
        match event {
            Ok(observed) if observed.names(&me) => {
                bail!(
                    "cannot rehearse: a real event of this machine is pending\n  hint: forewarn-agent events"
                )
            }
            Ok(_) => {}
            Err(malformed) => bail!(
                "cannot rehearse: a malformed event may name this machine: {}\n  hint: forewarn-agent events",
                one_line(&malformed.error)
            ),
        }
    }
    Ok(me)
}

async fn read_endpoint(config: &Config) -> Result<(String, Vec<Result<ObservedEvent, MalformedEvent>>)> {
    let mut client = Client::new(search(config).run().await?.endpoint);
    let me = match &config.name {
        Some(name) => name.clone(),
        None => client.name().await?,
    };
    let events = match client.poll().await? {
        PollResponse::Document(observation) => {
            let forewarn_client::Observation { document, edition, .. } = observation;
            let events = document.events.iter().map(|event| ObservedEvent::read(event, edition));
            events.chain(document.malformed.into_iter().map(Err)).collect()
        }
        PollResponse::Unchanged { .. } | PollResponse::Empty { .. } => Vec::new(),
    };
    Ok((me, events))
}

/// The same without an endpoint. Nobody knows then if the last known events are still pending.
fn check_without_endpoint(config: &Config, memory: &Memory, reason: &str) -> Result<String> {
    eprintln!("cannot check the endpoint for real events: {}", visible(reason));
    let names_me = |observed: &ObservedEvent| config.name.as_ref().is_none_or(|name| observed.names(name));
    let case = memory.cases.iter().map(|case| &case.observed).find(|observed| names_me(observed));
    let undo = memory.pending_undo.values().map(|undo| &undo.observed).next();
    if let Some(observed) = case.or(undo) {
        bail!(
            "cannot rehearse: the endpoint does not respond, and the agent has not finished event {}\n  \
             hint: if the endpoint is gone for good, rehearse with another state file: --state ./rehearsal.json",
            observed.id
        );
    }
    Ok(config.name.clone().unwrap_or_else(host_name))
}

/// The host name, for a machine whose real name only the endpoint knows: a rehearsal works with any name.
fn host_name() -> String {
    let name = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    let name = if name.trim().is_empty() { "localhost" } else { name.trim() };
    eprintln!(
        "the endpoint would know the name of this machine; the rehearsal uses the host name: {}",
        one_line(name)
    );
    name.to_owned()
}

/// A temporary directory for the undo notes of hooks.
struct NotesDirectory(PathBuf);

impl NotesDirectory {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("forewarn-rehearsal-{}", std::process::id()));
        // Fails if the directory exists: another user may have created it.
        std::fs::create_dir(&path).with_context(|| format!("cannot create directory {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for NotesDirectory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A running rehearsal.
struct Rehearsal<'a> {
    config: &'a Config,
    watcher: Watcher,
    hook_tasks: HookTasks,
    event: ReadEvent,
    incarnation: u64,
    report: RehearsalReport,
    interrupt: Signal,
    terminate: Signal,
    /// Number of interrupts: the first starts the undo, the second stops everything.
    interrupts: u32,
    /// True once the scheduled hooks have ended.
    is_prepared: bool,
}

impl<'a> Rehearsal<'a> {
    fn new(
        config: &'a Config,
        me: &str,
        arguments: &RehearseArgs,
        notes_directory: &NotesDirectory,
    ) -> Result<Self> {
        let base = config.settings(me);
        let mut rules = base.rules.clone();
        rules.iter_mut().for_each(|rule| rule.approval = Some(Approval::Never));
        let mut peers = base.peers.clone();
        peers.at_once = None;
        let settings = Settings { approval: Approval::Never, rules, peers, ..base.clone() };
        let seconds = arguments.duration.and_then(|Span(span)| i64::try_from(span.as_secs()).ok());
        let event = ReadEvent {
            id: EventId::from_bytes(random::bytes().context("no random numbers available")?),
            status: Word::Known(forewarn_imds::Status::Scheduled),
            kind: Word::Known(arguments.kind),
            resource_type: "VirtualMachine".to_owned(),
            resources: vec![me.to_owned()],
            not_before: Some(clock::wall().plus(arguments.left.0)),
            description: Some(DESCRIPTION.to_owned()),
            source: Some(Word::Known(forewarn_types::EventSource::Platform)),
            duration_seconds: Some(seconds.unwrap_or(-1)),
        };
        let observed = ObservedEvent::read(&event, Edition::newest());
        let policy = observed.map_or(base.approval, |observed| base.approval_of(&observed));
        let report = RehearsalReport::new(&event, arguments.left.0, policy);
        Ok(Self {
            config,
            watcher: Watcher::new(settings, Memory::default()),
            hook_tasks: HookTasks::new(HookRuntime::new(notes_directory.0.clone())),
            event,
            incarnation: 1,
            report,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            interrupts: 0,
            is_prepared: false,
        })
    }

    /// Announces the event, starts or cancels it, completes it, and undoes the hooks.
    async fn run(&mut self, cancelled: bool) -> Result<RehearsalReport> {
        self.publish(vec![self.event.clone()]);
        if self.is_approved_at_once() {
            self.is_prepared = true;
            self.report.approved_at_once();
        }
        let begun = Instant::now();
        while self.interrupts == 0 && !(self.is_prepared && self.hook_tasks.is_idle()) {
            self.step().await;
        }
        self.report.prepared(begun.elapsed());
        if !cancelled && self.interrupts == 0 {
            self.event.status = Word::Known(forewarn_imds::Status::Started);
            self.event.not_before = None;
            self.publish(vec![self.event.clone()]);
            self.run_until_settled(1).await;
        }
        self.publish(Vec::new());
        self.run_until_settled(2).await;
        if self.interrupts > 1 {
            bail!("interrupted twice: the undo may be incomplete");
        }
        Ok(std::mem::take(&mut self.report))
    }

    /// True if a rule approves the event at once: no hook runs, so nothing is waited for.
    fn is_approved_at_once(&self) -> bool {
        self.watcher.memory().cases.iter().any(|case| case.treatment == Treatment::ApproveAtOnce)
    }

    /// Runs until no hook runs and none is due, or until the given number of interrupts.
    async fn run_until_settled(&mut self, interrupts: u32) {
        while self.interrupts < interrupts && !self.is_settled() {
            self.step().await;
        }
    }

    fn is_settled(&self) -> bool {
        self.hook_tasks.is_idle() && self.watcher.next_wake(clock::now()).is_none()
    }

    /// Sends a simulated document with these events to the watcher.
    fn publish(&mut self, events: Vec<ReadEvent>) {
        let document = ReadDocument { incarnation: self.incarnation, events, malformed: Vec::new() };
        self.incarnation += 1;
        let observation =
            Observation { document: &document, edition: Edition::newest(), date: clock::wall() };
        let effects = self.watcher.observe(clock::now(), observation);
        self.act(effects);
    }

    async fn step(&mut self) {
        let now = clock::now();
        let pause = self.watcher.next_wake(now).map_or(CHECK_MAX, |at| at.since(now).min(CHECK_MAX));
        tokio::select! {
            completed = self.hook_tasks.next() => {
                self.report.on_hook_result(&completed);
                let effects = self.watcher.on_hook_result(clock::now(), &completed.task, &completed.hook_outcome);
                self.act(effects);
            }
            () = tokio::time::sleep(pause) => {
                let effects = self.watcher.tick(clock::now());
                self.act(effects);
            }
            _ = self.interrupt.recv() => self.interrupt_once(),
            _ = self.terminate.recv() => self.interrupt_once(),
        }
    }

    fn interrupt_once(&mut self) {
        self.interrupts += 1;
        if self.interrupts == 1 {
            eprintln!("interrupted: undoing; interrupt again to stop without undo");
        }
        self.report.interrupted();
    }

    fn act(&mut self, effects: Vec<Effect>) {
        for impact in effects {
            match impact {
                Effect::Run(run) => {
                    let work = self.config.works.get(&run.task.hook).cloned();
                    let hook = self.config.hooks.iter().find(|hook| hook.name == run.task.hook);
                    let me = self.watcher.settings().me.clone();
                    self.hook_tasks.start(&me, work, hook.map(|hook| hook.phase), run);
                }
                Effect::Stop(task) => self.hook_tasks.stop(&task),
                // A rehearsal approves nothing.
                Effect::Approve(_) => {}
                Effect::Log(EventLogEntry { kind, .. }) => self.on_log_entry(&kind),
                // The simulated document is well-formed.
                Effect::Skip(_) => {}
            }
        }
    }

    fn on_log_entry(&mut self, kind: &EventLogKind) {
        match kind {
            EventLogKind::Ready => self.is_prepared = true,
            EventLogKind::Held => {
                self.is_prepared = true;
                self.report.held();
            }
            EventLogKind::Ignored => {
                self.is_prepared = true;
                self.report.ignored();
            }
            EventLogKind::HookFailed { phase, hook, reason } => self.report.hook_failed(*phase, hook, reason),
            EventLogKind::UndoFailed { hook, reason } => {
                self.report.hook_failed(forewarn_agent_core::Phase::Undo, hook, reason);
            }
            EventLogKind::Observed { .. }
            | EventLogKind::UnknownType
            | EventLogKind::TooLate
            | EventLogKind::WaitsForTurn { .. }
            | EventLogKind::NotApproving { .. }
            | EventLogKind::Preparing
            | EventLogKind::Approving { .. }
            | EventLogKind::Approved
            | EventLogKind::Unapproved { .. }
            | EventLogKind::Started
            | EventLogKind::Completed
            | EventLogKind::Cancelled
            | EventLogKind::Undoing
            | EventLogKind::Undone => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::GivenSettings;
    use crate::memory::MemoryFile;

    /// Settings for an endpoint at which nobody listens any more.
    fn config(directory: &std::path::Path, more: &str) -> Config {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (file, state) = (directory.join("agent.toml"), directory.join("state.json"));
        std::fs::write(&file, format!("endpoint = \"http://{gone}\"\nstate = {state:?}\n{more}\n")).unwrap();
        Config::load(Some(&file)).unwrap()
    }

    /// Stores an event that names that machine, as an agent does that was killed.
    fn leave_event(config: &Config, machine: &str) {
        let event = ReadEvent {
            id: EventId::from_bytes([7; 16]),
            status: Word::Known(forewarn_imds::Status::Scheduled),
            kind: Word::Known(EventKind::Reboot),
            resource_type: "VirtualMachine".to_owned(),
            resources: vec![machine.to_owned()],
            not_before: Some(clock::wall().plus(Duration::from_secs(900))),
            description: None,
            source: None,
            duration_seconds: None,
        };
        let document = ReadDocument { incarnation: 1, events: vec![event], malformed: Vec::new() };
        let observation =
            Observation { document: &document, edition: Edition::newest(), date: clock::wall() };
        let mut watcher = Watcher::new(config.settings(machine), Memory::default());
        watcher.observe(clock::now(), observation);
        assert_eq!(watcher.memory().cases.len(), 1);
        MemoryFile::open(&config.state).unwrap().0.store(watcher.memory()).unwrap();
    }

    #[tokio::test]
    async fn a_rehearsal_needs_no_endpoint_and_no_name() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(check(&config(directory.path(), "name = \"web_0\"")).await.unwrap(), "web_0");
        let host_name = std::fs::read_to_string(HOST_NAME).unwrap();
        assert_eq!(check(&config(directory.path(), "")).await.unwrap(), host_name.trim());
    }

    #[tokio::test]
    async fn an_unfinished_event_of_a_lost_endpoint_prevents_a_rehearsal_with_its_state_file_only() {
        let directory = tempfile::tempdir().unwrap();
        let lost = config(directory.path(), "");
        leave_event(&lost, "web_0");
        let refused = check(&lost).await.unwrap_err().to_string();
        assert!(refused.contains("has not finished event 07070707-"), "{refused}");
        assert!(refused.contains("hint: if the endpoint is gone for good"), "{refused}");
        assert!(check(&config(directory.path(), "name = \"web_0\"")).await.is_err());
        assert_eq!(
            check(&config(directory.path(), "name = \"web_1\"")).await.unwrap(),
            "web_1",
            "not its event"
        );
        let other = GivenSettings { state: Some(directory.path().join("other.json")), endpoint: None };
        assert!(check(&lost.with(other)).await.is_ok());
    }
}
