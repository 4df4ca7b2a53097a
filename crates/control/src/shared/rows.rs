//! The catalogue as rows, and back. A row is what cannot be derived; indexes are made anew.
//!
//! Their order is part of the bargain: the head, then clusters, then the tokens that speak of them, then receipts, then the
//! register, then webhooks.

use std::sync::Arc;

use forewarn_lifecycle::Name;

use crate::shared::catalogue::{Catalogue, Counters, default_name};
use crate::shared::cluster::ClusterId;
use crate::shared::receipt::Receipt;
use crate::shared::register::{Entry, Operation};
use crate::shared::token::Token;
use crate::shared::webhook::Webhook;

/// One row of a catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// The next number of each kind. It comes first.
    Head(Counters),
    /// A cluster and its name.
    Cluster(ClusterId, Name),
    /// A token.
    Token(Token),
    /// A receipt and its number. They ascend.
    Receipt(u64, Receipt),
    /// An entry of the register.
    Entry(Entry),
    /// An operation. They ascend.
    Operation(Operation),
    /// The same with the number of its token. `Operation` itself has none.
    OperationWith(Operation, u32),
    /// The number of the next operation. It comes after them.
    NextOperation(u64),
    /// A webhook.
    Webhook(Webhook),
}

/// Why rows make no catalogue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rows do not fit together: {0}")]
pub struct BadRows(pub &'static str);

/// A catalogue that is being made from its rows.
#[derive(Debug, Default)]
pub struct Restoring {
    catalogue: Option<Catalogue>,
}

impl Catalogue {
    /// All that cannot be derived, in the order in which [`Restoring`] wants it.
    pub fn into_rows(self) -> impl Iterator<Item = Row> + Send + 'static {
        let clusters = self.clusters.into_iter().map(|(id, name)| Row::Cluster(id, name));
        let tokens = self.tokens.into_iter().map(|(_, token)| Row::Token(Arc::unwrap_or_clone(token)));
        let receipts = self.receipts.into_rows().map(|(number, receipt)| Row::Receipt(number, receipt));
        let next = self.register.next_operation();
        let (entries, operations) = self.register.into_rows();
        let operations = operations.map(|operation| match operation.token {
            None => Row::Operation(operation),
            Some(token) => Row::OperationWith(Operation { token: None, ..operation }, token),
        });
        let register = entries.map(Row::Entry).chain(operations);
        let register = register.chain(std::iter::once(Row::NextOperation(next)));
        let webhooks =
            self.webhooks.into_iter().map(|(_, webhook)| Row::Webhook(Arc::unwrap_or_clone(webhook)));
        let first = std::iter::once(Row::Head(self.next)).chain(clusters).chain(tokens).chain(receipts);
        first.chain(register).chain(webhooks)
    }
}

impl Restoring {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next row.
    ///
    /// # Errors
    /// When it does not fit to those before it.
    pub fn add(&mut self, row: Row) -> Result<(), BadRows> {
        let Some(catalogue) = &mut self.catalogue else {
            let Row::Head(next) = row else { return Err(BadRows("the head does not come first")) };
            self.catalogue = Some(Catalogue::without_clusters(next));
            return Ok(());
        };
        match row {
            Row::Head(_) => Err(BadRows("there are two heads")),
            Row::Cluster(id, name) => catalogue.restore_cluster(id, name),
            Row::Token(token) => catalogue.restore_token(token),
            Row::Receipt(number, receipt) => catalogue.restore_receipt(number, receipt),
            Row::Entry(entry) => catalogue.restore_entry(entry),
            Row::Operation(operation) => catalogue.restore_operation(operation),
            Row::OperationWith(operation, token) => {
                catalogue.restore_operation(Operation { token: Some(token), ..operation })
            }
            Row::NextOperation(next) => {
                let last = catalogue.register.last_operation();
                catalogue.register.restore_next(next);
                last.map_or(Ok(()), |last| known(&last, &next))
            }
            Row::Webhook(webhook) => catalogue.restore_webhook(webhook),
        }
    }

    /// The catalogue, once all rows are there.
    ///
    /// # Errors
    /// When some are not.
    pub fn finish(self) -> Result<Catalogue, BadRows> {
        let catalogue = self.catalogue.ok_or(BadRows("there is no head"))?;
        if catalogue.cluster_name(ClusterId::DEFAULT) != Some(&default_name()) {
            return Err(BadRows("the default cluster is missing"));
        }
        Ok(catalogue)
    }
}

/// Numbers are given out in order, so that a greater one than the next was never given.
pub(crate) fn known<N: PartialOrd>(number: &N, next: &N) -> Result<(), BadRows> {
    if number < next { Ok(()) } else { Err(BadRows("a number was never given out")) }
}

