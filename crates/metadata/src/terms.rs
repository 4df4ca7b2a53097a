//! Terms of a request: the facts about it that its response depends on.

use forewarn_types::MachineId;

use crate::answer::Shown;
use crate::counts::Path;
use crate::request::{After, Body};

/// Terms of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub after: After,
    pub shown: Shown,
    pub body: Body,
    /// The client sends the body only after a `100 Continue`.
    pub expects_continue: bool,
    /// Path under which it is counted.
    pub path: Path,
    /// Machine whose refusals may be delayed; none, while the caller is not known.
    pub machine: Option<MachineId>,
}
