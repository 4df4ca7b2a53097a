//! What readers see: one immutable document per tenant, swapped whole.
//!
//! A reader finds its caller in a table, its caller's slot, and the slot's document; none of that takes a lock that a writer
//! holds. The bytes of an answer are rendered once per edition, on first use, and shared by everyone who asks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};
use forewarn_imds::{Document, Edition};
use forewarn_types::{ClusterId, Name, Steady, TenantId};
use tokio::sync::Notify;

/// The place where a tenant's document is published.
#[derive(Debug)]
pub struct Slot {
    /// The cluster of whose it is.
    pub cluster: ClusterId,
    /// Whose it is.
    pub tenant: TenantId,
    current: ArcSwap<Published>,
    heard_millis: AtomicU64,
    changed: Notify,
}

/// A document as it was published. It never changes.
#[derive(Debug)]
pub struct Published {
    /// What the tenant sees.
    pub document: Document,
    /// Whether Scheduled Events are enabled for it: if not, the next request enables them.
    pub enrolled: bool,
    /// The names of its machines.
    pub members: Box<[Name]>,
    /// The last entry of the trail before it was published: who has read this has been told of everything until then.
    pub told: u64,
    prepared: [OnceLock<Prepared>; Edition::ALL.len()],
}

/// The bytes of an answer, but for the date.
#[derive(Debug)]
pub struct Prepared {
    /// Status line and headers up to and including `Date: `.
    pub head: Box<[u8]>,
    /// The body.
    pub body: Box<[u8]>,
}

/// What the service calls itself. One client looks for `IMDS` in it.
pub const SERVER: &str = concat!("forewarn/", env!("CARGO_PKG_VERSION"), " IMDS");

impl Published {
    /// A document that is about to be published.
    #[must_use]
    pub fn new(document: Document, enrolled: bool, members: Box<[Name]>, told: u64) -> Self {
        Self { document, enrolled, members, told, prepared: Default::default() }
    }

    /// The answer to a GET of that edition, but for the date.
    #[must_use]
    pub fn prepared(&self, edition: Edition) -> &Prepared {
        self.prepared[edition as usize].get_or_init(|| {
            let body = self.document.render(edition).into_bytes().into_boxed_slice();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: {}\r\n\
                 Server: {SERVER}\r\nETag: \"{}\"\r\nDate: ",
                body.len(),
                self.document.incarnation,
            );
            Prepared { head: head.into_bytes().into_boxed_slice(), body }
        })
    }
}

impl Slot {
    /// The place of a tenant of a cluster, with its first document.
    #[must_use]
    pub fn new(cluster: ClusterId, tenant: TenantId, published: Published) -> Self {
        Self {
            cluster,
            tenant,
            current: ArcSwap::from_pointee(published),
            heard_millis: AtomicU64::new(0),
            changed: Notify::new(),
        }
    }

    /// The document of this moment.
    #[must_use]
    pub fn read(&self) -> Guard<Arc<Published>> {
        self.current.load()
    }

    /// Replaces the document, and wakes the requests that wait for another one.
    pub fn publish(&self, published: Published) {
        self.current.store(Arc::new(published));
        self.changed.notify_waiters();
    }

    /// A machine of the tenant has asked: the silence of the tenant begins anew.
    pub fn hear(&self, now: Steady) {
        // Many polls come in one millisecond; reading costs less than writing.
        if self.heard_millis.load(Ordering::Relaxed) < now.millis() {
            self.heard_millis.fetch_max(now.millis(), Ordering::Relaxed);
        }
    }

    /// Time of the last request of a machine of the tenant.
    #[must_use]
    pub fn heard(&self) -> Steady {
        Steady::from_millis(self.heard_millis.load(Ordering::Relaxed))
    }

    /// Waits until a document other than that one is published; returns at once if it is already.
    pub async fn differs_from(&self, incarnation: u64) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.read().document.incarnation != incarnation {
                return;
            }
            changed.await;
        }
    }
}
