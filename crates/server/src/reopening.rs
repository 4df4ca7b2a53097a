//! A failed journal is opened again, after pauses that grow until something was written again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use forewarn_control::{Record, Stream};
use forewarn_store::{IfMissing, Journal, Options, Recovered, UnreadEntries};

/// First and longest pause before the journal is reopened.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Bytes for which a reopened copy must have room: most batches have fewer.
const ROOM_BYTES: usize = 64 << 10;

/// Attempts to open a failed journal again.
#[derive(Debug)]
pub(crate) struct Retry {
    at: Instant,
    /// The pause before the attempt after that.
    pub(crate) pause: Duration,
}

impl Retry {
    pub(crate) fn new() -> Self {
        Self { at: Instant::now(), pause: PAUSE_MIN }
    }

    /// Time until the next attempt.
    pub(crate) fn wait(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// Makes the next attempt later than the one before.
    pub(crate) fn put_off(&mut self) {
        self.at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    /// The next pause is a short one: something was written.
    pub(crate) fn reset(&mut self) {
        self.pause = PAUSE_MIN;
    }
}

/// Opens a failed journal that is a copy of a log. Nothing is written to it that the log has not, and so there must be
/// room for a batch.
pub(crate) fn open_copy(
    directory: &Path,
    options: Options,
) -> Result<(Journal, Recovered), Box<dyn std::error::Error>> {
    let (missing, unread) = (IfMissing::Refuse, UnreadEntries::Hidden);
    let opened = Journal::open(directory, &Options { missing, unread, ..options })?;
    // Opening makes room: it empties the write-ahead log.
    check_room(directory)
        .map_err(|error| format!("cannot write a file: {}: {error}", directory.display()))?;
    Ok(opened)
}

/// Opens a failed journal and records the clocks, which may be later than any record.
pub(crate) fn open_and_write(
    directory: &Path,
    options: Options,
) -> Result<(Journal, Recovered), Box<dyn std::error::Error>> {
    // A missing disk is not an empty one.
    let options = Options { missing: IfMissing::Refuse, ..options };
    let (journal, found) = Journal::open(directory, &options)?;
    journal.append(Stream::Shared, &[Record::clock(options.now)], &[])?;
    Ok((journal, found))
}

fn check_room(directory: &Path) -> io::Result<()> {
    let (path, mut bytes) = (directory.join("journal.room"), vec![0; ROOM_BYTES]);
    // A file system may compress others.
    getrandom::fill(&mut bytes)?;
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(&bytes)?;
        file.sync_all()
    });
    written.and(fs::remove_file(&path))
}
