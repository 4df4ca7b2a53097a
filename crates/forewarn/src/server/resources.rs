//! What a server needs of the operating system in numbers: file descriptors, one for each connection.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors besides those of machines: operators, the journal, listeners, programs.
const BESIDES: u64 = 2_048;

/// How many files a server with so many connections may have open at once.
pub(crate) fn files_needed(connections_max: u32) -> u64 {
    u64::from(connections_max) + BESIDES
}

/// How many files a process that is started here may have open; nothing, if there is no limit.
pub(crate) fn files_allowed() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Takes as many as are needed and allowed. Shells are given a thousand, and may have far more.
pub(super) fn take_files(connections_max: u32) {
    let (limit, needed) = (getrlimit(Resource::Nofile), files_needed(connections_max));
    if limit.current.is_none_or(|current| current >= needed) {
        return;
    }
    let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    let taken = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    if taken.is_err() || current < needed {
        tracing::warn!(
            needed,
            allowed = current,
            "there may be too few file descriptors for all connections"
        );
    }
}
