//! A check, and its outcome.

/// A check: one promise of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, which never changes.
    pub id: &'static str,
    /// Its weight.
    pub severity: Severity,
    /// The promise.
    pub title: &'static str,
    /// Why the promise matters: its source, or the clients that rely on it.
    pub reason: &'static str,
    /// What the check needs to run.
    pub need: Need,
}

/// The weight of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Documented, or seen on real machines.
    Required,
    /// Widely used clients rely on it.
    Relied,
    /// The choice of Forewarn where no public evidence exists. It has no points.
    Advice,
}

/// The precondition of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Only GET requests.
    Requests,
    /// A visible event.
    Event,
    /// A visible event that has started.
    StartedEvent,
    /// Permission to send start requests.
    Approval,
    /// Permission to approve, and a visible event.
    ApprovedEvent,
    /// Permission to approve, and two visible events.
    TwoEvents,
    /// A command that makes events.
    Cause,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The promise is kept.
    Passed,
    /// The promise is broken, in this way.
    Failed(String),
    /// The check could not run, for this reason.
    NotRun(String),
}

impl Severity {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Relied => "relied on",
            Self::Advice => "advice",
        }
    }

    /// The points of a check.
    #[must_use]
    pub const fn points(self) -> u32 {
        match self {
            Self::Required => 3,
            Self::Relied => 1,
            Self::Advice => 0,
        }
    }
}

impl Need {
    /// The reason why a check did not run if nothing else is known.
    pub(crate) const fn missing(self) -> &'static str {
        match self {
            Self::Requests => "an earlier response was invalid",
            Self::Event => "no event was visible",
            Self::StartedEvent => "no started event was visible",
            Self::Approval => "start requests are not permitted",
            Self::ApprovedEvent => "no event could be approved",
            Self::TwoEvents => "two unapproved events at once are needed",
            Self::Cause => "no command makes such an event",
        }
    }
}
