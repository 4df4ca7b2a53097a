//! Rules that a simulation leaves out, to show that the observer notices.

/// A rule that is left out. The simulator's own shell interprets it: the product has no such switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omission {
    /// Rule 1: a transaction compares the owner instead of the head.
    CommitComparison,
    /// Rule 2: a commit without an answer counts as not made, and another one is begun.
    RepeatUntilKnown,
    /// Rule 3: a takeover compares nothing.
    TakeoverComparison,
    /// Rule 3: a new owner continues from its copy, and does not read the log after the takeover.
    LogAfterTakeover,
    /// Rule 4: a fenced server adopts the foreign head and goes on.
    Fencing,
    /// Rule 5: a server publishes, answers and orders before the commit is confirmed.
    CommitBeforeAnswer,
    /// Rule 6: notice counts from the decision, not from the moment at which the event is readable.
    NoticeFromReadable,
    /// Rule 6: a new owner does not hold an event whose announcement the former owner may not have shown.
    HoldOfLastBatch,
    /// Rule 7: the hypervisor carries out each order.
    ActionLog,
    /// Followers: a follower shows a batch that the owner has gone beyond, and may have changed before it was shown.
    ShownByOwner,
    /// Followers: a server that starts shows the last batch of its copy, which its owner may not have shown.
    DocumentsAfterStart,
    /// Clocks: the clock of a head counts on every computer.
    ClockAnchor,
}

impl Omission {
    /// Every omission, by its name.
    pub const ALL: [(&'static str, Self); 12] = [
        ("commit-comparison", Self::CommitComparison),
        ("repeat-until-known", Self::RepeatUntilKnown),
        ("takeover-comparison", Self::TakeoverComparison),
        ("log-after-takeover", Self::LogAfterTakeover),
        ("fencing", Self::Fencing),
        ("commit-before-answer", Self::CommitBeforeAnswer),
        ("notice-from-readable", Self::NoticeFromReadable),
        ("hold-of-last-batch", Self::HoldOfLastBatch),
        ("action-log", Self::ActionLog),
        ("shown-by-owner", Self::ShownByOwner),
        ("documents-after-start", Self::DocumentsAfterStart),
        ("clock-anchor", Self::ClockAnchor),
    ];
}
