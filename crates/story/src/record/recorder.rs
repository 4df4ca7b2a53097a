//! Writes statements, and runs each of them against the rules.

use std::time::Duration;

use forewarn_control::{AuditEntry, MachineView, NamedCommand, PolicyEntry};
use forewarn_imds::{Reading, Status, Word, read_document};
use forewarn_lifecycle::{EventId, Timestamp};
use forewarn_types::{Moment, show_duration};

use super::history::{EventNumbers, Step, StepKind, keep_enrolled, steps};
use super::phrases::{Phrase, StrippedCommand, phrase, policies};
use super::{Recording, ServerHistory};
use crate::error::StoryError;
use crate::fleet_commands::describes_fleet;
use crate::rules_backend::RulesBackend;
use crate::runner::Runner;
use crate::statement::{Operation, StatementKind, Story};
use crate::{BEGINNING, LINE_BYTES_MAX, LINES_MAX, parse, run};

/// Machines about which a recording has expectations.
const MACHINES_EXPECTED_MAX: usize = 100;

pub(super) struct Recorder<'a> {
    runner: Runner<'a>,
    lines: Vec<String>,
    warnings: Vec<String>,
    /// The time of the last statement.
    written_at: Duration,
    /// Events of the server, and of the rules that run the recording.
    real: EventNumbers,
    replayed: EventNumbers,
    /// Entries of the rules that were read.
    entries_read: u64,
    has_left_out: bool,
    has_windows: bool,
}

impl Runner<'_> {
    fn execute_all(&mut self, story: &Story) -> Result<(), StoryError> {
        story.statements.iter().try_for_each(|statement| self.execute(statement))
    }
}

