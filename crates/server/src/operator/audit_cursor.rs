//! Cursors of the audit log: positions of entries, opaque to clients.
//!
//! Entries of all clusters have one order, that of their commits. The number of an entry counts within its cluster, so
//! it is no place in that order. In a realm, each server has an order of its own, and every server takes the cursors of
//! the others: it asks the server that the cursor names.

use std::borrow::Cow;

use forewarn_lifecycle::Name;
use forewarn_peers::check_server_name;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::problem::{ApiProblem, ProblemKind};
use crate::control_handle::ControlHandle;

/// Digits of a position: every number of so many digits fits in a `u64`.
pub(super) const POSITION_DIGITS_MAX: usize = 19;

/// Separates a position from the name of the server whose log it is in.
const SERVER: char = '@';

/// Position of an entry in the audit log. In a realm it names its server: the logs of others have another order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct AuditCursor {
    position: u64,
    server: Option<Name>,
}

impl AuditCursor {
    /// The position in the log of its server.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// The other server of the realm that has given the cursor. None if this server has. Outside of a realm there are no
    /// others.
    pub(super) fn other_server(&self, control: &ControlHandle) -> Result<Option<&Name>, ApiProblem> {
        let other = self.server.as_ref().filter(|server| Some(*server) != control.realm_name());
        match (other, control.realm_name()) {
            (Some(server), None) => Err(Self::of_gone_server(server)),
            (other, _) => Ok(other),
        }
    }

    /// The problem with a cursor of a server that the realm no longer has.
    pub(super) fn of_gone_server(server: &Name) -> ApiProblem {
        ApiProblem::not_found(format!(
            "the server of the cursor is gone or unknown: {server}\n  hint: begin without a cursor"
        ))
    }

    /// Rejects a cursor beyond the end of the log: it was given by another one, such as the log before the data
    /// directory was restored from a copy.
    pub(super) fn check(cursor: Option<u64>, end: u64) -> Result<(), ApiProblem> {
        match cursor.filter(|cursor| *cursor > end) {
            None => Ok(()),
            Some(cursor) => Err(ApiProblem::new(
                ProblemKind::NotFound,
                format!(
                    "the audit log has no position {cursor}; its end is {end}\n  hint: begin without a cursor"
                ),
            )),
        }
    }

    /// The cursor as responses have it, with the server of a realm.
    pub(super) fn text(position: u64, server: Option<&Name>) -> String {
        match server {
            Some(server) => format!("{position}{SERVER}{server}"),
            None => position.to_string(),
        }
    }
}

/// Parses a position. None if the text has anything but digits, or too many.
pub(super) fn parse_position(text: &str) -> Option<u64> {
    let is_number = text.len() <= POSITION_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn server_name(text: &str) -> Option<Name> {
    Name::new(text).ok().filter(|name| check_server_name(name).is_ok())
}

impl TryFrom<String> for AuditCursor {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (position, server) = match text.split_once(SERVER) {
            Some((position, server)) => (position, server_name(server).map(Some)),
            None => (text.as_str(), Some(None)),
        };
        let cursor = parse_position(position).zip(server);
        cursor.map(|(position, server)| Self { position, server }).ok_or_else(|| {
            format!("invalid cursor: {text:?}\n  hint: pass `next` or `head` of an earlier page as it is")
        })
    }
}

impl JsonSchema for AuditCursor {
    fn schema_name() -> Cow<'static, str> {
        "AuditCursor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Opaque cursor of the audit log: `next` or `head` of a page. It is valid for as long as the server that has given it keeps its data. Every server of a realm takes it; while that server does not answer, the response is a 503. Entries that the retention has removed since are skipped.",
            "type": "string",
            "pattern": "^[0-9]{1,19}(@[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_beyond_the_end_is_of_another_log() {
        assert_eq!(AuditCursor::check(None, 0), Ok(()));
        assert_eq!(AuditCursor::check(Some(7), 7), Ok(()));
        let problem = AuditCursor::check(Some(8), 7).unwrap_err();
        let detail = "the audit log has no position 8; its end is 7\n  hint: begin without a cursor";
        assert_eq!(problem, ApiProblem::new(ProblemKind::NotFound, detail));
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for position in [0, 1, 9_999_999_999_999_999_999] {
            let cursor = AuditCursor { position, server: None };
            assert_eq!(AuditCursor::try_from(position.to_string()), Ok(cursor));
            let cursor = AuditCursor { position, server: Some(Name::new("s1").unwrap()) };
            assert_eq!(AuditCursor::try_from(format!("{position}@s1")), Ok(cursor));
        }
        for wrong in ["", "-1", "+1", "1 ", "a", "10000000000000000000", "1@", "@s1", "1@a b", "1@S1", "1@-a"]
        {
            let refused = AuditCursor::try_from(wrong.to_owned()).unwrap_err();
            assert!(refused.contains("hint: "), "{refused}");
        }
    }
}
