//! `forewarn realm accept-restore`: the older state of a restored etcd is the truth from now on.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use forewarn_cli_support::table::{Table, Width};
use forewarn_server::{AcceptanceReport, RestoredRealm, StreamLoss};
use serde_json::{Value, json};

use crate::operator::{GlobalOptions, OutputFormat, names, print, print_data, prompt_for};
use crate::server::serve::realm_settings;

#[derive(Subcommand)]
pub(crate) enum Command {
    AcceptRestore(AcceptRestoreArgs),
}

/// Accept the state of an etcd that was restored from an older backup, while all servers are stopped
///
/// Servers that find such an etcd own nothing. Restore a newer backup of etcd if there is one. Otherwise this command
/// lets them continue from the state in etcd: everything after it is lost. Events get new ids, documents get new
/// incarnations, the brake is on until `forewarn brake off`, and an audit entry records it. Run it on the computer of a
/// server that has found the restore. An interrupted command can be repeated.
#[derive(Args)]
#[command(before_help = "Example:\n  forewarn realm accept-restore --config /etc/forewarn/serve.toml")]
pub(crate) struct AcceptRestoreArgs {
    /// Configuration file of a server of the realm, with `[engine]`, `[server]` and `data_dir`
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Skip the confirmation; required without a terminal
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(command: &Command, options: &GlobalOptions) -> Result<()> {
    let Command::AcceptRestore(AcceptRestoreArgs { config, yes }) = command;
    let (directory, plan) = realm_settings(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start a runtime")?;
    let prefix = plan.keys.prefix();
    let found = runtime.block_on(RestoredRealm::inspect(&directory, &plan))?;
    let (reason, losses) = (found.reason(), found.losses());
    if !yes {
        eprint!("{}\n{}\n", Table::facts(facts(prefix, &reason)), table(&losses));
        prompt_for(
            &format!("acceptance of the state of {prefix} in etcd"),
            "what it has lost is lost for good",
        )?;
    }
    let report = runtime.block_on(found.accept())?;
    match options.output() {
        OutputFormat::Text(_) => print(&text(prefix, &reason, &losses, &report)),
        OutputFormat::Data(format) => print_data(format, &json(prefix, &reason, &losses, &report), names),
    }
}

fn facts(prefix: &str, reason: &str) -> [(&'static str, String); 2] {
    [("realm", prefix.to_owned()), ("reason", reason.to_owned())]
}

/// What etcd has and what the copy of this server has, as numbers of batches.
fn table(losses: &[StreamLoss]) -> Table {
    let mut table = Table::new(Width::of_output(), &["stream", "cluster", "in etcd", "here", "lost"]);
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    for StreamLoss { stream, cluster, restored, copied, lost } in losses {
        let cluster = cluster.clone().unwrap_or_default();
        table.row([stream.to_string(), cluster, number(*restored), number(*copied), number(*lost)]);
    }
    table
}

fn text(prefix: &str, reason: &str, losses: &[StreamLoss], report: &AcceptanceReport) -> String {
    let AcceptanceReport { restores, clusters, hosts, tenants, machines } = report;
    let fleet = format!("{clusters} clusters, {hosts} hosts, {tenants} tenants, {machines} machines");
    let more = [("restores", restores.to_string()), ("fleet", fleet)];
    format!(
        "{}\n{}\n\
         The realm continues with the state in etcd. The brake is on: start all servers, each of which sets its former \
         copy aside; check the events, the VMs, and `forewarn token ls` (a revoked token may be valid again); then run \
         `forewarn brake off`.\n",
        Table::facts(facts(prefix, reason).into_iter().chain(more)),
        table(losses),
    )
}

fn json(prefix: &str, reason: &str, losses: &[StreamLoss], report: &AcceptanceReport) -> Value {
    let AcceptanceReport { restores, clusters, hosts, tenants, machines } = report;
    let stream = |loss: &StreamLoss| {
        let StreamLoss { stream, cluster, restored, copied, lost } = loss;
        json!({ "stream": stream.to_string(), "cluster": cluster, "restored": restored, "copied": copied, "lost": lost })
    };
    json!({
        "name": prefix,
        "reason": reason,
        "restores": restores,
        "clusters": clusters,
        "hosts": hosts,
        "tenants": tenants,
        "machines": machines,
        "streams": losses.iter().map(stream).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use forewarn_control::{ClusterId, Stream};

    use super::*;

    #[test]
    fn the_report_says_what_is_lost_and_what_to_do() {
        let stream = Stream::Cluster(ClusterId::DEFAULT);
        let cluster = Some("default".to_owned());
        let losses = [
            StreamLoss { stream, cluster, restored: Some(5), copied: Some(9), lost: Some(4) },
            StreamLoss { stream: Stream::Shared, cluster: None, restored: Some(3), copied: None, lost: None },
        ];
        let report = AcceptanceReport { restores: 2, clusters: 1, hosts: 3, tenants: 2, machines: 7 };
        let shown = text("/forewarn/1/", "a test", &losses, &report);
        for line in [
            "realm     /forewarn/1/",
            "reason    a test",
            "restores  2",
            "fleet     1 clusters, 3 hosts, 2 tenants, 7 machines",
            "STREAM     CLUSTER  IN ETCD  HERE  LOST",
            "cluster-0  default  5        9     4",
            "shared     -        3        -     -",
        ] {
            assert!(shown.lines().any(|found| found == line), "{line}\nin\n{shown}");
        }
        assert!(shown.contains("forewarn brake off") && shown.contains("forewarn token ls"), "{shown}");
        let data = json("/forewarn/1/", "a test", &losses, &report);
        assert_eq!((&data["name"], &data["streams"][0]["lost"]), (&"/forewarn/1/".into(), &4.into()));
        assert_eq!(data["streams"][1]["cluster"], Value::Null);
    }
}
