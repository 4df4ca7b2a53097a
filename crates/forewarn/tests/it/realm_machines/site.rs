//! Three machines and the network of their clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forewarn_testkit::network::{Namespace, Switch};
use forewarn_testkit::programs::find;
use forewarn_testkit::{Random, TestDir, wait_until_for};
use serde_json::Value;

use super::clients::api::{ApiRequest, ask, ask_patiently};
use super::history::{Effect, LogEntry, WriteCommand};
use super::machine::{ETCD_PEER_PORT, ETCD_PORT, Machine, ROLES, Role, SERVER_PORT, address};

pub(super) const MACHINES: usize = 3;

/// Guests that approve what they read, and spot machines, which are evicted.
pub(super) const GUESTS: [&str; 6] = ["g0", "g1", "g2", "p0", "p1", "p2"];
pub(super) const SPOT: [&str; 3] = ["p0", "p1", "p2"];

/// The address of clients.
const CLIENTS: &str = "10.78.0.100/24";

/// Time in which everything works again after the last fault. A server may have to start, and the computer may be busy.
const RECOVERY: Duration = Duration::from_secs(90);

/// Pages of the audit log.
const PAGE: usize = 1000;

/// The fleet of a site, and the settings of its servers besides the usual ones.
pub(super) struct SitePlan {
    pub(super) fleet: String,
    /// Machines that poll at [`Machine::guest_address`].
    pub(super) guests: &'static [&'static str],
    /// Settings of each server, with `ADDRESS` and `DIR`.
    pub(super) settings: &'static str,
}

/// The machines, and a namespace for clients. The namespaces outlive what runs in them.
pub(super) struct MachineSite {
    pub(super) machines: Vec<Machine>,
    pub(super) clients: Namespace,
    pub(super) switch: Switch,
    directory: TestDir,
    plan: SitePlan,
}

impl MachineSite {
    /// Starts everything. The computers have run for different times.
    pub(super) fn start(random: &mut Random, plan: SitePlan) -> Self {
        let directory = TestDir::new();
        let switch = Switch::new();
        let machine = |number: usize| {
            let namespace = switch.attach(&format!("{}/24", address(number)));
            let uptime = random_uptime(random);
            Machine::new(number, namespace, directory.file(&format!("m{number}")), uptime)
        };
        let machines = (0..MACHINES).map(machine).collect();
        let clients = switch.attach(CLIENTS);
        directory.write("fleet.toml", &plan.fleet);
        let mut site = Self { machines, clients, switch, directory, plan };
        site.configure();
        for role in [Role::Etcd, Role::Server] {
            site.machines.iter_mut().for_each(|machine| machine.start(role));
        }
        site.wait_for_recovery("start");
        site
    }

    fn configure(&mut self) {
        let etcd = std::env::var_os("FOREWARN_ETCD").map(PathBuf::from).or_else(|| find("etcd"));
        let etcd = etcd.expect("etcd is installed").display().to_string();
        let peer = |number: usize| format!("m{number}=http://{}:{ETCD_PEER_PORT}", address(number));
        let peers = (0..MACHINES).map(peer).collect::<Vec<_>>().join(",");
        let program = crate::program().into_string().expect("a path");
        for (number, machine) in self.machines.iter_mut().enumerate() {
            let directory = machine.directory().to_owned();
            let client_url = format!("http://{}:{ETCD_PORT}", address(number));
            let peer_url = format!("http://{}:{ETCD_PEER_PORT}", address(number));
            let (name, data) = (format!("m{number}"), directory.join("etcd/data").display().to_string());
            let words = [
                &etcd[..],
                "--name",
                &name,
                "--data-dir",
                &data,
                "--logger",
                "zap",
                "--unsafe-no-fsync",
                "--listen-client-urls",
                &client_url,
                "--advertise-client-urls",
                &client_url,
                "--listen-peer-urls",
                &peer_url,
                "--initial-advertise-peer-urls",
                &peer_url,
                "--initial-cluster",
                &peers,
            ];
            machine.set_command(Role::Etcd, words.map(str::to_owned).to_vec());
            let settings = directory.join("config.toml");
            fs::write(&settings, settings_of(&self.plan, number, &directory)).unwrap();
            let words = [&program[..], "serve", "--config", &settings.display().to_string()];
            machine.set_command(Role::Server, words.map(str::to_owned).to_vec());
        }
    }

    /// Ends all faults, and waits until a write through each server succeeds.
    pub(super) fn heal(&mut self, purpose: &str) {
        for machine in &mut self.machines {
            machine.filter("");
            machine.shift_wall_clock(0);
            for role in ROLES {
                machine.free_disk(role);
                machine.signal(role, rustix::process::Signal::CONT);
                machine.restart_if_ended(role);
            }
        }
        self.wait_for_recovery(purpose);
    }

    fn wait_for_recovery(&mut self, purpose: &str) {
        for number in 0..MACHINES {
            let request = ApiRequest::command("admit_host", &format!("after-{purpose}-{number}"));
            wait_until_for(RECOVERY, &format!("a write through s{number} succeeds after {purpose}"), || {
                // As a service manager does it.
                for machine in &mut self.machines {
                    for role in ROLES {
                        machine.restart_if_ended(role);
                    }
                }
                let panics = self.panics();
                assert!(panics.is_empty(), "{panics:#?}");
                let socket = self.machines[number].api_socket();
                ask(&socket, &request).is_ok_and(|answer| answer.status == 200).then_some(())
            });
        }
    }

