//! The shared state: names of clusters, tokens, webhooks, claims, receipts, and the boot of the computer.

use std::sync::Arc;

use forewarn_lifecycle::paged::{PagedMap, PagedSet};
use forewarn_lifecycle::{Name, Seed};

use crate::command::Site;
use crate::receipts::Receipts;
use crate::shared::boot::Boot;
use crate::shared::claim::Claim;
use crate::shared::token::Token;
use crate::shared::webhook::{UndeliveredMessages, Webhook};
use crate::stream::{ClusterId, StreamPosition};

/// The state that clusters share.
///
/// A copy is a few pointers. A change of one copies the path to the changed item; the copies go on sharing the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedState {
    pub(crate) next: Counters,
    /// The secret that the secrets of new clusters derive from.
    pub(crate) secret: Seed,
    pub(crate) clusters: PagedMap<ClusterId, Name>,
    /// The secret and the site that clusters began with.
    pub(crate) origins: PagedMap<ClusterId, Arc<(Seed, Site)>>,
    /// Claims of resource groups, by key.
    pub(crate) claims: PagedMap<Arc<str>, Arc<Claim>>,
    pub(crate) tokens: PagedMap<u32, Arc<Token>>,
    pub(crate) webhooks: PagedMap<u32, Arc<Webhook>>,
    /// Messages of removed clusters that are not delivered.
    pub(crate) undelivered: PagedMap<ClusterId, Arc<UndeliveredMessages>>,
    pub(crate) receipts: Receipts,
    pub(crate) boot: Option<Boot>,
    /// The place in the log of a realm. None outside of one.
    pub(crate) position: Option<StreamPosition>,

    pub(crate) cluster_names: PagedMap<Name, ClusterId>,
    pub(crate) token_names: PagedMap<Name, u32>,
    pub(crate) cluster_claims: PagedSet<(ClusterId, Arc<str>)>,
}

/// The next number of each kind; none is used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are the kinds")]
pub struct Counters {
    pub cluster: u32,
    pub token: u32,
    pub webhook: u32,
}

impl SharedState {
    /// One cluster, no tokens, no webhooks, no receipts. The secrets of clusters derive from the secret; that of the
    /// default cluster is the secret itself.
    #[must_use]
    pub fn new(secret: Seed) -> Self {
        let mut shared = Self { secret, ..Self::without_clusters(Counters::default()) };
        shared.cluster_created(ClusterId::DEFAULT, &default_name(), (secret, &Site::default()));
        shared
    }

    /// A state whose secret and clusters follow.
    pub(crate) fn without_clusters(next: Counters) -> Self {
        Self {
            next,
            secret: Seed([0; 16]),
            origins: PagedMap::new(),
            claims: PagedMap::new(),
            clusters: PagedMap::new(),
            tokens: PagedMap::new(),
            webhooks: PagedMap::new(),
            undelivered: PagedMap::new(),
            receipts: Receipts::default(),
            boot: None,
            position: None,
            cluster_names: PagedMap::new(),
            token_names: PagedMap::new(),
            cluster_claims: PagedSet::default(),
        }
    }

    /// Every cluster and its name, in the order in which they were created.
    pub fn clusters(&self) -> impl Iterator<Item = (ClusterId, &Name)> {
        self.clusters.iter().map(|(id, name)| (*id, name))
    }

    /// The name of a cluster.
    #[must_use]
    pub fn cluster_name(&self, id: ClusterId) -> Option<&Name> {
        self.clusters.get(&id)
    }

    /// The cluster with a name.
    #[must_use]
    pub fn cluster_named(&self, name: &str) -> Option<ClusterId> {
        self.cluster_names.get(name).copied()
    }

    /// The cluster that will be created next.
    #[must_use]
    pub fn next_cluster(&self) -> ClusterId {
        ClusterId(self.next.cluster)
    }

    /// The secret of the cluster that will be created next.
    pub(crate) fn next_seed(&self) -> Seed {
        self.secret.nth(self.next.cluster)
    }

    /// Every token, also those that have expired, in the order in which they were issued.
    pub fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.tokens.values().map(Arc::as_ref)
    }

    /// The token with a number.
    #[must_use]
    pub fn find_token(&self, number: u32) -> Option<&Token> {
        self.tokens.get(&number).map(Arc::as_ref)
    }

    /// The token with a name.
    #[must_use]
    pub fn token_named(&self, name: &str) -> Option<&Token> {
        self.find_token(*self.token_names.get(name)?)
    }

    /// The number that the next token will have.
    #[must_use]
    pub fn next_token(&self) -> u32 {
        self.next.token
    }

    /// The receipts of requests to the shared state.
    #[must_use]
    pub fn receipts(&self) -> &Receipts {
        &self.receipts
    }

    /// The boot of the computer that the steady clock last belonged to.
    #[must_use]
    pub fn boot(&self) -> Option<Boot> {
        self.boot
    }

    /// The place of the state in the log of a realm. None outside of one.
    #[must_use]
    pub fn position(&self) -> Option<StreamPosition> {
        self.position
    }

    /// Number of the last batch of the log that the state contains; 0 without one.
    #[must_use]
    pub fn log_number(&self) -> u64 {
        self.position.map_or(0, |position| position.number)
    }

    /// The state continues on another computer, with other secrets: clusters do not begin anew.
    pub(crate) fn renew(&mut self, secret: Seed) {
        (self.secret, self.boot, self.position) = (secret, None, None);
        self.forget_origins();
    }

    /// The audit logs begin anew: those of removed clusters are gone.
    pub(crate) fn forget_undelivered(&mut self) {
        self.undelivered = PagedMap::new();
    }

    pub(crate) fn forget_origins(&mut self) {
        self.origins = PagedMap::new();
    }
}

