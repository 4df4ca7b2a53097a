//! A document: the events of one tenant, rendered for any edition.
//!
//! A document is an immutable value; its events are shared with the state from which it was taken. Fields that an
//! edition does not have are absent, neither null nor empty, and so are events of unknown kinds.

use std::fmt;

use forewarn_types::{Event, Name, Phase};

use crate::date::print_date;
use crate::edition::Edition;
use crate::words::{self, Status};

/// The events of a tenant at one incarnation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Grows with every visible change.
    pub incarnation: u64,
    /// In the order of their announcement.
    pub events: Vec<Event>,
    /// The kind of names in `Resources`.
    pub naming: Naming,
}

/// The kind of names in `Resources`; the oldest edition marks the names of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// Virtual machines, those of scale sets included.
    Machines,
    /// Role instances of a cloud service.
    RoleInstances,
}

impl Naming {
    fn prefix(self, edition: Edition) -> &'static str {
        match self {
            Self::Machines if edition.underlines_machine_names() => "_",
            Self::Machines | Self::RoleInstances => "",
        }
    }
}

impl Document {
    /// The body in this edition: compact JSON, the keys in a fixed order.
    #[must_use]
    pub fn render(&self, edition: Edition) -> String {
        Rendering { document: self, edition }.to_string()
    }
}

/// A document rendered for one edition.
struct Rendering<'a> {
    document: &'a Document,
    edition: Edition,
}

// Nothing is escaped: words and dates are ours, and a name has only characters that JSON takes as they are.
impl fmt::Display for Rendering<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, r#"{{"DocumentIncarnation":{},"Events":["#, self.document.incarnation)?;
        let events = self.document.events.iter();
        for (index, event) in events.filter(|event| self.edition.knows(event.announcement.kind)).enumerate() {
            out.write_str(separator(index))?;
            self.event(out, event)?;
        }
        out.write_str("]}")
    }
}

impl Rendering<'_> {
    fn event(&self, out: &mut fmt::Formatter<'_>, event: &Event) -> fmt::Result {
        let announcement = &event.announcement;
        write!(out, r#"{{"EventId":"{}""#, announcement.id)?;
        write!(out, r#","EventStatus":"{}""#, Status::of(&event.phase).as_str())?;
        write!(out, r#","EventType":"{}""#, announcement.kind.as_str())?;
        out.write_str(r#","ResourceType":"VirtualMachine","Resources":["#)?;
        self.resources(out, &announcement.resources)?;
        write!(out, r#"],"NotBefore":"{}""#, not_before(&event.phase))?;
        if self.edition.has_description() {
            write!(out, r#","Description":"{}""#, words::description(announcement.reason))?;
        }
        if self.edition.has_source() {
            write!(out, r#","EventSource":"{}""#, announcement.source.as_str())?;
        }
        if self.edition.has_duration() {
            write!(out, r#","DurationInSeconds":{}"#, announcement.duration_seconds)?;
        }
        out.write_str("}")
    }

    fn resources(&self, out: &mut fmt::Formatter<'_>, resources: &[Name]) -> fmt::Result {
        let prefix = self.document.naming.prefix(self.edition);
        for (index, name) in resources.iter().enumerate() {
            write!(out, r#"{}"{prefix}{name}""#, separator(index))?;
        }
        Ok(())
    }
}

fn separator(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

/// Empty once started: the time has no meaning any more, but clients rely on the key.
fn not_before(phase: &Phase) -> String {
    match phase {
        Phase::Scheduled { not_before, .. } => print_date(*not_before),
        Phase::Started { .. } => String::new(),
    }
}
