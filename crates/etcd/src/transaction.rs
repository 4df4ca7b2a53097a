//! Transactions: conditions, and operations that are applied together if they hold, or others if not.

use bytes::Bytes;

use crate::client::{ChosenEndpoint, EtcdClient, Header};
use crate::error::{Doubt, EtcdError};
use crate::keys::{FoundKeys, KeyRange, PutOperation, RangeQuery};
use crate::messages::{
    CompareMessage, CompareTarget, DeleteRangeRequest, RequestOp, RequestUnion, ResponseOp, ResponseUnion,
    TxnRequest, TxnResponse, compare_results, compare_targets,
};
use crate::method::TXN;

/// A transaction. Without conditions, the operations of `then` are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    conditions: Vec<Condition>,
    then: Vec<Operation>,
    otherwise: Vec<Operation>,
}

/// A condition on a property of a key, or of every key of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    keys: KeyRange,
    property: Property,
    relation: Relation,
}

/// A property of a key, with the value that it is compared with. A key that does not exist has 0 for all numbers, and
/// no value: a condition on it never holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    /// Number of writes since the key was created.
    Version(i64),
    /// Revision at which the key was created last.
    CreateRevision(i64),
    /// Revision at which the key was written last.
    ModRevision(i64),
    /// The value.
    Value(Bytes),
    /// Lease of the key.
    Lease(i64),
}

/// The relation of a property to the value that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The property is the value.
    Equal,
    /// The property is another value.
    NotEqual,
    /// The property is greater.
    Greater,
    /// The property is less.
    Less,
}

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read.
    Range(RangeQuery),
    /// A write.
    Put(PutOperation),
    /// A deletion.
    Delete(KeyRange),
}

/// Answer to an operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationAnswer {
    /// Answer to a read.
    Range(FoundKeys),
    /// Answer to a write.
    Put,
    /// Number of deleted keys.
    Delete(i64),
}

/// Answer to a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionAnswer {
    /// State of the store after the transaction. If it has written, the revision is that of its writes.
    pub header: Header,
    /// True if all conditions held.
    pub succeeded: bool,
    /// Answers to the operations that were applied, in their order.
    pub answers: Vec<OperationAnswer>,
}

impl Transaction {
    /// A transaction without conditions and operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition.
    #[must_use]
    pub fn when(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    /// Adds an operation for the case that all conditions hold.
    #[must_use]
    pub fn then(mut self, operation: Operation) -> Self {
        self.then.push(operation);
        self
    }

    /// Adds an operation for the case that a condition does not hold.
    #[must_use]
    pub fn otherwise(mut self, operation: Operation) -> Self {
        self.otherwise.push(operation);
        self
    }

    fn message(&self) -> TxnRequest {
        TxnRequest {
            compare: self.conditions.iter().map(Condition::message).collect(),
            success: self.then.iter().map(Operation::message).collect(),
            failure: self.otherwise.iter().map(Operation::message).collect(),
        }
    }
}

impl Condition {
    /// A condition on a property.
    #[must_use]
    pub fn new(keys: KeyRange, relation: Relation, property: Property) -> Self {
        Self { keys, property, relation }
    }

    /// The key does not exist.
    #[must_use]
    pub fn absent(key: impl Into<Bytes>) -> Self {
        Self::new(KeyRange::key(key), Relation::Equal, Property::CreateRevision(0))
    }

    /// The key was last written at this revision.
    #[must_use]
    pub fn written_at(key: impl Into<Bytes>, mod_revision: i64) -> Self {
        Self::new(KeyRange::key(key), Relation::Equal, Property::ModRevision(mod_revision))
    }

    /// The key was created at this revision, and has existed since then.
    #[must_use]
    pub fn created_at(key: impl Into<Bytes>, create_revision: i64) -> Self {
        Self::new(KeyRange::key(key), Relation::Equal, Property::CreateRevision(create_revision))
    }

    /// The key has this value.
    #[must_use]
    pub fn value(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self::new(KeyRange::key(key), Relation::Equal, Property::Value(value.into()))
    }

    fn message(&self) -> CompareMessage {
        let result = match self.relation {
            Relation::Equal => compare_results::EQUAL,
            Relation::Greater => compare_results::GREATER,
            Relation::Less => compare_results::LESS,
            Relation::NotEqual => compare_results::NOT_EQUAL,
        };
        let (target, target_union) = match &self.property {
            Property::Version(version) => (compare_targets::VERSION, CompareTarget::Version(*version)),
            Property::CreateRevision(revision) => {
                (compare_targets::CREATE, CompareTarget::CreateRevision(*revision))
            }
            Property::ModRevision(revision) => (compare_targets::MOD, CompareTarget::ModRevision(*revision)),
            Property::Value(value) => (compare_targets::VALUE, CompareTarget::Value(value.clone())),
            Property::Lease(lease) => (compare_targets::LEASE, CompareTarget::Lease(*lease)),
        };
        let (key, range_end) = (self.keys.key.clone(), self.keys.end.clone());
        CompareMessage { result, target, key, target_union: Some(target_union), range_end }
    }
}

impl Operation {
    /// A write without a lease.
    #[must_use]
    pub fn put(key: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self::Put(PutOperation::new(key, value))
    }

    fn message(&self) -> RequestOp {
        let request = match self {
            Self::Range(query) => RequestUnion::Range(query.message()),
            Self::Put(put) => RequestUnion::Put(put.message()),
            Self::Delete(KeyRange { key, end }) => {
                let (key, range_end) = (key.clone(), end.clone());
                RequestUnion::DeleteRange(DeleteRangeRequest { key, range_end })
            }
        };
        RequestOp { request: Some(request) }
    }
}

impl OperationAnswer {
    fn of(response: ResponseOp) -> Option<Self> {
        Some(match response.response? {
            ResponseUnion::Range(response) => Self::Range(FoundKeys::of(response)),
            ResponseUnion::Put(_) => Self::Put,
            ResponseUnion::DeleteRange(response) => Self::Delete(response.deleted),
        })
    }
}

impl TransactionAnswer {
    fn of(response: TxnResponse, chosen: &ChosenEndpoint) -> Result<Self, EtcdError> {
        let TxnResponse { header, succeeded, responses } = response;
        let answers: Option<Vec<_>> = responses.into_iter().map(OperationAnswer::of).collect();
        let unknown =
            || EtcdError::unknown(chosen.name(), Doubt::InvalidAnswer, "answer to an unknown operation");
        Ok(Self { header: Header::of(header, chosen)?, succeeded, answers: answers.ok_or_else(unknown)? })
    }
}

impl EtcdClient {
    /// Applies a transaction.
    ///
    /// # Errors
    /// Fails if there is no answer, or etcd rejects the request. A condition that does not hold is no error.
    pub async fn transact(&self, transaction: &Transaction) -> Result<TransactionAnswer, EtcdError> {
        let chosen = self.chosen();
        let response: TxnResponse = self.call_at(&chosen, TXN, &transaction.message()).await?;
        TransactionAnswer::of(response, &chosen)
    }
}
