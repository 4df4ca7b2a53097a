//! Panics as log events: a panic of any thread is one line of the log, in the format of the log.
//!
//! Without this, a panic writes several raw lines to standard error, between objects of a JSON log. Two cases stay raw,
//! because the Rust runtime writes them itself: a panic inside a panic, and running out of memory or stack.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::{PanicHookInfo, set_hook};

/// Installs a hook that logs panics.
pub(crate) fn log_panics() {
    set_hook(Box::new(log_panic));
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let location = info.location().map(ToString::to_string);
    let location = location.as_deref();
    let reason = info.payload_as_str().unwrap_or("a value that is not a text");
    // Captured only if `RUST_BACKTRACE` is set.
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    let backtrace = backtrace.as_deref();
    tracing::error!(thread, location, reason, backtrace, "thread panicked");
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, take_hook};

    use serde_json::{Map, Value};

    use super::*;
    use crate::captured::lines;

    /// promise: S6
    #[test]
    fn a_panic_is_one_object_of_a_json_log() {
        let usual = take_hook();
        log_panics();
        let lines = lines(|| {
            let ended = catch_unwind(|| panic!("a \"bad\"\nday \u{1b}[2J"));
            assert!(ended.is_err());
        });
        set_hook(usual);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line: Map<String, Value> = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!((&line["level"], &line["message"]), (&"ERROR".into(), &"thread panicked".into()));
        assert_eq!(line["reason"], "a \"bad\"\nday \u{1b}[2J");
        assert!(line["location"].as_str().is_some_and(|place| place.contains("panic.rs:")), "{line:?}");
    }
}
