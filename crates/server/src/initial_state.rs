//! The state from which a driver starts.

use forewarn_control::notice::AnnouncedWork;
use forewarn_control::{Chain, ControlState};
use forewarn_lifecycle::{Now, Seed};

/// The state from which a driver starts.
pub(crate) struct InitialState {
    pub(crate) state: ControlState,
    /// Seed of machine ids and operation names.
    pub(crate) identity: Seed,
    /// The end of the audit log.
    pub(crate) audit_end: Chain,
    /// Announcements that no VM may have read.
    pub(crate) unread: Vec<AnnouncedWork>,
    pub(crate) readers: Readers,
    /// The clocks as they were last recorded.
    pub(crate) recorded: Now,
}

impl InitialState {
    /// A state without a journal.
    pub(crate) fn new(state: ControlState, identity: Seed) -> Self {
        let audit_end = Chain::default();
        let (unread, readers, recorded) = (Vec::new(), Readers::Present, Now::at_millis(0));
        Self { state, identity, audit_end, unread, readers, recorded }
    }
}

/// Presence of readers: VMs can read documents, or cannot yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Not yet: the server is starting, and nothing that is due is done.
    Absent,
    Present,
}
