//! `SQLite`, configured so that a reported commit is on the disk.
//!
//! One connection with an exclusive lock: no shared memory, no second reader, no race between two writers. The
//! write-ahead log is synced with every commit (`synchronous = FULL`), which makes a commit durable. Checkpoints are
//! explicit, so that their errors are seen.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::codec::seal::{self, SealLocation};
use crate::error::OpenError;
use crate::files::{self, FileHeader};
use crate::log_check::{LogState, check_log};
use crate::stream_key::StreamKey;

/// `FWRN` and `FWRA`: application ids of the journal and of the audit file, for programs that identify files.
const APPLICATION: i64 = 0x4657_524e;
const AUDIT_APPLICATION: i64 = 0x4657_5241;

/// Format of the journal: its tables, and the stored form of records and of the state. It only grows; a journal of an
/// older format is upgraded on opening.
pub(crate) const FORMAT: i64 = 2;

const SCHEMA: [&str; 6] = [
    "CREATE TABLE heading (one INTEGER PRIMARY KEY CHECK (one = 1), content BLOB NOT NULL) STRICT",
    "CREATE TABLE stream (stream INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT",
    "CREATE TABLE record (stream INTEGER, number INTEGER, content BLOB NOT NULL, \
     PRIMARY KEY (stream, number)) STRICT, WITHOUT ROWID",
    "CREATE TABLE chunk (stream INTEGER, generation INTEGER, number INTEGER, content BLOB NOT NULL, \
     PRIMARY KEY (stream, generation, number)) STRICT, WITHOUT ROWID",
    "CREATE TABLE run (run INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT",
    "CREATE TABLE entry (run INTEGER, number INTEGER, content BLOB NOT NULL, \
     PRIMARY KEY (run, number)) STRICT, WITHOUT ROWID",
];

/// The tables of the audit file.
const AUDIT_SCHEMA: [&str; 5] = [
    "CREATE TABLE origin (one INTEGER PRIMARY KEY CHECK (one = 1), content BLOB NOT NULL) STRICT",
    "CREATE TABLE trail (position INTEGER PRIMARY KEY, stream INTEGER NOT NULL, number INTEGER NOT NULL, \
     at INTEGER NOT NULL, content BLOB NOT NULL) STRICT",
    "CREATE UNIQUE INDEX trail_number ON trail (stream, number)",
    "CREATE TABLE subject (subject TEXT, position INTEGER, PRIMARY KEY (subject, position)) STRICT, WITHOUT ROWID",
    "CREATE TABLE hour (hour INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT",
];

/// The tables of formats 0 and 1, which have no audit file.
const OLD_SCHEMA: [&str; 6] = [
    "CREATE TABLE heading (one INTEGER PRIMARY KEY CHECK (one = 1), content BLOB NOT NULL) STRICT",
    "CREATE TABLE record (number INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT",
    "CREATE TABLE chunk (place INTEGER PRIMARY KEY, content BLOB NOT NULL) STRICT",
    "CREATE TABLE trail (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, content BLOB NOT NULL) STRICT",
    "CREATE TABLE subject (subject TEXT, number INTEGER, PRIMARY KEY (subject, number)) STRICT, WITHOUT ROWID",
    "CREATE TABLE hour (hour INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT",
];

/// Bytes of a seal.
const SEAL_BYTES: usize = 9;

/// Prepared statements of a connection: more than this crate has.
const STATEMENTS_MAX: usize = 64;

/// Time at which a commit reaches the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// Before it is acknowledged.
    #[default]
    EachCommit,
    /// Some time later. Only for tests that need a power cut to lose something.
    Later,
}

/// Depth of the check of a file before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckDepth {
    /// The structure of every page: a page that two tables use would be found when a write has destroyed one of them.
    Quick,
    /// Also the content of the pages.
    Thorough,
}

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Journal,
    Audit,
}

impl FileKind {
    const fn application(self) -> i64 {
        match self {
            Self::Journal => APPLICATION,
            Self::Audit => AUDIT_APPLICATION,
        }
    }

    /// The tables of a file of that format.
    const fn schema(self, format: i64) -> &'static [&'static str] {
        match self {
            Self::Journal if format < FORMAT => &OLD_SCHEMA,
            Self::Journal => &SCHEMA,
            Self::Audit => &AUDIT_SCHEMA,
        }
    }
}

/// Opens an existing journal. `check` may refuse it while the file and its log are still unchanged.
pub(crate) fn open(
    path: &Path,
    sync: SyncMode,
    depth: CheckDepth,
    check: impl FnOnce(&Connection) -> Result<(), OpenError>,
) -> Result<Connection, OpenError> {
    let format = check_header(path, FileKind::Journal)?;
    let log = files::with_suffix(path, "-wal");
    match check_log(&log).map_err(OpenError::io("read the log", &log))? {
        LogState::Sound => {}
        LogState::Damaged => {
            return Err(OpenError::damaged(&log, "durable commits are behind a damaged frame"));
        }
    }
    let connection = connect(path, sync)?;
    check(&connection)?;
    accept(&connection).map_err(|source| OpenError::database(path, source))?;
    check_structure(&connection, path, depth)?;
    check_tables(&connection, path, FileKind::Journal.schema(format))?;
    Ok(connection)
}

