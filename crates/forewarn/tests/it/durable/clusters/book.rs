//! The content of a cluster as its client knows it, and requests that change it.

use std::collections::{BTreeMap, BTreeSet};

/// What the answers say about a cluster. Only one client changes it, so that its book is exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Book {
    pub(super) exists: bool,
    /// The resource group of its site.
    pub(super) site: String,
    /// Resource groups that its client has created in it.
    pub(super) groups: BTreeSet<String>,
    pub(super) hosts: BTreeSet<String>,
}

impl Book {
    /// A cluster that was just created, or is gone.
    pub(super) fn new(name: &str, exists: bool) -> Self {
        let site = if exists { format!("forewarn-{name}") } else { String::new() };
        Self { exists, site, ..Self::default() }
    }

    /// Every resource group that it uses.
    pub(super) fn used(&self) -> BTreeSet<String> {
        let site = self.exists.then(|| self.site.clone());
        self.groups.iter().cloned().chain(site).collect()
    }

    /// The book after a request that was carried out.
    pub(super) fn after(&self, name: &str, effect: &Effect) -> Self {
        let mut book = self.clone();
        match effect {
            Effect::Create => book = Self::new(name, true),
            Effect::Remove => book = Self::new(name, false),
            Effect::Move(group) => book.site.clone_from(group),
            Effect::CreateGroup(group) => drop(book.groups.insert(group.clone())),
            Effect::DeleteGroup(group) => drop(book.groups.remove(group)),
            Effect::Fleet { host, site } => {
                book.hosts.insert(host.clone());
                book.site = site.clone().unwrap_or(book.site);
            }
            Effect::RemoveHost(host) => drop(book.hosts.remove(host)),
            Effect::Restart | Effect::Approve(_) | Effect::Cancel(_) => {}
        }
        book
    }
}

/// The effect of a request, if it is carried out.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    Create,
    Remove,
    Move(String),
    CreateGroup(String),
    DeleteGroup(String),
    /// A fleet file with one more host, and with or without another site: both, or nothing.
    Fleet {
        host: String,
        site: Option<String>,
    },
    RemoveHost(String),
    Restart,
    Approve(String),
    Cancel(String),
}

impl Effect {
    /// The resource group that the cluster would begin to use.
    pub(super) fn group(&self) -> Option<&String> {
        match self {
            Self::Move(group) | Self::CreateGroup(group) | Self::Fleet { site: Some(group), .. } => {
                Some(group)
            }
            Self::Fleet { site: None, .. }
            | Self::Create
            | Self::Remove
            | Self::DeleteGroup(_)
            | Self::RemoveHost(_)
            | Self::Restart
            | Self::Approve(_)
            | Self::Cancel(_) => None,
        }
    }

    /// The event that would no longer wait.
    pub(super) fn event(&self) -> Option<&String> {
        if let Self::Approve(id) | Self::Cancel(id) = self { Some(id) } else { None }
    }
}

/// Events that were answered.
#[derive(Default)]
pub(super) struct Events {
    /// By id; true if the answer to its approval or to its cancellation has come.
    pub(super) known: BTreeMap<String, bool>,
}

impl Events {
    pub(super) fn waiting(&self) -> Option<&String> {
        self.known.iter().find(|(_, is_over)| !**is_over).map(|(id, _)| id)
    }
}
