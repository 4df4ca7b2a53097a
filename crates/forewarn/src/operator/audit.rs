//! `forewarn audit`: the audit log. `ls` and `export` need a server; `verify` also works on an exported file.

mod expectation;
mod verify;

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use forewarn_cli_support::output::names_in;
use forewarn_control::{AuditEntry, AuditPage, Stream};
use forewarn_types::Moment;
use serde_json::Value;

use super::event_id::EventIdPrefix;
use super::sentences;
use super::session::{Session, escaped, print, print_data};
use super::watch::caller;
use super::{Name, OutputFormat, visible};
use crate::new_file::create_private;
use expectation::{Expectation, divided};
use verify::Verifier;

const EXAMPLES: &str = "\
Examples:
  forewarn audit ls --kind command --limit 20
  forewarn audit ls --machine web/web_0 --since 2026-01-01T00:00:00Z
  forewarn audit ls --by \"token ci\"";

const EXPORT_EXAMPLES: &str = "\
Example:
  forewarn audit export audit.ndjson && forewarn audit verify audit.ndjson";

/// The path of the complete audit log.
const EXPORT: &str = "/v1/audit/export";

/// Entries of a page: the maximum of the server.
const PAGE_ITEMS: u64 = 1_000;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List entries of the audit log, latest first
    #[command(before_help = EXAMPLES)]
    Ls(AuditFilter),
    /// Export the audit log to a file, one JSON entry per line; with --cluster, only what verifies that cluster
    #[command(before_help = EXPORT_EXAMPLES)]
    Export {
        /// Export file, must not exist yet; `-` writes to standard output
        file: PathBuf,
    },
    /// Verify the hash chains: no entry is changed, missing, inserted or moved
    #[command(before_help = EXPORT_EXAMPLES)]
    Verify {
        /// Exported file, may be a part of the log; `-` reads standard input [default: the audit log of the server]
        file: Option<PathBuf>,
        /// Expected entry of a chain, as `verify` prints it; may be repeated, once per chain. Later entries are allowed,
        /// unless it is only the HASH of the last entry of a chain
        #[arg(long, value_name = "STREAM:NUMBER:HASH")]
        expect: Vec<Expectation>,
    },
}

#[derive(Args)]
pub(crate) struct AuditFilter {
    /// Only entries about this tenant
    #[arg(long)]
    tenant: Option<Name>,
    /// Only entries about this machine, as TENANT/NAME, or as NAME if the machine exists
    #[arg(long)]
    machine: Option<Name>,
    /// Only entries about this host
    #[arg(long)]
    host: Option<Name>,
    /// Only entries about this event (id or unique prefix)
    #[arg(long, value_name = "ID")]
    event: Option<EventIdPrefix>,
    /// Only entries about this rollout
    #[arg(long, value_name = "NUMBER")]
    rollout: Option<u64>,
    /// Only actions of this caller: "token NAME", socket, anyone, "machine TENANT/NAME", or forewarn
    #[arg(long, value_name = "CALLER")]
    by: Option<Name>,
    /// Only entries of this kind: command, announced, approved, started, completed, withdrawn, …
    #[arg(long)]
    kind: Option<Name>,
    /// Only entries since this time, such as 2026-01-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only entries before this time
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Ls(filter) => list(session, &filter),
        Command::Export { file } => export(session, &file),
        Command::Verify { file, expect } => verify(session, file.as_deref(), &expect),
    }
}

fn list(session: &Session, filter: &AuditFilter) -> Result<()> {
    let query = filter.query(session)?;
    let (mut items, mut before) = (Vec::<Value>::new(), String::new());
    let whole = loop {
        let left = filter.limit.saturating_sub(items.len() as u64).min(PAGE_ITEMS);
        let mut page: Value = session.get(&format!("/v1/audit?limit={left}{query}{before}"))?;
        if let Value::Array(more) = page["items"].take() {
            items.extend(more);
        }
        match page["next"].as_str() {
            Some(next) if (items.len() as u64) < filter.limit => {
                before = format!("&before={}", escaped(next));
            }
            Some(_) | None => {
                page["items"] = items.into();
                break page;
            }
        }
    };
    let of_one_cluster = session.cluster().is_some();
    let names = |page: &Value| {
        let page: Option<AuditPage> = serde_json::from_value(page.clone()).ok();
        let number = |entry: &AuditEntry| {
            let cluster = if of_one_cluster { String::new() } else { format!("{}:", stream_name(entry)) };
            format!("{cluster}{}", entry.number)
        };
        page.iter().flat_map(|page| &page.items).map(number).collect()
    };
    session.present_named(whole, names, |page: AuditPage| Ok(page.items.iter().map(line).collect()))
}

