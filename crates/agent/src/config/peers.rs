//! Settings for peers: discovery, the shared key, and the handling of silent peers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use forewarn_agent_core::{Peers, Silence};
use forewarn_types::Span;
use toml::Spanned;

use super::errors::ConfigReport;
use super::file::{PeersTable, SilenceWord};
use super::within;
use crate::peers::{Key, PeerDiscovery};

/// Limit of peers in a list.
const PEERS_MAX: usize = 256;

/// Default port of peers.
const PORT: u16 = 9911;

/// Default, minimum and maximum time after which a peer counts as silent.
const SILENT_AFTER: Duration = Duration::from_secs(10);
const SILENT_AFTER_MIN: Duration = Duration::from_secs(2);
const SILENT_AFTER_MAX: Duration = Duration::from_mins(10);

/// Default remaining time at which a machine stops waiting for its turn.
const RESERVE: Duration = Duration::from_mins(5);

/// The settings for peers.
#[derive(Clone, Debug)]
pub(crate) struct PeersConfig {
    /// The settings of the watcher.
    pub(crate) watched: Peers,
    /// The discovery of peers; `None` if there are no peers.
    pub(crate) discovery: Option<PeerDiscovery>,
    /// The shared key, and the path of its file.
    pub(crate) key: Option<Key>,
    pub(crate) key_file: Option<PathBuf>,
}

pub(super) fn read(table: Option<&Spanned<PeersTable>>, report: &mut ConfigReport<'_>) -> PeersConfig {
    let usual = Peers { silent_after: SILENT_AFTER, silence: Silence::Wait, at_once: None, reserve: RESERVE };
    let Some(spanned) = table else {
        return PeersConfig { watched: usual, discovery: None, key: None, key_file: None };
    };
    let (table, span) = (spanned.get_ref(), spanned.span());
    let discovery = discovery(table, &span, report);
    let key = key(table, &span, report);
    let silence = match (table.silence, table.go_on_when_left) {
        (Some(_), Some(_)) => {
            report.at(&span, "silence and go_on_when_left are mutually exclusive");
            Silence::Wait
        }
        (None | Some(SilenceWord::Wait), None) => Silence::Wait,
        (Some(SilenceWord::GoOn), None) => Silence::GoOn,
        (None, Some(Span(left))) => Silence::GoOnWhenLeft(left),
    };
    if let Some(at_once) = table.at_once.as_ref().filter(|at_once| *at_once.get_ref() == 0) {
        report.at(&at_once.span(), "at_once = 0 would let no machine prepare\n  hint: at_once = 1");
    }
    let allowed = SILENT_AFTER_MIN..=SILENT_AFTER_MAX;
    let watched = Peers {
        silent_after: within(table.silent_after.as_ref(), "silent_after", SILENT_AFTER, allowed, report),
        silence,
        at_once: table.at_once.as_ref().map(|at_once| *at_once.get_ref()),
        reserve: table.reserve.map_or(RESERVE, |Span(reserve)| reserve),
    };
    let key_file = table.key_file.as_ref().map(|file| file.get_ref().clone());
    PeersConfig { watched, discovery, key, key_file }
}

/// Reads the key, so that errors in it are reported with the settings.
fn key(table: &PeersTable, span: &std::ops::Range<usize>, report: &mut ConfigReport<'_>) -> Option<Key> {
    let Some(file) = &table.key_file else {
        if !report.may_have_lost(Some(span), "key_file") {
            report.at(
                span,
                "peers need a shared key\n  \
                 hint: key_file = \"/etc/forewarn-agent/peers.key\", with the same 32 bytes or more on each machine",
            );
        }
        return None;
    };
    let read = Key::read(file.get_ref());
    read.map_err(|error| report.at(&file.span(), format!("{}: {error}", file.get_ref().display()))).ok()
}

fn discovery(
    table: &PeersTable,
    span: &std::ops::Range<usize>,
    report: &mut ConfigReport<'_>,
) -> Option<PeerDiscovery> {
    let PeersTable { list, dns, members, suffix, port, .. } = table;
    let members = members.unwrap_or(false);
    let is_lost = |key: &str| report.may_have_lost(Some(span), key);
    let has_lost_way = ["list", "dns", "members"].into_iter().any(is_lost);
    if !members && (suffix.is_some() || port.is_some()) && !is_lost("members") {
        report.at(span, "suffix and port need members = true");
    }
    match (list, dns, members) {
        (Some(list), None, false) => read_list(list, report),
        (None, Some(dns), false) => {
            if !is_host_and_port(dns.get_ref()) {
                report.at(
                    &dns.span(),
                    format!(
                        "invalid name and port: {:?}\n  hint: dns = \"agents.example:{PORT}\"",
                        dns.get_ref()
                    ),
                );
            }
            Some(PeerDiscovery::Dns(dns.get_ref().clone()))
        }
        (None, None, true) => Some(PeerDiscovery::Members {
            suffix: suffix.clone().unwrap_or_default(),
            port: port.unwrap_or(PORT),
        }),
        (None, None, false) if has_lost_way => None,
        (None, None, false) => {
            report.at(span, "no way to find peers\n  hint: use one of list, dns and members");
            None
        }
        (Some(_) | None, Some(_) | None, _) => {
            report.at(span, "more than one way to find peers\n  hint: use one of list, dns and members");
            None
        }
    }
}

fn read_list(list: &[Spanned<String>], report: &mut ConfigReport<'_>) -> Option<PeerDiscovery> {
    if list.is_empty() {
        report.anywhere("peers.list is empty\n  hint: name every peer, or leave out [peers]");
    }
    let mut discovery = BTreeMap::new();
    for peer in list {
        let text = peer.get_ref();
        let parts =
            text.split_once('=').filter(|(name, address)| !name.is_empty() && is_host_and_port(address));
        let Some((name, address)) = parts else {
            report.at(&peer.span(), format!("invalid peer: {text:?}\n  hint: \"web_0=10.0.0.4:{PORT}\""));
            continue;
        };
        if discovery.insert(name.to_owned(), address.to_owned()).is_some() {
            report.at(&peer.span(), format!("duplicate peer: {name}"));
        }
    }
    if list.len() > PEERS_MAX {
        report.anywhere(format!("too many peers: {}\n  hint: at most {PEERS_MAX}", list.len()));
    }
    Some(PeerDiscovery::List(discovery))
}

/// True for a name or an address, and a port.
fn is_host_and_port(text: &str) -> bool {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && host.chars().all(is_host) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}
