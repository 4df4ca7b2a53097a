//! The shared state as rows, and back. A row holds something that cannot be derived; indexes are built anew.
//!
//! The order of rows matters: the head, then clusters, then what belongs to them: origins, claims, tokens that are
//! limited to them, webhooks before messages for them.

use std::sync::Arc;

use forewarn_lifecycle::{BadRows, Name, Seed};

use crate::command::Site;
use crate::receipts::ReceiptRow;
use crate::rows::{check_new, check_number_known};
use crate::shared::boot::Boot;
use crate::shared::claim::Claim;
use crate::shared::state::{Counters, SharedState, default_name};
use crate::shared::token::Token;
use crate::shared::webhook::{Progress, UndeliveredMessages, Webhook};
use crate::stream::{ClusterId, StreamPosition};

/// One row of the shared state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The next number of each kind. It comes first.
    Head(Counters),
    /// A cluster and its name.
    Cluster(ClusterId, Name),
    Token(Token),
    /// A row of the receipts.
    Receipt(ReceiptRow),
    Webhook(Webhook),
    /// A webhook of an older version, with its progress in all clusters. It is only read.
    WebhookWithProgress(Webhook, Progress),
    /// The secret that the secrets of new clusters derive from. Older versions had none.
    Secret(Seed),
    /// The secret and the site that a cluster began with.
    Origin(ClusterId, Seed, Site),
    Claim(Claim),
    /// The boot of the computer.
    Booted(Boot),
    /// The place of the state in the log of a realm.
    Positioned(StreamPosition),
    /// Messages of a removed cluster that are not delivered. It comes after the webhooks.
    Undelivered(ClusterId, UndeliveredMessages),
}

/// A shared state that is being built from its rows.
#[derive(Debug, Default)]
pub struct Restoring {
    shared: Option<SharedState>,
    has_secret: bool,
    /// Progress in all clusters, by webhook.
    progress: Vec<(u32, Progress)>,
}

/// A shared state from rows, perhaps of an older version.
pub(crate) struct RestoredShared {
    pub(crate) shared: SharedState,
    /// False if the rows are of an older version: there is no secret, and there are no claims.
    pub(crate) is_complete: bool,
    /// Progress in all clusters, by webhook.
    pub(crate) progress: Vec<(u32, Progress)>,
}

impl SharedState {
    /// The state as rows, in the order in which [`Restoring`] takes them.
    pub fn into_rows(self) -> impl Iterator<Item = Row> + Send + 'static {
        let clusters = self.clusters.into_iter().map(|(id, name)| Row::Cluster(id, name));
        let origin = |(id, origin): (ClusterId, Arc<(Seed, Site)>)| {
            let (seed, site) = Arc::unwrap_or_clone(origin);
            Row::Origin(id, seed, site)
        };
        let origins = self.origins.into_iter().map(origin);
        let claims = self.claims.into_iter().map(|(_, claim)| Row::Claim(Arc::unwrap_or_clone(claim)));
        let tokens = self.tokens.into_iter().map(|(_, token)| Row::Token(Arc::unwrap_or_clone(token)));
        let receipts = self.receipts.into_rows().map(Row::Receipt);
        let webhooks =
            self.webhooks.into_iter().map(|(_, webhook)| Row::Webhook(Arc::unwrap_or_clone(webhook)));
        let head = [Row::Head(self.next), Row::Secret(self.secret)].into_iter();
        let clusters = clusters.chain(origins).chain(claims);
        let undelivered = self.undelivered.into_iter();
        let undelivered =
            undelivered.map(|(id, messages)| Row::Undelivered(id, Arc::unwrap_or_clone(messages)));
        let boot = self.boot.map(Row::Booted);
        let position = self.position.map(Row::Positioned);
        let places = boot.into_iter().chain(position);
        head.chain(clusters).chain(tokens).chain(receipts).chain(webhooks).chain(undelivered).chain(places)
    }

    fn restore_cluster(&mut self, id: ClusterId, name: Name) -> Result<(), BadRows> {
        check_number_known(&id.0, &self.next.cluster)?;
        check_new(self.cluster_names.insert(name.clone(), id).as_ref())?;
        check_new(self.clusters.insert(id, name).as_ref())
    }

    fn restore_origin(&mut self, id: ClusterId, seed: Seed, site: Site) -> Result<(), BadRows> {
        if !self.clusters.contains_key(&id) {
            return Err(BadRows("an origin is of a cluster that is not there"));
        }
        check_new(self.origins.insert(id, Arc::new((seed, site))).as_ref())
    }

    fn restore_token(&mut self, token: Token) -> Result<(), BadRows> {
        check_number_known(&token.number, &self.next.token)?;
        if !token.scope.clusters.named().all(|cluster| self.clusters.contains_key(cluster)) {
            return Err(BadRows("a token is for a cluster that is not there"));
        }
        check_new(self.token_names.insert(token.name.clone(), token.number).as_ref())?;
        check_new(self.tokens.insert(token.number, Arc::new(token)).as_ref())
    }
}

