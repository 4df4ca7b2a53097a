//! Queries of the audit log of another server. Positions count within the log of one server, so only that server can go
//! on from a cursor that it has given.

use forewarn_control::{AuditEntry, Stream, Subject};
use forewarn_types::Timestamp;
use serde::{Deserialize, Serialize};

/// A query of the audit log of the server that gets it. It is answered there: a query is forwarded once.
///
/// The caller decides which of the entries its client may see: a server of the realm may read all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditSearch {
    /// An entry must concern at least one subject of each group.
    pub groups: Vec<Vec<Subject>>,
    /// Only entries from this time on.
    pub since: Option<Timestamp>,
    /// Only entries before this time.
    pub until: Option<Timestamp>,
    /// Only the log of this stream, by number. Without it, the log of the server, by position.
    pub stream: Option<Stream>,
    /// Only entries after this position, or number.
    pub after: Option<u64>,
    /// Only entries before this position, or number.
    pub before: Option<u64>,
    /// Order of the entries.
    pub order: EntryOrder,
    /// Maximum number of entries.
    pub limit: usize,
}

/// Order of audit entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryOrder {
    /// The oldest come first.
    OldestFirst,
    /// The newest come first.
    NewestFirst,
}

/// The answer to a query. Its numbers are positions, or those of the stream of the query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FoundEntries {
    /// Entries with their positions, in the requested order.
    pub entries: Vec<(u64, AuditEntry)>,
    /// Continuation: `after` that one, or `before` it if the newest come first.
    pub next: Option<u64>,
    /// The newest entry that is visible.
    pub head: u64,
    /// The newest entry.
    pub end: u64,
    /// The last entry that was removed because of its age.
    pub swept: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::ClusterId;
    use serde_json::json;

    #[test]
    fn a_query_is_exact() {
        let machine = Subject::Machine { cluster: "default".to_owned(), name: "web/web_0".to_owned() };
        let search = AuditSearch {
            groups: vec![vec![machine, Subject::Kind("command".to_owned())]],
            since: Some(Timestamp::from_millis(5)),
            until: None,
            stream: Some(Stream::Cluster(ClusterId(3))),
            after: None,
            before: Some(44),
            order: EntryOrder::NewestFirst,
            limit: 100,
        };
        let mut written = serde_json::to_value(&search).unwrap();
        let groups =
            json!([[{ "machine": { "cluster": "default", "name": "web/web_0" } }, { "kind": "command" }]]);
        assert_eq!((&written["groups"], &written["stream"]), (&groups, &json!("cluster-3")));
        assert_eq!(written["order"], json!("newest_first"));
        assert_eq!(serde_json::from_value::<AuditSearch>(written.clone()).unwrap(), search);
        written["hops"] = json!(1);
        assert!(serde_json::from_value::<AuditSearch>(written).is_err());
    }
}