pub(crate) fn new<V>(before: Option<&V>) -> Result<(), BadRows> {
    if before.is_none() { Ok(()) } else { Err(BadRows("a number or a name is used twice")) }
}

impl Catalogue {
    fn restore_cluster(&mut self, id: ClusterId, name: Name) -> Result<(), BadRows> {
        known(&id.0, &self.next.cluster)?;
        new(self.cluster_names.insert(name.clone(), id).as_ref())?;
        new(self.clusters.insert(id, name).as_ref())
    }

    fn restore_token(&mut self, token: Token) -> Result<(), BadRows> {
        known(&token.number, &self.next.token)?;
        if !token.scope.clusters.named().all(|cluster| self.clusters.contains_key(cluster)) {
            return Err(BadRows("a token is for a cluster that is not there"));
        }
        new(self.token_names.insert(token.name.clone(), token.number).as_ref())?;
        new(self.tokens.insert(token.number, Arc::new(token)).as_ref())
    }

    fn restore_receipt(&mut self, number: u64, receipt: Receipt) -> Result<(), BadRows> {
        known(&number, &self.next.receipt)?;
        if self.receipts.last_number().is_some_and(|last| last >= number) {
            return Err(BadRows("receipts do not ascend"));
        }
        self.receipts.put(number, receipt);
        Ok(())
    }

    fn restore_entry(&mut self, entry: Entry) -> Result<(), BadRows> {
        self.check_known_cluster(entry.cluster)?;
        new(self.entry(&entry.key()))?;
        if let Some(link) = entry.link {
            new(self.entry_of(entry.cluster, link).as_ref())?;
        }
        self.register.restore_entry(entry);
        Ok(())
    }

    fn restore_operation(&mut self, operation: Operation) -> Result<(), BadRows> {
        new(self.operation(&operation.name))?;
        if self.register.last_operation().is_some_and(|last| last >= operation.number) {
            return Err(BadRows("operations do not ascend"));
        }
        if operation.is_open() == operation.waits.is_empty() {
            return Err(BadRows("an operation waits for nothing, or for something after its end"));
        }
        self.register.restore_operation(operation);
        Ok(())
    }

    fn check_known_cluster(&self, id: ClusterId) -> Result<(), BadRows> {
        if self.clusters.contains_key(&id) {
            Ok(())
        } else {
            Err(BadRows("an entry is in a cluster that is not there"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::receipt::Answer;
    use crate::shared::token::{Role, Scope, TokenHash};
    use forewarn_lifecycle::{Steady, Timestamp};

    fn head() -> Row {
        Row::Head(Counters { cluster: 2, token: 2, webhook: 2, receipt: 2 })
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
        Row::Receipt(number, Receipt { by, key, fingerprint: [0; 32], at, answer: Answer([].into()) })
    }

    fn webhook(number: u32, name: &str) -> Row {
        let (name, url) = (Name::new(name).unwrap(), forewarn_url::Url::parse("http://h/x").unwrap());
        Row::Webhook(Webhook {
            number,
            name,
            url,
            schema: crate::shared::Schema::CloudEvents,
            filter: crate::shared::Filter::default(),
            authorization: None,
            created: Timestamp::from_millis(0),
            by: "socket".to_owned(),
            handshake: crate::shared::Handshake::Wanted,
            progress: crate::shared::Progress::from(3),
        })
    }

    fn restore(rows: &[Row]) -> Result<Catalogue, BadRows> {
        let mut restoring = Restoring::new();
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
        assert!(bad(&[head(), default(), receipt(2)]).ends_with("never given out"));
        assert!(bad(&[head(), default(), receipt(1), receipt(1)]).ends_with("do not ascend"));
        let next = Row::NextOperation(0);
        assert!(bad(&[head(), default(), webhook(2, "w")]).ends_with("never given out"));
        assert!(bad(&[head(), default(), webhook(0, "w"), webhook(1, "w")]).ends_with("used twice"));
        assert!(bad(&[head(), default(), webhook(0, "w"), webhook(0, "v")]).ends_with("used twice"));
        let rows = [
            head(),
            default(),
            cluster(1, "a"),
            token(0, "t", 1),
            receipt(0),
            receipt(1),
            next,
            webhook(0, "w"),
            webhook(1, "v"),
        ];
        let restored = restore(&rows).unwrap();
        assert_eq!(restored.receipts_kept().0, 2);
        assert_eq!(restored.into_rows().collect::<Vec<_>>(), rows);
    }
}