impl Restoring {
    /// Takes the next row.
    ///
    /// # Errors
    /// Fails if it does not fit to those before it.
    pub fn add(&mut self, row: Row) -> Result<(), BadRows> {
        let Some(shared) = &mut self.shared else {
            let Row::Head(next) = row else { return Err(BadRows("the head does not come first")) };
            self.shared = Some(SharedState::without_clusters(next));
            return Ok(());
        };
        match row {
            Row::Head(_) => Err(BadRows("there are two heads")),
            Row::Cluster(id, name) => shared.restore_cluster(id, name),
            Row::Token(token) => shared.restore_token(token),
            Row::Receipt(row) => shared.receipts.restore(row),
            Row::Webhook(webhook) => shared.restore_webhook(webhook),
            Row::WebhookWithProgress(webhook, progress) => {
                self.progress.push((webhook.number, progress));
                shared.restore_webhook(webhook)
            }
            Row::Secret(secret) => {
                (shared.secret, self.has_secret) = (secret, true);
                Ok(())
            }
            Row::Origin(id, seed, site) => shared.restore_origin(id, seed, site),
            Row::Claim(claim) => shared.restore_claim(claim),
            Row::Undelivered(id, messages) => shared.restore_undelivered(id, messages),
            Row::Booted(boot) => {
                shared.boot = Some(boot);
                Ok(())
            }
            Row::Positioned(position) => {
                shared.position = Some(position);
                Ok(())
            }
        }
    }

    /// The state, once all rows were taken.
    ///
    /// # Errors
    /// Fails if some are missing.
    pub fn finish(self) -> Result<SharedState, BadRows> {
        let restored = self.finish_any()?;
        if restored.is_complete { Ok(restored.shared) } else { Err(BadRows("the secret is missing")) }
    }

