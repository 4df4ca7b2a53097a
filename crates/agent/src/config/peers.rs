//! The peers: where they are, what is said to them is signed with, and what it means if they do not answer.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use forewarn_agent_core::{Peers, Silence};
use forewarn_types::Span;
use toml::Spanned;

use super::file::{PeersTable, SilenceWord};
use super::problem::Report;
use super::within;
use crate::peers::{Key, PeerPlaces};

/// Peers in a list.
const PEERS_MAX: usize = 256;

/// The port of peers, unless said.
const PORT: u16 = 9911;

/// How long a peer may say nothing, unless said, and at the least and most.
const SILENT_AFTER: Duration = Duration::from_secs(10);
const SILENT_AFTER_MIN: Duration = Duration::from_secs(2);
const SILENT_AFTER_MAX: Duration = Duration::from_mins(10);

/// With so little time left a machine no longer waits for its turn, unless said.
const RESERVE: Duration = Duration::from_mins(5);

/// What was said of peers.
#[derive(Clone, Debug)]
pub(crate) struct PeersConfig {
    /// What the watcher is told.
    pub(crate) watched: Peers,
    /// Where they are, if there are any.
    pub(crate) places: Option<PeerPlaces>,
    /// The key that they share, and where it is.
    pub(crate) key: Option<Key>,
    pub(crate) key_file: Option<PathBuf>,
}

pub(super) fn read(table: Option<&Spanned<PeersTable>>, report: &mut Report<'_>) -> PeersConfig {
    let usual = Peers { silent_after: SILENT_AFTER, silence: Silence::Wait, at_once: None, reserve: RESERVE };
    let Some(spanned) = table else {
        return PeersConfig { watched: usual, places: None, key: None, key_file: None };
    };
    let (table, span) = (spanned.get_ref(), spanned.span());
    let places = places(table, &span, report);
    let key = key(table, &span, report);
    let silence = match (table.silence, table.go_on_when_left) {
        (Some(_), Some(_)) => {
            report.at(&span, "silence and go_on_when_left exclude each other");
            Silence::Wait
        }
        (None | Some(SilenceWord::Wait), None) => Silence::Wait,
        (Some(SilenceWord::GoOn), None) => Silence::GoOn,
        (None, Some(Span(left))) => Silence::GoOnWhenLeft(left),
    };
    if let Some(at_once) = table.at_once.as_ref().filter(|at_once| *at_once.get_ref() == 0) {
        report.at(&at_once.span(), "at_once = 0 would let nobody prepare\n  hint: at_once = 1");
    }
    let allowed = SILENT_AFTER_MIN..=SILENT_AFTER_MAX;
    let watched = Peers {
        silent_after: within(table.silent_after.as_ref(), "silent_after", SILENT_AFTER, allowed, report),
        silence,
        at_once: table.at_once.as_ref().map(|at_once| *at_once.get_ref()),
        reserve: table.reserve.map_or(RESERVE, |Span(reserve)| reserve),
    };
    let key_file = table.key_file.as_ref().map(|file| file.get_ref().clone());
    PeersConfig { watched, places, key, key_file }
}

/// The key, read now, so that what is wrong with it is known.
fn key(table: &PeersTable, span: &std::ops::Range<usize>, report: &mut Report<'_>) -> Option<Key> {
    let Some(file) = &table.key_file else {
        report.at(
            span,
            "peers share a key, and there is none\n  \
             hint: key_file = \"/etc/forewarn-agent/peers.key\", with the same 32 bytes or more on each machine",
        );
        return None;
    };
    let read = Key::read(file.get_ref());
    read.map_err(|problem| report.at(&file.span(), format!("{}: {problem}", file.get_ref().display()))).ok()
}

fn places(table: &PeersTable, span: &std::ops::Range<usize>, report: &mut Report<'_>) -> Option<PeerPlaces> {
    let PeersTable { list, dns, members, suffix, port, .. } = table;
    let members = members.unwrap_or(false);
    if !members && (suffix.is_some() || port.is_some()) {
        report.at(span, "suffix and port go with members = true");
    }
    match (list, dns, members) {
        (Some(list), None, false) => listed(list, report),
        (None, Some(dns), false) => {
            if !is_place(dns.get_ref()) {
                report.at(
                    &dns.span(),
                    format!(
                        "not a name and a port: {:?}\n  hint: dns = \"agents.example:{PORT}\"",
                        dns.get_ref()
                    ),
                );
            }
            Some(PeerPlaces::Dns(dns.get_ref().clone()))
        }
        (None, None, true) => Some(PeerPlaces::Members {
            suffix: suffix.clone().unwrap_or_default(),
            port: port.unwrap_or(PORT),
        }),
        (Some(_) | None, Some(_) | None, _) => {
            report.at(span, "peers are found in one way\n  hint: one of list, dns and members");
            None
        }
    }
}

fn listed(list: &[Spanned<String>], report: &mut Report<'_>) -> Option<PeerPlaces> {
    if list.is_empty() {
        report.anywhere("peers.list is empty\n  hint: name every peer, or leave out [peers]");
    }
    let mut places = BTreeMap::new();
    for peer in list {
        let text = peer.get_ref();
        let parts = text.split_once('=').filter(|(name, place)| !name.is_empty() && is_place(place));
        let Some((name, place)) = parts else {
            report.at(
                &peer.span(),
                format!("not a name and where it is: {text:?}\n  hint: \"web_0=10.0.0.4:{PORT}\""),
            );
            continue;
        };
        if places.insert(name.to_owned(), place.to_owned()).is_some() {
            report.at(&peer.span(), format!("a peer is named twice: {name}"));
        }
    }
    if list.len() > PEERS_MAX {
        report.anywhere(format!("there are {} peers\n  hint: at most {PEERS_MAX}", list.len()));
    }
    Some(PeerPlaces::List(places))
}

/// Whether a text is a name or an address, and a port.
fn is_place(text: &str) -> bool {
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && host.chars().all(is_host) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}
