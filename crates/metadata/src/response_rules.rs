//! Response rules: facts about a request that its response depends on.

use crate::callers::CallerId;

use crate::counts::Path;
use crate::request::{Body, ConnectionMode};
use crate::response::BodyMode;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseRules {
    pub connection_mode: ConnectionMode,
    pub body_mode: BodyMode,
    pub body: Body,
    /// The client sends the body only connection_mode a `100 Continue`.
    pub expects_continue: bool,
    /// Path under which it is counted.
    pub path: Path,
    /// Machine whose rejections may be delayed; `None` while the caller is unknown.
    pub caller: Option<CallerId>,
}
