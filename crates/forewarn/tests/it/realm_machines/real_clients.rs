//! Clients of others, unmodified, behind a TCP load balancer: they keep working when the server that they talk to, or
//! the owner of the cluster, is killed, with the retries that they have.
//!
//! ```text
//!   node-a, node-b: curl, Pacemaker's agent          clients: az, forewarn
//!   169.254.169.254:80                               10.78.0.100:1339, :1340
//!        └─ haproxy ─┬──────── s0, s1, s2 ────────┬─ haproxy ─┘
//!                    └── each asked for /readyz ──┘
//! ```

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use forewarn_testkit::az::client;
use forewarn_testkit::command::{clean_command, stdout_of};
use forewarn_testkit::network::{METADATA, Namespace};
use forewarn_testkit::{NEWEST, Random, approve, wait_until, wait_until_for};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use super::clients::api::{ApiRequest, ask_patiently};
use super::machine::{Machine, Role, address};
use super::site::{MACHINES, MachineSite, SitePlan};
use crate::endpoint::real_clients::pacemaker::{AGENT, PacemakerNodes};

/// Machines that poll, and their nodes.
const GUESTS: [&str; 3] = ["db-0", "db-1", "solo"];
const NODE_A: usize = 0;
const NODE_B: usize = 1;
const SOLO: usize = 2;

const FLEET: &str = "
host = [{ name = 'h1' }, { name = 'h2' }, { name = 'h3' }]
vm = [{ name = 'solo', host = 'h3' }]

[[availability_set]]
name = 'db'
machine = [
    { name = 'db-0', host = 'h1', update_domain = 0 },
    { name = 'db-1', host = 'h2', update_domain = 1 },
]
";

/// Certificates name the load balancer.
const SETTINGS: &str = "\
listen = 'ADDRESS:1339'
[api.tls]
self_signed = true
names = ['10.78.0.100']
[arm]
listen = 'ADDRESS:1340'
[arm.tls]
self_signed = true
names = ['10.78.0.100']
";

/// The load balancer of operators and of Azure clients.
const BALANCER: &str = "10.78.0.100";

/// Longer than any command of `az` takes.
const AZ_DEADLINE: Duration = Duration::from_secs(180);

/// Pacemaker calls its agent again and again; so many calls may fail after one another.
const MONITORS: usize = 10;

/// Polls of a guest before a server is killed, and after it.
const POLLS: usize = 10;

struct ClientSite {
    /// They end before the network.
    balancers: Vec<Balancer>,
    nodes: Vec<Namespace>,
    site: MachineSite,
    files: tempfile::TempDir,
    /// A token for clients that come over the network.
    token: String,
}

/// A running haproxy.
struct Balancer(Child);

