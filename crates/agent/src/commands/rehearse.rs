//! `forewarn-agent rehearse`: a drill. An event that nobody has announced goes through all hooks and is undone again.
//!
//! The same watcher decides as in earnest, with the same rules and the same hands; but the documents are made up here, the memory is
//! of this process only, and nothing is approved. Hooks do what they do: a unit that is stopped is stopped, and started again by the
//! undo. A drill is refused while something real is in hand, and cut short, with its undo, when it is interrupted.

mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use forewarn_agent_core::{Approval, Deed, Memory, Note, Seen, Settings, Sight, Treatment, Watcher, What};
use forewarn_cli_support::log;
use forewarn_cli_support::visible::one_line;
use forewarn_client::{Client, MalformedEvent, News, Sighting};
use forewarn_imds::{Edition, ReadDocument, ReadEvent, Word};
use forewarn_types::{EventId, EventKind, Span};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Options, block_on};
use crate::config::Config;
use crate::hands::Hands;
use crate::run::{Crew, search};
use crate::{chance, clock, memory};
use report::Report;

/// How long the endpoint may take to say whether something real is pending.
const ASK_MAX: Duration = Duration::from_secs(5);

/// What hooks read of an event that is made up.
const DESCRIPTION: &str = "This is a rehearsal: nothing will happen to this machine.";

/// Send an event that nobody has announced through all hooks, undo it, and say how long everything took.
///
/// Hooks do what they do; nothing is approved.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  forewarn-agent rehearse\n  forewarn-agent rehearse --type Preempt --left 30s\n  forewarn-agent rehearse --cancelled --json"
)]
pub(super) struct Arguments {
    /// What is announced.
    #[arg(long = "type", value_name = "TYPE", value_parser = kind_parser(), default_value = "Reboot")]
    kind: EventKind,
    /// How long it is until it would start.
    #[arg(long, value_name = "TIME", default_value = "15m")]
    left: Span,
    /// How long the interruption is said to be; without it, it is not known.
    #[arg(long, value_name = "TIME")]
    duration: Option<Span>,
    /// The event is cancelled instead of started.
    #[arg(long)]
    cancelled: bool,
    /// The report as JSON.
    #[arg(long)]
    json: bool,
}

/// Reads a type of events; help shows the types with their effects.
fn kind_parser() -> impl TypedValueParser<Value = EventKind> {
    let values = EventKind::ALL.map(|kind| PossibleValue::new(kind.as_str()).help(effect(kind)));
    PossibleValuesParser::new(values).try_map(|word| word.parse::<EventKind>())
}

/// The effect of an event on the machine.
const fn effect(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Freeze => "Paused for a few seconds",
        EventKind::Reboot => "Restarted",
        EventKind::Redeploy => "Moved to another host, without its temporary disk",
        EventKind::Preempt => "A spot machine is taken away",
        EventKind::Terminate => "Deleted",
    }
}

pub(super) fn command(options: &Options, arguments: &Arguments) -> Result<()> {
    let config = options.load()?;
    log::start(config.format, config.level);
    let report = block_on(async {
        let me = check(&config).await?;
        let place = Place::new()?;
        let mut drill = Drill::new(&config, &me, arguments, &place)?;
        drill.play(arguments.cancelled).await
    })?;
    report.print(arguments.json)?;
    match report.failed() {
        0 if report.is_interrupted() => bail!("interrupted"),
        0 => Ok(()),
        1 => bail!("a hook has failed"),
        failed => bail!("{failed} hooks have failed"),
    }
}