    /// The same, if the rows may be of an older version.
    pub(crate) fn finish_any(self) -> Result<RestoredShared, BadRows> {
        let Self { shared, has_secret: is_complete, progress } = self;
        let shared = shared.ok_or(BadRows("there is no head"))?;
        if shared.cluster_name(ClusterId::DEFAULT) != Some(&default_name()) {
            return Err(BadRows("the default cluster is missing"));
        }
        Ok(RestoredShared { shared, is_complete, progress })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receipts::{Receipt, StoredResponse};
    use crate::resource_id::GroupId;
    use crate::shared::token::{Role, Scope, TokenHash};
    use forewarn_lifecycle::{Steady, Timestamp};

    fn head() -> Row {
        Row::Head(Counters { cluster: 2, token: 2, webhook: 2 })
    }

    fn cluster(id: u32, name: &str) -> Row {
        Row::Cluster(ClusterId(id), Name::new(name).unwrap())
    }

    fn token(number: u32, name: &str, cluster: u32) -> Row {
        Row::Token(Token {
            number,
            name: Name::new(name).unwrap(),
            role: Role::Viewer,
            scope: Scope { clusters: [ClusterId(cluster)].into_iter().collect(), ..Scope::default() },
            hash: TokenHash([0; 32]),
            created: Timestamp::from_millis(0),
            expires: None,
            by: "socket".to_owned(),
        })
    }

    fn receipt(number: u64) -> Row {
        let (by, key, at) = ("socket".to_owned(), "k".to_owned(), Steady::START);
        let receipt = Receipt { by, key, fingerprint: [0; 32], at, answer: StoredResponse([].into()) };
        Row::Receipt(ReceiptRow::Receipt(number, receipt))
    }

    fn webhook(number: u32, name: &str) -> Row {
        let (name, url) = (Name::new(name).unwrap(), forewarn_url::Url::parse("http://h/x").unwrap());
        Row::Webhook(Webhook {
            number,
            name,
            url,
            format: crate::shared::WebhookFormat::CloudEvents,
            filter: crate::shared::Filter::default(),
            authorization: None,
            created: Timestamp::from_millis(0),
            by: "socket".to_owned(),
            handshake: crate::shared::Handshake::Wanted,
        })
    }

    fn claim(cluster: u32, group: &str) -> Row {
        let group = GroupId { subscription: "s".to_owned(), name: group.to_owned() };
        Row::Claim(Claim { cluster: ClusterId(cluster), group, location: "west".to_owned() })
    }

    fn origin(cluster: u32) -> Row {
        Row::Origin(ClusterId(cluster), Seed([2; 16]), Site::default())
    }

    fn restore(rows: &[Row]) -> Result<SharedState, BadRows> {
        let mut restoring = Restoring::default();
        rows.iter().try_for_each(|row| restoring.add(row.clone()))?;
        restoring.finish()
    }

    #[test]
    fn rows_that_do_not_fit_together_are_refused() {
        let default = || cluster(0, "default");
        let bad = |rows: &[Row]| restore(rows).unwrap_err().to_string();
        assert!(bad(&[]).ends_with("there is no head"));
        assert!(bad(&[default(), head()]).ends_with("the head does not come first"));
        assert!(bad(&[head(), head()]).ends_with("there are two heads"));
        assert!(bad(&[head()]).ends_with("the default cluster is missing"));
        assert!(bad(&[head(), cluster(0, "other")]).ends_with("the default cluster is missing"));
        assert!(bad(&[head(), default(), cluster(2, "a")]).ends_with("never given out"));
        assert!(bad(&[head(), default(), cluster(1, "default")]).ends_with("used twice"));
        assert!(bad(&[head(), default(), cluster(0, "a")]).ends_with("used twice"));
        assert!(bad(&[head(), default(), token(0, "t", 1)]).ends_with("a cluster that is not there"));
        assert!(bad(&[head(), default(), token(2, "t", 0)]).ends_with("never given out"));
        assert!(bad(&[head(), default(), token(0, "t", 0), token(1, "t", 0)]).ends_with("used twice"));
        assert!(bad(&[head(), default(), token(0, "t", 0), token(0, "u", 0)]).ends_with("used twice"));
        let next = |number| Row::Receipt(ReceiptRow::Next(number));
        assert!(bad(&[head(), default(), receipt(2), next(2)]).ends_with("never given out"));
        assert!(bad(&[head(), default(), receipt(1), receipt(1)]).ends_with("do not ascend"));
        assert!(bad(&[head(), default(), webhook(2, "w")]).ends_with("never given out"));
        assert!(bad(&[head(), default(), webhook(0, "w"), webhook(1, "w")]).ends_with("used twice"));
        assert!(bad(&[head(), default(), webhook(0, "w"), webhook(0, "v")]).ends_with("used twice"));
        assert!(bad(&[head(), default(), claim(1, "g")]).ends_with("a cluster that is not there"));
        assert!(bad(&[head(), default(), claim(0, "g"), claim(0, "G")]).ends_with("used twice"));
        assert!(bad(&[head(), default(), origin(1)]).ends_with("a cluster that is not there"));
        assert!(bad(&[head(), default(), origin(0), origin(0)]).ends_with("used twice"));
        assert!(bad(&[head(), default()]).ends_with("the secret is missing"));
        let rows = [
            head(),
            Row::Secret(Seed([1; 16])),
            default(),
            cluster(1, "a"),
            origin(1),
            claim(1, "g"),
            claim(0, "h"),
            token(0, "t", 1),
            receipt(0),
            receipt(1),
            next(2),
            webhook(0, "w"),
            webhook(1, "v"),
        ];
        let restored = restore(&rows).unwrap();
        assert_eq!(restored.receipts().size().0, 2);
        assert_eq!(restored.into_rows().collect::<Vec<_>>(), rows);
    }

    #[test]
    fn rows_of_removed_clusters_are_checked() {
        let default = || cluster(0, "default");
        let bad = |rows: &[Row]| restore(rows).unwrap_err().to_string();
        let removed = |id, progress: &[(u32, Progress)]| {
            let (site, progress) = (Site::default(), progress.to_vec());
            Row::Undelivered(ClusterId(id), UndeliveredMessages { site, progress })
        };
        let (w, one) = (webhook(0, "w"), (0, Progress::from(1)));
        let bad_after = |row: Row| bad(&[head(), default(), w.clone(), webhook(1, "v"), row]);
        assert!(bad_after(removed(2, &[one])).ends_with("never given out"));
        assert!(bad_after(removed(0, &[one])).ends_with("are of one that is there"));
        assert!(bad_after(removed(1, &[])).ends_with("not in order"));
        assert!(bad_after(removed(1, &[(1, one.1), one])).ends_with("not in order"));
        assert!(bad(&[head(), default(), removed(1, &[one])]).ends_with("a webhook that is not there"));
        let twice = [head(), default(), w.clone(), removed(1, &[one]), removed(1, &[one])];
        assert!(bad(&twice).ends_with("used twice"));
        let next = Row::Receipt(ReceiptRow::Next(0));
        let gone = [head(), Row::Secret(Seed([1; 16])), default(), next, w, removed(1, &[one])];
        assert_eq!(restore(&gone).unwrap().into_rows().collect::<Vec<_>>(), gone);
    }
}
