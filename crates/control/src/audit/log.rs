//! The trail: what was asked for and what has happened, one entry after the other, chained by hash.
//!
//! It is one chronicle for three readers: who audits (who asked for what), who explains (what has happened to a machine), and who
//! watches. An entry cannot be changed, taken out or put in between without every hash after it being another one. Nothing is kept
//! here: who writes entries holds a [`Chain`] and seals what is told with it, who reads them verifies with another.
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
//! let told = NewAuditEntry { by: "token alice".to_owned(), text: "restart web_0".to_owned(), ..NewAuditEntry::default() };
//! let line = chain.seal(told).to_line();
//!
//! let read: AuditEntry = serde_json::from_str(&line)?;
//! assert_eq!(Chain::default().verify(&read), Ok(()));
//! let changed = AuditEntry { by: "token bob".to_owned(), ..read };
//! assert!(Chain::default().verify(&changed).is_err());
//! # Ok::<_, serde_json::Error>(())
//! ```

use std::fmt;

use forewarn_lifecycle::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::audit::notice::Notice;
use crate::stream::{ClusterId, Stream};
use forewarn_types::Moment;

/// Bytes of an entry as JSON: whatever is told, no sealed entry has more.
pub const ENTRY_BYTES_MAX: usize = 5 << 20;

/// One entry of the trail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditEntry {
    /// Its number: from 1 on, without a gap.
    pub number: u64,
    /// When.
    pub at: Moment,
    /// The cluster it is about, as it was called then; none, if it is about all.
    pub cluster: String,
    /// Who: `token NAME`, `socket`, `anyone`, `machine TENANT/NAME`, or `forewarn` itself.
    pub by: String,
    /// What kind of thing: `command`, or that of a happening.
    pub kind: String,
    /// All of it, in words.
    pub text: String,
    /// The number of the cluster, which it keeps under every name, and which no other ever has; nothing for the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub cluster_number: u32,
    /// The tenants concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// The machines concerned, as `tenant/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
    /// The hosts concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// The events concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The work that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<u64>,
    /// The rollout that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<u64>,
    /// The number of the entry of the command that it came of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<u64>,
    /// What was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Value>,
    /// What has become of events by it, for those who are told of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// The reason of a failure, as the driver program gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// SHA-256 over the hash before and all of the above, in lower-case hexadecimal digits.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
}

/// Entries of the trail, as many as are shown at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AuditPage {
    /// In the order that was asked for.
    pub items: Vec<AuditEntry>,
    /// Where to go on: `before` of the request for what follows, or `after`, where the oldest come first. Not there when nothing
    /// does. There may be more although this page is short, or empty: the work for one has a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// The number of the newest entry there is.
    pub head: u64,
    /// The number up to which entries are not kept any more.
    pub swept: u64,
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
    pub command: Option<Value>,
    pub notices: Vec<Notice>,
    pub reason: Option<String>,
}

impl Default for NewAuditEntry {
    /// Nothing is told, at the beginning of time.
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
            reason: None,
        }
    }
}

impl From<AuditEntry> for NewAuditEntry {
    /// The entry without its number and its hash.
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { at, cluster, cluster_number, by, kind, text, tenants, machines, hosts, .. } = entry;
        let AuditEntry {
            events, work, rollout, because, command, notices, reason, number: _, hash: _, ..
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
            reason,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_first(cluster_number: &u32) -> bool {
    *cluster_number == 0
}

/// Under what entries about a cluster are found: its number, since names come and go. The first has had one name for ever.
#[must_use]
pub fn cluster_key(number: u32, name: &str) -> String {
    if number == 0 { name.to_owned() } else { format!("#{number}") }
}

/// Where a trail has come to: the number and the hash of its last entry. The next is chained to it.
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
    /// Entries between are gone.
    #[error("entry {expected} of the trail is missing: entry {found} comes next")]
    Missing {
        /// The number that should have come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// An entry comes where a later one should.
    #[error(
        "entry {found} of the trail comes where entry {expected} should: it comes twice, or out of order"
    )]
    Again {
        /// The number that should have come.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// The hash is another one.
    #[error("entry {0} of the trail, or the one before it, is not what was written: its hash is wrong")]
    Hash(u64),
}

impl Chain {
    /// The chain after an entry that is believed: for a part of a trail that begins in the middle.
    ///
    /// # Errors
    /// When its hash is none.
    pub fn at(entry: &AuditEntry) -> Result<Self, BrokenLink> {
        let hash = parse_hash(&entry.hash).ok_or(BrokenLink::Hash(entry.number))?;
        Ok(Self { number: entry.number, hash })
    }