/// Refuses if something real is in hand; otherwise gives the name of this machine.
async fn check(config: &Config) -> Result<String> {
    let (me, events) = match tokio::time::timeout(ASK_MAX, ask(config)).await {
        Ok(Ok(asked)) => asked,
        Ok(Err(problem)) => (without_endpoint(config, &format!("{problem:#}"))?, Vec::new()),
        Err(_) => (without_endpoint(config, "it does not answer")?, Vec::new()),
    };
    let Memory { cases, owed } = memory::look(&config.state).context(
        "whether an agent has an event in hand is not known\n  hint: run this as the user of the agent",
    )?;
    if cases.iter().any(|case| case.seen.names(&me)) {
        bail!("an event is in hand, and that one is real\n  hint: forewarn-agent status");
    }
    if let Some(hook) = owed.keys().next() {
        bail!("what a real event has led to is not undone yet: {hook}\n  hint: forewarn-agent status");
    }
    for event in &events {
        match event {
            Ok(seen) if seen.names(&me) => {
                bail!(
                    "an event of this machine is pending, and that one is real\n  hint: forewarn-agent events"
                )
            }
            Ok(_) => {}
            Err(malformed) => bail!(
                "an event is pending that cannot be read, and may be one of this machine: {}\n  hint: forewarn-agent events",
                one_line(&malformed.problem)
            ),
        }
    }
    Ok(me)
}

async fn ask(config: &Config) -> Result<(String, Vec<Result<Seen, MalformedEvent>>)> {
    let mut client = Client::new(search(config).run().await?.endpoint);
    let me = match &config.name {
        Some(name) => name.clone(),
        None => client.name().await?,
    };
    let events = match client.poll().await? {
        News::Document(sighting) => {
            let Sighting { document, edition, .. } = sighting;
            let events = document.events.iter().map(|event| Seen::read(event, edition));
            events.chain(document.malformed.into_iter().map(Err)).collect()
        }
        News::Unchanged { .. } | News::NoNews { .. } => Vec::new(),
    };
    Ok((me, events))
}

/// A drill needs no endpoint; only what hooks are told this machine is called.
fn without_endpoint(config: &Config, why: &str) -> Result<String> {
    eprintln!("the endpoint cannot be asked whether a real event is pending: {why}");
    config.name.clone().with_context(|| {
        "the name of this machine is not known\n  hint: name = \"…\" in the settings".to_owned()
    })
}

