//! Something that is to be done and written down, decided where the state is.

use forewarn_control::shared::{Body, Link, Operation};
use forewarn_control::{NamedCommand, Outcome};

use super::State;

/// Commands, what is written into the register, and an operation to wait for them: all in one commit, or nothing.
#[derive(Debug, Default)]
pub struct Arrangement {
    /// What is done first. All of it, or nothing at all.
    pub commands: Vec<NamedCommand>,
    /// What is written then.
    pub papers: Vec<Paper>,
    /// What the trail tells of it.
    pub asked: Option<serde_json::Value>,
    /// The id of what an operation is about, if somebody will ask how it went.
    pub operation: Option<String>,
}

/// Something that is written into the register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Paper {
    /// An entry.
    Put {
        /// Its id.
        id: String,
        /// What it is in the rules, after the commands.
        link: Option<LinkTo>,
        /// What is written, as JSON.
        body: Body,
        /// What the server notes of it, as JSON.
        notes: Body,
    },
    /// An entry goes, with all that is below it.
    Remove(String),
    /// An entry goes, once nothing of it is left.
    Leave(String),
}

/// What an entry is in the rules: known already, or by the name that commands have given it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTo {
    /// This.
    Known(Link),
    /// A machine: `tenant/name`.
    Machine(String),
    /// A tenant.
    Tenant(String),
    /// A scale set.
    ScaleSet(String),
}

/// What came of an arrangement, once it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arranged {
    /// What came of the commands.
    pub outcome: Outcome,
    /// The operation, if one was wanted.
    pub operation: Option<Operation>,
}

/// Looks at the state, and says what is to be done; nothing, if it has said no to whoever asks.
pub(crate) type Arrange = Box<dyn FnOnce(&State<'_>) -> Option<Arrangement> + Send>;
