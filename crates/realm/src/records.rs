//! Small values as JSON: the realm, its servers, owners of streams, and the progress of archives.

use std::collections::BTreeMap;

use bytes::Bytes;
use forewarn_control::Stream;
use forewarn_ownership::{OwnerRecord, ServerName, Term};
use forewarn_store::Malformed;
use forewarn_types::{Moment, Name, Seed};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum bytes of a stored record.
const RECORD_BYTES_MAX: usize = 256 << 10;

/// Maximum bytes of an address, a version or a zone.
const TEXT_BYTES_MAX: usize = 1_000;

/// Maximum speed of the clock of a realm: faster ones leave no time to commit within a notice.
pub const REALM_SPEED_MAX: u32 = 1_000;

/// Maximum number of formats that a server names.
const FORMATS_MAX: usize = 100;

/// An accelerated clock: `origin + (now - origin) × speed` on every server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealmClock {
    /// The time at which it agreed with the real clock.
    pub origin: Moment,
    /// Seconds per second.
    pub speed: u32,
}

/// The identity of a realm, under `realm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealmRecord {
    /// Seed of machine ids. It never changes.
    pub identity: Seed,
    /// Creation time.
    pub created: Moment,
    /// The format in which records are written.
    pub format: u32,
    /// Number of restores of the engine that operators have accepted.
    pub restores: u64,
    /// Random id of the last of them. None: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Seed>,
    /// The clock of a realm in a test. None: the real clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<RealmClock>,
    #[serde(default, skip_serializing_if = "RealmCompleteness::is_complete")]
    pub completeness: RealmCompleteness,
}

/// The completeness of a realm: servers use a complete one only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RealmCompleteness {
    #[default]
    Complete,
    /// The realm is being made from a journal.
    Importing,
    /// An operator accepts a restored engine: streams are being replaced.
    Accepting,
}

/// The history of a realm: an accepted restore begins another one, of which former copies are no part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealmHistory {
    /// Number of accepted restores.
    pub restores: u64,
    /// Random id of the last of them. None: there was none.
    pub id: Option<Seed>,
}

impl RealmRecord {
    /// The history of the realm.
    #[must_use]
    pub fn history(&self) -> RealmHistory {
        RealmHistory { restores: self.restores, id: self.history }
    }
}

impl RealmCompleteness {
    /// Returns true if servers may use the realm.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Complete => true,
            Self::Importing | Self::Accepting => false,
        }
    }
}

/// A live server, under `server/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Address for other servers.
    pub address: String,
    /// Version of the program.
    pub version: String,
    /// Formats of records that it reads.
    pub formats: Vec<u32>,
    /// Zone of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Random number of its data directory: tells servers with one name apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<Seed>,
    /// Random number of its process: tells a server from a later one on the same data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u64>,
}

/// The numbers of the last batches on the disk of a server, under `archived/<server>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchivedNumbers {
    /// Numbers by stream.
    pub streams: BTreeMap<Stream, u64>,
}

#[derive(Serialize, Deserialize)]
struct StoredOwner {
    server: Name,
    term: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredPreference {
    server: Name,
}

/// A value that is stored as JSON. Unknown members are ignored: a later version may have added them.
pub(crate) trait JsonRecord: Sized {
    fn to_json(&self) -> Bytes;
    fn from_json(value: &[u8]) -> Result<Self, Malformed>;
}

fn write(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("names, numbers and texts are JSON").into()
}

fn read<T: DeserializeOwned>(value: &[u8], what: &'static str) -> Result<T, Malformed> {
    if value.len() > RECORD_BYTES_MAX {
        return Err(Malformed::Long);
    }
    serde_json::from_slice(value).map_err(|_| Malformed::Impossible(what))
}

impl JsonRecord for RealmRecord {
    fn to_json(&self) -> Bytes {
        write(self)
    }

    fn from_json(value: &[u8]) -> Result<Self, Malformed> {
        let record: Self = read(value, "realm")?;
        match record.clock {
            Some(clock) if !(1..=REALM_SPEED_MAX).contains(&clock.speed) => {
                Err(Malformed::Impossible("realm"))
            }
            Some(_) | None => Ok(record),
        }
    }
}

impl JsonRecord for ServerRecord {
    fn to_json(&self) -> Bytes {
        write(self)
    }

    fn from_json(value: &[u8]) -> Result<Self, Malformed> {
        let record: Self = read(value, "server")?;
        let texts = [Some(&record.address), Some(&record.version), record.zone.as_ref()];
        let is_short = texts.into_iter().flatten().all(|text| text.len() <= TEXT_BYTES_MAX);
        if is_short && record.formats.len() <= FORMATS_MAX {
            Ok(record)
        } else {
            Err(Malformed::Impossible("server"))
        }
    }
}

impl JsonRecord for ArchivedNumbers {
    fn to_json(&self) -> Bytes {
        write(self)
    }

