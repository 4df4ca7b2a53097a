//! The state: names of clusters, tokens, receipts, the register, webhooks.

use std::sync::Arc;

use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Name, Now};

use crate::shared::cluster::ClusterId;
use crate::shared::command::Refusal;
use crate::shared::receipt::{Receipt, Receipts};
use crate::shared::register::{Body, Entry, Link, Operation, Register};
use crate::shared::token::Token;
use crate::shared::webhook::Webhook;

/// What a server keeps beside its clusters.
///
/// A copy is a few pointers. A change of one copies a path to what it changes; the rest stays shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    pub(crate) next: Counters,
    pub(crate) clusters: PagedMap<ClusterId, Name>,
    pub(crate) tokens: PagedMap<u32, Arc<Token>>,
    pub(crate) webhooks: PagedMap<u32, Arc<Webhook>>,
    pub(crate) receipts: Receipts,
    pub(crate) register: Register,

    pub(crate) cluster_names: PagedMap<Name, ClusterId>,
    pub(crate) token_names: PagedMap<Name, u32>,
}

/// The next number of each kind; none is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the kinds")]
pub struct Counters {
    pub cluster: u32,
    pub token: u32,
    pub webhook: u32,
    pub receipt: u64,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::new()
    }
}

impl Catalogue {
    /// One cluster, no tokens, no webhooks, no receipts.
    #[must_use]
    pub fn new() -> Self {
        let mut catalogue = Self::without_clusters(Counters::default());
        catalogue.cluster_created(ClusterId::DEFAULT, &default_name());
        catalogue
    }

    pub(crate) fn without_clusters(next: Counters) -> Self {
        Self {
            next,
            clusters: PagedMap::new(),
            tokens: PagedMap::new(),
            webhooks: PagedMap::new(),
            receipts: Receipts::default(),
            register: Register::default(),
            cluster_names: PagedMap::new(),
            token_names: PagedMap::new(),
        }
    }

    /// Every cluster and its name, in the order in which they were created.
    pub fn clusters(&self) -> impl Iterator<Item = (ClusterId, &Name)> {
        self.clusters.iter().map(|(id, name)| (*id, name))
    }

    /// What a cluster is called.
    #[must_use]
    pub fn cluster_name(&self, id: ClusterId) -> Option<&Name> {
        self.clusters.get(&id)
    }

    /// The cluster of that name.
    #[must_use]
    pub fn cluster_named(&self, name: &str) -> Option<ClusterId> {
        self.cluster_names.get(name).copied()
    }

    /// The cluster that will be created next.
    #[must_use]
    pub fn next_cluster(&self) -> ClusterId {
        ClusterId(self.next.cluster)
    }

    /// Every token, also those that have expired, in the order in which they were issued.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values().map(Arc::as_ref)
    }

    /// The token of that number.
    #[must_use]
    pub fn find_token(&self, number: u32) -> Option<&Token> {
        self.tokens.get(&number).map(Arc::as_ref)
    }

    /// The token of that name.
    #[must_use]
    pub fn token_named(&self, name: &str) -> Option<&Token> {
        self.find_token(*self.token_names.get(name)?)
    }

    /// The number that the next token will have.
    #[must_use]
    pub fn next_token(&self) -> u32 {
        self.next.token
    }

    /// What was answered to whoever that is, under that key, within the last day.
    #[must_use]
    pub fn receipt(&self, by: &str, key: &str, now: Now) -> Option<&Receipt> {
        self.receipts.find(by, key, now.steady)
    }

    /// What was written under an id, whose key is given: the id in lower case.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.register.entry(key)
    }

    /// What was written under ids that begin so, in lower case, by key.
    pub fn entries_below<'a>(&'a self, prefix: &str) -> impl Iterator<Item = (&'a str, &'a Entry)> + use<'a> {
        self.register.below(prefix)
    }

    /// What was written of something that the rules know, with its key.
    #[must_use]
    pub fn entry_of(&self, cluster: ClusterId, link: Link) -> Option<(&str, &Entry)> {
        self.register.linked(cluster, link)
    }

    /// The keys of entries that go, once nothing of them is left.
    pub fn entries_leaving(&self) -> impl Iterator<Item = &str> {
        self.register.leaving()
    }

    /// Whether an operation about it is under way, by key.
    #[must_use]
    pub fn is_operated_on(&self, key: &str) -> bool {
        self.register.has_open(key)
    }

    /// The operation of that name, if it is under way or ended not long ago.
    #[must_use]
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.register.operation(name)
    }

    /// The number that the next operation will have.
    #[must_use]
    pub fn next_operation(&self) -> u64 {
        self.register.next_operation()
    }

    /// Whether all that can be written in a cluster: ids, bodies and notes.
    ///
    /// # Errors
    /// When it is too much, or an id is that of something in another cluster.
    pub fn check_room<'a>(
        &self,
        cluster: ClusterId,
        put: impl Iterator<Item = (&'a String, &'a Body, &'a Body)>,
    ) -> Result<(), Refusal> {
        self.register.check_room(cluster, put)
    }

    /// Whether an operation about that can be opened, for as much work as those commands may come to. Without commands it waits
    /// for nothing, and takes no room.
    ///
    /// # Errors
    /// When it is too much.
    pub fn check_room_for_operation(&self, about: &str, commands: usize) -> Result<(), Refusal> {
        self.register.check_room_for_operation(about, commands)
    }

    /// How many receipts are kept, and how many bytes they are.
    #[must_use]
    pub fn receipts_kept(&self) -> (usize, usize) {
        (self.receipts.len(), self.receipts.bytes())
    }
}

pub(crate) fn default_name() -> Name {
    Name::new(ClusterId::DEFAULT_NAME).expect("a good name")
}