/// Opens an existing audit file, and leaves it unchanged until [`accept`]. Reads only the schema: nothing of the state
/// depends on the rest, and its damage is found when it is read.
pub(crate) fn open_audit(path: &Path) -> Result<Connection, OpenError> {
    let format = check_header(path, FileKind::Audit)?;
    // Entries leave the journal only after a checkpoint of this file, which syncs everything.
    let connection = connect(path, SyncMode::Later)?;
    check_tables(&connection, path, FileKind::Audit.schema(format))?;
    Ok(connection)
}

/// Connects to a file, which stays unchanged until [`accept`].
fn connect(path: &Path, sync: SyncMode) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::database(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(Duration::ZERO).map_err(failed)?;
    set_up(&connection, sync).map_err(failed)?;
    keep_log_on_close(&connection).map_err(failed)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failed)?;
    if mode != "wal" {
        return Err(OpenError::damaged(path, format!("its journal mode is {mode}")));
    }
    Ok(connection)
}

/// Rewrites and syncs everything that a failed write of an earlier process may have left. Also takes the lock.
pub(crate) fn accept(connection: &Connection) -> rusqlite::Result<()> {
    checkpoint(connection, LogAfterCheckpoint::Emptied)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map(drop)
}

/// Makes closing the connection leave the log unchanged, and remove no file.
pub(crate) fn keep_log_on_close(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// Opens a copy that no process writes to, and leaves it unchanged.
pub(crate) fn open_copy(path: &Path) -> Result<Connection, OpenError> {
    let format = check_header(path, FileKind::Journal)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags);
    let connection = connection.map_err(|source| OpenError::database(path, source))?;
    check_structure(&connection, path, CheckDepth::Thorough)?;
    check_tables(&connection, path, FileKind::Journal.schema(format))?;
    Ok(connection)
}

/// Opens a copy that nothing else uses, and that is useless if this process ends before it is complete.
pub(crate) fn open_copy_to_write(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::database(path, source);
    check_header(path, FileKind::Journal)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    let in_memory = connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()));
    in_memory.map_err(failed)?;
    connection.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
    Ok(connection)
}

/// Creates an empty journal or audit file under a name that is changed later: until then it needs no protection.
pub(crate) fn create(path: &Path, kind: FileKind) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::database(path, source);
    // It holds secrets. The log gets the same permissions.
    drop(files::create_private(path).map_err(OpenError::io("create the new journal", path))?);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    let set = |name: &str, value: &str| connection.pragma_update_and_check(None, name, value, |_| Ok(()));
    set("locking_mode", "EXCLUSIVE").map_err(failed)?;
    set("journal_mode", "MEMORY").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "OFF").map_err(failed)?;
    connection.pragma_update(None, "application_id", kind.application()).map_err(failed)?;
    connection.pragma_update(None, "user_version", FORMAT).map_err(failed)?;
    kind.schema(FORMAT).iter().try_for_each(|table| connection.execute_batch(table)).map_err(failed)?;
    Ok(connection)
}

/// Closes a new file, and switches it to a write-ahead log.
pub(crate) fn complete(connection: Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).map_err(failed)?;
    connection.close().map_err(|(_, source)| failed(source))
}

fn set_up(connection: &Connection, sync: SyncMode) -> rusqlite::Result<()> {
    // Before the first read: then there is no shared memory.
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    let synchronous = match sync {
        SyncMode::EachCommit => "FULL",
        SyncMode::Later => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cell_size_check", "ON")?;
    connection.pragma_update_and_check(None, "mmap_size", 0, |_| Ok(())).optional()?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    Ok(())
}

/// State of the log after a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogAfterCheckpoint {
    Emptied,
    /// It is overwritten from its beginning, which costs less than growing it.
    Reused,
}

/// Moves the content of the log into the database.
pub(crate) fn checkpoint(connection: &Connection, log: LogAfterCheckpoint) -> rusqlite::Result<()> {
    let query = match log {
        LogAfterCheckpoint::Emptied => "PRAGMA wal_checkpoint(TRUNCATE)",
        LogAfterCheckpoint::Reused => "PRAGMA wal_checkpoint(PASSIVE)",
    };
    let busy: i64 = connection.query_row(query, [], |row| row.get(0))?;
    if busy == 0 {
        return Ok(());
    }
    let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
    Err(rusqlite::Error::SqliteFailure(busy, None))
}