    /// Makes the next entry. What is greater than an entry may be is cut, and says so.
    pub fn seal(&mut self, told: NewAuditEntry) -> AuditEntry {
        let told = told.bounded();
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
        } = told;
        let NewAuditEntry { work, rollout, because, command, notices, reason, .. } = told;
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
            reason,
            hash,
        };
        *self = Self { number, hash: self.hash_of(&entry.to_line()) };
        entry.hash = self.hash_in_hex();
        entry
    }

    /// Sees that an entry is the next and what was written, and goes on after it. If it is not, the chain stays where it was.
    ///
    /// # Errors
    /// When it is another, or has been changed.
    pub fn verify(&mut self, entry: &AuditEntry) -> Result<(), BrokenLink> {
        let (expected, found) = (self.number + 1, entry.number);
        if found > expected {
            return Err(BrokenLink::Missing { expected, found });
        }
        if found < expected {
            return Err(BrokenLink::Again { expected, found });
        }
        let after = Self::at(entry)?;
        let line = entry.to_line();
        // The hash is the last member, and has been seen to be sixty-four digits.
        let content = line.len() - r#","hash":""}"#.len() - entry.hash.len();
        if self.hash_of(&format!("{}}}", &line[..content])) != after.hash {
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

    fn hash_of(&self, content: &str) -> [u8; 32] {
        Sha256::new().chain_update(self.hash).chain_update(content).finalize().into()
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Chain({} {})", self.number, self.hash_in_hex())
    }
}

impl AuditEntry {
    /// The part of the state that the entry belongs to.
    #[must_use]
    pub fn stream(&self) -> Stream {
        if self.cluster.is_empty() { Stream::Shared } else { Stream::Cluster(ClusterId(self.cluster_number)) }
    }

    /// The entry as one line of compact JSON, without the end of the line.
    #[must_use]
    pub fn to_line(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON, and keys are texts")
    }

    /// Everything under which the entry can be found, each once.
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
        all.extend(self.because.map(Subject::Because));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Under what entries about its cluster are found.
    #[must_use]
    pub fn cluster_key(&self) -> String {
        cluster_key(self.cluster_number, &self.cluster)
    }

    /// Whether it can be found under that subject.
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
            Subject::Because(number) => self.because == Some(*number),
        }
    }
}

/// Something under which entries can be found. Clusters are meant by [`cluster_key`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the fields are names of what it is about")]
pub enum Subject {
    /// Who.
    By(String),
    /// What kind of thing.
    Kind(String),
    /// A cluster.
    Cluster(String),
    /// A tenant of a cluster.
    Tenant { cluster: String, name: String },
    /// A machine of a cluster, as `tenant/name`.
    Machine { cluster: String, name: String },
    /// A host of a cluster.
    Host { cluster: String, name: String },
    /// An event of a cluster.
    Event { cluster: String, id: String },
    /// A piece of work of a cluster.
    Work { cluster: String, number: u64 },
    /// A rollout of a cluster.
    Rollout { cluster: String, number: u64 },
    /// The command of that entry.
    Because(u64),
}

impl fmt::Display for Subject {
    /// A text that is different for each: `default/machine:web/web_0`, `#1/work:7`, `by:token alice`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::By(by) => write!(out, "by:{by}"),
            Self::Kind(kind) => write!(out, "kind:{kind}"),
            Self::Cluster(cluster) => write!(out, "cluster:{cluster}"),
            Self::Tenant { cluster, name } => of_cluster(out, cluster, "tenant", name),
            Self::Machine { cluster, name } => of_cluster(out, cluster, "machine", name),
            Self::Host { cluster, name } => of_cluster(out, cluster, "host", name),
            Self::Event { cluster, id } => of_cluster(out, cluster, "event", id),
            Self::Work { cluster, number } => of_cluster(out, cluster, "work", number),
            Self::Rollout { cluster, number } => of_cluster(out, cluster, "rollout", number),
            Self::Because(number) => write!(out, "because:{number}"),
        }
    }
}

/// What is told apart only within a cluster.
fn of_cluster(
    out: &mut fmt::Formatter<'_>,
    cluster: &str,
    kind: &str,
    which: &dyn fmt::Display,
) -> fmt::Result {
    write!(out, "{cluster}/{kind}:{which}")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value & 0xf)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

/// The bytes of a hash as [`hex`] writes it, and not otherwise.
fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let digits: &[u8; 64] = text.as_bytes().try_into().ok()?;
    let mut hash = [0; 32];
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(hash)
}
