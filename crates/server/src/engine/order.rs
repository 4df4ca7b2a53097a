//! Something that is to be done, for whom, and on which terms.

use forewarn_control::NamedCommand;

use super::{Problem, State};

/// Commands by name: all of them are carried out, or none.
#[derive(Debug, Default)]
pub struct Order {
    /// What is to be done.
    pub commands: Vec<NamedCommand>,
    /// For whom, and on which terms.
    pub terms: Terms,
}

/// Who asks, and on which terms.
#[derive(Debug)]
pub struct Terms {
    /// Who: `token NAME`, `socket`, `anyone`, or `forewarn` itself. The trail names them.
    pub by: String,
    /// The number of the token with which the request came. It must be valid when the request is carried out.
    pub token: Option<u32>,
    /// It is the rest of what was asked for with that entry of the trail, and has none of its own.
    pub because: Option<u64>,
    /// The same request under the same key is carried out once.
    pub once: Option<Once>,
    /// Whether they may have it, at the moment at which it is carried out or its receipt is shown.
    pub permitted: Option<Condition>,
    /// What must hold besides, at the moment at which it is carried out.
    pub only_if: Option<Condition>,
    /// What was asked for, where the commands were made of it: this is what the trail tells, and not each of them.
    pub asked: Option<serde_json::Value>,
}

/// A key that makes a request safe to repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Once {
    /// The key.
    pub key: String,
    /// A hash of the request: another request must have another key.
    pub fingerprint: [u8; 32],
}

/// A look at a cluster that may find a problem.
type Check = dyn FnOnce(&State<'_>) -> Result<(), Problem> + Send;

/// What must hold of a cluster for a request to be carried out.
pub struct Condition(pub Box<Check>);

impl std::fmt::Debug for Condition {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Condition")
    }
}

/// What the server does of itself is done by this.
pub const ITSELF: &str = "forewarn";

impl Default for Terms {
    fn default() -> Self {
        let by = ITSELF.to_owned();
        Self { by, token: None, because: None, once: None, permitted: None, only_if: None, asked: None }
    }
}

impl From<Vec<NamedCommand>> for Order {
    fn from(commands: Vec<NamedCommand>) -> Self {
        Self { commands, terms: Terms::default() }
    }
}
