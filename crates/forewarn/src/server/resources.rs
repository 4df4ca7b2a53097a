//! Limits of the operating system that a server needs: file descriptors, one for each connection, and cores.

use std::num::NonZeroUsize;

use forewarn_server::{ClientLimits, Descriptors, OpenConnections, Plan};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Listeners of operators and clients of Azure that a server has at most: an address, a socket, and one for Azure.
const LISTENERS_MAX: u32 = 3;

/// Cores that the process may use.
pub(super) fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// How many files a server with so many connections of machines may have open at once, all else as it is by default.
pub(crate) fn files_needed(connections_max: u32) -> u64 {
    let per_listener = ClientLimits::default().max;
    let threads = cores();
    OpenConnections { machines: connections_max, per_listener, listeners: LISTENERS_MAX, threads }
        .descriptors()
}

/// How many files a process that is started here may have open; nothing, if there is no limit.
pub(crate) fn files_allowed() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Takes as many file descriptors as the connections of a plan need and the operating system allows. Shells are given a
/// thousand, and may have far more. If they are too few, connections of machines give way to those of operators.
pub(super) fn take_files(plan: Plan) -> Plan {
    let (limit, needed) = (getrlimit(Resource::Nofile), needed(&plan));
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        // If this is refused, the process goes on with what it has: that is looked at next.
        setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum }).ok();
    }
    Plan { descriptors: Descriptors(getrlimit(Resource::Nofile).current), ..plan }
}

/// Warns if a plan has too few file descriptors for all of its connections.
pub(super) fn warn_of_few_files(plan: &Plan) {
    let needed = needed(plan);
    if let Descriptors(Some(allowed)) = plan.descriptors
        && allowed < needed
    {
        tracing::warn!(needed, allowed, "there may be too few file descriptors for all connections");
    }
}

fn needed(plan: &Plan) -> u64 {
    let connections = OpenConnections {
        machines: plan.settings.connections.max,
        per_listener: plan.api_limits.max.max(plan.extension_limits.max),
        listeners: plan.listeners(),
        threads: plan.threads,
    };
    connections.descriptors()
}
