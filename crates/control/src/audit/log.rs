//! The audit log: requests and their effects, one entry after the other, chained by hash. Each stream has a chain of its
//! own; servers of older versions wrote one chain for all streams, the *common log*.
//!
//! It has three kinds of readers: auditors (who requested what), explanations (the history of a machine), and
//! `watch`. An entry cannot be changed, removed or inserted without changing every hash after it. Nothing is stored
//! here: a writer holds a [`Chain`] and seals entries with it, a reader verifies them with another.
//!
//! ```text
//!   hash 0 = 32 zero bytes
//!   hash n = SHA-256(hash n-1 as 32 bytes, compact JSON of entry n without the member `hash`)
//! ```
//!
//! ```
//! use forewarn_control::{Chain, NewAuditEntry, AuditEntry};
//!
//! let mut chain = Chain::default();
//! let entry = NewAuditEntry { by: "token alice".to_owned(), text: "restart web_0".to_owned(), ..NewAuditEntry::default() };
//! let line = chain.seal(entry).to_line();
//!
//! let read: AuditEntry = serde_json::from_str(&line)?;
//! assert_eq!(Chain::default().verify(&read), Ok(()));
//! let changed = AuditEntry { by: "token bob".to_owned(), ..read };
//! assert!(Chain::default().verify(&changed).is_err());
//! # Ok::<_, serde_json::Error>(())
//! ```

use std::fmt;

use data_encoding::HEXLOWER;
use forewarn_lifecycle::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::audit::command_json::CommandJson;
use crate::audit::host_notice::HostNotice;
use crate::audit::notice::Notice;
use crate::audit::subject::Subject;
use crate::stream::{ClusterId, Stream};
use forewarn_types::Moment;

/// Maximum size of a sealed entry as JSON. Longer content is cut.
pub const ENTRY_BYTES_MAX: usize = 5 << 20;

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    /// Number of the entry within its stream: without gaps, from 1 or from the end of the common log.
    pub number: u64,
    /// Time of the entry.
    pub at: Moment,
    /// Name of the cluster at that time; empty if the entry is about the whole server.
    pub cluster: String,
    /// The caller: `token NAME`, `socket`, `anyone`, `machine TENANT/NAME`, or `forewarn` itself.
    pub by: String,
    /// Kind of the entry: `command`, or the kind of a fact.
    pub kind: String,
    /// The entry as a sentence.
    pub text: String,
    /// Number of the cluster. It is never reused and survives a rename; absent for the default cluster.
    #[serde(default, skip_serializing_if = "is_first")]
    pub cluster_number: u32,
    /// Affected tenants.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// Affected machines, as `tenant/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
    /// Affected hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Affected events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Number of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<u64>,
    /// Number of the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    /// Number of the entry of the command that caused this one, in the same stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<u64>,
    /// The command, as it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandJson>,
    /// The state of events after this entry, for webhooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// The state of a step on a host that a person carries out, for webhooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_notice: Option<Box<HostNotice>>,
    /// The reason of a failure, as the driver program gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The chain of the entry. Absent in the common log, which servers of older versions wrote for all streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// SHA-256 over the hash before and all of the above, in lower-case hexadecimal digits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// An entry before it has its number and its hash. Fields are those of [`AuditEntry`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "they are those of an entry")]
pub struct NewAuditEntry {
    pub at: Moment,
    pub cluster: String,
    pub cluster_number: u32,
    pub by: String,
    pub kind: String,
    pub text: String,
    pub tenants: Vec<String>,
    pub machines: Vec<String>,
    pub hosts: Vec<String>,
    pub events: Vec<String>,
    pub work: Option<u64>,
    pub rollout: Option<u64>,
    pub because: Option<u64>,
    pub command: Option<CommandJson>,
    pub notices: Vec<Notice>,
    pub host_notice: Option<Box<HostNotice>>,
    pub reason: Option<String>,
    pub stream: Option<Stream>,
}

impl Default for NewAuditEntry {
    /// An empty entry of the common log, at the beginning of time.
    fn default() -> Self {
        let (cluster, by, kind, text) = <(String, String, String, String)>::default();
        let (tenants, machines, hosts, events) = <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        let (work, rollout, because, command) = (None, None, None, None);
        let at = Moment(Timestamp::from_millis(0));
        Self {
            at,
            cluster,
            cluster_number: 0,
            by,
            kind,
            text,
            tenants,
            machines,
            hosts,
            events,
            work,
            rollout,
            because,
            command,
            notices: Vec::new(),
            host_notice: None,
            reason: None,
            stream: None,
        }
    }
}

