//! What must hold for whatever a stranger sends.
//!
//! Each [`Target`] is a function of bytes that panics if something does not hold. Fuzzing calls it with bytes that nobody
//! thought of (`cargo xtask fuzz`), and the tests of this package with those of the corpus: what was wrong once fails
//! `cargo test` for ever after.
//!
//! ```text
//!   corpus/<target>/* ──▶ tests ──────────┐
//!   large inputs ───────▶ tests ──────────┼──▶ Target::examine(bytes)
//!   libFuzzer ──────────▶ fuzz_targets ───┘
//! ```
//!
//! No sockets: requests are answered by the code of the metadata endpoint over a stream in memory.

pub mod answers;
mod control_request;
pub mod corpus;
mod document;
pub mod endpoint;
mod fleet;
pub mod large;
mod record;
mod request;
mod start_requests;
mod story;
mod template;

/// What takes bytes from strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Requests to the metadata endpoint: one connection, with as many requests as there are.
    Request,
    /// The body of an approval.
    StartRequests,
    /// A document of Scheduled Events, as an agent reads it.
    Document,
    /// A fleet file.
    Fleet,
    /// A story.
    Story,
    /// A record of the journal, without the checksum around it.
    Record,
    /// A deployment of a template, as clients of Azure Resource Manager send it.
    Template,
    /// A request to the control plane, as servers send them to each other.
    ControlRequest,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Request,
        Self::StartRequests,
        Self::Document,
        Self::Fleet,
        Self::Story,
        Self::Record,
        Self::Template,
        Self::ControlRequest,
    ];

    /// Its name, which is the one of its directory in the corpus.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::StartRequests => "start_requests",
            Self::Document => "document",
            Self::Fleet => "fleet",
            Self::Story => "story",
            Self::Record => "record",
            Self::Template => "template",
            Self::ControlRequest => "control_request",
        }
    }

    /// Examines what becomes of these bytes, and says it in a few words.
    ///
    /// # Panics
    /// When something does not hold.
    #[must_use]
    pub fn examine(self, bytes: &[u8]) -> String {
        match self {
            Self::Request => request::examine(bytes),
            Self::StartRequests => start_requests::examine(bytes),
            Self::Document => document::examine(bytes),
            Self::Fleet => fleet::examine(bytes),
            Self::Story => story::examine(bytes),
            Self::Record => record::examine(bytes),
            Self::Template => template::examine(bytes),
            Self::ControlRequest => control_request::examine(bytes),
        }
    }
}
