//! A client for etcd 3.4 to 3.6.
//!
//! A call is made on one endpoint, once, within one time limit. If it fails, [`EtcdError`] says whether it may have been
//! applied, and the next call is made on the next endpoint; repeating is the caller's business. A watch ends with an
//! error when its member is lost; the caller begins another one after the last revision that it has seen.
//!
//! ```text
//!   EtcdClient ──call──▶ Endpoint ──connect──▶ Connection (HTTP/2, TLS) ──gRPC──▶ member
//!     │ token of the user   │ one of several       └ examined while something waits on it
//!     └ time limit          └ the next one after a failure
//! ```
//!
//! Deliberately absent: retries, elections, locks, keys with a common prefix, snapshots, changes of members and users.
//!
//! ```no_run
//! use forewarn_etcd::{Condition, EtcdClient, EtcdSettings, Operation, Transaction, Url};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = EtcdSettings::new(vec![Url::parse("http://127.0.0.1:2379")?]);
//! let client = EtcdClient::new(settings)?;
//! let create = Transaction::new().when(Condition::absent("name")).then(Operation::put("name", "value"));
//! match client.transact(&create).await {
//!     Ok(answer) => println!("created: {}", answer.succeeded),
//!     Err(error) if error.may_be_applied() => println!("read the key again: {error}"),
//!     Err(error) => println!("not created: {error}"),
//! }
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

mod call;
mod channel;
mod classify;
mod client;
mod codec;
mod connection;
mod endpoint;
mod error;
mod keys;
mod leases;
mod login;
mod members;
mod messages;
mod method;
mod settings;
mod tls;
mod transaction;
mod watch;

pub use bytes::Bytes;
pub use forewarn_url::Url;

pub use client::{EtcdClient, Header};
pub use error::{Doubt, EtcdError, Obstacle, Rejection};
pub use keys::{DeleteAnswer, FoundKeys, KeyRange, KeyValue, PutOperation, RangeAnswer, RangeQuery};
pub use leases::LeaseAnswer;
pub use members::{Alarm, AlarmKind, Member, MemberStatus, MembersAnswer};
pub use settings::{ENDPOINTS_MAX, EtcdLimits, EtcdLogin, EtcdSettings, SettingsError};
pub use tls::{ClientCertificate, TlsError};
pub use transaction::{
    Condition, Operation, OperationAnswer, Property, Relation, Transaction, TransactionAnswer,
};
pub use watch::{ProgressOrigin, Watch, WatchEnd, WatchEvent, WatchItem, WatchQuery};
