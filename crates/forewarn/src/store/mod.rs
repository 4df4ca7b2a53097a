//! `forewarn store`: the data directory of a stopped server.

mod migrate;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Subcommand;
use forewarn_lifecycle::{Now, Timestamp};
use forewarn_store::{AcceptedLoss, CheckReport, LossKind, Options, accept_loss, check, export, import};
use forewarn_types::Moment;
use serde_json::{Value, json};

use migrate::{MigrateArgs, move_into_realm, plan_for};

use crate::new_file::create_private;
use crate::operator::{GlobalOptions, OutputFormat, names, print, print_data};
use crate::server::random_seed;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check the integrity of a data directory, and summarise its content
    #[command(before_help = "Example:\n  forewarn store check /var/lib/forewarn")]
    Check {
        /// Data directory of a stopped server
        directory: PathBuf,
    },
    /// Export a data directory to a file for `store import`
    #[command(before_help = "Example:\n  forewarn store export /var/lib/forewarn forewarn.export")]
    Export {
        /// Data directory of a stopped server
        directory: PathBuf,
        /// Export file, must not exist yet; `-` writes to standard output
        file: PathBuf,
    },
    /// Create a data directory from an export or a backup
    ///
    /// Changes after the export are lost. Therefore events get new ids, documents get new incarnations, and the brake
    /// is on until
    /// `forewarn brake off`.
    #[command(before_help = "\
Examples:
  forewarn store import forewarn.export /var/lib/forewarn
  forewarn store import forewarn.export /var/lib/forewarn --config /etc/forewarn/serve.toml   create a realm")]
    Import {
        /// Export or backup file
        file: PathBuf,
        /// New data directory; must not exist, or be empty
        directory: PathBuf,
        /// Configuration file of the first server of a new realm, with `[engine]` and `[server]`; creates the realm,
        /// too [default: a single server]
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    Migrate(MigrateArgs),
    /// Accept the loss of commits, so that the server starts again
    ///
    /// A server does not start if its journal lacks acknowledged commits. Restore the missing `journal.db-wal` if
    /// possible. Otherwise this command lets the server continue: events get new ids, documents get new incarnations,
    /// the brake is on until
    /// `forewarn brake off`, and an audit entry records the loss. If only `audit.db` is missing, the state continues
    /// unchanged, and only the audit entries in that file are lost.
    AcceptLoss {
        /// Data directory of a stopped server
        directory: PathBuf,
    },
}

pub(crate) fn run(command: &Command, options: &GlobalOptions) -> Result<()> {
    match command {
        Command::Check { directory } => {
            let checked = check(directory)?;
            match options.output() {
                OutputFormat::Text(_) => print(&facts(&checked)),
                OutputFormat::Data(format) => print_data(format, &json(directory, &checked), names),
            }
        }
        Command::Export { directory, file } if file.as_os_str() == "-" => {
            Ok(export(directory, &mut BufWriter::new(io::stdout().lock()))?)
        }
        Command::Export { directory, file } => export_to(directory, file),
        Command::Import { file, directory, config } => {
            let plan = config.as_deref().map(|config| plan_for(directory, config)).transpose()?;
            import(file, directory, &new_options()?)?;
            let shown = directory.display();
            if let Some(plan) = &plan {
                move_into_realm(directory, plan).inspect_err(|_| {
                    eprintln!("{shown} is ready, and the realm does not exist yet: `forewarn store migrate` makes it.");
                })?;
            }
            eprintln!(
                "{shown} is ready. The brake is on: start the server, check its state, then run `forewarn brake off`.\n\
                 It must belong to the user of the server: `chown -R forewarn: {shown}` for the service of the package.\n\
                 It has neither the TLS certificates (`tls`) nor the records of a driver: copy them from the old \
                 directory before the first start."
            );
            Ok(())
        }
        Command::Migrate(arguments) => migrate::run(arguments, options),
        Command::AcceptLoss { directory } => {
            let AcceptedLoss { what, kind, waiting, .. } = accept_loss(directory, &new_options()?)?;
            eprintln!("{} is usable again, without the lost data: {what}.", directory.display());
            eprintln!(
                "{}",
                match kind {
                    LossKind::Commits =>
                        "The brake is on: start the server; check the events, the VMs, and `forewarn token ls` (a revoked \
                         token may be valid again); then run `forewarn brake off`.",
                    LossKind::AuditEntries =>
                        "Only audit entries are lost: start the server. What was found of the audit log is in \
                         `audit.lost-*.db`.",
                }
            );
            if let Some(waiting) = waiting {
                eprintln!("Audit entries that waited in the journal are in {}.", waiting.display());
            }
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
    let mut out = BufWriter::new(create_private(file, "the export")?);
    let written = export(directory, &mut out).map_err(anyhow::Error::from);
    let synced = written.and_then(|()| {
        out.flush()?;
        out.get_ref().sync_all()?;
        Ok(())
    });
    if synced.is_err() {
        // An incomplete export is useless.
        drop(fs::remove_file(file));
    }
    synced.with_context(failed)
}

fn json(directory: &Path, checked: &CheckReport) -> Value {
    let CheckReport { created, clock, records, replayed, entries, entries_kept, hosts, tenants, machines } =
        checked;
    json!({
        "name": directory.display().to_string(),
        "result": "ok",
        "created": Moment(*created),
        "clock": Moment(clock.wall),
        "records": records,
        "replayed": replayed,
        "audit_entries": entries,
        "stored_audit_entries": entries_kept,
        "hosts": hosts,
        "tenants": tenants,
        "machines": machines,
    })
}

fn facts(checked: &CheckReport) -> String {
    let CheckReport { created, clock, records, replayed, entries, entries_kept, hosts, tenants, machines } =
        checked;
    let moment = |at: Timestamp| Moment(at).to_string();
    format!(
        "result    ok\ncreated   {}\nclock     {}\nrecords   {records}, {replayed} of them replayed\n\
         audit     {entries} entries, {entries_kept} of them stored\n\
         fleet     {hosts} hosts, {tenants} tenants, {machines} machines\n",
        moment(*created),
        moment(clock.wall),
    )
}

fn since_1970() -> std::time::Duration {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default()
}
