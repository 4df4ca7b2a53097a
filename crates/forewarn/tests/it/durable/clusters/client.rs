//! A client that changes one cluster, repeats what was not answered, and knows what has to be there.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::Pools;
use super::book::{Book, Effect, Events};
use crate::access::place::{Request, json as body_of};
use forewarn_testkit::arm::SUBSCRIPTION;
use forewarn_testkit::{Random, RawResponse, ask};

/// A request that is not answered yet. It is sent again until it is, under the same key.
struct Pending {
    effect: Effect,
    line: String,
    body: String,
    key: u64,
    /// It was sent before: it may have been carried out.
    is_repeated: bool,
}

/// Counts of answers over all clients.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) answered: AtomicU64,
    pub(super) taken: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) removed: AtomicU64,
}

fn add(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

pub(super) struct Client {
    pub(super) name: String,
    token: String,
    random: Random,
    next_key: u64,
    pending: Option<Pending>,
    pub(super) book: Book,
    events: Events,
    is_temporary: bool,
    pools: Pools,
}

impl Client {
    /// A client with a token that is limited to its cluster.
    pub(super) fn new(name: String, token: String, random: Random, book: Book, pools: Pools) -> Self {
        let (next_key, pending, events) = (0, None, Events::default());
        Self { name, token, random, next_key, pending, book, events, is_temporary: false, pools }
    }

    /// A client that creates and removes its cluster, again and again.
    pub(super) fn temporary(name: String, token: String, random: Random, pools: Pools) -> Self {
        let book = Book::new(&name, false);
        Self { is_temporary: true, ..Self::new(name, token, random, book, pools) }
    }

    /// Does one thing after the other; ends when the server does.
    pub(super) fn work(&mut self, api: SocketAddr, counts: &Counts) -> io::Error {
        loop {
            if self.pending.is_none() {
                self.pending = Some(self.choose());
            }
            if let Err(problem) = self.settle(api, counts) {
                return problem;
            }
            add(&counts.answered);
        }
    }

    fn ask(&self, api: SocketAddr, line: &str, headers: &str, body: &str) -> io::Result<RawResponse> {
        ask(api, &Request { line, token: Some(&self.token), headers, body }.bytes())
    }

    pub(super) fn get(&self, api: SocketAddr, target: &str) -> RawResponse {
        self.ask(api, &format!("GET {target}"), "", "").unwrap()
    }

    /// Sends a request that is not noted in the book.
    pub(super) fn send(&self, api: SocketAddr, line: &str, body: &str) -> RawResponse {
        self.ask(api, line, "", body).unwrap()
    }

    pub(super) fn move_site(&self, api: SocketAddr, group: &str) -> RawResponse {
        let body = json!({ "resource_group": group }).to_string();
        self.send(api, &format!("PATCH /v1/site?cluster={}", self.name), &body)
    }

    /// Sends the request that is not answered, if there is one, and notes the answer.
    pub(super) fn settle(&mut self, api: SocketAddr, counts: &Counts) -> io::Result<()> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        let key = format!("Idempotency-Key: {}-{}\r\n", self.name, pending.key);
        match self.ask(api, &pending.line, &key, &pending.body) {
            Ok(answer) => {
                self.note(&pending, &answer, counts);
                Ok(())
            }
            Err(problem) => {
                pending.is_repeated = true;
                self.pending = Some(pending);
                Err(problem)
            }
        }
    }

    fn note(&mut self, pending: &Pending, answer: &RawResponse, counts: &Counts) {
        let Pending { effect, line, is_repeated, .. } = pending;
        let what = format!("{}: {line}: {effect:?}: {answer:?}\n{:?}", self.name, self.book);
        match (effect, answer.status()) {
            (Effect::Restart, 200) => {
                for event in body_of(answer)["events"].as_array().expect("a list") {
                    self.events.known.insert(event["id"].as_str().expect("an id").to_owned(), false);
                }
            }
            // One waits or runs already.
            (Effect::Restart, 409) => {}
            (Effect::Approve(id) | Effect::Cancel(id), 200) => {
                self.events.known.insert(id.clone(), true);
            }
            (Effect::DeleteGroup(_), 404) if *is_repeated => {}
            (_, 200..300) => {}
            (_, 404 | 409) => {
                let group = effect.group().unwrap_or_else(|| panic!("refused without a reason: {what}"));
                assert!(!self.book.used().contains(group), "its own group: {what}");
                add(&counts.refused);
                return;
            }
            _ => panic!("{what}"),
        }
        if effect.group().is_some_and(|group| !self.book.used().contains(group)) {
            add(&counts.taken);
        }
        if matches!(effect, Effect::Remove) {
            add(&counts.removed);
        }
        self.book = self.book.after(&self.name, effect);
    }

    fn choose(&mut self) -> Pending {
        let effect = if self.is_temporary { self.choose_temporary() } else { self.choose_change() };
        let (name, body) = (&self.name, Value::Null);
        let group_path = |group: &str| {
            format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{group}?api-version=2024-11-01")
        };
        let (line, body) = match &effect {
            Effect::Create => ("POST /v1/clusters".to_owned(), json!({ "name": name })),
            Effect::Remove => (format!("DELETE /v1/clusters/{name}"), body),
            Effect::Move(group) => {
                (format!("PATCH /v1/site?cluster={name}"), json!({ "resource_group": group }))
            }
            Effect::CreateGroup(group) => {
                (format!("PUT {}", group_path(group)), json!({ "location": "local" }))
            }
            Effect::DeleteGroup(group) => (format!("DELETE {}", group_path(group)), body),
            Effect::Fleet { host, site } => {
                let site = site.iter().map(|group| ("resource_group".to_owned(), json!(group))).collect();
                let fleet = json!({ "host": [{ "name": host }], "site": Value::Object(site) });
                (format!("POST /v1/fleet?cluster={name}"), fleet)
            }
            Effect::RemoveHost(host) => (self.commands(), json!({ "command": "remove_host", "host": host })),
            Effect::Restart => (self.commands(), json!({ "command": "restart", "machine": "m" })),
            Effect::Cancel(id) => (self.commands(), json!({ "command": "cancel", "event": id })),
            Effect::Approve(id) => {
                (self.commands(), json!({ "command": "approve", "tenant": "m", "events": [id] }))
            }
        };
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.next_key += 1;
        Pending { effect, line, body, key: self.next_key, is_repeated: false }
    }

    fn commands(&self) -> String {
        format!("POST /v1/commands?cluster={}", self.name)
    }

    /// One of the groups that all clusters want to have.
    fn group(&mut self, of: &[&str]) -> String {
        of[self.random.index(of.len())].to_owned()
    }

    fn fleet(&mut self, site: Option<String>) -> Effect {
        Effect::Fleet { host: format!("more-{}", self.random.below(1_000_000)), site }
    }

    fn choose_change(&mut self) -> Effect {
        let (site, group) = (self.group(self.pools.sites), self.group(self.pools.resources));
        match self.random.below(20) {
            0..5 => Effect::Move(site),
            5..8 => Effect::Move(format!("home-{}", self.name)),
            8..12 => Effect::CreateGroup(group),
            // A group that is the site's, too, would stay.
            12..15 => match self.book.groups.iter().find(|group| **group != self.book.site) {
                Some(group) => Effect::DeleteGroup(group.clone()),
                None => Effect::CreateGroup(group),
            },
            15..17 => self.fleet(Some(site)),
            17 => self.fleet(None),
            _ => match (self.events.waiting(), self.random.below(4)) {
                (None, _) => Effect::Restart,
                (Some(id), 0) => Effect::Approve(id.clone()),
                (Some(id), _) => Effect::Cancel(id.clone()),
            },
        }
    }

    fn choose_temporary(&mut self) -> Effect {
        if !self.book.exists {
            return Effect::Create;
        }
        let group = self.group(self.pools.sites);
        match (self.random.below(6), self.book.hosts.first()) {
            (0, _) => self.fleet(None),
            (1, _) => self.fleet(Some(group)),
            (2 | 3, _) => Effect::Move(group),
            (_, Some(host)) => Effect::RemoveHost(host.clone()),
            (_, None) => Effect::Remove,
        }
    }

    /// The content of its cluster, as the server shows it.
    pub(super) fn observe(&self, api: SocketAddr) -> Book {
        let name = &self.name;
        let of = |target: &str| self.get(api, &format!("/v1/{target}cluster={name}"));
        let (site, hosts) = (of("site?"), of("hosts?limit=1000&"));
        match self.get(api, &format!("/v1/clusters/{name}")).status() {
            200 => {}
            404 => {
                assert_eq!((site.status(), hosts.status()), (404, 404), "{name} is gone");
                return Book::new(name, false);
            }
            status => panic!("{name}: {status}"),
        }
        let hosts = body_of(&hosts)["items"].as_array().expect("a list").clone();
        let hosts = hosts.iter().map(|host| host["name"].as_str().expect("a name").to_owned()).collect();
        let site = body_of(&site)["resource_group"].as_str().expect("a group").to_owned();
        Book { exists: true, groups: self.observe_groups(api, &site), site, hosts }
    }

    /// The groups that its client has created: those that its token reaches. That of the site may be one of them, too.
    fn observe_groups(&self, api: SocketAddr, site: &str) -> BTreeSet<String> {
        if self.is_temporary {
            return BTreeSet::new();
        }
        let list = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups?api-version=2024-11-01");
        let list = body_of(&self.get(api, &list));
        let names = list["value"].as_array().expect("a list").iter();
        let names = names.map(|group| group["name"].as_str().expect("a name").to_owned());
        names.filter(|group| group != site || self.book.groups.contains(group)).collect()
    }

    /// After a restart: the request that was not answered was carried out, or not, and completely.
    pub(super) fn check(&self, api: SocketAddr) -> Book {
        let observed = self.observe(api);
        let after = self.pending.as_ref().map(|pending| self.book.after(&self.name, &pending.effect));
        let effect = self.pending.as_ref().map(|pending| &pending.effect);
        assert!(
            observed == self.book || Some(&observed) == after.as_ref(),
            "{} has {observed:?},\nnot {:?},\nwith or without {effect:?}",
            self.name,
            self.book
        );
        self.check_events(api);
        observed
    }

    /// Every event that was answered is known, and waits unless it was approved or cancelled.
    fn check_events(&self, api: SocketAddr) {
        let pending = self.pending.as_ref().and_then(|pending| pending.effect.event());
        for (id, is_over) in &self.events.known {
            let name = &self.name;
            let explained = self.get(api, &format!("/v1/events/{id}/explanation?cluster={name}"));
            assert_eq!(explained.status(), 200, "{name}: {id}: {explained:?}");
            let shown = self.get(api, &format!("/v1/events/{id}?cluster={name}"));
            let waits = shown.status() == 200 && body_of(&shown)["status"] == "Scheduled";
            match (is_over, pending == Some(id)) {
                (true, _) => assert!(!waits, "{name}: approved or cancelled, and waits: {shown:?}"),
                (false, false) => assert!(waits, "{name}: started by nobody: {shown:?}"),
                (false, true) => {}
            }
        }
    }

    pub(super) fn events(&self) -> usize {
        self.events.known.len()
    }
}