    fn from_json(value: &[u8]) -> Result<Self, Malformed> {
        read(value, "archived numbers")
    }
}

impl JsonRecord for OwnerRecord {
    fn to_json(&self) -> Bytes {
        write(&serde_json::json!({ "server": self.server.as_str(), "term": self.term.0 }))
    }

    fn from_json(value: &[u8]) -> Result<Self, Malformed> {
        let StoredOwner { server, term } = read(value, "owner")?;
        Ok(Self { server: server.into(), term: Term(term) })
    }
}

/// The preferred owner of a stream, under `preferred/<stream>`.
impl JsonRecord for ServerName {
    fn to_json(&self) -> Bytes {
        write(&serde_json::json!({ "server": self.as_str() }))
    }

    fn from_json(value: &[u8]) -> Result<Self, Malformed> {
        let StoredPreference { server } = read(value, "preferred owner")?;
        Ok(server.into())
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::ClusterId;
    use forewarn_types::Timestamp;

    use super::*;

    fn assert_stored<T: JsonRecord + PartialEq + std::fmt::Debug>(record: &T, text: &str) {
        assert_eq!(record.to_json(), text);
        assert_eq!(T::from_json(text.as_bytes()).as_ref(), Ok(record));
        assert!(T::from_json(b"{}").is_err() || text.contains("streams"));
        assert!(T::from_json(b"no json").is_err());
    }

    #[test]
    fn records_are_json_that_people_can_read() {
        let owner = OwnerRecord { server: ServerName::new("a-1").unwrap(), term: Term(7) };
        assert_stored(&owner, r#"{"server":"a-1","term":7}"#);
        assert_stored(&owner.server, r#"{"server":"a-1"}"#);
        let created = Moment(Timestamp::from_millis(1_767_225_600_000));
        let completeness = RealmCompleteness::Complete;
        let realm = RealmRecord {
            identity: Seed([0; 16]),
            created,
            format: 1,
            restores: 0,
            history: None,
            clock: None,
            completeness,
        };
        let text = r#"{"identity":"AAAAAAAAAAAAAAAAAAAAAA","created":"2026-01-01T00:00:00Z","format":1,"restores":0}"#;
        assert_stored(&realm, text);
        let importing = RealmRecord { completeness: RealmCompleteness::Importing, ..realm };
        assert_stored(&importing, &text.replace('}', r#","completeness":"importing"}"#));
        let accepted = RealmRecord { restores: 2, history: Some(Seed([0; 16])), ..realm };
        let history = r#"2,"history":"AAAAAAAAAAAAAAAAAAAAAA"}"#;
        assert_stored(&accepted, &text.replace("0}", history));
        let clock = Some(RealmClock { origin: created, speed: 60 });
        let text = text.replace('}', r#","clock":{"origin":"2026-01-01T00:00:00Z","speed":60}}"#);
        assert_stored(&RealmRecord { clock, ..realm }, &text);
        for speed in [0, REALM_SPEED_MAX + 1] {
            let wrong = text.replace(":60}", &format!(":{speed}}}"));
            assert_eq!(RealmRecord::from_json(wrong.as_bytes()), Err(Malformed::Impossible("realm")));
        }
        let server = ServerRecord {
            address: "10.0.0.1:7".to_owned(),
            version: "1".to_owned(),
            formats: vec![1],
            zone: Some("z".to_owned()),
            instance: None,
            process: None,
        };
        let text = r#"{"address":"10.0.0.1:7","version":"1","formats":[1],"zone":"z"}"#;
        assert_stored(&server, text);
        let server = ServerRecord { process: Some(u64::MAX), ..server };
        assert_stored(&server, &text.replace('}', r#","process":18446744073709551615}"#));
        let streams = [(Stream::Shared, 4), (Stream::Cluster(ClusterId(3)), 9)].into();
        assert_stored(&ArchivedNumbers { streams }, r#"{"streams":{"shared":4,"cluster-3":9}}"#);
    }

    #[test]
    fn a_record_that_is_too_long_is_refused() {
        let long = format!(r#"{{"address":"{}","version":"1","formats":[]}}"#, "a".repeat(1_001));
        assert_eq!(ServerRecord::from_json(long.as_bytes()), Err(Malformed::Impossible("server")));
        let long = " ".repeat(RECORD_BYTES_MAX + 1);
        assert_eq!(ServerRecord::from_json(long.as_bytes()), Err(Malformed::Long));
    }
}