impl AuditEntry {
    /// Returns true if webhooks are notified of the entry.
    #[must_use]
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty() || self.host_notice.is_some()
    }
}

impl From<AuditEntry> for NewAuditEntry {
    /// The entry without its number and its hash.
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { at, cluster, cluster_number, by, kind, text, tenants, machines, hosts, .. } = entry;
        let AuditEntry {
            events,
            work,
            rollout,
            because,
            command,
            notices,
            host_notice,
            reason,
            stream,
            number: _,
            hash: _,
            ..
        } = entry;
        Self {
            at,
            cluster,
            cluster_number,
            by,
            kind,
            text,
            tenants,
            machines,
            hosts,
            events,
            work,
            rollout,
            because,
            command,
            notices,
            host_notice,
            reason,
            stream,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_first(cluster_number: &u32) -> bool {
    *cluster_number == 0
}

/// Index key of a cluster: its number, since names can change. The default cluster has had one name for ever.
#[must_use]
pub fn cluster_key(number: u32, name: &str) -> String {
    if number == 0 { name.to_owned() } else { format!("#{number}") }
}

/// The end of an audit log: the number and the hash of its last entry. The next entry is chained to it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Chain {
    /// The number of the last entry; 0 before the first.
    pub number: u64,
    /// The hash of the last entry; zeros before the first.
    pub hash: [u8; 32],
}

/// An entry that does not follow those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenLink {
    #[error("audit entry {expected} is missing: entry {found} comes next")]
    Missing {
        expected: u64,
        /// The number that was found.
        found: u64,
    },
    /// An entry is repeated, or out of order.
    #[error("audit entry {found} is in the place of entry {expected}: it is repeated, or out of order")]
    Again {
        expected: u64,
        /// The number that was found.
        found: u64,
    },
    /// The hash of the entry does not match.
    #[error("audit entry {0}, or the one before it, was changed: its hash is wrong")]
    Hash(u64),
    /// An entry of the common log after the first of a stream: streams continue the common log, which has ended.
    #[error("audit entry {0} of the common log comes after the end of that log")]
    Late(u64),
    /// The chain ends before an entry that is known to exist.
    #[error("audit entry {expected} is missing: the last one is entry {last}")]
    Short { expected: u64, last: u64 },
    /// The chain begins after an entry that is known to exist.
    #[error("audit entry {expected} is missing: the first one is entry {first}")]
    Begun { expected: u64, first: u64 },
}

impl Chain {
    /// The chain after a trusted entry: to verify a part of an audit log.
    ///
    /// # Errors
    /// Fails if its hash is malformed.
    pub fn at(entry: &AuditEntry) -> Result<Self, BrokenLink> {
        Self::from_hex(entry.number, &entry.hash).ok_or(BrokenLink::Hash(entry.number))
    }

    /// The chain that ends with that number and hash, in hexadecimal digits as entries show it. None if the hash is
    /// malformed.
    #[must_use]
    pub fn from_hex(number: u64, hash: &str) -> Option<Self> {
        parse_hash(hash).map(|hash| Self { number, hash })
    }

    /// Seals the next entry. Content beyond the limits is cut, and the entry says so.
    pub fn seal(&mut self, new: NewAuditEntry) -> AuditEntry {
        let new = new.bounded();
        let NewAuditEntry {
            at,
            cluster,
            cluster_number,
            by,
            kind,
            text,
            tenants,
            machines,
            hosts,
            events,
            ..
        } = new;
        let NewAuditEntry { work, rollout, because, command, notices, host_notice, reason, stream, .. } = new;
        let (number, hash) = (self.number + 1, String::new());
        let mut entry = AuditEntry {
            number,
            at,
            cluster,
            cluster_number,
            by,
            kind,
            text,
            tenants,
            machines,
            hosts,
            events,
            work,
            rollout,
            because,
            command,
            notices,
            host_notice,
            reason,
            stream,
            hash,
        };
        *self = Self { number, hash: self.hash_of(&[&entry.to_line()]) };
        entry.hash = self.hash_in_hex();
        entry
    }

    /// Verifies the next entry, and advances past it. After an error the chain is unchanged.
    ///
    /// # Errors
    /// Fails if the entry is not the next, or was changed.
    pub fn verify(&mut self, entry: &AuditEntry) -> Result<(), BrokenLink> {
        self.verify_line(entry, &entry.to_line())
    }