impl Recorder<'_> {
    pub(super) fn record(history: &ServerHistory) -> Recording {
        let mut backend = RulesBackend::default();
        let mut recorder = Recorder {
            runner: Runner::on(&mut backend),
            lines: Vec::new(),
            warnings: Vec::new(),
            written_at: Duration::ZERO,
            real: EventNumbers::default(),
            replayed: EventNumbers::default(),
            entries_read: 0,
            has_left_out: false,
            has_windows: false,
        };
        recorder.write_history(history);
        let Recorder { lines, mut warnings, .. } = recorder;
        let story = lines.join("\n") + "\n";
        let replayed = parse(&story).and_then(|parsed| run(&parsed));
        if let Err(error) = replayed {
            warnings.push(format!("the story does not run: {error}"));
        }
        Recording { story, warnings }
    }

    fn write_history(&mut self, history: &ServerHistory) {
        let first = history.entries.partition_point(|entry| entry.number < history.since);
        let (before, recorded) = history.entries.split_at(first);
        let beginning = recorded.first().map_or(history.now, |entry| entry.at.0);
        self.real.read(recorded);
        let end = history.now.max(recorded.last().map_or(beginning, |entry| entry.at.0));
        let count = recorded.len();
        self.lines.push(format!(
            "# Recorded from {count} entries of an audit log, from {} to {}.",
            Moment(beginning),
            Moment(end)
        ));
        self.write_fleet(history, before);
        let mut steps = steps(recorded);
        keep_enrolled(&mut steps, recorded, end);
        for step in &steps {
            self.write_step(step, beginning);
        }
        self.write_end(history, end.since(beginning));
        if self.has_windows && beginning != BEGINNING {
            self.warn(format!(
                "windows open at other times: the story begins at {}, the recording at {}",
                Moment(BEGINNING),
                Moment(beginning)
            ));
        }
        if self.has_left_out {
            self.warn("addresses and tags of machines are left out".to_owned());
        }
        if self.lines.len() > LINES_MAX {
            self.warn(format!("the story has {} lines, of which {LINES_MAX} are allowed", self.lines.len()));
        }
    }

    /// Writes the fleet as it was before the first recorded entry, as far as commands made it.
    fn write_fleet(&mut self, history: &ServerHistory, before: &[AuditEntry]) {
        if !history.fleet.is_empty() {
            self.lines.push(
                "# The audit log has no beginning: this is the fleet at the time of the recording."
                    .to_owned(),
            );
            for command in &history.fleet {
                self.write_command(Duration::ZERO, command);
            }
        }
        let mut operations = 0;
        for step in steps(before) {
            match step.kind {
                StepKind::Command(command) if is_about_fleet(&command) => {
                    self.write_command(Duration::ZERO, &command);
                }
                StepKind::Command(_) | StepKind::Other(_) | StepKind::Approval { .. } => operations += 1,
                StepKind::Poll { tenant } => self.write_poll(Duration::ZERO, &tenant),
                // It matters only to a rollout, which is left out.
                StepKind::MachinePoll { .. } => {}
            }
        }
        if operations > 0 {
            self.warn(format!(
                "{operations} operations before entry {} are left out: machines may have been elsewhere, and events \
                 announced before are missing",
                history.since
            ));
        }
    }

    fn write_step(&mut self, step: &Step, beginning: Timestamp) {
        // Stories count whole seconds.
        let at = Duration::from_secs(step.at.since(beginning).as_secs());
        let at = at.max(self.written_at);
        self.advance_to(at);
        match &step.kind {
            StepKind::Command(command) => self.write_command(at, command),
            StepKind::Other(text) => self.comment(text, "the language has no words for it"),
            StepKind::Poll { tenant } => self.write_poll(at, tenant),
            StepKind::MachinePoll { machine } => {
                let name = self.short_name(machine);
                self.write(at, &format!("poll {name}"));
            }
            StepKind::Approval { machine, events } => {
                let names: Result<Vec<_>, _> = events.iter().map(|event| self.event_name(event)).collect();
                let by = self.short_name(machine);
                match names {
                    Ok(names) => self.write(at, &format!("approve {} by {by}", names.join(" "))),
                    Err(unknown) => {
                        self.comment(&format!("approval of {unknown} by {machine}"), "its event is unknown");
                    }
                }
            }
        }
    }

    fn write_command(&mut self, at: Duration, command: &NamedCommand) {
        let StrippedCommand { command: stripped, more, has_left_out } = StrippedCommand::new(command);
        let line = match phrase(&stripped) {
            Phrase::Lines(lines) if lines.first().is_some_and(|line| stands_for(line, &stripped)) => {
                self.has_left_out |= has_left_out;
                self.has_windows |= has_windows(command);
                for line in lines.iter().chain(&more) {
                    self.write(at, line);
                }
                return self.check_number(command);
            }
            Phrase::Lines(_) | Phrase::Nothing => {
                let text = serde_json::to_string(command).unwrap_or_default();
                return self.comment(&text, "the language has no words for it");
            }
            Phrase::Settings(lines) => return lines.iter().for_each(|line| self.write(at, line)),
            Phrase::Policy(tenant, policy) => {
                let lines = policies(&tenant, &policy, self.present_policy(&tenant));
                return lines.iter().for_each(|line| self.write(at, line));
            }
            Phrase::Event(verb, event) => self.event_name(&event).map(|name| format!("{verb} {name}")),
            Phrase::Approval(tenant, None) => Ok(format!("approve {tenant} by owner of {tenant}")),
            Phrase::Approval(tenant, Some(ids)) => {
                let names: Result<Vec<_>, _> = ids.iter().map(|id| self.event_name(id)).collect();
                names.map(|names| format!("approve {} by owner of {tenant}", names.join(" ")))
            }
            Phrase::Rollout(rollout, line) => {
                if self.oldest_rollout() == Some(rollout) {
                    Ok(line)
                } else {
                    Err(format!("{line}, number {rollout}"))
                }
            }
        };
        match line {
            Ok(line) => self.write(at, &line),
            Err(unknown) => self.comment(&unknown, "its event is unknown, or its rollout is not the oldest"),
        }
    }

    /// Instances get their numbers in the order in which they are added.
    fn check_number(&mut self, command: &NamedCommand) {
        let NamedCommand::AdmitInstance { scale_set, instance } = command else { return };
        let Some(id) = instance.id else { return };
        let name = format!("{scale_set}_{id}");
        let found = self.runner.backend.find_machine(&format!("{scale_set}/{name}"));
        if !matches!(found, Ok(Ok(_))) {
            self.warn(format!("the instance {name} has another name in the story"));
        }
    }

    /// The oldest rollout that has not ended: statements are about that one.
    fn oldest_rollout(&self) -> Option<u64> {
        let rollouts = self.runner.backend.rollouts().unwrap_or_default();
        rollouts.iter().find(|rollout| rollout.ended_at.is_none()).map(|rollout| rollout.id)
    }

    fn write_poll(&mut self, at: Duration, tenant: &str) {
        // The log does not say which machine polled: any machine enrols its tenant.
        let machines = self.machines();
        let Some(machine) = machines.iter().find(|machine| machine.tenant == tenant) else { return };
        let name = self.short_name(&format!("{tenant}/{}", machine.name));
        self.write(at, &format!("poll {name}"));
    }

    /// Expectations about the end: documents, and machines.
    fn write_end(&mut self, history: &ServerHistory, end: Duration) {
        let end = Duration::from_secs(end.as_secs());
        for (tenant, document) in &history.documents {
            let Ok(Reading::Document(read)) = read_document(document) else { continue };
            let phases: Vec<_> = read.events.iter().filter_map(|event| phase(&event.status)).collect();
            let phases = if phases.is_empty() { "nothing".to_owned() } else { phases.join(" ") };
            self.write(end, &format!("expect {tenant} {phases}"));
        }
        for machine in history.machines.iter().take(MACHINES_EXPECTED_MAX) {
            let MachineView { tenant, name, host, boots, disk, power, .. } = machine;
            let name = self.short_name(&format!("{tenant}/{name}"));
            self.write(
                end,
                &format!("expect {name} on {host}, {name} {power}, {name} boots {boots}, {name} disk {disk}"),
            );
        }
        if end > self.written_at {
            self.write(self.written_at, &format!("advance {}", show_duration(end - self.written_at)));
        }
    }

    /// Runs a statement at that time, and writes it if it succeeds; else as a comment, with a warning.
    fn write(&mut self, at: Duration, statement: &str) {
        let at = at.max(self.written_at);
        let line = if at > self.written_at {
            format!("at {} {statement}", show_duration(at))
        } else {
            statement.to_owned()
        };
        let ran = if line.len() > LINE_BYTES_MAX {
            Err(format!("a line has at most {LINE_BYTES_MAX} bytes"))
        } else {
            parse(&line).and_then(|story| self.runner.execute_all(&story)).map_err(|error| error.message)
        };
        match ran {
            Ok(()) => {
                self.written_at = at;
                self.push(line);
            }
            Err(why) => self.comment(&line, why.lines().next().unwrap_or_default()),
        }
        self.read_events();
    }

    /// Adds a line, and joins hosts and equal instances.
    fn push(&mut self, line: String) {
        let is_plain_host = |line: &str| {
            line.starts_with("host ")
                && !line.contains(" zone ")
                && !line.contains(" cpus ")
                && !line.contains(" memory ")
        };
        let last = self.lines.last_mut();
        match last {
            Some(last) if is_plain_host(last) && is_plain_host(&line) && last.len() < JOINED_BYTES_MAX => {
                last.push_str(line.trim_start_matches("host"));
            }
            Some(last) if line.starts_with("instance ") => match counted(last) {
                (same, count) if same == line => *last = format!("{line} times {}", count + 1),
                (_, _) => self.lines.push(line),
            },
            Some(_) | None => self.lines.push(line),
        }
    }

    fn comment(&mut self, text: &str, why: &str) {
        let text = text.replace('\n', " ");
        self.lines.push(format!("# Not recorded: {text}: {why}").chars().take(LINE_BYTES_MAX / 4).collect());
        self.warnings.push(format!("not recorded: {text}: {why}"));
    }

    fn warn(&mut self, warning: String) {
        self.lines.push(format!("# {warning}"));
        self.warnings.push(warning);
    }

    /// The name of an event of the server in the recorded story.
    fn event_name(&self, id: &str) -> Result<String, String> {
        let here = self.replayed.counterpart(&self.real, id).and_then(EventId::parse);
        here.and_then(|id| self.runner.transcript.name_of(id)).ok_or_else(|| format!("event {id}"))
    }

    /// The name of a machine without its tenant, if that is unique.
    fn short_name(&self, full: &str) -> String {
        let Some((_, short)) = full.split_once('/') else { return full.to_owned() };
        let same = self.machines().iter().filter(|machine| machine.name == short).count();
        if same == 1 { short.to_owned() } else { full.to_owned() }
    }

    fn machines(&self) -> Vec<MachineView> {
        self.runner.backend.machines().unwrap_or_default()
    }

    /// Lets the rules reach that time, so that its events and machines are known.
    fn advance_to(&mut self, at: Duration) {
        let line = format!("at {} advance 0s", show_duration(at));
        let advanced = parse(&line).and_then(|story| self.runner.execute_all(&story));
        if let Err(error) = advanced {
            self.warnings.push(format!(
                "the time of the story cannot be {}: {}",
                show_duration(at),
                error.message
            ));
        }
        self.read_events();
    }

    /// Reads the entries of the rules, for the events in them.
    fn read_events(&mut self) {
        let entries = self.runner.backend.audit(self.entries_read).unwrap_or_default();
        self.entries_read = entries.last().map_or(self.entries_read, |entry| entry.number);
        self.replayed.read(&entries);
    }

    fn present_policy(&self, tenant: &str) -> PolicyEntry {
        let tenants = self.runner.backend.tenants().unwrap_or_default();
        tenants.iter().find(|known| known.name == tenant).map(|known| known.policy).unwrap_or_default()
    }
}

