//! What the agent shows of itself to whoever asks: readiness, its word to peers, how everything stands.

use std::sync::Arc;

use forewarn_agent_core::PeerWord;

use crate::status::Status;

/// How the agent is at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Whether it does its work: the endpoint has answered, the name is known, what must not be lost is kept.
    pub(crate) ready: bool,
    /// Whether this machine should get no new work.
    pub(crate) drained: bool,
    /// What it says to its peers.
    pub(crate) word: PeerWord,
    /// Everything. It becomes text only when somebody asks.
    pub(crate) status: Arc<Status>,
}