pub(crate) fn default_name() -> Name {
    Name::new(ClusterId::DEFAULT_NAME).expect("a good name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipts::{NewReceipt, StoredResponse};
    use crate::resource_id::GroupId;
    use crate::shared::{
        Change, Handshake, NewClaim, Progress, Restoring, Role, Scope, TokenHash, WebhookChange,
        WebhookFormat,
    };
    use forewarn_lifecycle::{Now, Steady, Timestamp};

    const NOW: Now = Now { wall: Timestamp::from_millis(0), steady: Steady::START };
    /// So many of each kind that they take several pages.
    const COUNT: u32 = 100;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
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
            format: WebhookFormat::CloudEvents,
            filter: crate::shared::Filter::default(),
            authorization: None,
            created: NOW.wall,
            by: "socket".to_owned(),
            handshake: Handshake::Wanted,
        }
    }

    fn receipt(number: u32) -> Change {
        let (by, key) = (format!("token {}", number % 3), number.to_string());
        Change::ReceiptKept(NewReceipt { by, key, fingerprint: [0; 32], answer: StoredResponse([].into()) })
    }

    fn group(number: u32) -> GroupId {
        GroupId { subscription: "s".to_owned(), name: format!("group-{number}") }
    }

    /// One of each kind.
    fn additions(number: u32) -> [Change; 5] {
        let cluster = ClusterId(number + 1);
        [
            Change::ClusterCreated {
                cluster,
                name: name(&format!("cluster-{number}")),
                seed: Seed([0; 16]),
                site: Site { resource_group: format!("of-cluster-{number}"), ..Site::default() },
            },
            Change::ClaimsTaken {
                cluster,
                claims: vec![NewClaim { group: group(number), location: "west".to_owned() }],
            },
            Change::TokenIssued(token(number, &[number % 2 + 1, 1])),
            receipt(number),
            Change::Webhook(WebhookChange::Added(Arc::new(webhook(number)))),
        ]
    }

    fn later_changes() -> Vec<Change> {
        let webhooks = [WebhookChange::Removed(1), WebhookChange::Confirmed { webhook: 2, per_minute: None }];
        let others = [
            Change::ClaimsReleased { cluster: ClusterId(4), groups: vec![group(3)] },
            Change::ClusterRenamed { cluster: ClusterId(2), name: name("renamed") },
            Change::TokenRevoked(3),
            Change::ClusterRemoved(ClusterId(1)),
        ];
        let booted = Change::Booted(Boot { id: [1; 16], offset_millis: 5 });
        let changes = webhooks.into_iter().map(Change::Webhook).chain([booted]);
        let removed = after_removal(ClusterId(1)).into_iter().map(Change::Webhook);
        changes.chain(additions(COUNT)).chain(others).chain(removed).collect()
    }

    fn after_removal(cluster: ClusterId) -> [WebhookChange; 4] {
        let (webhook, progress) = (4, Progress::from(9));
        let of_webhooks = vec![(webhook, Progress::from(1)), (5, Progress::from(2))];
        let messages = UndeliveredMessages { site: Site::default(), progress: of_webhooks };
        [
            WebhookChange::Undelivered { cluster, messages },
            WebhookChange::UndeliveredAdvanced { cluster, webhook, progress },
            WebhookChange::Delivered { cluster, webhook },
            WebhookChange::Removed(5),
        ]
    }

    /// The same state without shared memory.
    fn rebuilt(shared: &SharedState) -> SharedState {
        let mut restoring = Restoring::default();
        shared.clone().into_rows().try_for_each(|row| restoring.add(row)).unwrap();
        restoring.finish().unwrap()
    }

    /// promise: C1
    #[test]
    fn a_copy_stays_as_it_was_whatever_changes_later() {
        let mut shared = SharedState::new(Seed([3; 16]));
        (0..COUNT).flat_map(additions).for_each(|change| drop(shared.apply(NOW, &change)));
        for change in later_changes() {
            let copy = shared.clone();
            let before = rebuilt(&copy);
            shared.apply(NOW, &change);
            assert_eq!(copy, before, "{change:?}");
            assert_ne!(shared, before, "{change:?}");
        }
        let copy = shared.clone();
        let before = rebuilt(&copy);
        shared.renew(Seed([9; 16]));
        assert_eq!(copy, before);
        assert_ne!(shared, before);
    }

    #[test]
    fn a_copy_shares_unchanged_parts() {
        let mut shared = SharedState::new(Seed([3; 16]));
        (0..COUNT).flat_map(additions).for_each(|change| drop(shared.apply(NOW, &change)));
        let copy = shared.clone();
        shared.apply(NOW, &Change::Webhook(WebhookChange::Confirmed { webhook: 6, per_minute: None }));
        let is_shared =
            |number| std::ptr::eq(shared.find_webhook(number).unwrap(), copy.find_webhook(number).unwrap());
        assert!(is_shared(7) && !is_shared(6));
    }
}
