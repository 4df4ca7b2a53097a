//! A journal in a directory: opening it, and the handle by which its committer is asked.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

use forewarn_control::{AuditEntry, ControlState, Record};
use forewarn_lifecycle::Now;

use crate::codec::{RECORD_BYTES_MAX, to_bytes};
use crate::committer::{Committer, Shared, Written};
use crate::creation::create;
use crate::database::{Heading, Look};
use crate::error::{AppendFailed, CopyError, OpenError};
use crate::files::{Directory, NamedFiles};
use crate::options::{Missing, Options};
use crate::order::{Append, Done, Order, TrailWrite};
use crate::reach::{self, Reach, ReachFile};
use crate::recover::{Recovered, open_and_recover, read_swept};
use crate::trail_reader::TrailReader;
use crate::upgrade;

/// Orders that wait for the committer; whoever has one more waits too.
const ORDERS_WAITING_MAX: usize = 256;

/// The handle of a journal in a directory.
#[derive(Debug)]
pub struct Embedded {
    /// There as long as the committer is.
    orders: Option<Arc<SyncSender<Order>>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Embedded {
    pub(crate) fn open(path: &Path, options: &Options) -> Result<(Self, Recovered), OpenError> {
        let directory = match options.missing {
            Missing::Create => Directory::own(path)?,
            Missing::Refuse => Directory::with_journal(path)?,
        };
        if !directory.has_journal()? {
            create(
                &directory,
                Heading::new(options.seed, options.now),
                ControlState::new(options.seed),
                &[],
            )?;
        }
        let journal = directory.journal();
        let recorded = reach::read(&directory)?;
        let due: Vec<_> =
            recorded.map(|recorded| recorded.reach).into_iter().chain(options.reached).collect();
        upgrade::upgrade_if_old(&directory, &due)?;
        let (connection, heading, recovered) =
            open_and_recover(&directory, (options.sync, Look::Quick), &due)?;
        let swept = read_swept(&connection, &heading);
        let swept = swept.map_err(|source| OpenError::database(&journal, source))?;
        let reach = ReachFile::open(&directory, recorded, &Reach::of(&heading))?;
        let files = NamedFiles::of(&directory)?;
        let (orders, inbox) = mpsc::sync_channel(ORDERS_WAITING_MAX);
        let written = Written { connection, reach, files, directory };
        let (committer, shared) = Committer::new(written, inbox, (heading, swept), options);
        let thread = thread::Builder::new().name("forewarn-journal".to_owned());
        let thread = thread.spawn(move || committer.run());
        let thread = thread.map_err(OpenError::io("start the thread of", &journal))?;
        Ok((Self { orders: Some(Arc::new(orders)), thread: Some(thread), shared }, recovered))
    }

    pub(crate) fn append(&self, records: &[Record], trail: &[Arc<AuditEntry>]) -> Result<(), AppendFailed> {
        self.append_and_wait(records, trail, TrailWrite::Append)
    }

    pub(crate) fn rewrite(&self, records: &[Record], trail: &[Arc<AuditEntry>]) -> Result<(), AppendFailed> {
        self.append_and_wait(records, trail, TrailWrite::Rewrite)
    }

    fn append_and_wait(
        &self,
        records: &[Record],
        trail: &[Arc<AuditEntry>],
        how: TrailWrite,
    ) -> Result<(), AppendFailed> {
        if records.is_empty() && trail.is_empty() {
            return Ok(());
        }
        let (tell, told) = mpsc::sync_channel(1);
        // Whoever asked waits below.
        self.send_append(records, trail, how, Box::new(move |result| drop(tell.send(result))));
        told.recv().unwrap_or(Err(AppendFailed::Closed))
    }

    pub(crate) fn append_then(&self, records: &[Record], trail: &[Arc<AuditEntry>], done: Done) {
        self.send_append(records, trail, TrailWrite::Append, done);
    }

    pub(crate) fn show_trail_to(&self, number: u64) {
        self.shared.trail_shown_to.store(number, Ordering::Release);
    }

    fn send_append(&self, records: &[Record], trail: &[Arc<AuditEntry>], how: TrailWrite, done: Done) {
        let mut contents = Vec::with_capacity(records.len());
        let mut clock: Option<Now> = None;
        for record in records {
            let content = to_bytes(record);
            if content.len() > RECORD_BYTES_MAX {
                return done(Err(AppendFailed::TooLarge(content.len())));
            }
            contents.push(content);
            clock = Some(clock.map_or(record.now, |clock| later(clock, record.now)));
        }
        self.ask(Order::Append(Append { records: contents, trail: trail.to_vec(), how, clock, done }));
    }

    pub(crate) fn trail_reader(&self) -> TrailReader {
        TrailReader::of_committer(self.orders.as_ref())
    }

    pub(crate) fn wants_fold(&self) -> bool {
        self.shared.wants_fold.load(Ordering::Relaxed)
    }

    pub(crate) fn fold(&self, state: ControlState) {
        // Not again before the committer has seen this one.
        self.shared.wants_fold.store(false, Ordering::Relaxed);
        self.ask(Order::Fold(Box::new(state)));
    }

    pub(crate) fn copy_then(&self, to: &Path, done: Box<dyn FnOnce(Result<(), CopyError>) + Send>) {
        self.ask(Order::Copy { to: to.to_owned(), done });
    }

    /// The end of what is durable.
    pub(crate) fn reach(&self) -> Reach {
        *self.shared.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reason why nothing more can be written, if there is one.
    pub(crate) fn failure(&self) -> Option<AppendFailed> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn length(&self) -> u64 {
        self.shared.last.load(Ordering::Relaxed)
    }

    pub(crate) fn close(mut self) -> Result<(), AppendFailed> {
        let (tell, told) = mpsc::sync_channel(1);
        self.ask(Order::Close { done: Box::new(move |result| drop(tell.send(result))) });
        let closed = told.recv().unwrap_or(Err(AppendFailed::Closed));
        self.end();
        closed
    }

    fn ask(&self, order: Order) {
        let Some(orders) = &self.orders else { return order.refuse() };
        if let Err(mpsc::SendError(order)) = orders.send(order) {
            order.refuse();
        }
    }

    fn end(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, everybody who waited has been told that it is closed.
            drop(thread.join());
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.end();
    }
}

fn later(one: Now, other: Now) -> Now {
    Now { wall: one.wall.max(other.wall), steady: one.steady.max(other.steady) }
}