/// Characters of the column of clusters.
const CLUSTER_CHARS: usize = 8;

/// One entry. Its number counts within its cluster, so the cluster is shown with it.
fn line(entry: &AuditEntry) -> String {
    let because = entry.because.map(|number| format!(" (caused by {number})")).unwrap_or_default();
    let cluster = stream_name(entry);
    let (number, at, kind) = (entry.number, sentences::date(entry.at), &entry.kind);
    let (text, by) = (&entry.text, caller(Some(&entry.by)));
    let line = format!("{cluster:<CLUSTER_CHARS$} {number:>5}  {at}  {kind:<9}  {text}{by}{because}");
    format!("{}\n", visible::one_line(&line))
}

/// The name of the cluster of an entry.
fn stream_name(entry: &AuditEntry) -> String {
    match entry.belongs_to() {
        Stream::Shared => Stream::Shared.to_string(),
        Stream::Cluster(_) => entry.cluster.clone(),
    }
}

impl AuditFilter {
    fn query(&self, session: &Session) -> Result<String> {
        let Self { tenant, machine, host, event, rollout, by, kind, since, until, limit: _ } = self;
        let text = |named: &Option<Name>| named.as_ref().map(|Name(name)| name.clone());
        let event = event.as_ref().map(|prefix| prefix.resolve_any(session)).transpose()?;
        let conditions = [
            ("tenant", text(tenant)),
            ("machine", text(machine)),
            ("host", text(host)),
            ("event", event),
            ("rollout", rollout.map(|number| number.to_string())),
            ("by", text(by)),
            ("kind", text(kind)),
            ("since", since.map(|moment| moment.to_string())),
            ("until", until.map(|moment| moment.to_string())),
        ];
        let given = conditions.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Ok(given.map(|(name, value)| format!("&{name}={}", escaped(&value))).collect())
    }
}

/// Writes the audit log to a new file. An incomplete export is removed.
fn export(session: &Session, file: &Path) -> Result<()> {
    if file == Path::new("-") {
        let mut out = io::stdout().lock();
        return session.download(EXPORT, |piece| Ok(out.write_all(piece)?));
    }
    let failed = || format!("cannot write the export: {}", file.display());
    let mut out = create_private(file, "the export")?;
    let copied = session.download(EXPORT, |piece| out.write_all(piece).with_context(failed));
    let written = copied.and_then(|()| out.sync_all().with_context(failed));
    if written.is_err() {
        drop(fs::remove_file(file));
    }
    written
}

fn verify(session: &Session, file: Option<&Path>, expect: &[Expectation]) -> Result<()> {
    let (entries, last_hashes) = divided(expect)?;
    let verifier = Verifier::expecting(entries);
    let verifier = match file {
        None => {
            // The server has limited the export to the cluster, which may have had another name.
            let mut verifier = verifier;
            session.download(EXPORT, |piece| verifier.take(piece))?;
            verifier
        }
        Some(file) => {
            let mut verifier = verifier.only_of(session.cluster());
            feed(file, &mut verifier)?;
            verifier
        }
    };
    let mut verified = verifier.finish()?;
    for hash in last_hashes {
        verified.expect_last(hash)?;
    }
    match session.output() {
        OutputFormat::Data(format) => {
            print_data(format, &verified, |verified| names_in(&verified["chains"], "expect"))
        }
        OutputFormat::Text(_) => print(&verified.sentences()),
    }
}

/// Reads a file; `-` is standard input.
fn feed(file: &Path, verifier: &mut Verifier) -> Result<()> {
    if file == Path::new("-") {
        return feed_all(io::stdin().lock(), verifier);
    }
    let failed = || format!("cannot read the export: {}", file.display());
    feed_all(File::open(file).with_context(failed)?, verifier)
}

fn feed_all(from: impl Read, verifier: &mut Verifier) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            bytes => verifier.take(&piece[..bytes])?,
        }
    }
}

/// Bytes of one read.
const PIECE_BYTES: usize = 64 * 1024;
