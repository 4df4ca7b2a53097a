//! Shares of the file descriptors of the process.
//!
//! Connections of machines never take the descriptors that operators, the journal and
//! driver programs need.

use std::num::NonZeroUsize;

/// File descriptors of the journal, the log, webhooks and drivers.
const OTHERS: u64 = 448;

/// File descriptors of each thread of the metadata endpoint: its sockets, its timer, its waker.
const PER_THREAD: u64 = 8;

/// Limit of file descriptors of the process. None: unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptors(pub Option<u64>);

/// Connections that a server may have open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenConnections {
    pub machines: u32,
    /// Connections of each listener of operators and extensions.
    pub per_listener: u32,
    /// Number of those listeners.
    pub listeners: u32,
    /// Threads of the metadata endpoint.
    pub threads: NonZeroUsize,
}

impl OpenConnections {
    /// File descriptors of all of them, and of everything else.
    #[must_use]
    pub fn descriptors(&self) -> u64 {
        u64::from(self.machines) + self.reserve()
    }

    /// File descriptors of everything but machines.
    fn reserve(&self) -> u64 {
        let threads = u64::try_from(self.threads.get()).unwrap_or(u64::MAX);
        let clients = u64::from(self.per_listener) * u64::from(self.listeners);
        clients.saturating_add(OTHERS).saturating_add(threads.saturating_mul(PER_THREAD))
    }
}

impl Descriptors {
    /// Reduces the connections to the available file descriptors. If there are few, machines get one half and
    /// operators a quarter.
    pub(crate) fn fit(self, wanted: OpenConnections) -> OpenConnections {
        let Some(all) = self.0.filter(|all| *all < wanted.descriptors()) else { return wanted };
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX).max(1);
        let reserve = wanted.reserve().min(all / 2);
        let machines = wanted.machines.min(number(all - reserve));
        if reserve == wanted.reserve() {
            return OpenConnections { machines, ..wanted };
        }
        let share = reserve / 2 / u64::from(wanted.listeners.max(1));
        OpenConnections { machines, per_listener: wanted.per_listener.min(number(share)), ..wanted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: OpenConnections = OpenConnections {
        machines: 16_384,
        per_listener: 1_024,
        listeners: 2,
        threads: NonZeroUsize::new(2).unwrap(),
    };

    #[test]
    fn enough_descriptors_change_nothing() {
        assert_eq!(Descriptors(None).fit(WANTED), WANTED);
        assert_eq!(Descriptors(Some(WANTED.descriptors())).fit(WANTED), WANTED);
    }

    /// promise: M4, S5
    #[test]
    fn machines_give_way_before_operators() {
        let fitted = Descriptors(Some(8_000)).fit(WANTED);
        assert_eq!((fitted.machines, fitted.per_listener), (8_000 - 2 * 1_024 - 448 - 16, 1_024));
    }

    #[test]
    fn few_descriptors_are_shared() {
        let fitted = Descriptors(Some(256)).fit(WANTED);
        assert_eq!((fitted.machines, fitted.per_listener), (128, 32));
        let fitted = Descriptors(Some(1)).fit(WANTED);
        assert_eq!((fitted.machines, fitted.per_listener), (1, 1));
    }
}