    /// Verifies the next entry, whose [line](AuditEntry::to_line) is there already, and advances past it. After an
    /// error the chain is unchanged.
    ///
    /// # Errors
    /// Fails if the entry is not the next, or was changed.
    pub fn verify_line(&mut self, entry: &AuditEntry, line: &str) -> Result<(), BrokenLink> {
        let (expected, found) = (self.number + 1, entry.number);
        if found > expected {
            return Err(BrokenLink::Missing { expected, found });
        }
        if found < expected {
            return Err(BrokenLink::Again { expected, found });
        }
        let after = Self::at(entry)?;
        // The hash is the last member, and was checked to have 64 digits.
        let end = r#","hash":""}"#.len() + entry.hash.len();
        let content = line.len().checked_sub(end).and_then(|length| line.get(..length));
        if content.is_none_or(|content| self.hash_of(&[content, "}"]) != after.hash) {
            return Err(BrokenLink::Hash(found));
        }
        *self = after;
        Ok(())
    }

    /// The hash of the last entry, as entries show it.
    #[must_use]
    pub fn hash_in_hex(&self) -> String {
        hex(&self.hash)
    }

    /// The hash of an entry, of which these are the parts of its line.
    fn hash_of(&self, parts: &[&str]) -> [u8; 32] {
        let hash = Sha256::new().chain_update(self.hash);
        parts.iter().fold(hash, Digest::chain_update).finalize().into()
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Chain({} {})", self.number, self.hash_in_hex())
    }
}

impl AuditEntry {
    /// The part of the state that the entry belongs to. In the common log, the cluster tells it.
    #[must_use]
    pub fn belongs_to(&self) -> Stream {
        self.stream.unwrap_or_else(|| {
            let cluster = Stream::Cluster(ClusterId(self.cluster_number));
            if self.cluster.is_empty() { Stream::Shared } else { cluster }
        })
    }

    /// The entry as one line of compact JSON, without the end of the line.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON, and keys are texts")
    }

    /// All subjects of the entry, each once.
    #[must_use]
    pub fn subjects(&self) -> Vec<Subject> {
        let cluster = || self.cluster_key();
        let named = |name: &String| (cluster(), name.clone());
        let mut all = vec![Subject::By(self.by.clone()), Subject::Kind(self.kind.clone())];
        if !self.cluster.is_empty() {
            all.push(Subject::Cluster(cluster()));
        }
        all.extend(self.tenants.iter().map(named).map(|(cluster, name)| Subject::Tenant { cluster, name }));
        all.extend(self.machines.iter().map(named).map(|(cluster, name)| Subject::Machine { cluster, name }));
        all.extend(self.hosts.iter().map(named).map(|(cluster, name)| Subject::Host { cluster, name }));
        all.extend(self.events.iter().map(named).map(|(cluster, id)| Subject::Event { cluster, id }));
        all.extend(self.work.map(|number| Subject::Work { cluster: cluster(), number }));
        all.extend(self.rollout.map(|number| Subject::Rollout { cluster: cluster(), number }));
        all.extend(self.because.map(|number| Subject::Because { stream: self.stream, number }));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Index key of the entry's cluster.
    #[must_use]
    pub fn cluster_key(&self) -> String {
        cluster_key(self.cluster_number, &self.cluster)
    }

    /// Returns true if the entry has that subject.
    #[must_use]
    pub fn concerns(&self, subject: &Subject) -> bool {
        let of = |cluster: &String| self.cluster_key() == *cluster;
        let among = |list: &[String], cluster: &String, name: &String| of(cluster) && list.contains(name);
        match subject {
            Subject::By(by) => self.by == *by,
            Subject::Kind(kind) => self.kind == *kind,
            Subject::Cluster(cluster) => of(cluster) && !cluster.is_empty(),
            Subject::Tenant { cluster, name } => among(&self.tenants, cluster, name),
            Subject::Machine { cluster, name } => among(&self.machines, cluster, name),
            Subject::Host { cluster, name } => among(&self.hosts, cluster, name),
            Subject::Event { cluster, id } => among(&self.events, cluster, id),
            Subject::Work { cluster, number } => of(cluster) && self.work == Some(*number),
            Subject::Rollout { cluster, number } => of(cluster) && self.rollout == Some(*number),
            Subject::Because { stream, number } => self.stream == *stream && self.because == Some(*number),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// The bytes of a hash as [`hex`] writes it; None for any other text.
fn parse_hash(text: &str) -> Option<[u8; 32]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}