/// The format of a file; fails if it is not one that this program knows.
fn check_header(path: &Path, kind: FileKind) -> Result<i64, OpenError> {
    match files::read_header(path)? {
        Some(FileHeader { application, version: format @ 0..=FORMAT })
            if application == kind.application() =>
        {
            Ok(format)
        }
        Some(FileHeader { application, version: found })
            if application == kind.application() && found > FORMAT =>
        {
            Err(OpenError::Newer { path: path.to_owned(), found, known: FORMAT })
        }
        Some(_) | None => Err(OpenError::Foreign(path.to_owned())),
    }
}

/// Checks the structure of every page.
pub(crate) fn check_structure(
    connection: &Connection,
    path: &Path,
    depth: CheckDepth,
) -> Result<(), OpenError> {
    let query = match depth {
        CheckDepth::Quick => "PRAGMA quick_check(1)",
        CheckDepth::Thorough => "PRAGMA integrity_check(1)",
    };
    let found: rusqlite::Result<String> = connection.query_row(query, [], |row| row.get(0));
    match found.map_err(|source| OpenError::database(path, source))? {
        ok if ok == "ok" => Ok(()),
        found => Err(OpenError::damaged(path, found)),
    }
}

fn check_tables(connection: &Connection, path: &Path, expected: &[&str]) -> Result<(), OpenError> {
    let failed = |source| OpenError::database(path, source);
    let mut statement = connection.prepare("SELECT sql FROM sqlite_schema ORDER BY rowid").map_err(failed)?;
    let tables = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failed)?;
    let tables = tables.collect::<rusqlite::Result<Vec<_>>>().map_err(failed)?;
    if tables == expected {
        Ok(())
    } else {
        Err(OpenError::damaged(path, "its tables are not those of forewarn"))
    }
}

/// The content of a row, in its second column.
pub(crate) fn blob<'a>(
    row: &'a rusqlite::Row<'_>,
    path: &Path,
    bytes_max: usize,
) -> Result<&'a [u8], OpenError> {
    let value = row.get_ref(1).map_err(|source| OpenError::database(path, source))?;
    let bytes = value.as_blob().map_err(|error| OpenError::damaged(path, error.to_string()))?;
    if bytes.len() > bytes_max + SEAL_BYTES {
        return Err(OpenError::damaged(path, format!("a value is too large: {} bytes", bytes.len())));
    }
    Ok(bytes)
}

pub(crate) fn write_record(
    connection: &Connection,
    stream: StreamKey,
    number: u64,
    content: &[u8],
) -> rusqlite::Result<()> {
    let sealed = seal::seal_bytes(SealLocation::StreamRecord { stream, number }, content);
    let sql = "INSERT INTO record (stream, number, content) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute(params![stream.column(), number.cast_signed(), sealed])?;
    Ok(())
}

/// Removes the records of a stream after that number.
pub(crate) fn remove_records_after(
    connection: &Connection,
    stream: StreamKey,
    number: u64,
) -> rusqlite::Result<()> {
    let sql = "DELETE FROM record WHERE stream = ?1 AND number > ?2";
    connection.prepare_cached(sql)?.execute(params![stream.column(), number.cast_signed()])?;
    Ok(())
}

pub(crate) fn write_chunk(
    connection: &Connection,
    stream: StreamKey,
    (generation, number): (u64, u64),
    content: &[u8],
) -> rusqlite::Result<()> {
    let sealed = seal::seal_bytes(SealLocation::StreamChunk { stream, generation, number }, content);
    let sql = "INSERT INTO chunk (stream, generation, number, content) VALUES (?1, ?2, ?3, ?4)";
    let (generation, number) = (generation.cast_signed(), number.cast_signed());
    connection.prepare_cached(sql)?.execute(params![stream.column(), generation, number, sealed])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_one_in_which_no_commit_is_lost() {
        // 3.51.3 fixes a race between a checkpoint and a reset of the log.
        assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
    }

    #[test]
    fn the_settings_are_in_force() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal.db");
        complete(create(&path, FileKind::Journal).unwrap(), &path).unwrap();
        let connection = open(&path, SyncMode::EachCommit, CheckDepth::Thorough, |_| Ok(())).unwrap();
        let number =
            |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
        let text =
            |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, String>(0)).unwrap();
        assert_eq!((text("journal_mode").as_str(), text("locking_mode").as_str()), ("wal", "exclusive"));
        assert_eq!((number("synchronous"), number("foreign_keys"), number("trusted_schema")), (2, 1, 0));
        assert_eq!((number("cell_size_check"), number("wal_autocheckpoint")), (1, 0));
        assert_eq!((number("application_id"), number("user_version")), (APPLICATION, FORMAT));
        assert!(!files::with_suffix(&path, "-shm").exists());
        let second = open(&path, SyncMode::EachCommit, CheckDepth::Quick, |_| Ok(()));
        assert!(matches!(second.err(), Some(OpenError::InUse(_))));
    }
}
