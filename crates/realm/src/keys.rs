//! The keys of a realm: their layout, printed and parsed.
//!
//! ```text
//!   P realm                                       identity of the realm
//!   P secret/<name>
//!   P server/<name>                               a live server
//!   P owner/<stream>                              server and term
//!   P preferred/<stream>                          preferred owner
//!   P head/<stream>                               position of a stream
//!   P log/<stream>/<number>                       one batch
//!   P part/<stream>/<term>/<number>.<batch>/<i>   part of a large batch
//!   P snapshot/<stream>/<term>.<base>.<id>/<i>    part of a state
//!   P archived/<server>                           numbers on the disk of a server
//!   P draining/<server>                           a server that gives its streams away
//! ```
//!
//! Numbers have a fixed width, so that keys sort by number. Parts and snapshots carry an id, so that servers that write
//! to the shared stream at the same time never write the same key.

use std::fmt;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use forewarn_control::Stream;
use forewarn_ownership::{BatchId, ServerName, Term};
use forewarn_types::Name;

use crate::engine::KeySpan;

/// Maximum bytes of a prefix.
const PREFIX_BYTES_MAX: usize = 200;

/// Digits of a number in a key.
const NUMBER_DIGITS: usize = 20;

/// Digits of the number of a part.
const PART_DIGITS: usize = 6;

/// The beginning of all keys of a realm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    prefix: String,
}

/// A text that is no prefix of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a prefix of keys: it begins and ends with `/`, and has at most 200 printable ASCII characters")]
pub struct BadPrefix;

/// The id of a snapshot: different writers of the same state use different keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId {
    /// The term of the writer.
    pub term: Term,
    /// The number of the last batch that is part of the state.
    pub base: u64,
    /// Random bytes.
    pub nonce: [u8; 8],
}

/// A key of a realm, without the prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RealmKey {
    /// The identity of the realm.
    Realm,
    /// A secret.
    Secret(Name),
    /// A live server.
    Server(ServerName),
    /// The owner of a stream.
    Owner(Stream),
    /// The preferred owner of a stream.
    Preferred(Stream),
    /// The position of a stream.
    Head(Stream),
    /// A batch.
    Log(Stream, u64),
    /// A part of a large batch.
    Part(PartKey),
    /// A part of a state.
    Snapshot(Stream, SnapshotId, u32),
    /// The numbers of batches on the disk of a server.
    Archived(ServerName),
    /// An operator's order to a server to give its streams away.
    Draining(ServerName),
}

/// The key of a part of a large batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartKey {
    pub stream: Stream,
    pub term: Term,
    /// The number of the batch.
    pub number: u64,
    pub batch: BatchId,
    /// The number of the part, from 0.
    pub part: u32,
}

/// The kinds of keys that have a value per stream or server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyFamily {
    Server,
    Owner,
    Preferred,
    Head,
    Archived,
    Draining,
}

impl Keyspace {
    /// The keys that begin with a prefix, such as `/forewarn/1/`.
    ///
    /// # Errors
    /// Fails if the text does not begin and end with `/`, or is too long.
    pub fn new(prefix: &str) -> Result<Self, BadPrefix> {
        let is_framed = prefix.len() > 1 && prefix.starts_with('/') && prefix.ends_with('/');
        if is_framed && prefix.len() <= PREFIX_BYTES_MAX && prefix.bytes().all(|byte| byte.is_ascii_graphic())
        {
            Ok(Self { prefix: prefix.to_owned() })
        } else {
            Err(BadPrefix)
        }
    }

    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The bytes of a key.
    #[must_use]
    pub fn key(&self, key: &RealmKey) -> Bytes {
        format!("{}{key}", self.prefix).into()
    }

    /// The key with these bytes. None if it is no key of the realm.
    #[must_use]
    pub fn parse(&self, bytes: &[u8]) -> Option<RealmKey> {
        let text = std::str::from_utf8(bytes).ok()?;
        RealmKey::parse(text.strip_prefix(&self.prefix)?)
    }

    /// All keys of the realm.
    #[must_use]
    pub fn all(&self) -> KeySpan {
        KeySpan::prefix(&self.prefix)
    }

    /// The keys that followers need. Parts of batches and of states are not among them: these are read when needed.
    pub(crate) fn followed(&self) -> [KeySpan; 2] {
        let between = |first: &str, end: &str| {
            KeySpan::between(format!("{}{first}", self.prefix), format!("{}{end}", self.prefix))
        };
        // Archives, drains, heads, logs, owners; then preferences, the realm, secrets, servers.
        [between("archived/", "part/"), between("preferred/", "snapshot/")]
    }

    /// All keys of a family.
    pub(crate) fn family(&self, family: KeyFamily) -> KeySpan {
        let name = match family {
            KeyFamily::Server => "server",
            KeyFamily::Owner => "owner",
            KeyFamily::Preferred => "preferred",
            KeyFamily::Head => "head",
            KeyFamily::Archived => "archived",
            KeyFamily::Draining => "draining",
        };
        KeySpan::prefix(&format!("{}{name}/", self.prefix))
    }

