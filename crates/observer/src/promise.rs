//! The promises that are watched.

/// Promises that are broken, and how.
pub(super) type BrokenPromises = Vec<(Promise, String)>;

/// The promises, numbered as in SPECIFICATION.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    NeverEarly = 1,
    NeverForgotten = 2,
    FullNotice = 3,
    Incarnation = 4,
    Isolation = 5,
    UpdateDomains = 6,
    Approval = 7,
    OneWay = 8,
    Budgets = 9,
    Windows = 10,
    Paused = 11,
    EachHostOnce = 12,
    Batches = 13,
    Untouched = 14,
    StepInside = 15,
    Capacity = 16,
    Fenced = 17,
    ClosedHost = 18,
    Returned = 19,
}
