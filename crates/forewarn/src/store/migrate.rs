//! `forewarn store migrate`: the move of the journal of a stopped server into a realm.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use forewarn_server::{MigrationReport, RealmPlan, cancel_migration, migrate};
use serde_json::json;

use crate::operator::{GlobalOptions, OutputFormat, names, print, print_data};
use crate::server::serve::realm_settings;

/// Move the journal of a stopped server into an empty realm, exactly as it is
///
/// A realm is several servers on one etcd. The directory becomes the data directory of the first one, and keeps the
/// audit log: `data_dir` of the configuration must name it. It does not start as a single server again. An interrupted
/// move can be repeated.
#[derive(Args)]
#[command(
    before_help = "Example:\n  forewarn store migrate /var/lib/forewarn --config /etc/forewarn/serve.toml"
)]
pub(crate) struct MigrateArgs {
    /// Data directory of a stopped server
    directory: PathBuf,
    /// Configuration file of the first server of the realm, with `[engine]` and `[server]`
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Undo a move that was interrupted: the directory starts as a single server again
    #[arg(long)]
    cancel: bool,
}

pub(super) fn run(arguments: &MigrateArgs, options: &GlobalOptions) -> Result<()> {
    let MigrateArgs { directory, config, cancel } = arguments;
    if *cancel {
        let (_, plan) = realm_settings(config)?;
        on_runtime(cancel_migration(directory, &plan))?;
        eprintln!("{} is the data directory of a single server again.", directory.display());
        return Ok(());
    }
    let plan = plan_for(directory, config)?;
    let report = on_runtime(migrate(directory, &plan))?;
    match options.output() {
        OutputFormat::Text(_) => print(&text(directory, &plan, report)),
        OutputFormat::Data(format) => print_data(format, &json(directory, &plan, report), names),
    }
}

/// Moves the journal of a directory into the realm of a configuration file.
pub(super) fn move_into_realm(directory: &Path, plan: &RealmPlan) -> Result<()> {
    on_runtime(migrate(directory, plan)).map(drop)
}

/// The realm of a configuration file whose data directory is that one.
pub(super) fn plan_for(directory: &Path, config: &Path) -> Result<RealmPlan> {
    let (data_dir, plan) = realm_settings(config)?;
    let absolute = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    if absolute(&data_dir)? != absolute(directory)? {
        bail!(
            "data_dir is another directory: {}\n  hint: the journal becomes that of the first server of the realm: \
             data_dir = {:?} in {}",
            data_dir.display(),
            directory,
            config.display()
        );
    }
    Ok(plan)
}

fn on_runtime<T, E>(work: impl Future<Output = Result<T, E>>) -> Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    Ok(runtime.context("cannot start a runtime")?.block_on(work)?)
}

fn text(directory: &Path, plan: &RealmPlan, report: MigrationReport) -> String {
    let MigrationReport { clusters, hosts, tenants, machines, audit_entries } = report;
    format!(
        "realm     {}\nserver    {}\ndirectory {}\nfleet     {clusters} clusters, {hosts} hosts, {tenants} tenants, \
         {machines} machines\naudit     {audit_entries} entries\nStart the server {} now; then others with the same [engine].\n",
        plan.keys.prefix(),
        plan.name,
        directory.display(),
        plan.name,
    )
}

fn json(directory: &Path, plan: &RealmPlan, report: MigrationReport) -> serde_json::Value {
    let MigrationReport { clusters, hosts, tenants, machines, audit_entries } = report;
    json!({
        "name": directory.display().to_string(),
        "realm": plan.keys.prefix(),
        "server": plan.name,
        "clusters": clusters,
        "hosts": hosts,
        "tenants": tenants,
        "machines": machines,
        "audit_entries": audit_entries,
    })
}
