//! Published documents: one immutable document per tenant, replaced as a whole.
//!
//! A poll looks up its caller, the caller's slot and the slot's document without any lock that a writer holds. The
//! bytes of a response are rendered once per edition, on first use, and shared by all polls.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use forewarn_imds::{Document, Edition};
use forewarn_types::{ClusterId, MachineId, Steady, TenantId};
use tokio::sync::Notify;

/// Slot in which a tenant's document is published.
#[derive(Debug)]
pub struct DocumentSlot {
    /// Cluster of the tenant.
    pub cluster: ClusterId,
    pub tenant: TenantId,
    current: ArcSwap<PublishedDocument>,
    last_request_millis: AtomicU64,
    changed: Notify,
    /// The directory no longer has the slot: no document follows.
    is_retired: AtomicBool,
}

#[derive(Debug)]
pub struct PublishedDocument {
    pub document: Document,
    /// Work of the endpoint before it answers a poll.
    pub duty: PollDuty,
    /// Last audit entry before the publication: the document reflects everything up to it.
    pub last_audit_entry: u64,
    prepared: [OnceLock<PreparedResponse>; Edition::ALL.len()],
}

/// Work of the endpoint before it answers a poll of a machine of the tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollDuty {
    /// None: the usual case.
    None,
    /// Scheduled Events are disabled for the tenant: the poll enables them.
    Enrol,
    /// The control plane waits for polls of these machines of the tenant.
    Report(Box<[MachineId]>),
}

/// The bytes of a response without the date.
#[derive(Debug)]
pub struct PreparedResponse {
    /// Status line and headers up to and including `Date: `.
    pub head: Box<[u8]>,
    pub body: Box<[u8]>,
}

/// Value of the `Server` header. One client looks for `IMDS` in it.
pub const SERVER: &str = concat!("forewarn/", env!("CARGO_PKG_VERSION"), " IMDS");

impl PublishedDocument {
    /// A document to be published.
    #[must_use]
    pub fn new(document: Document, duty: PollDuty, last_audit_entry: u64) -> Self {
        Self { document, duty, last_audit_entry, prepared: Default::default() }
    }

    /// Returns true if Scheduled Events are enabled for the tenant.
    #[must_use]
    pub fn is_enrolled(&self) -> bool {
        !matches!(self.duty, PollDuty::Enrol)
    }

    /// Returns true if the control plane waits for a poll of that machine.
    pub(crate) fn reports(&self, machine: MachineId) -> bool {
        match &self.duty {
            PollDuty::None | PollDuty::Enrol => false,
            PollDuty::Report(machines) => machines.contains(&machine),
        }
    }

    /// The response to a GET of that edition, without the date.
    #[must_use]
    pub fn prepared(&self, edition: Edition) -> &PreparedResponse {
        self.prepared[edition as usize].get_or_init(|| {
            let body = self.document.render(edition).into_bytes().into_boxed_slice();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n\
                 Server: {SERVER}\r\nETag: \"{}\"\r\nDate: ",
                body.len(),
                self.document.incarnation,
            );
            PreparedResponse { head: head.into_bytes().into_boxed_slice(), body }
        })
    }
}

impl DocumentSlot {
    /// The slot of a tenant, with its first document.
    #[must_use]
    pub fn new(cluster: ClusterId, tenant: TenantId, published: PublishedDocument) -> Self {
        Self {
            cluster,
            tenant,
            current: ArcSwap::from_pointee(published),
            last_request_millis: AtomicU64::new(0),
            changed: Notify::new(),
            is_retired: AtomicBool::new(false),
        }
    }

    #[must_use]
    pub fn read(&self) -> Guard<Arc<PublishedDocument>> {
        self.current.load()
    }

    /// Replaces the document, and wakes the requests that wait for a change.
    pub fn publish(&self, published: PublishedDocument) {
        self.current.store(Arc::new(published));
        self.changed.notify_waiters();
    }

    /// Publishes the last document of the slot, if there is one, and ends all waiting requests.
    pub(crate) fn retire(&self, last: Option<PublishedDocument>) {
        if let Some(published) = last {
            self.current.store(Arc::new(published));
        }
        self.is_retired.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Records a request of a machine of the tenant, which postpones the end of the enrolment.
    pub fn record_request(&self, now: Steady) {
        // Many polls arrive in one millisecond; a load is cheaper than a store.
        if self.last_request_millis.load(Ordering::Relaxed) < now.millis() {
            self.last_request_millis.fetch_max(now.millis(), Ordering::Relaxed);
        }
    }

    /// Time of the last request of a machine of the tenant.
    #[must_use]
    pub fn last_request(&self) -> Steady {
        Steady::from_millis(self.last_request_millis.load(Ordering::Relaxed))
    }

    /// Returns true if no document follows.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    /// Waits until another document than that one is published; returns at once if it already is, or if no document
    /// follows.
    pub async fn differs_from(&self, incarnation: u64) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.read().document.incarnation != incarnation || self.is_retired() {
                return;
            }
            changed.await;
        }
    }
}
