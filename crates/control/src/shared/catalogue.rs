//! The state: names of clusters, tokens, receipts, the register, webhooks.

use std::collections::BTreeSet;
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

    /// The clusters of those entries.
    #[must_use]
    pub fn clusters_leaving(&self) -> BTreeSet<ClusterId> {
        self.entries_leaving().filter_map(|key| self.entry(key)).map(|entry| entry.cluster).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::{
        Answer, Change, Ending, Filed, Handshake, Leaving, Progress, Restoring, Role, Schema, Scope,
        TokenHash, WebhookChange,
    };
    use forewarn_lifecycle::{MachineId, MaintenanceId, Seed, Steady, Timestamp};

    const NOW: Now = Now { wall: Timestamp::from_millis(0), steady: Steady::START };
    /// So many of each kind that they take several pages.
    const COUNT: u32 = 100;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn entry(number: u32) -> Entry {
        Entry {
            id: format!("/Entries/{number}"),
            cluster: ClusterId(1),
            link: Some(Link::Machine(MachineId(number))),
            edition: 1,
            created: NOW.wall,
            body: Body::default(),
            notes: Body::default(),
            leaving: Leaving::Stays,
        }
    }

    fn operation(number: u32) -> Operation {
        Operation {
            number: number.into(),
            name: format!("operation-{number}"),
            about: format!("/entries/{number}"),
            cluster: ClusterId(1),
            token: None,
            waits: [number, COUNT].map(|work| MaintenanceId(work.into())).into_iter().collect(),
            began: NOW.wall,
            ended: None,
            ending: Ending::Succeeded,
        }
    }

    fn token(number: u32, clusters: &[u32]) -> Token {
        Token {
            number,
            name: name(&format!("token-{number}")),
            role: Role::Viewer,
            scope: Scope { clusters: clusters.iter().copied().map(ClusterId).collect(), ..Scope::default() },
            hash: TokenHash([0; 32]),
            created: NOW.wall,
            expires: None,
            by: "socket".to_owned(),
        }
    }

    fn webhook(number: u32) -> Webhook {
        Webhook {
            number,
            name: name(&format!("webhook-{number}")),
            url: forewarn_url::Url::parse("http://h/x").unwrap(),
            schema: Schema::CloudEvents,
            filter: crate::shared::Filter::default(),
            authorization: None,
            created: NOW.wall,
            by: "socket".to_owned(),
            handshake: Handshake::Wanted,
            progress: Progress::from(0),
        }
    }

    fn receipt(number: u32) -> Change {
        let (by, key) = (format!("token {}", number % 3), number.to_string());
        Change::ReceiptKept { by, key, fingerprint: [0; 32], answer: Answer([].into()) }
    }

    /// One of each kind.
    fn additions(number: u32) -> [Change; 6] {
        [
            Change::ClusterCreated {
                cluster: ClusterId(number + 1),
                name: name(&format!("cluster-{number}")),
                seed: Seed([0; 16]),
            },
            Change::TokenIssued(token(number, &[number % 2 + 1, 1])),
            receipt(number),
            Change::Filed(Filed::Put(entry(number))),
            Change::Filed(Filed::Opened(operation(number))),
            Change::Webhook(WebhookChange::Added(Arc::new(webhook(number)))),
        ]
    }

    fn later_changes() -> Vec<Change> {
        let (cluster, how) = (ClusterId(1), Ending::Canceled);
        let over =
            |maintenance| Filed::Over { cluster, maintenance: MaintenanceId(maintenance), how: how.clone() };
        let key = |number: u32| format!("/entries/{number}");
        let filed = [
            Filed::Put(Entry { edition: 2, link: None, ..entry(4) }),
            Filed::Removed(key(5)),
            Filed::Marked { key: key(6), leaving: Leaving::Leaves },
            over(7),
            over(COUNT.into()),
        ];
        let progress = Progress::from(9);
        let webhooks = [
            WebhookChange::Removed(1),
            WebhookChange::Confirmed { webhook: 2, per_minute: None },
            WebhookChange::Advanced { webhook: 3, progress },
        ];
        let others = [
            Change::ClusterRenamed { cluster: ClusterId(2), name: name("renamed") },
            Change::TokenRevoked(3),
            Change::ClusterRemoved(cluster),
        ];
        let changes = filed.into_iter().map(Change::Filed).chain(webhooks.into_iter().map(Change::Webhook));
        changes.chain(additions(COUNT)).chain(others).collect()
    }

    /// The same catalogue without shared memory.
    fn rebuilt(catalogue: &Catalogue) -> Catalogue {
        let mut restoring = Restoring::new();
        catalogue.clone().into_rows().try_for_each(|row| restoring.add(row)).unwrap();
        restoring.finish().unwrap()
    }

    #[test]
    fn a_copy_stays_as_it_was_whatever_changes_later() {
        let mut catalogue = Catalogue::new();
        (0..COUNT).flat_map(additions).for_each(|change| catalogue.evolve(NOW, &change));
        for change in later_changes() {
            let copy = catalogue.clone();
            let before = rebuilt(&copy);
            catalogue.evolve(NOW, &change);
            assert_eq!(copy, before, "{change:?}");
            assert_ne!(catalogue, before, "{change:?}");
        }
        let copy = catalogue.clone();
        let before = rebuilt(&copy);
        catalogue.begin_trail();
        assert_eq!(copy, before);
        assert_ne!(catalogue, before);
    }

    #[test]
    fn a_copy_shares_what_does_not_change() {
        let mut catalogue = Catalogue::new();
        (0..COUNT).flat_map(additions).for_each(|change| catalogue.evolve(NOW, &change));
        let copy = catalogue.clone();
        catalogue.evolve(
            NOW,
            &Change::Filed(Filed::Marked { key: "/entries/6".to_owned(), leaving: Leaving::Leaves }),
        );
        let is_shared = |key: &str| std::ptr::eq(catalogue.entry(key).unwrap(), copy.entry(key).unwrap());
        assert!(is_shared("/entries/7") && !is_shared("/entries/6"));
    }
}
