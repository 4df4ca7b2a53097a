//! `forewarn backup`: a copy of the state of a running server.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::session::Session;

/// Writes a copy to a new file. An incomplete copy is removed.
pub(super) fn run(session: &Session, file: &Path) -> Result<()> {
    let failed = || format!("cannot write the backup: {}", file.display());
    let mut out = File::create_new(file).with_context(failed)?;
    let copied = session.download("/v1/backup", |piece| out.write_all(piece).with_context(failed));
    let written = copied.and_then(|()| out.sync_all().with_context(failed));
    if written.is_err() {
        drop(fs::remove_file(file));
    }
    written
}
