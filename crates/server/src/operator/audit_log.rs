//! The audit log that a request reads: that of this server, or of another server of the realm that has given its cursor.
//!
//! The permit of the caller is applied here, whichever log it is: a query of another server gives entries, and this
//! server leaves out those that the caller may not see.

use forewarn_lifecycle::Name;
use forewarn_store::{AuditBatch, AuditQuery, ReadError};

use super::audit_cursor::AuditCursor;
use super::problem::ApiProblem;
use crate::control_handle::ControlHandle;
use crate::realm::SearchError;

/// The audit log of a server.
#[derive(Clone, Debug)]
pub(super) struct AuditLog {
    control: ControlHandle,
    /// The other server of the realm. None: this one.
    other: Option<Name>,
}

/// Reason why an audit log could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuditLogError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Search(#[from] SearchError),
}

impl AuditLog {
    /// The log of this server.
    pub(super) fn own(control: &ControlHandle) -> Self {
        Self { control: control.clone(), other: None }
    }

    /// The log that gave the cursors, which is that of this server if there are none, and their positions in it.
    pub(super) fn of_cursors<const N: usize>(
        control: &ControlHandle,
        cursors: [Option<AuditCursor>; N],
    ) -> Result<(Self, [Option<u64>; N]), ApiProblem> {
        let servers = cursors.iter().flatten().map(|cursor| cursor.other_server(control));
        let servers = servers.collect::<Result<Vec<_>, _>>()?;
        let other = servers.first().copied().flatten().cloned();
        if servers.iter().any(|server| *server != other.as_ref()) {
            return Err(ApiProblem::bad(
                "the cursors are of different servers\n  hint: pass those of one page",
            ));
        }
        let positions = cursors.map(|cursor| cursor.map(|cursor| cursor.position()));
        Ok((Self { other, ..Self::own(control) }, positions))
    }

    /// Reads entries.
    pub(super) async fn read(&self, query: AuditQuery) -> Result<AuditBatch, AuditLogError> {
        match (&self.other, self.control.realm()) {
            (Some(server), Some(realm)) => Ok(realm.search(server, query).await?),
            (None, _) | (_, None) => Ok(self.control.read_audit_log(query).await?),
        }
    }

    /// The cursor of a position.
    pub(super) fn cursor(&self, position: u64) -> String {
        AuditCursor::text(position, self.other.as_ref().or_else(|| self.control.realm_name()))
    }
}

impl From<AuditLogError> for ApiProblem {
    fn from(error: AuditLogError) -> Self {
        match error {
            AuditLogError::Read(error) => error.into(),
            AuditLogError::Search(SearchError::NoSuchServer(server)) => AuditCursor::of_gone_server(&server),
            AuditLogError::Search(error @ SearchError::Unavailable { .. }) => {
                Self::unavailable(error.to_string())
            }
        }
    }
}
