//! `forewarn store`: a data directory that no server uses.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;
use forewarn_lifecycle::{Now, Timestamp};
use forewarn_store::{AcceptedLoss, Checked, Options, accept_loss, check, export, import};
use forewarn_types::Moment;

use crate::server::random_seed;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Look at every byte of a data directory, and say what is in it.
    Check {
        /// The data directory of a server that does not run.
        directory: PathBuf,
    },
    /// Write all that is in a data directory to a file that `import` reads.
    Export {
        /// The data directory of a server that does not run.
        directory: PathBuf,
        /// The file, which must not be there yet; `-` is standard output.
        file: PathBuf,
    },
    /// Make a data directory from an export or a backup.
    ///
    /// What has happened since is not known there: events get new ids, documents new numbers, and the brake is on until
    /// `forewarn brake off`.
    Import {
        /// The export, or the backup.
        file: PathBuf,
        /// The data directory, which must not be there yet or be empty.
        directory: PathBuf,
    },
    /// Continue with a data directory that has lost commits.
    ///
    /// A server does not start on a journal that ends before what was answered. Put the missing `journal.db-wal` back if you
    /// can. Otherwise this command lets the server continue: events get new ids, documents new numbers, the brake is on until
    /// `forewarn brake off`, and an audit entry says what was lost.
    AcceptLoss {
        /// The data directory of a server that does not run.
        directory: PathBuf,
    },
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Check { directory } => {
            print!("{}", facts(&check(directory)?));
            Ok(())
        }
        Command::Export { directory, file } if file.as_os_str() == "-" => {
            Ok(export(directory, &mut BufWriter::new(io::stdout().lock()))?)
        }
        Command::Export { directory, file } => export_to(directory, file),
        Command::Import { file, directory } => {
            import(file, directory, &new_options()?)?;
            eprintln!(
                "{} is ready. The brake is on: start the server, look, then `forewarn brake off`.",
                directory.display()
            );
            Ok(())
        }
        Command::AcceptLoss { directory } => {
            let AcceptedLoss { what, .. } = accept_loss(directory, &new_options()?)?;
            eprintln!(
                "{} can be used again, without what it has lost: {what}.\n\
                 The brake is on: start the server; look at the events, at the VMs, and at `forewarn token ls` (a token that was \
                 revoked may be valid again); then `forewarn brake off`.",
                directory.display()
            );
            Ok(())
        }
    }
}

/// The options of a journal that continues with a new secret.
fn new_options() -> Result<Options> {
    let now = Now::at_millis(i64::try_from(since_1970().as_millis()).unwrap_or(i64::MAX));
    Ok(Options::new(random_seed()?, now))
}

fn export_to(directory: &Path, file: &Path) -> Result<()> {
    let failed = || format!("cannot write the export: {}", file.display());
    let mut out = BufWriter::new(File::create_new(file).with_context(failed)?);
    let written = export(directory, &mut out).map_err(anyhow::Error::from);
    let kept = written.and_then(|()| {
        out.flush()?;
        out.get_ref().sync_all()?;
        Ok(())
    });
    if kept.is_err() {
        // Half an export is none.
        drop(fs::remove_file(file));
    }
    kept.with_context(failed)
}

fn facts(checked: &Checked) -> String {
    let Checked { created, clock, records, replayed, entries, entries_kept, hosts, tenants, machines } =
        checked;
    let moment = |at: Timestamp| Moment(at).to_string();
    format!(
        "in order\nmade      {}\nclock     {}\nrecords   {records}, of which {replayed} are replayed\n\
         trail     {entries} entries, of which {entries_kept} are kept\n\
         fleet     {hosts} hosts, {tenants} tenants, {machines} machines\n",
        moment(*created),
        moment(clock.wall),
    )
}

fn since_1970() -> std::time::Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}
