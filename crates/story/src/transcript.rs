//! The transcript: every document that a machine could have read, and the final state of the machines.
//!
//! After each statement, and at each instant at which something changes while the clock advances, the changed documents
//! are recorded. Events are called E1, E2 … in the order in which they appear.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::time::Duration;

use forewarn_control::{MachineView, TenantView};
use forewarn_imds::{ReadEvent, Reading, Word, read_document};
use forewarn_lifecycle::{EventId, Timestamp};
use forewarn_types::show_duration;

use crate::backend::{Backend, BackendError, TenantChanges};
use crate::statement::SourceLine;
use crate::step_recorder::StepRecorder;

/// The record of a story run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    text: String,
    /// The last recorded incarnation of each tenant.
    shown: BTreeMap<String, u64>,
    /// The tenants at the last check, in the order in which they joined.
    present: Vec<String>,
    aliases: BTreeMap<EventId, usize>,
    /// The events in the order of their names.
    events: Vec<EventId>,
    stamped: Option<Duration>,
    /// The same as steps, if they are recorded.
    steps: Option<Box<StepRecorder>>,
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Transcript {
    /// A transcript that also records steps.
    pub(crate) fn with_steps(steps: StepRecorder) -> Self {
        Self { steps: Some(Box::new(steps)), ..Self::default() }
    }

    pub(crate) fn into_steps(self) -> Option<StepRecorder> {
        self.steps.map(|steps| *steps)
    }

    /// The events E1, E2 …
    pub(crate) fn events(&self) -> &[EventId] {
        &self.events
    }

    /// Begins a statement. Everything that follows is its consequence.
    pub(crate) fn begin(&mut self, location: &SourceLine) {
        if let Some(steps) = &mut self.steps {
            steps.begin(location);
        }
    }

    /// The limit of steps that is exceeded, with a hint.
    pub(crate) fn exceeded(&mut self) -> Option<String> {
        self.steps.as_mut()?.exceeded()
    }

    /// Records an expectation that was checked, and the condition that was found instead. It is part of steps only.
    pub(crate) fn expectation(&mut self, elapsed: Duration, expected: &str, found: Option<&str>) {
        if let Some(steps) = &mut self.steps {
            steps.expectation(elapsed, expected, found);
        }
    }

    /// Records a statement at its time.
    pub(crate) fn line(&mut self, elapsed: Duration, plain: &str) {
        self.stamp(elapsed);
        self.write(plain);
    }

    /// Records a note at its time.
    pub(crate) fn note_at(&mut self, elapsed: Duration, note: &str) {
        self.stamp(elapsed);
        self.note(note);
    }

    /// Records a note about the statement before.
    pub(crate) fn note(&mut self, note: &str) {
        for line in note.lines() {
            self.push(&format!("    {}", line.trim()));
        }
    }

    /// Records the documents that have changed.
    pub(crate) fn documents(&mut self, backend: &mut dyn Backend) -> Result<(), BackendError> {
        match backend.take_changes()? {
            TenantChanges::All(tenants) => {
                self.changed(&tenants, backend)?;
                let present = tenants.into_iter().map(|tenant| tenant.name).collect();
                let former = std::mem::replace(&mut self.present, present);
                let present: BTreeSet<_> = self.present.iter().map(String::as_str).collect();
                let gone: Vec<_> =
                    former.into_iter().filter(|name| !present.contains(name.as_str())).collect();
                self.gone(&gone, backend.elapsed());
            }
            TenantChanges::Some { changed, gone } => {
                self.changed(&changed, backend)?;
                self.gone(&gone, backend.elapsed());
            }
        }
        Ok(())
    }

    fn changed(&mut self, tenants: &[TenantView], backend: &dyn Backend) -> Result<(), BackendError> {
        for tenant in tenants {
            let known = self.shown.get(&tenant.name).copied();
            let unheard_of = tenant.events.is_empty() && known.is_none();
            if !unheard_of && known != Some(tenant.incarnation) {
                self.stamp(backend.elapsed());
                self.document(tenant, &backend.document(&tenant.name)?, backend.beginning());
            }
        }
        Ok(())
    }

    fn gone(&mut self, names: &[String], elapsed: Duration) {
        for name in names {
            if self.shown.remove(name).is_some() {
                self.stamp(elapsed);
                self.push(&format!("    {name} is gone"));
                if let Some(steps) = &mut self.steps {
                    steps.document(name, None);
                }
            }
        }
    }

    /// Records the document that a machine of the tenant would read.
    fn document(&mut self, tenant: &TenantView, body: &[u8], beginning: Timestamp) {
        self.shown.insert(tenant.name.clone(), tenant.incarnation);
        if let Some(steps) = &mut self.steps {
            steps.document(&tenant.name, Some(body));
        }
        let (name, head) = (&tenant.name, "sees document");
        match read_document(body) {
            Ok(Reading::Document(read)) if read.events.is_empty() => {
                self.push(&format!("    {name} {head} {}: nothing", read.incarnation));
            }
            Ok(Reading::Document(read)) => {
                self.push(&format!("    {name} {head} {}", read.incarnation));
                for event in &read.events {
                    let line = self.event(event, beginning);
                    self.push(&format!("      {line}"));
                }
            }
            Ok(Reading::NoNews) => self.push(&format!("    {name} sees nothing yet")),
            Err(unreadable) => self.push(&format!("    {name} cannot read its document: {unreadable}")),
        }
    }

    fn event(&mut self, event: &ReadEvent, beginning: Timestamp) -> String {
        let mut line = format!("E{} {} {}", self.alias(event.id), word(&event.kind), word(&event.status));
        if let Some(not_before) = event.not_before {
            let _ = write!(line, ", not before {}", show_duration(not_before.since(beginning)));
        }
        if let Some(source) = &event.source {
            let _ = write!(line, ", {}", word(source));
        }
        if let Some(seconds) = event.duration_seconds {
            let _ = write!(line, ", {seconds} s");
        }
        if let Some(description) = event.description.as_ref().filter(|text| !text.is_empty()) {
            let _ = write!(line, ", {description:?}");
        }
        let _ = write!(line, ": {}", event.resources.join(" "));
        line
    }

    fn alias(&mut self, id: EventId) -> usize {
        let next = self.aliases.len() + 1;
        let alias = *self.aliases.entry(id).or_insert(next);
        if alias > self.events.len() {
            self.events.push(id);
        }
        alias
    }

    /// The name of an event in the transcript.
    pub(crate) fn name_of(&self, id: EventId) -> Option<String> {
        self.aliases.get(&id).map(|alias| format!("E{alias}"))
    }

    /// The event with that name in the transcript.
    pub(crate) fn event_named(&self, name: &str) -> Option<EventId> {
        let number: usize = name.strip_prefix('E')?.parse().ok()?;
        self.events.get(number.checked_sub(1)?).copied()
    }

    /// Replaces event ids by the names of the transcript, because ids differ between backends.
    pub(crate) fn with_event_names(&self, text: &str) -> String {
        let name = |text: String, (id, alias): (&EventId, &usize)| {
            text.replace(&id.to_string(), &format!("E{alias}"))
        };
        self.aliases.iter().fold(text.to_owned(), name)
    }

    /// Records the final state of the machines.
    pub(crate) fn machines(&mut self, machines: &[MachineView]) {
        self.text.push_str("\nin the end\n");
        if let Some(steps) = &mut self.steps {
            steps.begin_end();
        }
        let width = machines.iter().map(|machine| machine.name.len()).max().unwrap_or(0);
        for machine in machines.iter().take(MACHINES_SHOWN_MAX) {
            self.push(&format!("  {:width$}  {}", machine.name, state(machine)));
        }
        if machines.len() > MACHINES_SHOWN_MAX {
            self.push(&format!("  and {} more", machines.len() - MACHINES_SHOWN_MAX));
        }
    }

    /// Records the time, once for everything that happens at it.
    fn stamp(&mut self, elapsed: Duration) {
        if let Some(steps) = &mut self.steps {
            steps.stamp(elapsed);
        }
        if self.stamped != Some(elapsed) {
            self.stamped = Some(elapsed);
            let _ = writeln!(self.text, "at {}", show_duration(elapsed));
        }
    }

    fn push(&mut self, line: &str) {
        if let Some(steps) = &mut self.steps {
            steps.text(line.trim_end());
        }
        self.write(line);
    }

    fn write(&mut self, line: &str) {
        let _ = writeln!(self.text, "  {}", line.trim_end());
    }
}

/// Machines listed at the end of a transcript.
const MACHINES_SHOWN_MAX: usize = 40;

fn word<T: fmt::Debug>(word: &Word<T>) -> String {
    match word {
        Word::Known(known) => format!("{known:?}"),
        Word::Other(text) => text.clone(),
    }
}

fn state(machine: &MachineView) -> String {
    let MachineView { power, host, update_domain, boots, disk, .. } = machine;
    let spot = if machine.spot.is_some() { ", spot" } else { "" };
    let model = match machine.model {
        0 => String::new(),
        version => format!(", model {version}"),
    };
    format!("{power} on {host}, update domain {update_domain}, boot {boots}, disk {disk}{spot}{model}")
}
