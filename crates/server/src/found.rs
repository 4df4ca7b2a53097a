//! The state from which a driver starts.

use forewarn_control::notice::Announced;
use forewarn_control::{Chain, ControlState};
use forewarn_lifecycle::{Now, Seed};

/// The state from which a driver starts.
pub(crate) struct Found {
    pub(crate) state: ControlState,
    /// Ids of machines and names of operations are made of it.
    pub(crate) identity: Seed,
    /// The end of the audit log.
    pub(crate) audit_end: Chain,
    /// Announcements that no VM may have read.
    pub(crate) unread: Vec<Announced>,
    pub(crate) readers: Readers,
    /// The clocks as they were last recorded.
    pub(crate) recorded: Now,
}

impl Found {
    /// A state without a past.
    pub(crate) fn new(state: ControlState, identity: Seed) -> Self {
        let audit_end = Chain::default();
        let (unread, readers, recorded) = (Vec::new(), Readers::Present, Now::at_millis(0));
        Self { state, identity, audit_end, unread, readers, recorded }
    }
}

/// Presence of readers: VMs can read documents, or cannot yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Not yet: the server starts. Nothing that is due is done.
    Absent,
    /// They can.
    Present,
}