impl Balancer {
    /// Passes connections to these addresses on to the same port of the first server that is ready.
    fn start(network: &Namespace, file: PathBuf, addresses: &[(String, u16)]) -> Self {
        let mut text =
            "global\n maxconn 1000\ndefaults\n mode tcp\n timeout connect 1s\n timeout client 60s\n \
                        timeout server 60s\n retries 3\n option redispatch 1\n balance first\n"
                .to_owned();
        for (number, (at, port)) in addresses.iter().enumerate() {
            text += &format!(
                "listen l{number}\n bind {at}\n option httpchk\n http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost\n"
            );
            for server in 0..MACHINES {
                let to = address(server);
                text += &format!(
                    " server s{server} {to}:{port} check port 1339 check-ssl verify none inter 200ms fall 2 rise 1 on-marked-down shutdown-sessions\n"
                );
            }
        }
        fs::write(&file, text).unwrap();
        let mut command = network.command("haproxy");
        let log = File::create(file.with_extension("log")).unwrap();
        command
            .args(["-db", "-f"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        Self(command.spawn().expect("haproxy starts"))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl ClientSite {
    fn start() -> Self {
        let plan = SitePlan { fleet: FLEET.to_owned(), guests: &GUESTS, settings: SETTINGS };
        let site = MachineSite::start(&mut Random::new(1), plan);
        let files = tempfile::TempDir::new().unwrap();
        let node = |number: usize| {
            let node = site.switch.attach(&format!("10.78.0.{}/24", 50 + number));
            node.shell(&format!("ip addr add {METADATA}/32 dev lo"));
            node
        };
        let nodes: Vec<_> = (0..GUESTS.len()).map(node).collect();
        let port = |guest: usize| site.machines[0].guest_address(guest).port();
        let mut balancers: Vec<_> = nodes
            .iter()
            .enumerate()
            .map(|(number, node)| {
                let file = files.path().join(format!("node{number}.cfg"));
                Balancer::start(node, file, &[(format!("{METADATA}:80"), port(number))])
            })
            .collect();
        let operators = [1339, 1340].map(|port| (format!("{BALANCER}:{port}"), port));
        balancers.push(Balancer::start(&site.clients, files.path().join("clients.cfg"), &operators));
        let socket = site.machines[0].api_socket();
        let ca = ask_patiently(&socket, &ApiRequest::get("/ca.pem")).unwrap();
        assert_eq!(ca.status, 200, "{ca:?}");
        fs::write(files.path().join("ca.pem"), ca.body).unwrap();
        let mut command = clean_command(crate::program());
        command.args([
            "--api",
            &format!("unix:{}", socket.display()),
            "token",
            "create",
            "az",
            "--role",
            "admin",
        ]);
        let token = stdout_of(&mut command).trim_end().to_owned();
        let site = Self { balancers, nodes, site, files, token };
        for number in 0..GUESTS.len() {
            wait_until("a guest polls through its load balancer", || {
                site.poll(number).status.success().then_some(())
            });
        }
        site
    }

    /// A poll by curl, with the retries that it has.
    fn poll(&self, guest: usize) -> Output {
        self.curl(guest, &[])
    }

    fn curl(&self, guest: usize, more: &[&str]) -> Output {
        assert_eq!(self.balancers.len(), self.nodes.len() + 1);
        let mut curl = self.nodes[guest].command("curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "10"]);
        curl.args(["--retry", "5", "--retry-all-errors", "--retry-delay", "1", "--retry-max-time", "30"]);
        curl.args(["--header", "Metadata: true"]).args(more).arg(format!("http://{METADATA}{NEWEST}"));
        curl.output().expect("curl starts")
    }

    /// The event that a guest reads: its id and its status.
    fn event(&self, guest: usize) -> Option<(String, String)> {
        let output = self.poll(guest);
        assert!(output.status.success(), "{output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("a document is JSON");
        let text = |key: &str| document["Events"][0][key].as_str().map(str::to_owned);
        Some((text("EventId")?, text("EventStatus")?))
    }

    /// The server that has become the owner of the cluster last.
    fn owner(&self) -> usize {
        let term = |machine: &Machine| {
            let log = fs::read_to_string(machine.log_file(Role::Server)).unwrap_or_default();
            let lines = log.lines().filter(|line| line.contains("this server owns the cluster"));
            let term =
                |line: &str| line.split("term=").nth(1)?.split_whitespace().next()?.parse::<u64>().ok();
            lines.filter_map(term).max()
        };
        let owners =
            self.site.machines.iter().enumerate().filter_map(|(number, one)| Some((term(one)?, number)));
        owners.max().expect("a server owns the cluster").1
    }

    /// The server to which load balancers send connections: the first that is ready.
    fn spoken_to(&self) -> usize {
        let is_ready = |machine: &Machine| {
            ask_patiently(&machine.api_socket(), &ApiRequest::get("/readyz"))
                .is_ok_and(|answer| answer.status == 200)
        };
        wait_until("a server is ready", || self.site.machines.iter().position(is_ready))
    }

    fn kill_server(&mut self, number: usize) {
        println!(
            "kill -9 of s{number}; the owner is s{}, clients talk to s{}",
            self.owner(),
            self.spoken_to()
        );
        self.site.machines[number].kill(Role::Server);
    }

    fn restart(&self, machine: &str) {
        let request =
            ApiRequest::keyed_command("restart", machine, &format!("restart-{machine}-{}", unique()));
        wait_until("a restart is accepted", || {
            let socket = self.site.machines[self.spoken_to()].api_socket();
            ask_patiently(&socket, &request).is_ok_and(|answer| answer.status == 200).then_some(())
        });
    }

    /// A command of a user of Azure's command line, in the network of clients.
    fn az(&self, line: &str) -> Command {
        let ca = self.files.path().join("ca.pem");
        let script = format!("eval \"$(\"$FOREWARN\" az env)\" && exec \"$AZ\" {line}");
        let mut command = self.site.clients.command("sh");
        command.args(["-c", &script]).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("FOREWARN", crate::program()).env("AZ", client("FOREWARN_AZ"));
        command.env("FOREWARN_API", format!("https://{BALANCER}:1339")).env("FOREWARN_CA", &ca);
        command.env("FOREWARN_TOKEN", &self.token).env("AZURE_CORE_NO_COLOR", "true");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        for name in ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"] {
            command.env(name, self.files.path());
        }
        command.stdin(Stdio::null());
        command
    }

    fn az_ok(&self, line: &str) -> String {
        let output = self.az(line).output().expect("sh starts");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "az {line}: {err}{out}");
        out.into_owned()
    }

    /// Begins an `az` command that waits; its output goes to files.
    fn az_begin(&self, line: &str) -> RunningAz {
        let file = |kind: &str| self.files.path().join(format!("az-{}-{kind}", unique()));
        let (out, err) = (file("out"), file("err"));
        let mut command = self.az(line);
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        RunningAz { child: command.spawn().expect("sh starts"), err }
    }

    /// One call of the agent after the other, until one succeeds, as Pacemaker makes them.
    fn monitor(&self, cluster: &PacemakerNodes, number: usize) {
        let node = ["node-a", "node-b"][number];
        let mut calls = (0..MONITORS).map(|_| cluster.try_monitor(&self.nodes[number], node));
        assert!(calls.any(|status| status.success()), "{node}\n{}", cluster.read("agent.log"));
    }
}

struct RunningAz {
    child: Child,
    err: PathBuf,
}

impl RunningAz {
    fn end(mut self) {
        let status = wait_until_for(AZ_DEADLINE, "az ends", || self.child.try_wait().unwrap());
        assert!(status.success(), "az: {status}: {}", fs::read_to_string(&self.err).unwrap_or_default());
    }
}

impl Drop for RunningAz {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A number that no other part of the process has.
fn unique() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// `az vm restart` waits for its operation while one server after the other is killed; the login stays valid.
/// promise: D1
#[test]
#[ignore = "needs root, packages and az; `cargo xtask machines` runs it"]
fn az_keeps_working_when_servers_are_killed() {
    let mut site = ClientSite::start();
    site.az_ok(
        "login --service-principal --username forewarn --password \"$FOREWARN_TOKEN\" --tenant forewarn",
    );
    assert!(site.az_ok("vm list --query [].name --output tsv").contains("solo"));
    for victim in [ClientSite::owner, ClientSite::spoken_to] {
        let waiting = site.az_begin("vm restart --resource-group forewarn --name solo");
        let (id, _) = wait_until_for(AZ_DEADLINE, "the guest reads the event", || site.event(SOLO));
        let victim = victim(&site);
        site.kill_server(victim);
        let approval = site.curl(SOLO, &["--data", &approve(&[&id])]);
        assert!(approval.status.success(), "{approval:?}");
        waiting.end();
        assert!(site.az_ok("vm list --query [].name --output tsv").contains("solo"));
        wait_until("the event ends", || site.event(SOLO).is_none().then_some(()));
        site.site.heal(&format!("az-{victim}-{}", unique()));
    }
}

/// A guest polls, and Pacemaker's agent moves everything away, approves and comes back, while servers are killed.
/// promise: D1
#[test]
#[ignore = "needs root and packages; `cargo xtask machines` runs it"]
fn a_polling_guest_and_pacemakers_agent_keep_working_when_servers_are_killed() {
    let mut site = ClientSite::start();
    let cluster = PacemakerNodes::of_two(AGENT);
    site.monitor(&cluster, NODE_A);
    site.monitor(&cluster, NODE_B);
    for victim in [ClientSite::owner, ClientSite::spoken_to] {
        let hold = site.site.machines[0].directory().parent().expect("a site").join("hold");
        fs::write(&hold, "").unwrap();
        site.restart("db-0");
        // The server that the agent asks may show the event a moment later than the one that has accepted the restart.
        wait_until("the agent sees the event", || {
            site.monitor(&cluster, NODE_A);
            (cluster.states()[NODE_A] == "STOPPING").then_some(())
        });
        let number = victim(&site);
        kill_while_polling(&mut site, number);
        wait_until("the agent approves", || {
            site.monitor(&cluster, NODE_A);
            site.monitor(&cluster, NODE_B);
            (cluster.states()[NODE_A] == "IN_EVENT").then_some(())
        });
        // The driver program is at work when the server that has started it is killed.
        site.site.heal(&format!("agent-{}", unique()));
        let number = victim(&site);
        kill_while_polling(&mut site, number);
        fs::remove_file(&hold).unwrap();
        wait_until("the node is back", || {
            site.monitor(&cluster, NODE_A);
            (cluster.states()[NODE_A] == "AVAILABLE").then_some(())
        });
        site.site.heal(&format!("back-{}", unique()));
    }
    let log = cluster.read("log");
    let health: Vec<_> = log.lines().filter(|line| line.contains("#health-azure")).collect();
    let once = ["node-a #health-azure=-1000000", "node-a #health-azure=0"];
    assert_eq!(health, [once, once].concat(), "away and back, once for each restart");
    assert_eq!(site.site.effects().len(), 2, "each restart was carried out once");
}

/// Kills a server while a guest polls: every poll of curl succeeds, with its retries.
fn kill_while_polling(site: &mut ClientSite, number: usize) {
    let (stop, polls) = (AtomicBool::new(false), AtomicUsize::new(0));
    let victim = site.site.machines[number].process(Role::Server).expect("it runs");
    let site = &*site;
    let wait_for_polls = || {
        let seen = polls.load(Ordering::Relaxed);
        wait_until("the guest polls", || (polls.load(Ordering::Relaxed) >= seen + POLLS).then_some(()));
    };
    thread::scope(|scope| {
        let polling = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let output = site.poll(SOLO);
                assert!(output.status.success(), "{output:?}");
                polls.fetch_add(1, Ordering::Relaxed);
            }
        });
        wait_for_polls();
        println!(
            "kill -9 of s{number}; the owner is s{}, clients talk to s{}",
            site.owner(),
            site.spoken_to()
        );
        kill_process(victim, Signal::KILL).unwrap();
        wait_for_polls();
        stop.store(true, Ordering::Relaxed);
        polling.join().expect("every poll succeeds");
    });
    println!("{} polls by curl, all answered", polls.load(Ordering::Relaxed));
}