/// Bytes of a line to which hosts are joined.
const JOINED_BYTES_MAX: usize = 100;

/// Splits `instance of web on h1 times 3` into the statement and the number.
fn counted(line: &str) -> (&str, u32) {
    match line.rsplit_once(" times ") {
        Some((statement, count)) => (statement, count.parse().unwrap_or(1)),
        None => (line, 1),
    }
}

/// Returns true if the statement is read as that command.
fn stands_for(line: &str, command: &NamedCommand) -> bool {
    let Ok(story) = parse(line) else { return false };
    let [statement] = story.statements.as_slice() else { return false };
    let StatementKind::Perform(operation) = &statement.kind else { return false };
    let is_plain =
        matches!(operation, Operation::Perform(all) if all.as_slice() == std::slice::from_ref(command));
    is_plain || matches!(operation, Operation::Repeat { command: read, times: 1 } if read == command)
}

/// Returns true if the command has times of the day.
fn has_windows(command: &NamedCommand) -> bool {
    let of_rollout = matches!(command, NamedCommand::StartRollout(entry) if entry.terms.windows.is_some());
    of_rollout || matches!(command, NamedCommand::ChangeWindows { .. })
}

fn phase(status: &Word<Status>) -> Option<&'static str> {
    match status {
        Word::Known(Status::Scheduled) => Some("Scheduled"),
        Word::Known(Status::Started) => Some("Started"),
        Word::Other(_) => None,
    }
}

/// Returns true for commands that make the fleet what it is, and do nothing to machines.
fn is_about_fleet(command: &NamedCommand) -> bool {
    describes_fleet(command)
        || matches!(
            command,
            NamedCommand::RemoveHost { .. }
                | NamedCommand::RemoveTenant { .. }
                | NamedCommand::RemoveScaleSet { .. }
                | NamedCommand::ReviseModel { .. }
                | NamedCommand::ChangeUpgradePolicy { .. }
                | NamedCommand::UpgradeInstance { .. }
                | NamedCommand::Forget { .. }
                | NamedCommand::ForgetHost { .. }
                | NamedCommand::Move { .. }
                | NamedCommand::Resize { .. }
                | NamedCommand::ResizeInstances { .. }
        )
}
