//! One test from its server to its outcome.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use forewarn_lifecycle::Now;
use forewarn_metadata::EndpointCounts;
use forewarn_server::Service;
use forewarn_verdict::{UntestedRule, event_histories, judge};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};

use super::TestArgs;
use super::hints::{Advisor, UnknownCallers};
use super::machines::Machines;
use super::observer::Observer;
use super::outcome::{Ending, TestOutcome};
use super::pacer::Pacer;
use super::preparation::{Preparation, Scenario};
use super::program_output::{OutputLabels, ProgramOutput};
use super::programs::{ProgramExit, Programs};
use super::scenario::{Course, CourseResult};
use crate::exit_code::ExitError;
use crate::operator::OutputFormat;

/// Numbers of signals that end a test.
const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;

/// Pause between two looks for processes that a program has left running.
const LEFT_INTERVAL: Duration = Duration::from_millis(100);

pub(super) async fn run(arguments: &TestArgs, output: OutputFormat) -> Result<TestOutcome> {
    let preparation = Preparation::new(arguments)?;
    // From here on signals are queued: none ends the test with programs left.
    let signals =
        Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? };
    let service = Service::start(preparation.plan(arguments)).await?;
    let outcome = match Test::begin(arguments, &preparation, &service, output) {
        Ok(test) => test.run(&preparation, signals).await,
        Err(error) => Err(error),
    };
    service.stop().await;
    outcome
}

/// Signals that end a test.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Waits for a signal. Returns its number.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => SIGINT,
            _ = self.terminate.recv() => SIGTERM,
        }
    }
}

/// A test under way.
struct Test<'a> {
    arguments: &'a TestArgs,
    pacer: Pacer,
    programs: Programs,
    exits: mpsc::UnboundedReceiver<ProgramExit>,
    end: watch::Sender<bool>,
    machines: Machines,
    /// Responses of the metadata endpoint.
    counts: Arc<EndpointCounts>,
    begin: Now,
}

/// Programs that have ended by themselves.
#[derive(Default)]
struct Exits {
    failed: Option<ProgramExit>,
    ended: Vec<ProgramExit>,
}

impl Exits {
    fn note(&mut self, exit: ProgramExit) {
        if exit.status.success() {
            self.ended.push(exit);
        } else {
            self.failed.get_or_insert(exit);
        }
    }
}

impl<'a> Test<'a> {
    fn begin(
        arguments: &'a TestArgs,
        preparation: &Preparation,
        service: &Service,
        output: OutputFormat,
    ) -> Result<Self> {
        let control = service.control().clone();
        let metadata = service.metadata_url().unwrap_or_default().to_owned();
        let machines = Machines { control: control.clone(), metadata, api: service.api_url().to_owned() };
        if let Scenario::Events(events) = &preparation.scenario {
            let default = machines.default(preparation.default.as_deref()).map_err(ExitError::usage)?;
            for event in events {
                let found = machines.find(event.machine(&default.name.name));
                found.with_context(|| format!("--event {event}")).map_err(ExitError::usage)?;
            }
        }
        let output = match output {
            OutputFormat::Data(_) => ProgramOutput::Error,
            OutputFormat::Text(_) => ProgramOutput::Out,
        };
        let labels = match preparation.program_count() {
            0 | 1 => OutputLabels::Absent,
            _ => OutputLabels::Machines,
        };
        let (sender, exits) = mpsc::unbounded_channel();
        let (end, ended) = watch::channel(false);
        let observer = Observer::new(control.clone());
        tokio::spawn(Arc::clone(&observer).note_entries(control.entries()));
        let (begin, counts) = (control.clock().now(), Arc::clone(service.metadata_counts()));
        let pacer = Pacer::new(control, observer, arguments.patience, ended);
        Ok(Self {
            arguments,
            pacer,
            programs: Programs::new(output, labels, sender),
            exits,
            end,
            machines,
            counts,
            begin,
        })
    }

    async fn run(mut self, preparation: &Preparation, mut signals: Signals) -> Result<TestOutcome> {
        let mut exits = Exits::default();
        let course = Course {
            arguments: self.arguments,
            pacer: self.pacer.clone(),
            programs: self.programs.clone(),
            machines: self.machines.clone(),
            default: preparation.default.clone(),
        };
        let ended = {
            let mut course = std::pin::pin!(course.run(&preparation.scenario));
            let mut timeout = std::pin::pin!(tokio::time::sleep(self.arguments.timeout));
            loop {
                tokio::select! {
                    ran = &mut course => break ran.map(|result| (Ending::Complete, result)),
                    Some(exit) = self.exits.recv() => {
                        self.programs.note_exit(&exit);
                        exits.note(exit);
                        if exits.failed.is_some() {
                            break Ok((Ending::ProgramFailed, CourseResult::default()));
                        }
                        self.pacer.set_deserted(self.programs.are_gone());
                    }
                    // Processes that a program has left running may still be the machine.
                    () = tokio::time::sleep(LEFT_INTERVAL), if !exits.ended.is_empty() => {
                        self.pacer.set_deserted(self.programs.are_gone());
                    }
                    () = &mut timeout => {
                        break Ok((Ending::TimedOut(self.arguments.timeout), CourseResult::default()));
                    }
                    signal = signals.next() => {
                        break Ok((Ending::Interrupted { signal }, CourseResult::default()));
                    }
                }
            }
        };
        while let Ok(exit) = self.exits.try_recv() {
            exits.note(exit);
        }
        self.end.send_replace(true);
        let real_time = self.pacer.observer.elapsed();
        self.programs.stop().await;
        let (ending, result) = ended?;
        self.outcome(preparation, ending, result, exits, real_time).await
    }

    async fn outcome(
        &self,
        preparation: &Preparation,
        ending: Ending,
        result: CourseResult,
        exits: Exits,
        real_time: Duration,
    ) -> Result<TestOutcome> {
        let entries = self.pacer.observer.entries().await.context("cannot read the audit log of the test")?;
        let observations = self.pacer.observer.observations();
        let mut rules = self.arguments.rules();
        if !result.failures.is_empty() {
            // A course that was cut short may have tested nothing: that is no failure of its own.
            rules.untested = UntestedRule::Passes;
        }
        let verdict = judge(event_histories(&entries), &observations, rules);
        let polled = observations.polled.iter().flatten().map(|(machine, _)| machine.name.clone()).collect();
        let now = self.pacer.control.clock().now();
        let CourseResult { failures, details, transcript } = result;
        let mut outcome = TestOutcome {
            name: preparation.scenario.name(),
            ending,
            verdict,
            failures,
            details,
            polled,
            failed_program: exits.failed,
            ended_programs: exits.ended,
            hints: Vec::new(),
            real_time,
            virtual_time: now.steady.since(self.begin.steady),
            beginning: self.begin.wall,
            real_times: observations.real_time.clone(),
            transcript,
        };
        let advisor = Advisor {
            arguments: self.arguments,
            scenario: &preparation.scenario,
            first_metadata: self.programs.first_metadata(),
            refused: self.counts.refused_requests(),
            unknown_callers: match self.pacer.observer.has_lost_machine() {
                true => UnknownCallers::Expected,
                false => UnknownCallers::Unexpected,
            },
            unannounced_deletions: self.pacer.observer.unannounced_deletions(),
        };
        outcome.hints = advisor.hints(&outcome);
        Ok(outcome)
    }
}
