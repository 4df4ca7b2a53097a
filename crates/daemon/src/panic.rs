//! Panics as log events: a panic of any thread is one line of the log, in the format of the log.
//!
//! Without this, a panic writes several raw lines to standard error, between objects of a JSON log. Two deaths stay raw,
//! because the runtime of Rust writes them itself: a panic inside a panic, and the end of memory or of a stack.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook};

/// From now on, panics are logged.
pub(crate) fn log_panics() {
    set_hook(Box::new(log_panic));
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let location = info.location().map(ToString::to_string);
    let location = location.as_deref();
    let reason = info.payload_as_str().unwrap_or("a value that is not a text");
    // Taken only where `RUST_BACKTRACE` asks for it.
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let backtrace = backtrace.as_deref();
    tracing::error!(thread, location, reason, backtrace, "thread panicked");
}
