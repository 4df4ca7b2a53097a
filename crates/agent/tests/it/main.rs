//! The agent as a program: against a real server, and against endpoints that are played.
//!
//! | what | tests |
//! |---|---|
//! | from announcement to undo; cancelled; of others; dry run | `events` |
//! | killed, stopped, restarted, damaged: each event once | `lives` |
//! | hooks that fail, hang, come too late, lie in directories | `hooks` |
//! | an endpoint that is down, empty, or does not know the name; events that cannot be read | `troubles` |
//! | who approves where several are named; strangers that hold connections open; load balancers | `peers` |
//! | settings that are wrong, or read again | `settings` |
//! | commands of people | `commands`, `rehearsals` |
//! | systemd and its journal | `supervised` |
//! | settings of the package and of the recipes | `given` |

#![cfg(test)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod commands;
mod events;
mod flood;
mod formats;
mod given;
mod hooks;
mod lives;
mod peers;
mod place;
mod played;
mod rehearsals;
mod settings;
mod supervised;
mod troubles;

use std::ffi::OsString;
use std::path::Path;

/// The server, which is built beside the agent, or the one that `FOREWARN_PROGRAM` names.
fn program() -> OsString {
    std::env::var_os("FOREWARN_PROGRAM").unwrap_or_else(|| {
        let server = Path::new(env!("CARGO_BIN_EXE_forewarn-agent")).with_file_name("forewarn");
        assert!(server.exists(), "not built: {}\n  hint: cargo build --package forewarn", server.display());
        server.into()
    })
}
