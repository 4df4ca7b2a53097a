//! `forewarn realm`: several servers on one etcd.

use anyhow::Result;
use clap::Subcommand;
use forewarn_control::{EngineMemberView, FormatChange, RealmView, StreamView};
use forewarn_http_client::Method;

use super::session::Session;
use super::table::{Table, Width};
use super::visible::flat;
use super::{realm_server, sentences};

/// The remedies for an engine that was restored.
const RESTORED_HINT: &str = "  hint: restore etcd from a newer backup; or stop all servers, and continue from the older state: forewarn realm \
                             accept-restore --config FILE\n";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the realm: its servers, the members of its etcd, its streams
    Show,
    /// Set the format in which records are written: one that all servers read
    #[command(before_help = "Example:\n  forewarn realm set-format 1")]
    SetFormat {
        /// Number of the format
        format: u32,
    },
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Show => session.show("/v1/realm", |realm| Ok(text(&realm, session.width()))),
        Command::SetFormat { format } => {
            let body = FormatChange { format: *format };
            let response = session.change(Method::PUT, "/v1/realm/format", Some(&body))?;
            session.present(response, |realm: RealmView| {
                Ok(format!("Records are written in format {}.\n", realm.format))
            })
        }
    }
}

fn text(realm: &RealmView, width: Width) -> String {
    let facts = [
        ("identity", realm.identity.clone()),
        ("created", sentences::date(realm.created)),
        ("format", realm.format.to_string()),
        ("restores", realm.restores.to_string()),
    ];
    let restored = realm.restored.as_ref().map(|reason| ("restored", flat(reason)));
    let hint = restored.as_ref().map_or("", |_| RESTORED_HINT);
    let facts = Table::facts(facts.into_iter().chain(restored));
    let servers = realm_server::table(&realm.servers, width);
    let (engine, streams) = (engine(&realm.engine, width), streams(realm, width));
    format!("{facts}{hint}\n{servers}\n{engine}\n{streams}")
}

fn engine(members: &[EngineMemberView], width: Width) -> String {
    let mut table = Table::new(width, &["etcd", "version", "database", "quota", "problem"]);
    for member in members {
        table.row([
            member.endpoint.clone(),
            member.version.clone().unwrap_or_default(),
            member.bytes.map(megabytes).unwrap_or_default(),
            member.bytes_max.map(megabytes).unwrap_or_default(),
            member.problem.as_deref().map(flat).unwrap_or_default(),
        ]);
    }
    table.to_string()
}

fn streams(realm: &RealmView, width: Width) -> String {
    let mut table = Table::new(width, &["stream", "batches", "owner", "term"]);
    for (name, StreamView { number, term, owner }) in &realm.streams {
        table.row([name.clone(), number.to_string(), owner.clone().unwrap_or_default(), term.to_string()]);
    }
    table.to_string()
}

/// Megabytes with one decimal.
fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_is_shown_with_its_parts() {
        let json = r#"{"identity":"0011","created":"2026-01-01T00:00:00Z","format":1,"restores":0,
            "restored":"stream shared ends with batch 3","servers":[],
            "engine":[{"endpoint":"127.0.0.1:2379","version":"3.5.16","bytes":2450000,"bytes_max":null},
                      {"endpoint":"127.0.0.1:2380","version":null,"bytes":null,"bytes_max":null,"problem":"it does not answer"}],
            "streams":{"cluster-0":{"number":7,"term":2,"owner":"a1"},"shared":{"number":3,"term":0,"owner":null}}}"#;
        let shown = text(&serde_json::from_str(json).unwrap(), Width::Wide);
        for line in [
            "restored  stream shared ends with batch 3",
            RESTORED_HINT.trim_end(),
            "127.0.0.1:2379  3.5.16   2.4 MB    -      -",
            "127.0.0.1:2380  -        -         -      it does not answer",
            "cluster-0  7        a1     2",
            "shared     3        -      0",
        ] {
            assert!(shown.lines().any(|found| found == line), "{line}\nin\n{shown}");
        }
    }
}
