//! `forewarn audit`: the trail. Listing and exporting ask a server; verifying needs only the lines.

mod verify;

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use forewarn_control::{AuditEntry, AuditPage};
use forewarn_types::Moment;
use serde_json::{Value, json};

use super::identifier::Beginning;
use super::say;
use super::session::{Session, escaped, print};
use super::watch::who;
use super::{Named, Output, visible};
use verify::{Verified, Verifier};

const EXAMPLES: &str = "\
Examples:
  forewarn audit ls --kind command --limit 20
  forewarn audit ls --machine web/web_0 --since 2026-01-01T00:00:00Z
  forewarn audit export trail.ndjson && forewarn audit verify trail.ndjson";

/// Where the whole trail is.
const EXPORT: &str = "/v1/audit/export";

/// Entries of a page: as many as a server gives.
const PAGE_ITEMS: u64 = 1_000;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List entries, newest first.
    #[command(after_help = EXAMPLES)]
    Ls(Filter),
    /// Copy the whole trail to a file, one entry a line.
    Export {
        /// The file, which must not be there yet; `-` is standard output.
        file: PathBuf,
    },
    /// See that no entry was changed, taken out, put in between or moved.
    #[command(after_help = EXAMPLES)]
    Verify {
        /// An export, which may begin in the middle; `-` is standard input. Without it, the trail of the server.
        file: Option<PathBuf>,
        /// The hash that the last entry must have, as it was noted elsewhere.
        #[arg(long, value_name = "HASH")]
        expect: Option<String>,
    },
}

#[derive(Args)]
pub(crate) struct Filter {
    /// Only what concerns this tenant.
    #[arg(long)]
    tenant: Option<Named>,
    /// Only what concerns this machine: tenant/name, or the name of one that is there.
    #[arg(long)]
    machine: Option<Named>,
    /// Only what concerns this host.
    #[arg(long)]
    host: Option<Named>,
    /// Only what concerns this event.
    #[arg(long, value_name = "ID")]
    event: Option<Beginning>,
    /// Only what concerns this rollout.
    #[arg(long, value_name = "NUMBER")]
    rollout: Option<u64>,
    /// Only what this one did: "token NAME", socket, anyone, "machine TENANT/NAME", forewarn.
    #[arg(long, value_name = "WHO")]
    by: Option<Named>,
    /// Only entries of this kind: command, announced, approved, started, completed, withdrawn, …
    #[arg(long)]
    kind: Option<Named>,
    /// Nothing from before: 2026-01-01T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    since: Option<Moment>,
    /// Only what is from before.
    #[arg(long, value_name = "TIME")]
    until: Option<Moment>,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    match command {
        Command::Ls(filter) => list(session, &filter),
        Command::Export { file } => export(session, &file),
        Command::Verify { file, expect } => verify(session, file.as_deref(), expect.as_deref()),
    }
}

fn list(session: &Session, filter: &Filter) -> Result<()> {
    let query = filter.query(session)?;
    let (mut items, mut before) = (Vec::<Value>::new(), String::new());
    let whole = loop {
        let left = filter.limit.saturating_sub(items.len() as u64).min(PAGE_ITEMS);
        let mut page: Value = session.get(&format!("/v1/audit?limit={left}{query}{before}"))?;
        if let Value::Array(more) = page["items"].take() {
            items.extend(more);
        }
        match page["next"].as_u64() {
            Some(next) if (items.len() as u64) < filter.limit => before = format!("&before={next}"),
            Some(_) | None => {
                page["items"] = items.into();
                break page;
            }
        }
    };
    session.present(whole, |page: AuditPage| Ok(page.items.iter().map(line).collect()))
}

fn line(entry: &AuditEntry) -> String {
    let because = entry.because.map(|number| format!(" (because of {number})")).unwrap_or_default();
    let cluster = match entry.cluster.as_str() {
        "" | "default" => String::new(),
        other => format!(" in {other}"),
    };
    let (number, at, kind) = (entry.number, say::date(entry.at), &entry.kind);
    let (text, by) = (&entry.text, who(Some(&entry.by)));
    format!("{}\n", visible::one_line(&format!("{number:>6}  {at}  {kind:<9}  {text}{cluster}{by}{because}")))
}

impl Filter {
    fn query(&self, session: &Session) -> Result<String> {
        let Self { tenant, machine, host, event, rollout, by, kind, since, until, limit: _ } = self;
        let text = |named: &Option<Named>| named.as_ref().map(|Named(name)| name.clone());
        let event = event.as_ref().map(|beginning| beginning.resolve_any(session)).transpose()?;
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
        let said = conditions.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Ok(said.map(|(name, value)| format!("&{name}={}", escaped(&value))).collect())
    }
}

/// Writes the trail to a file that is not there yet. Half an export is none, and is removed.
fn export(session: &Session, file: &Path) -> Result<()> {
    if file == Path::new("-") {
        let mut out = io::stdout().lock();
        return session.download(EXPORT, |piece| Ok(out.write_all(piece)?));
    }
    let failed = || format!("cannot write the export: {}", file.display());
    let mut out = File::create_new(file).with_context(failed)?;
    let copied = session.download(EXPORT, |piece| out.write_all(piece).with_context(failed));
    let kept = copied.and_then(|()| out.sync_all().with_context(failed));
    if kept.is_err() {
        drop(fs::remove_file(file));
    }
    kept
}

fn verify(session: &Session, file: Option<&Path>, expect: Option<&str>) -> Result<()> {
    let mut verifier = Verifier::default();
    match file {
        None => session.download(EXPORT, |piece| verifier.take(piece))?,
        Some(file) if file == Path::new("-") => feed(io::stdin().lock(), &mut verifier)?,
        Some(path) => {
            let failed = || format!("cannot read the export: {}", path.display());
            feed(File::open(path).with_context(failed)?, &mut verifier)?;
        }
    }
    let verified = verifier.finish()?;
    if let Some(expected) = expect.filter(|expected| !expected.eq_ignore_ascii_case(&verified.hash)) {
        bail!(
            "the last hash is another one: {}, not {expected}\n  hint: entries after the one that was noted, or another trail",
            visible(&verified.hash)
        );
    }
    match session.output() {
        Output::Json => print(&visible::json(&format!("{:#}\n", told(&verified)))),
        Output::Table | Output::Wide => print(&sentence(&verified)),
    }
}

fn feed(from: impl Read, verifier: &mut Verifier) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            bytes => verifier.take(&piece[..bytes])?,
        }
    }
}

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 * 1024;

fn told(Verified { entries, first, last, hash }: &Verified) -> Value {
    json!({ "entries": entries, "first": first, "last": last, "hash": hash })
}

fn sentence(Verified { entries, first, last, hash }: &Verified) -> String {
    match (entries, first) {
        (0, _) => "Nothing to verify: there is no entry.\n".to_owned(),
        (_, 1) => format!("Whole: {entries} entries, from 1 to {last}. The last hash is {hash}.\n"),
        _ => format!(
            "Whole: {entries} entries, from {first} to {last}; the first is believed, what was before it is not here. \
             The last hash is {hash}.\n"
        ),
    }
}