    /// The keys of batches from one number to another, both included.
    pub(crate) fn log_between(&self, stream: Stream, first: u64, last: u64) -> KeySpan {
        let end = last.checked_add(1).map(|end| self.key(&RealmKey::Log(stream, end)));
        match end {
            Some(end) => KeySpan::between(self.key(&RealmKey::Log(stream, first)), end),
            None => KeySpan::between(
                self.key(&RealmKey::Log(stream, first)),
                format!("{}log/{stream}0", self.prefix),
            ),
        }
    }

    /// The keys of all batches of a stream.
    pub(crate) fn log(&self, stream: Stream) -> KeySpan {
        KeySpan::prefix(&format!("{}log/{stream}/", self.prefix))
    }

    /// The keys of all parts of batches of a stream.
    pub(crate) fn parts(&self, stream: Stream) -> KeySpan {
        KeySpan::prefix(&format!("{}part/{stream}/", self.prefix))
    }

    /// The keys of the parts of one batch.
    pub(crate) fn parts_of(&self, first: PartKey) -> KeySpan {
        let text = RealmKey::Part(PartKey { part: 0, ..first }).to_string();
        KeySpan::prefix(&format!("{}{}", self.prefix, without_last(&text)))
    }

    /// The keys of all snapshots of a stream.
    pub(crate) fn snapshots(&self, stream: Stream) -> KeySpan {
        KeySpan::prefix(&format!("{}snapshot/{stream}/", self.prefix))
    }

    /// The keys of one snapshot.
    pub(crate) fn snapshot(&self, stream: Stream, id: SnapshotId) -> KeySpan {
        KeySpan::prefix(&format!("{}snapshot/{stream}/{id}/", self.prefix))
    }
}

/// A text up to its last slash.
fn without_last(text: &str) -> &str {
    text.rfind('/').map_or(text, |at| &text[..=at])
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { term: Term(term), base, nonce } = self;
        write!(out, "{term:020}.{base:020}.{}", HEXLOWER.encode(nonce))
    }
}

impl fmt::Display for RealmKey {
    /// The key without the prefix.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Realm => write!(out, "realm"),
            Self::Secret(name) => write!(out, "secret/{name}"),
            Self::Server(name) => write!(out, "server/{name}"),
            Self::Owner(stream) => write!(out, "owner/{stream}"),
            Self::Preferred(stream) => write!(out, "preferred/{stream}"),
            Self::Head(stream) => write!(out, "head/{stream}"),
            Self::Log(stream, number) => write!(out, "log/{stream}/{number:020}"),
            Self::Part(PartKey { stream, term: Term(term), number, batch, part }) => {
                let batch = HEXLOWER.encode(&batch.0);
                write!(out, "part/{stream}/{term:020}/{number:020}.{batch}/{part:06}")
            }
            Self::Snapshot(stream, id, part) => write!(out, "snapshot/{stream}/{id}/{part:06}"),
            Self::Archived(name) => write!(out, "archived/{name}"),
            Self::Draining(name) => write!(out, "draining/{name}"),
        }
    }
}

impl RealmKey {
    /// The number of a batch in the log.
    pub(crate) fn as_log(&self) -> Option<u64> {
        if let Self::Log(_, number) = self { Some(*number) } else { None }
    }

    /// A part of a batch.
    pub(crate) fn as_part(&self) -> Option<PartKey> {
        if let Self::Part(part) = self { Some(*part) } else { None }
    }

    /// The snapshot of a part of a state.
    pub(crate) fn as_snapshot(&self) -> Option<SnapshotId> {
        if let Self::Snapshot(_, id, _) = self { Some(*id) } else { None }
    }

    /// Parses a key without its prefix: only what [`Display`](fmt::Display) prints.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split('/');
        let key = match words.next()? {
            "realm" => Self::Realm,
            "secret" => Self::Secret(Name::new(words.next()?).ok()?),
            "server" => Self::Server(ServerName::new(words.next()?).ok()?),
            "owner" => Self::Owner(words.next()?.parse().ok()?),
            "preferred" => Self::Preferred(words.next()?.parse().ok()?),
            "head" => Self::Head(words.next()?.parse().ok()?),
            "log" => Self::Log(words.next()?.parse().ok()?, fixed(words.next()?, NUMBER_DIGITS)?),
            "part" => {
                let stream = words.next()?.parse().ok()?;
                let term = Term(fixed(words.next()?, NUMBER_DIGITS)?);
                let (number, batch) = words.next()?.split_once('.')?;
                let (number, batch) = (fixed(number, NUMBER_DIGITS)?, BatchId(hex(batch)?));
                let part = part(words.next()?)?;
                Self::Part(PartKey { stream, term, number, batch, part })
            }
            "snapshot" => {
                let stream = words.next()?.parse().ok()?;
                let id = SnapshotId::parse(words.next()?)?;
                Self::Snapshot(stream, id, part(words.next()?)?)
            }
            "archived" => Self::Archived(ServerName::new(words.next()?).ok()?),
            "draining" => Self::Draining(ServerName::new(words.next()?).ok()?),
            _ => return None,
        };
        words.next().is_none().then_some(key)
    }
}

