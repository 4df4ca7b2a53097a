//! An operator: writes and reads through random servers. A write without an answer is repeated with its key through
//! another one.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use forewarn_testkit::Random;
use serde_json::Value;

use super::Record;
use super::api::{ApiAnswer, ApiRequest, ask};
use crate::realm_machines::history::{Acknowledgement, HostRead, LogRead, Write, WriteCommand};
use crate::realm_machines::site::SPOT;

/// Pause between two requests of an operator.
const PAUSE: Duration = Duration::from_millis(20);

/// The same after a request without an answer.
const RETRY_PAUSE: Duration = Duration::from_millis(300);

/// Hosts that an operator has at most: lists have to fit in a page.
const HOSTS_MAX: usize = 20;

/// Attempts of one write. An operator gives up after that.
const ATTEMPTS: usize = 4;

pub(super) struct Operator {
    prefix: String,
    sockets: Vec<PathBuf>,
    random: Random,
    record: Record,
    /// Hosts that this operator has created and not removed.
    hosts: Vec<String>,
    count: u32,
}

impl Operator {
    pub(super) fn new(prefix: String, sockets: Vec<PathBuf>, random: Random, record: Record) -> Self {
        Self { prefix, sockets, random, record, hosts: Vec::new(), count: 0 }
    }

    pub(super) fn run(mut self, is_over: &dyn Fn() -> bool) {
        while !is_over() {
            self.count += 1;
            match self.random.below(16) {
                0..5 => self.create_host(is_over),
                5..7 => self.remove_host(is_over),
                7..9 => self.disturb(is_over),
                9..13 => self.read_hosts(),
                _ => self.read_log(),
            }
            thread::sleep(PAUSE);
        }
    }

    fn create_host(&mut self, is_over: &dyn Fn() -> bool) {
        if self.hosts.len() >= HOSTS_MAX {
            return self.remove_host(is_over);
        }
        let name = format!("{}-{}", self.prefix, self.count);
        if self.write("admit_host", &name, is_over) {
            self.hosts.push(name);
        }
    }

    fn remove_host(&mut self, is_over: &dyn Fn() -> bool) {
        if self.hosts.is_empty() {
            return;
        }
        let host = self.hosts.swap_remove(self.random.index(self.hosts.len()));
        self.write("remove_host", &host, is_over);
    }

    /// Restarts a guest, evicts a spot machine or starts one that was evicted. A refusal is an answer, too.
    fn disturb(&mut self, is_over: &dyn Fn() -> bool) {
        let (command, machine) = match self.random.below(4) {
            0 | 1 => ("restart", format!("g{}", self.random.below(3))),
            2 => ("evict", SPOT[self.random.index(SPOT.len())].to_owned()),
            _ => ("start", SPOT[self.random.index(SPOT.len())].to_owned()),
        };
        self.write(command, &machine, is_over);
    }

    /// Sends a write until it has an answer. Returns true if it was carried out.
    fn write(&mut self, command: &str, subject: &str, is_over: &dyn Fn() -> bool) -> bool {
        let key = format!("{}-{}", self.prefix, self.count);
        let request = ApiRequest::keyed_command(command, subject, &key);
        let command = WriteCommand { name: command.to_owned(), subject: subject.to_owned() };
        let sent = self.record.now();
        for attempt in 0..ATTEMPTS {
            let socket = &self.sockets[self.random.index(self.sockets.len())];
            match ask(socket, &request) {
                Ok(ApiAnswer { status: 200, body }) => {
                    let outcome: Value = serde_json::from_str(&body).expect("an outcome is JSON");
                    let entry = outcome["entry"].as_u64();
                    let answer = Some(Acknowledgement { at: self.record.now(), entry });
                    self.record.write(|history| history.writes.push(Write { sent, answer, command }));
                    return true;
                }
                // Rejected, and not by an attempt after one whose answer was lost.
                Ok(ApiAnswer { status: 400..500, .. }) if attempt == 0 => return false,
                Ok(ApiAnswer { status: 400..500, .. }) => break,
                Ok(_) | Err(_) => {
                    if is_over() {
                        break;
                    }
                    thread::sleep(RETRY_PAUSE);
                }
            }
        }
        self.record.write(|history| history.writes.push(Write { sent, answer: None, command }));
        false
    }

    fn read_hosts(&mut self) {
        let server = self.random.index(self.sockets.len());
        let sent = self.record.now();
        let Some(page) = self.read(server, "/v1/hosts?limit=1000") else { return };
        // A list of several pages is not one read.
        assert!(page["next"].is_null(), "more hosts than a page has");
        let hosts = page["items"].as_array().expect("a list").iter();
        let hosts = hosts.filter_map(|host| host["name"].as_str().map(str::to_owned)).collect();
        let read = HostRead { server, sent, answered: self.record.now(), hosts };
        self.record.write(|history| history.host_reads.push(read));
    }

    fn read_log(&mut self) {
        let server = self.random.index(self.sockets.len());
        let sent = self.record.now();
        let Some(page) = self.read(server, "/v1/audit?cluster=default&limit=20") else { return };
        let items = page["items"].as_array().expect("a list").iter();
        let entry = |item: &Value| Some((item["number"].as_u64()?, item["hash"].as_str()?.to_owned()));
        let entries = items.filter(|item| item["cluster"] == "default").filter_map(entry).collect();
        let read = LogRead { server, sent, answered: self.record.now(), entries };
        self.record.write(|history| history.log_reads.push(read));
    }

    /// The body of a successful answer.
    fn read(&mut self, server: usize, target: &str) -> Option<Value> {
        let answer = ask(&self.sockets[server], &ApiRequest::get(target)).ok();
        let Some(ApiAnswer { body, .. }) = answer.filter(|answer| answer.status == 200) else {
            thread::sleep(RETRY_PAUSE);
            return None;
        };
        Some(serde_json::from_str(&body).expect("an answer is JSON"))
    }
}
