//! Syncs of a copy, on a thread of their own: commits do not wait for the disk of the copy.
//!
//! A copy must not fill the page cache either, because a sync of the journal may then have to wait until all of that is
//! written. So a copy waits while a sync is running and it has copied enough for the next one; commits go on meanwhile.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Pages that are copied between two syncs.
const PAGES_PER_SYNC: u64 = 2_048;

/// Longest pause of a copy before pending requests are served.
const PAUSE: Duration = Duration::from_millis(1);

/// The thread that syncs a copy.
pub(crate) struct CopySync {
    requests: SyncSender<()>,
    results: Receiver<io::Result<()>>,
    thread: JoinHandle<()>,
    /// Pages since the last request for a sync.
    pages: u64,
    state: SyncState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncState {
    Idle,
    Running,
}

/// Permission to copy more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyPace {
    Continue,
    /// The disk is behind: serve other requests, and ask again.
    Wait,
}

impl CopySync {
    pub(crate) fn start(sync: impl Fn() -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let (requests, wanted) = mpsc::sync_channel(1);
        let (send, results) = mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("forewarn-copy".to_owned())
            .spawn(move || while wanted.recv().is_ok() && send.send(sync()).is_ok() {})?;
        Ok(Self { requests, results, thread, pages: 0, state: SyncState::Idle })
    }

    /// Counts pages that were copied.
    pub(crate) fn add(&mut self, pages: u64) {
        self.pages += pages;
    }

    /// Begins a sync if enough pages were copied and none is running. Waits a moment if the disk is behind.
    pub(crate) fn pace(&mut self) -> io::Result<CopyPace> {
        if self.pages < PAGES_PER_SYNC {
            return Ok(CopyPace::Continue);
        }
        if self.state == SyncState::Running {
            match self.results.recv_timeout(PAUSE) {
                Ok(synced) => synced?,
                Err(RecvTimeoutError::Timeout) => return Ok(CopyPace::Wait),
                Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
        self.pages = 0;
        self.state = SyncState::Running;
        self.requests.send(()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(CopyPace::Continue)
    }

    /// Ends the thread after the sync that is running.
    pub(crate) fn finish(self) -> io::Result<()> {
        let Self { requests, results, thread, .. } = self;
        drop(requests);
        let last = results.iter().last().unwrap_or(Ok(()));
        // Its results are known.
        drop(thread.join());
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_waits_for_a_slow_disk_and_has_few_pages_that_are_not_synced() {
        let (release, released) = mpsc::sync_channel::<()>(0);
        // The sender is gone at the end.
        let mut sync = CopySync::start(move || {
            released.recv().unwrap_or_default();
            Ok(())
        })
        .unwrap();
        let mut unsynced = 0;
        while sync.pace().unwrap() == CopyPace::Continue {
            sync.add(64);
            unsynced += 64;
        }
        assert_eq!(unsynced, 2 * PAGES_PER_SYNC);
        assert_eq!(sync.pace().unwrap(), CopyPace::Wait);
        release.send(()).unwrap();
        while sync.pace().unwrap() == CopyPace::Wait {}
        drop(release);
        sync.finish().unwrap();
    }

    #[test]
    fn a_failed_sync_fails_the_copy() {
        let mut sync = CopySync::start(|| Err(io::ErrorKind::StorageFull.into())).unwrap();
        sync.add(PAGES_PER_SYNC);
        assert_eq!(sync.pace().unwrap(), CopyPace::Continue);
        assert_eq!(sync.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
