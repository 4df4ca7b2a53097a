//! A count of rows and entries that the current thread has read, for tests: the cost of a request must not depend on
//! the size of the cluster. Builds without debug assertions count nothing.

#[cfg(debug_assertions)]
mod counter {
    use std::cell::Cell;

    thread_local! {
        static READS: Cell<u64> = const { Cell::new(0) };
    }

    /// The rows of tables and the entries of maps that this thread has read since it started.
    #[must_use]
    pub fn reads() -> u64 {
        READS.get()
    }

    pub(crate) fn count_read() {
        READS.set(READS.get().wrapping_add(1));
    }
}

#[cfg(not(debug_assertions))]
mod counter {
    #[inline(always)]
    pub(crate) fn count_read() {}
}

pub(crate) use counter::count_read;
#[cfg(debug_assertions)]
pub use counter::reads;
