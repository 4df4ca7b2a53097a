//! The audit file of a directory before it is used: its creation, and its comparison with the journal.

use forewarn_lifecycle::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::audit_log::{AuditEnds, AuditView, compare_ends};
use crate::codec::seal::{self, SealLocation};
use crate::codec::stored_struct;
use crate::database::{self, FileKind};
use crate::error::OpenError;
use crate::files::Directory;
use crate::heading::Headings;
use crate::pending::PendingEntries;

/// The journal to which an audit file belongs.
struct Origin {
    created: Timestamp,
}

stored_struct! { Origin { created } }

/// The audit file of a directory, as it was found.
#[derive(Debug)]
pub(crate) enum AuditFile {
    Missing,
    /// It is unchanged until [`crate::audit_store::AuditStore::open`].
    Found(Connection),
    Damaged(String),
}

impl AuditFile {
    /// Opens the audit file of a directory.
    pub(crate) fn find(directory: &Directory) -> Result<Self, OpenError> {
        let path = directory.audit();
        if !path.try_exists().map_err(OpenError::io("look for", &path))? {
            return Ok(Self::Missing);
        }
        match database::open_audit(&path) {
            Ok(connection) => Ok(Self::Found(connection)),
            Err(error) => damage_of(error).map(Self::Damaged),
        }
    }

    pub(crate) fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Found(connection) => Some(connection),
            Self::Missing | Self::Damaged(_) => None,
        }
    }

    /// The audit log of a journal and this file, unless it belongs to another journal.
    pub(crate) fn view<'a>(
        &'a self,
        journal: &'a Connection,
        pending: &'a PendingEntries,
        headings: &Headings,
    ) -> AuditView<'a> {
        let file = self.connection().filter(|_| self.origin(headings) != AuditOrigin::Another);
        AuditView::new(journal, file, pending)
    }

    /// Compares the file with its journal. Damage may look like a loss: then the structure of the file is checked.
    pub(crate) fn ends(
        &self,
        journal: &Connection,
        pending: &PendingEntries,
        headings: &Headings,
    ) -> AuditEnds {
        let origin = self.origin(headings);
        let ends = compare_ends(&self.view(journal, pending, headings), headings);
        match (self, origin, ends) {
            (_, AuditOrigin::Another, _) => AuditEnds::Lost("it is the file of another journal".to_owned()),
            (Self::Damaged(what), _, AuditEnds::Lost(_)) => AuditEnds::Damaged(what.clone()),
            (Self::Missing, _, AuditEnds::Lost(what)) => {
                AuditEnds::Lost(format!("the file is missing; {what}"))
            }
            (Self::Found(file), _, AuditEnds::Lost(what)) => match is_sound(file) {
                Ok(true) => AuditEnds::Lost(what),
                Ok(false) | Err(_) => AuditEnds::Damaged(what),
            },
            (Self::Found(_), AuditOrigin::Unknown(what), AuditEnds::Present) => AuditEnds::Damaged(what),
            (
                Self::Missing | Self::Found(_) | Self::Damaged(_),
                AuditOrigin::Same | AuditOrigin::Unknown(_),
                ends,
            ) => ends,
        }
    }

    fn origin(&self, headings: &Headings) -> AuditOrigin {
        match self.connection().map(read_origin) {
            Some(Ok(Some(created))) if created == headings.journal.created => AuditOrigin::Same,
            Some(Ok(Some(_))) => AuditOrigin::Another,
            Some(Ok(None)) => AuditOrigin::Unknown("its origin is damaged".to_owned()),
            Some(Err(error)) => AuditOrigin::Unknown(error.to_string()),
            None => AuditOrigin::Unknown("it cannot be read".to_owned()),
        }
    }
}

/// The journal to which an audit file belongs, compared with that of its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AuditOrigin {
    Same,
    Another,
    /// It cannot be read.
    Unknown(String),
}

/// The damage that an error means; other errors concern the directory, and prevent a start.
pub(crate) fn damage_of(error: OpenError) -> Result<String, OpenError> {
    let is_access =
        |source: &rusqlite::Error| source.sqlite_error_code() == Some(rusqlite::ErrorCode::CannotOpen);
    match error {
        OpenError::Damaged { what, .. } => Ok(what),
        OpenError::Foreign(_) => Ok("it is not an audit file of forewarn".to_owned()),
        OpenError::Database { source, .. } if !is_access(&source) => Ok(source.to_string()),
        other @ (OpenError::Database { .. }
        | OpenError::InUse(_)
        | OpenError::Missing(_)
        | OpenError::Gone(_)
        | OpenError::Short { .. }
        | OpenError::AuditLost { .. }
        | OpenError::AuditDamaged { .. }
        | OpenError::ReachUnknown { .. }
        | OpenError::Complete(_)
        | OpenError::Newer { .. }
        | OpenError::Exists(_)
        | OpenError::OfRealm(_)
        | OpenError::Moving(_)
        | OpenError::LossOfCopy(_)
        | OpenError::Full(_)
        | OpenError::Io { .. }) => Err(other),
    }
}

fn is_sound(file: &Connection) -> rusqlite::Result<bool> {
    file.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)).map(|found| found == "ok")
}

/// Creation time of the journal of an audit file; `None` if it is damaged.
fn read_origin(file: &Connection) -> rusqlite::Result<Option<Timestamp>> {
    let sealed: Option<Vec<u8>> =
        file.query_row("SELECT content FROM origin", [], |row| row.get(0)).optional()?;
    let origin = sealed.and_then(|sealed| seal::open::<Origin>(SealLocation::Origin, &sealed).ok());
    Ok(origin.map(|origin| origin.created))
}

/// Creates an audit file for the journal that was created then, which appears whole or not at all. `fill` writes its
/// first entries.
pub(crate) fn create_audit(
    directory: &Directory,
    created: Timestamp,
    fill: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<(), OpenError> {
    let new = directory.new_audit()?;
    let failed = |source| OpenError::database(&new, source);
    let connection = database::create(&new, FileKind::Audit)?;
    let write = || {
        let transaction = connection.unchecked_transaction()?;
        let sealed = seal::seal(SealLocation::Origin, &Origin { created });
        transaction.execute("INSERT INTO origin (one, content) VALUES (1, ?1)", params![sealed])?;
        fill(&transaction)?;
        transaction.commit()
    };
    write().map_err(failed)?;
    database::complete(connection, &new)?;
    directory.publish_audit(&new)
}
