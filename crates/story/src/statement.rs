//! What a story can say.

use std::time::Duration;

use forewarn_lifecycle::{
    Approve, Brake, FailureKind, HostWork, Orchestration, OsImageNotice, PowerChange, Priority, SetShape,
    TerminateNotice, Unenrolled, UpgradePolicy,
};

use crate::error::Mistake;
use crate::words::{Line, Word};

/// A story that has been read: its lines, in order.
#[derive(Clone, Debug)]
pub struct Story {
    pub(crate) lines: Vec<Told>,
}

/// One line: when, what, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) place: Place,
    /// Since the beginning of the story.
    pub(crate) at: Option<Duration>,
    pub(crate) says: Says,
}

/// A line of the text, for mistakes found later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    text: String,
    /// The words of the line, one space apart.
    pub(crate) plain: String,
}

/// A name, and the column in which it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    column: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// The fleet, or something that happens to it.
    Does(Deed),
    /// Something that the rules refuse.
    Refused(Deed),
    /// A machine asks for its events; without a name, one of every tenant does.
    Poll(Option<Named>),
    /// The next thing that is done to the machine fails.
    Jam(Named),
    Advance(Duration),
    StepClock(ClockStep),
    Crash,
    Expect(Vec<Expectation>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockStep {
    Forward(Duration),
    Back(Duration),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Hosts { names: Vec<Named>, zone: Option<u16> },
    Vm { name: Named, spot: Spot },
    Set { name: Named, shape: SetShape },
    ScaleSet { name: Named, orchestration: Orchestration, upgrade: UpgradePolicy, traits: Traits },
    Machine { name: Named, tenant: Named, spot: Spot },
    Instances { scale_set: Named, spot: Spot, times: u16 },
    Remove { what: Removed, name: Named },
    User { what: UserDeed, machine: Named },
    HostWork { work: HostWork, hosts: Vec<Named> },
    Degrade { host: Named, fails_in: Option<Duration> },
    Fail(Named),
    Recover(Named),
    Approve { what: Vec<Named>, by: By },
    Cancel(Named),
    CancelRollout,
    Force(Named),
    Brake(Brake),
    Policy { tenant: Named, rule: PolicyRule, approve: Approve },
    Model { scale_set: Named, terminate: Option<TerminateNotice>, os_image: OsImageNotice },
    Profile { machine: Named, terminate: Option<TerminateNotice>, os_image: OsImageNotice },
    Upgrade(Named),
    Choose(Setting),
}

/// Where a machine goes, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) host: Named,
    pub(crate) update_domain: u16,
    pub(crate) fault_domain: u16,
    pub(crate) traits: Traits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) priority: Priority,
    pub(crate) terminate: Option<TerminateNotice>,
    pub(crate) os_image: OsImageNotice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    Host,
    Tenant,
    ScaleSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UserDeed {
    Restart,
    Redeploy,
    Delete,
    Reimage,
    Evict,
    Power(PowerChange),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Machine(Named),
    OwnerOf(Named),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PolicyRule {
    Restart,
    Redeploy,
    AllDown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    Unenrolled(Unenrolled),
    UserOperations(Option<u16>),
    Failure(FailureKind),
}

/// Something that must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) subject: Named,
    pub(crate) is: Expected,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A tenant sees events in these phases, in order of announcement.
    Events(Vec<Seen>),
    Enrolled,
    NotEnrolled,
    Incarnation(u64),
    On(Named),
    Boots(u32),
    Disk(u32),
    Power(&'static str),
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Scheduled,
    Started,
}

impl Named {
    pub(crate) fn new(word: Word<'_>) -> Self {
        Self { name: word.text.to_owned(), column: word.column }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }
}

impl Place {
    pub(crate) fn of(line: &Line<'_>) -> Self {
        let mistake = line.mistake_at_end("");
        Self { line: line.number, text: mistake.text, plain: line.plain() }
    }

    /// A mistake at a name of this line.
    pub(crate) fn mistake(&self, at: &Named, message: impl Into<String>) -> Mistake {
        let width = at.name.chars().count();
        Mistake {
            line: self.line,
            column: at.column,
            width,
            text: self.text.clone(),
            message: message.into(),
        }
    }

    /// A mistake of the line as a whole.
    pub(crate) fn mistake_here(&self, message: impl Into<String>) -> Mistake {
        let indent = self.text.chars().take_while(|c| c.is_whitespace()).count();
        let width = self.text.chars().count() - indent;
        Mistake {
            line: self.line,
            column: indent + 1,
            width,
            text: self.text.clone(),
            message: message.into(),
        }
    }
}
