//! Limits of the operating system that a server needs: file descriptors, one for each connection, and cores.

use std::num::NonZeroUsize;

use forewarn_server::{ClientLimits, Descriptors, OpenConnections, Plan};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The maximum number of listeners for operators and Azure clients: an address, a socket, and one for Azure.
const LISTENERS_MAX: u32 = 3;

/// The number of cores that the process may use.
pub(super) fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The number of file descriptors for this number of machine connections, with default settings otherwise.
pub(crate) fn files_needed(connections_max: u32) -> u64 {
    let per_listener = ClientLimits::default().max;
    let threads = cores();
    OpenConnections { machines: connections_max, per_listener, listeners: LISTENERS_MAX, threads }
        .descriptors()
}

/// The hard limit of file descriptors. None if unlimited.
pub(crate) fn files_allowed() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Raises the limit of file descriptors to what the plan needs, as far as the operating system allows: the usual soft
/// limit is 1024. If there are too few, connections of machines are closed in favour of those of operators.
pub(crate) fn take_files(plan: Plan) -> Plan {
    let (limit, needed) = (getrlimit(Resource::Nofile), needed(&plan));
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        // If this fails, the process keeps its limit, which is read below.
        setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum }).ok();
    }
    Plan { descriptors: Descriptors(getrlimit(Resource::Nofile).current), ..plan }
}

/// Warns if there are too few file descriptors for all connections of a plan.
pub(super) fn warn_of_few_files(plan: &Plan) {
    let needed = needed(plan);
    if let Descriptors(Some(allowed)) = plan.descriptors
        && allowed < needed
    {
        tracing::warn!(needed, allowed, "too few file descriptors for all connections");
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