/// A directory for what hooks have to remember; it goes with the drill.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("forewarn-rehearsal-{}", std::process::id()));
        // Nobody else has made it: it must not be there.
        std::fs::create_dir(&path).with_context(|| format!("cannot make a directory: {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A drill under way.
struct Drill<'a> {
    config: &'a Config,
    watcher: Watcher,
    crew: Crew,
    event: ReadEvent,
    incarnation: u64,
    report: Report,
    interrupt: Signal,
    terminate: Signal,
    /// How often somebody has interrupted it: once goes straight to the undo, twice ends it as it is.
    interrupts: u32,
    /// Whether preparing has come to its end.
    is_prepared: bool,
}

impl<'a> Drill<'a> {
    fn new(config: &'a Config, me: &str, arguments: &Arguments, place: &Place) -> Result<Self> {
        let usual = config.settings(me);
        let mut rules = usual.rules.clone();
        rules.iter_mut().for_each(|rule| rule.approval = Some(Approval::Never));
        let mut peers = usual.peers.clone();
        peers.at_once = None;
        let settings = Settings { approval: Approval::Never, rules, peers, ..usual };
        let seconds = arguments.duration.and_then(|Span(span)| i64::try_from(span.as_secs()).ok());
        let event = ReadEvent {
            id: EventId::from_bytes(chance::bytes().context("no random numbers to be had")?),
            status: Word::Known(forewarn_imds::Status::Scheduled),
            kind: Word::Known(arguments.kind),
            resource_type: "VirtualMachine".to_owned(),
            resources: vec![me.to_owned()],
            not_before: Some(clock::wall().plus(arguments.left.0)),
            description: Some(DESCRIPTION.to_owned()),
            source: Some(Word::Known(forewarn_types::EventSource::Platform)),
            duration_seconds: Some(seconds.unwrap_or(-1)),
        };
        let report = Report::new(&event, arguments.left.0);
        Ok(Self {
            config,
            watcher: Watcher::new(settings, Memory::default()),
            crew: Crew::new(Hands::new(place.0.clone())),
            event,
            incarnation: 1,
            report,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            interrupts: 0,
            is_prepared: false,
        })
    }

    /// Announced, prepared for, started or cancelled, over, undone.
    async fn play(&mut self, cancelled: bool) -> Result<Report> {
        self.show(vec![self.event.clone()]);
        if self.is_approved_at_once() {
            self.is_prepared = true;
            self.report.approved_at_once();
        }
        let begun = Instant::now();
        while self.interrupts == 0 && !(self.is_prepared && self.crew.is_idle()) {
            self.step().await;
        }
        self.report.prepared(begun.elapsed());
        if !cancelled && self.interrupts == 0 {
            self.event.status = Word::Known(forewarn_imds::Status::Started);
            self.event.not_before = None;
            self.show(vec![self.event.clone()]);
            self.settle(1).await;
        }
        self.show(Vec::new());
        self.settle(2).await;
        if self.interrupts > 1 {
            bail!("interrupted twice: what was done may not be undone");
        }
        Ok(std::mem::take(&mut self.report))
    }

    /// A rule says that no hook prepares for it, and it would be approved now: nobody has to be waited for.
    fn is_approved_at_once(&self) -> bool {
        self.watcher.memory().cases.iter().any(|case| case.treatment == Treatment::ApproveAtOnce)
    }

    /// Goes on until nothing runs and nothing is due, or until it was interrupted so often.
    async fn settle(&mut self, interrupts: u32) {
        while self.interrupts < interrupts && !self.is_settled() {
            self.step().await;
        }
    }

    fn is_settled(&self) -> bool {
        self.crew.is_idle() && self.watcher.next_wake(clock::now()).is_none()
    }

    /// A document says that this is all there is.
    fn show(&mut self, events: Vec<ReadEvent>) {
        let document = ReadDocument { incarnation: self.incarnation, events, malformed: Vec::new() };
        self.incarnation += 1;
        let sight = Sight { document: &document, edition: Edition::newest(), date: clock::wall() };
        let deeds = self.watcher.see(clock::now(), sight);
        self.act(deeds);
    }

    async fn step(&mut self) {
        let now = clock::now();
        let pause = self.watcher.next_wake(now).map_or(ASK_MAX, |at| at.since(now).min(ASK_MAX));
        tokio::select! {
            ended = self.crew.next() => {
                self.report.ended(&ended);
                let deeds = self.watcher.ended(clock::now(), &ended.task, &ended.ending);
                self.act(deeds);
            }
            () = tokio::time::sleep(pause) => {
                let deeds = self.watcher.tick(clock::now());
                self.act(deeds);
            }
            _ = self.interrupt.recv() => self.cut_short(),
            _ = self.terminate.recv() => self.cut_short(),
        }
    }

    fn cut_short(&mut self) {
        self.interrupts += 1;
        if self.interrupts == 1 {
            eprintln!("interrupted: what was done is undone; once more, and it is not");
        }
        self.report.interrupted();
    }

    fn act(&mut self, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::Run(run) => {
                    let work = self.config.works.get(&run.task.hook).cloned();
                    let hook = self.config.hooks.iter().find(|hook| hook.name == run.task.hook);
                    let me = self.watcher.settings().me.clone();
                    self.crew.start(&me, work, hook.map(|hook| hook.phase), run);
                }
                Deed::Stop(task) => self.crew.stop(&task),
                // Nothing is, in a drill.
                Deed::Approve(_) => {}
                Deed::Note(Note { what, .. }) => self.note(&what),
                // The document of a drill is well-formed.
                Deed::Skip(_) => {}
            }
        }
    }

    fn note(&mut self, what: &What) {
        match what {
            What::Ready => self.is_prepared = true,
            What::Held => {
                self.is_prepared = true;
                self.report.held();
            }
            What::Ignored => {
                self.is_prepared = true;
                self.report.ignored();
            }
            What::HookFailed { phase, hook, why } => self.report.lost(*phase, hook, why),
            What::UndoFailed { hook, why } => self.report.lost(forewarn_agent_core::Phase::Undo, hook, why),
            What::Seen { .. }
            | What::UnknownType
            | What::TooLate
            | What::WaitsForTurn
            | What::Preparing
            | What::Approving { .. }
            | What::Approved
            | What::Unapproved { .. }
            | What::Started
            | What::Completed
            | What::Cancelled
            | What::Undoing
            | What::Undone => {}
        }
    }
}
