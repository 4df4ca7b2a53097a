//! `forewarn story record`: writes a story from what happened on a server.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use forewarn_control::{
    AuditEntry, ClockView, CurrentFleet, Fleet, MachineView, NamedCommand, Site, Stream, TenantView,
    UnlistedObjects, difference,
};
use forewarn_http_client::{Bytes, Method};
use forewarn_imds::Edition;
use forewarn_lifecycle::{Cluster, Now, Seed};
use forewarn_story::record::{Recording, ServerHistory, record};
use serde_json::json;

use crate::client::Client;
use crate::operator::{GlobalOptions, OutputFormat, names, print, print_data, visible};

/// Entries of the audit log that are read: more than any story holds.
const ENTRIES_MAX: usize = 100_000;

pub(super) fn command(file: Option<&Path>, since: u64, options: &GlobalOptions) -> Result<()> {
    let history = read_history(&options.client()?, options.cluster()?.as_deref(), since)?;
    let Recording { story, warnings } = record(&history);
    for warning in &warnings {
        eprintln!("forewarn: warning: {}", visible(warning));
    }
    match (file, options.output()) {
        (Some(file), _) => {
            let new = fs::OpenOptions::new().write(true).create_new(true).open(file);
            let written = new.and_then(|mut new| new.write_all(story.as_bytes()));
            written.with_context(|| format!("cannot write the story: {}", file.display()))
        }
        (None, OutputFormat::Data(format)) => {
            print_data(format, &json!({ "story": story, "warnings": warnings }), names)
        }
        (None, OutputFormat::Text(_)) => print(&visible(&story)),
    }
}

fn read_history(api: &Client, cluster: Option<&str>, since: u64) -> Result<ServerHistory> {
    let of_cluster = |path: &str| match cluster {
        Some(cluster) => {
            let more = if path.contains('?') { '&' } else { '?' };
            format!("{path}{more}cluster={}", forewarn_url::percent::encode(cluster))
        }
        None => path.to_owned(),
    };
    let entries = entries(api, &of_cluster("/v1/audit/export"), cluster)?;
    let last = entries.last().map_or(0, |entry| entry.number);
    if since > last.max(1) {
        bail!(
            "no such entry in the audit log: {since}\n  hint: the last entry is {last}; forewarn audit ls lists them"
        );
    }
    let is_complete = entries.first().is_none_or(|entry| entry.number == 1);
    let fleet = if is_complete { Vec::new() } else { fleet(&api.get(&of_cluster("/v1/fleet"))?)? };
    let tenants: Vec<TenantView> = api.pages(&of_cluster("/v1/tenants"))?;
    let machines: Vec<MachineView> = api.pages(&of_cluster("/v1/machines"))?;
    let clock: ClockView = api.get("/v1/clock")?;
    let mut documents = Vec::new();
    for TenantView { name, .. } in tenants {
        let edition = Edition::newest().as_str();
        let path = of_cluster(&format!("/v1/tenants/{name}/document?api-version={edition}"));
        let (status, body) = api.send(Method::GET, &path, &[], Bytes::new())?;
        if status == 200 {
            documents.push((name, body.to_vec()));
        }
    }
    Ok(ServerHistory { entries, since, fleet, now: clock.now.0, documents, machines })
}

/// The entries of one cluster, oldest first.
fn entries(api: &Client, path: &str, cluster: Option<&str>) -> Result<Vec<AuditEntry>> {
    let mut log = Vec::new();
    api.download(path, |part| {
        log.extend_from_slice(part);
        Ok(())
    })?;
    let mut entries: Vec<AuditEntry> = Vec::new();
    for line in log.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let entry: AuditEntry = serde_json::from_slice(line).context("invalid entry of the audit log")?;
        let is_wanted = match (entry.belongs_to(), entries.first()) {
            (Stream::Shared, _) => false,
            (Stream::Cluster(_), Some(first)) => first.cluster_number == entry.cluster_number,
            (Stream::Cluster(_), None) => cluster.is_none_or(|cluster| cluster == entry.cluster),
        };
        if is_wanted {
            entries.push(entry);
        }
        if entries.len() > ENTRIES_MAX {
            bail!("the audit log has more than {ENTRIES_MAX} entries: no story holds them");
        }
    }
    Ok(entries)
}

/// The commands that make a fleet.
fn fleet(fleet: &Fleet) -> Result<Vec<NamedCommand>> {
    let (empty, now) = (Cluster::new(Seed([0; 16])), Now::at_millis(0));
    let (site, details) = (fleet.site.apply(&Site::default()), |_| None);
    let current = CurrentFleet { cluster: &empty, site: &site, details: &details, now };
    let differences = difference(current, fleet, UnlistedObjects::Keep)?;
    Ok(differences.into_iter().filter_map(|difference| difference.command).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_made_by_commands() {
        let file = Fleet::parse(include_str!("../server/demo.toml")).unwrap();
        let commands = fleet(&file).unwrap();
        assert!(
            matches!(&commands[0], NamedCommand::AdmitHost(host) if host.name == "h1"),
            "{:?}",
            commands[0]
        );
        let now = forewarn_lifecycle::Timestamp::from_millis(0);
        let (entries, documents, machines) = (Vec::new(), Vec::new(), Vec::new());
        let history = ServerHistory { entries, since: 1, fleet: commands, now, documents, machines };
        let Recording { story, warnings } = record(&history);
        assert!(
            story.contains("# The audit log has no beginning") && story.contains("\nscaleset web"),
            "{story}"
        );
        assert_eq!(warnings, ["addresses and tags of machines are left out"]);
    }
}