    /// The audit logs of the cluster on all servers, from an entry on. Each of them has at least so many.
    pub(super) fn logs(&self, least: u64) -> Vec<Vec<LogEntry>> {
        let logs = self.machines.iter().map(|machine| {
            wait_until_for(RECOVERY, &format!("{} has the whole log", machine.name()), || {
                let log = read_log(&machine.api_socket())?;
                (log.last().is_some_and(|entry| entry.number >= least)).then_some(log)
            })
        });
        logs.collect()
    }

    /// The actions that were carried out.
    pub(super) fn effects(&self) -> Vec<Effect> {
        let text = self.directory.read("effects");
        let effect = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let (action, _, machine) = (words.next()?, words.next()?, words.next()?);
            Some(Effect { action, machine })
        };
        text.lines().map(|line| effect(line).expect("three words")).collect()
    }

    /// The lines of servers' logs about panics.
    pub(super) fn panics(&self) -> Vec<String> {
        let log = |machine: &Machine| {
            let text = fs::read_to_string(machine.log_file(Role::Server)).unwrap_or_default();
            let lines = text.lines().filter(|line| line.contains("panicked"));
            lines.map(|line| format!("{}: {line}", machine.name())).collect::<Vec<_>>()
        };
        self.machines.iter().flat_map(log).collect()
    }

    /// Copies logs, settings and data of all machines.
    pub(super) fn keep(&self, target: &Path) {
        for machine in &self.machines {
            for role in ROLES {
                let name = format!("{}-{}.log", machine.name(), role.name());
                fs::copy(machine.log_file(role), target.join(name)).ok();
            }
            machine.keep_disk(target);
        }
        fs::copy(self.directory.file("effects"), target.join("effects")).ok();
        fs::copy(self.directory.file("orders"), target.join("orders")).ok();
    }
}

/// Up to a month, so that no two computers have run for the same time.
fn random_uptime(random: &mut Random) -> u64 {
    1 + random.below(30 * 24 * 3600)
}

/// One host, guests and spot machines.
pub(super) fn spot_fleet() -> SitePlan {
    let machine = |name: &&str| {
        let spot = if SPOT.contains(name) { ", spot = 'deallocate'" } else { "" };
        format!("{{ name = '{name}', host = 'h1'{spot} }}")
    };
    let machines = GUESTS.iter().map(machine).collect::<Vec<_>>().join(", ");
    let fleet = format!("host = [{{ name = 'h1' }}]\nvm = [{machines}]\n");
    SitePlan { fleet, guests: &GUESTS, settings: "" }
}

fn settings_of(plan: &SitePlan, number: usize, directory: &Path) -> String {
    let own = address(number);
    let endpoint = |number: usize| format!("'http://{}:{ETCD_PORT}'", address(number));
    // The own member first, as an operator would write it.
    let endpoints = (0..MACHINES).map(|other| endpoint((number + other) % MACHINES)).collect::<Vec<_>>();
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/realm_machines/driver");
    let listener = |(guest, name): (usize, &&str)| {
        format!("[[metadata.listen]]\naddress = '{own}:{}'\nmachine = '{name}'\n", 8000 + guest)
    };
    let listeners: String = plan.guests.iter().enumerate().map(listener).collect();
    let more = plan.settings.replace("ADDRESS", &own).replace("DIR", &directory.display().to_string());
    format!(
        "data_dir = '{0}/server/data'\nfleet = '{0}/../fleet.toml'\n[api]\nsocket = '{0}/api.sock'\n{more}\
         [driver]\nkind = 'program'\nprogram = '{driver}'\nshared = true\n{listeners}\
         [metadata.limits]\nenabled = false\n\
         [engine]\nendpoints = [{1}]\n[server]\nname = 's{number}'\nlisten = '{own}:{SERVER_PORT}'\n",
        directory.display(),
        endpoints.join(", ")
    )
}

/// The whole log of a server; none if it does not answer.
fn read_log(socket: &Path) -> Option<Vec<LogEntry>> {
    let mut log = Vec::new();
    let mut after = String::new();
    loop {
        let target = format!("/v1/audit?cluster=default&order=oldest&limit={PAGE}{after}");
        let answer =
            ask_patiently(socket, &ApiRequest::get(&target)).ok().filter(|answer| answer.status == 200)?;
        let page: Value = serde_json::from_str(&answer.body).expect("a page is JSON");
        let items = page["items"].as_array().expect("a list");
        // The shared stream has numbers of its own.
        log.extend(items.iter().filter(|item| item["cluster"] == "default").map(log_entry));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return Some(log),
        }
    }
}

fn log_entry(item: &Value) -> LogEntry {
    let texts = |key: &str| {
        let texts = item[key].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<_>>()
    };
    let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let command = item["command"].as_object().map(|command| {
        let word = |key: &str| command.get(key).and_then(Value::as_str).map(str::to_owned);
        let subject = word("name").or_else(|| word("host")).or_else(|| word("machine")).unwrap_or_default();
        WriteCommand { name: word("command").unwrap_or_default(), subject }
    });
    LogEntry {
        number: item["number"].as_u64().expect("a number"),
        hash: text("hash"),
        kind: text("kind"),
        command,
        hosts: texts("hosts"),
        machines: texts("machines"),
        events: texts("events"),
        because: item["because"].as_u64(),
    }
}