impl SnapshotId {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split('.');
        let term = Term(fixed(words.next()?, NUMBER_DIGITS)?);
        let base = fixed(words.next()?, NUMBER_DIGITS)?;
        let nonce = hex(words.next()?)?;
        words.next().is_none().then_some(Self { term, base, nonce })
    }
}

fn part(text: &str) -> Option<u32> {
    u32::try_from(fixed(text, PART_DIGITS)?).ok()
}

/// A number with exactly so many digits.
fn fixed(text: &str, digits: usize) -> Option<u64> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Bytes in lower-case hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use forewarn_control::ClusterId;
    use proptest::prelude::*;

    use super::*;

    fn streams() -> impl Strategy<Value = Stream> {
        prop_oneof![Just(Stream::Shared), any::<u32>().prop_map(|id| Stream::Cluster(ClusterId(id)))]
    }

    fn names() -> impl Strategy<Value = Name> {
        "[A-Za-z0-9._-]{1,40}".prop_filter_map("dots", |text| Name::new(&text).ok())
    }

    fn keys() -> impl Strategy<Value = RealmKey> {
        let part = (streams(), any::<u64>(), any::<u64>(), any::<[u8; 16]>(), 0..1_000_000u32);
        let part = part.prop_map(|(stream, term, number, batch, part)| {
            RealmKey::Part(PartKey { stream, term: Term(term), number, batch: BatchId(batch), part })
        });
        let snapshot = (streams(), any::<u64>(), any::<u64>(), any::<[u8; 8]>(), 0..1_000_000u32);
        let snapshot = snapshot.prop_map(|(stream, term, base, nonce, part)| {
            RealmKey::Snapshot(stream, SnapshotId { term: Term(term), base, nonce }, part)
        });
        prop_oneof![
            Just(RealmKey::Realm),
            names().prop_map(RealmKey::Secret),
            names().prop_map(|name| RealmKey::Server(name.into())),
            streams().prop_map(RealmKey::Owner),
            streams().prop_map(RealmKey::Preferred),
            streams().prop_map(RealmKey::Head),
            (streams(), any::<u64>()).prop_map(|(stream, number)| RealmKey::Log(stream, number)),
            part,
            snapshot,
            names().prop_map(|name| RealmKey::Archived(name.into())),
            names().prop_map(|name| RealmKey::Draining(name.into())),
        ]
    }

    proptest! {
        #[test]
        fn keys_are_parsed_as_they_were_printed(key in keys()) {
            let keyspace = Keyspace::new("/forewarn/1/").unwrap();
            let bytes = keyspace.key(&key);
            prop_assert_eq!(keyspace.parse(&bytes), Some(key));
            prop_assert!(keyspace.all().contains(&bytes));
            prop_assert_eq!(Keyspace::new("/forewarn/2/").unwrap().parse(&bytes), None);
        }

        #[test]
        fn followers_need_every_key_but_parts(key in keys()) {
            let keyspace = Keyspace::new("/p/").unwrap();
            let bytes = keyspace.key(&key);
            let is_followed = keyspace.followed().iter().any(|span| span.contains(&bytes));
            prop_assert_eq!(is_followed, !matches!(key, RealmKey::Part(_) | RealmKey::Snapshot(..)));
        }

        #[test]
        fn a_text_that_is_parsed_is_the_one_that_is_printed(text in "[a-z]{0,9}(/[a-z0-9.-]{0,41}){0,4}") {
            if let Some(key) = RealmKey::parse(&text) {
                prop_assert_eq!(key.to_string(), text);
            }
        }

        #[test]
        fn batches_sort_by_number(stream in streams(), one in any::<u64>(), other in any::<u64>()) {
            let key = |number| RealmKey::Log(stream, number).to_string();
            prop_assert_eq!(key(one).cmp(&key(other)), one.cmp(&other));
        }

        #[test]
        fn a_range_of_the_log_has_its_ends_and_nothing_else(
            stream in streams(), other in streams(), (first, last) in (any::<u64>(), any::<u64>()), number in any::<u64>(),
        ) {
            let keyspace = Keyspace::new("/p/").unwrap();
            let (first, last) = (first.min(last), first.max(last));
            let span = keyspace.log_between(stream, first, last);
            let key = |stream, number| keyspace.key(&RealmKey::Log(stream, number));
            prop_assert!(span.contains(&key(stream, first)) && span.contains(&key(stream, last)));
            prop_assert_eq!(span.contains(&key(stream, number)), (first..=last).contains(&number));
            prop_assert!(stream == other || !span.contains(&key(other, first)));
        }
    }

    #[test]
    fn a_prefix_begins_and_ends_with_a_slash() {
        for good in ["/forewarn/1/", "/a/"] {
            assert!(Keyspace::new(good).is_ok());
        }
        let long = format!("/{}/", "a".repeat(200));
        for bad in ["", "/", "a/", "/a", "/a b/", "/ü/", &long] {
            assert_eq!(Keyspace::new(bad), Err(BadPrefix));
        }
    }
}
