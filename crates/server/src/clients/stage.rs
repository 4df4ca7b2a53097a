//! Stages of a connection.
//!
//! ```text
//!   Handshake ─▶ New ─▶ Head ─▶ Handling ⇄ Body
//!                        ▲         │
//!               Flush ─▶ Idle      │
//!                 ▲                │
//!                 └───── Response ◀┘
//! ```

/// Stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A TLS handshake is under way.
    Handshake,
    /// No byte of the first request has arrived.
    New,
    /// No byte of the next request has arrived.
    Idle,
    /// A header has begun to arrive.
    Head,
    /// A handler works on the request.
    Handling,
    /// A handler waits for more of the body.
    Body,
    /// The response is being sent, or streamed.
    Response,
    /// The response is complete; its last bytes are being sent.
    Flush,
}
