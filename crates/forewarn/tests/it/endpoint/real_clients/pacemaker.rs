//! Pacemaker's own agents for these events, `azure-events-az` and the older `azure-events` of Debian's `resource-agents`,
//! unmodified.
//!
//! The cluster around them is made of files: what they call (`crm_attribute`, `crm_node`, `crm_resource`, `crm_simulate`) are
//! the scripts in [pacemaker](pacemaker), which they find first in their path. Everything else is as on a node: the address
//! is the one in their source, and Pacemaker's part, calling `monitor` again and again, is the test's.
//!
//! What reading and running version 0.10 of `azure-events-az` showed that it depends on:
//!
//! - It asks for edition 2019-08-01 of the events, and for the same version of `/metadata/instance`, which both have to know.
//! - The node's name in Azure is `compute.name`. It compares that with the entries of `Resources`, whole; the name of the host is
//!   whatever the kernel says, and the two are tied by attributes that each node writes about itself (`azName` on the node,
//!   `hostName_<name>` for all). A machine that has never written its own is taken for the node that looks it up.
//! - `Reboot` and `Redeploy` concern it. `Freeze` only where `eventTypes` says so; `Preempt` and `Terminate` it refuses to know.
//! - It keeps the last incarnation that it acted on and compares it with the current one, as numbers. As long as they are equal it
//!   does nothing: were neither the start nor the end of an event counted, the node would never come back.
//! - It goes by ids: a node comes back when the ids it noted are gone from the document. So an id must not change on the way.
//! - The approval is a POST of `urllib`, so of type `application/x-www-form-urlencoded`, with ids as they were shown. A body in
//!   the answer would be parsed as JSON; an empty one is what it expects.
//! - It waits with its approval while an operation on the node is `pending`. It means to wait for the transition summary of
//!   `crm_simulate` too, but reads no farther than the end of that heading's line, which is always empty.
//! - It cannot bear an empty document: a first answer without a body fails that call of `monitor`, and the next one is fine.
//!   Hence the first answer has a body unless an operator wants it otherwise.
//!
//! The older agent differs in who approves: the nodes that an event does not name, once the named ones have nothing running. So it
//! needs a tenant in which each machine may approve for the others. It also keeps the nodes from asking at the same time, because the
//! first answer may take two minutes.

use std::ffi::OsString;
use std::fs;
use std::ops::Deref;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use tempfile::TempDir;

use super::{Centre, DB_0, DB_1};
use forewarn_testkit::command::stdout_of;
use forewarn_testkit::network::Namespace;

pub(crate) const AGENT: &str = "azure-events-az";
const OLDER_AGENT: &str = "azure-events";

/// What an agent notes of a node, after its own name.
const NODE_STATE: &str = "curNodeState";
const PENDING_IDS: &str = "pendingEventIDs";
const LAST_INCARNATION: &str = "lastDocVersion";
/// Below zero, Pacemaker moves everything away from a node.
const HEALTH: &str = "#health-azure";

/// A cluster of two nodes: `node-a` is `db-0`, `node-b` is `db-1`.
struct Cluster {
    centre: Centre,
    nodes: PacemakerNodes,
}

/// An agent on the nodes of a cluster that is made of files.
pub(crate) struct PacemakerNodes {
    files: TempDir,
    agent: &'static str,
    program: PathBuf,
}

impl PacemakerNodes {
    /// The nodes `node-a` and `node-b`.
    pub(crate) fn of_two(agent: &'static str) -> Self {
        let files = TempDir::new().unwrap();
        fs::write(files.path().join("nodes"), "1 node-a member\n2 node-b member\n").unwrap();
        let listed = stdout_of(Command::new("dpkg").args(["-L", "resource-agents"]));
        let program = listed.lines().find(|line| line.ends_with(&format!("/heartbeat/{agent}")));
        let program = program.expect("resource-agents has the agent").into();
        Self { files, agent, program }
    }

    /// One call of `monitor`, as Pacemaker would make it on that node, in its network.
    pub(crate) fn try_monitor(&self, network: &Namespace, node: &str) -> ExitStatus {
        // The agent asks the kernel for the name of its host: it gets one of its own.
        let script = "echo \"$0\" >/proc/sys/kernel/hostname && exec \"$1\" monitor";
        let mut command = network.command("unshare");
        command.args(["--uts", "sh", "-c", script, node]).arg(&self.program);
        command.env("PATH", path()).env("CLUSTER", self.files.path());
        command.env("OCF_ROOT", "/usr/lib/ocf").env("OCF_RESOURCE_INSTANCE", "events");
        command.env("HA_debug", "1").env("HA_LOGFILE", self.files.path().join("agent.log"));
        command.env("OCF_RESKEY_CRM_meta_interval", "10000");
        command.output().expect("the agent starts").status
    }

    /// An attribute of a node; nothing, if it is not set.
    pub(crate) fn attribute(&self, node: &str, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.files.path().join(node).join(name)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// What the agent has noted of a node.
    fn note(&self, node: &str, name: &str) -> Option<String> {
        self.attribute(node, &format!("{}_{name}", self.agent))
    }

    pub(crate) fn states(&self) -> [String; 2] {
        ["node-a", "node-b"].map(|node| self.note(node, NODE_STATE).unwrap_or_default())
    }

    /// A resource on the node is about to do something, or is done with it.
    fn set_operation(&self, node: &str, word: &str) {
        let line = format!("disk (ocf::heartbeat:Filesystem): Started: disk_start_0 (node={node}): {word}\n");
        fs::write(self.files.path().join(format!("{node}.operations")), line).unwrap();
    }

    pub(crate) fn read(&self, file: impl AsRef<Path>) -> String {
        fs::read_to_string(self.files.path().join(file)).unwrap_or_default()
    }
}

impl Cluster {
    fn of(centre: Centre, agent: &'static str) -> Self {
        Self { centre, nodes: PacemakerNodes::of_two(agent) }
    }

    fn try_monitor(&self, machine: usize, node: &str) -> ExitStatus {
        self.nodes.try_monitor(self.centre.network.machine(machine), node)
    }

    fn monitor(&self, machine: usize, node: &str) {
        let status = self.try_monitor(machine, node);
        assert!(status.success(), "{node}: {status}\n{}", self.read("agent.log"));
    }

    fn monitor_a(&self) {
        self.monitor(DB_0, "node-a");
    }

    fn monitor_b(&self) {
        self.monitor(DB_1, "node-b");
    }

    fn event_status(&self, machine: &str) -> String {
        self.centre.event_status(machine)
    }
}

impl Deref for Cluster {
    type Target = PacemakerNodes;

    fn deref(&self) -> &PacemakerNodes {
        &self.nodes
    }
}

/// The stand-ins first.
fn path() -> OsString {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/endpoint/real_clients/pacemaker");
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(PathBuf::from(scripts)).chain(std::env::split_paths(&usual));
    std::env::join_paths(all).expect("a path")
}

/// promise: M6
#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn pacemakers_agent_moves_everything_away_approves_and_comes_back() {
    let cluster = Cluster::of(Centre::start(), AGENT);
    cluster.monitor_a();
    cluster.monitor_b();
    assert_eq!(cluster.attribute("node-a", "azName").as_deref(), Some("db-0"));
    assert_eq!(cluster.attribute("crm_config", "hostName_db-1").as_deref(), Some("node-b"));

    cluster.centre.server.run(&["vm", "restart", "db-0"]);
    cluster.monitor_b();
    assert_eq!(cluster.states(), ["", ""], "it is not about node-b");

    cluster.set_operation("node-a", "pending");
    cluster.monitor_a();
    assert_eq!(cluster.states(), ["STOPPING", ""]);
    assert_eq!(cluster.attribute("node-a", HEALTH), None, "what is starting is let start first");
    cluster.set_operation("node-a", "complete");
    cluster.monitor_a();
    assert_eq!(cluster.attribute("node-a", HEALTH).as_deref(), Some("-1000000"), "on standby");

    cluster.set_operation("node-a", "pending");
    cluster.monitor_a();
    cluster.monitor_b();
    assert_eq!(cluster.event_status("db-0"), "Scheduled", "something still runs on node-a");
    cluster.set_operation("node-a", "complete");
    cluster.monitor_a();
    assert_eq!(cluster.event_status("db-0"), "Started", "everything is away: it has approved");
    assert_eq!(cluster.states(), ["IN_EVENT", ""]);
    assert_eq!(cluster.note("node-a", LAST_INCARNATION).as_deref(), Some("2"));

    cluster.monitor_a();
    cluster.monitor_b();
    assert_eq!(cluster.states(), ["IN_EVENT", ""], "it is under way");
    cluster.centre.finish("db-0");
    cluster.set_operation("node-a", "pending");
    cluster.monitor_a();
    assert_eq!(cluster.states(), ["IN_EVENT", ""], "the node is still starting");
    cluster.set_operation("node-a", "complete");
    cluster.monitor_a();
    assert_eq!(cluster.states(), ["AVAILABLE", ""], "back");
    for gone in [PENDING_IDS, LAST_INCARNATION] {
        assert_eq!(cluster.note("node-a", gone), None, "{gone}");
    }
    let log = cluster.read("log");
    let health: Vec<_> = log.lines().filter(|line| line.contains(HEALTH)).collect();
    assert_eq!(health, ["node-a #health-azure=-1000000", "node-a #health-azure=0"]);
}

#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn pacemakers_agents_leave_one_node_to_work_and_take_turns() {
    let cluster = Cluster::of(Centre::start(), AGENT);
    cluster.monitor_a();
    cluster.monitor_b();
    cluster.centre.server.run(&["vm", "redeploy", "db-0"]);
    cluster.centre.server.run(&["vm", "redeploy", "db-1"]);
    cluster.monitor_a();
    cluster.monitor_b();
    assert_eq!(cluster.states(), ["STOPPING", "ON_HOLD"], "somebody has to do the work");
    cluster.monitor_a();
    cluster.monitor_b();
    assert_eq!(
        (cluster.event_status("db-0"), cluster.event_status("db-1")),
        ("Started".into(), "Scheduled".into())
    );
    cluster.centre.finish("db-0");
    cluster.monitor_a();
    assert_eq!(cluster.states(), ["AVAILABLE", "AVAILABLE"], "node-a is back and lets go of node-b");
    cluster.monitor_b();
    assert_eq!(cluster.attribute("node-b", HEALTH).as_deref(), Some("-1000000"));
    cluster.monitor_b();
    assert_eq!(cluster.event_status("db-1"), "Started");
    cluster.centre.finish("db-1");
    cluster.monitor_b();
    assert_eq!(cluster.states(), ["AVAILABLE", "AVAILABLE"]);
    assert_eq!(cluster.attribute("node-b", HEALTH).as_deref(), Some("0"));
}

#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn pacemakers_agent_fails_once_where_the_first_answer_is_empty() {
    let cluster = Cluster::of(Centre::start_answering("empty"), AGENT);
    let status = cluster.try_monitor(DB_0, "node-a");
    assert_eq!(
        (status.code(), status.signal()),
        (Some(1), None),
        "a generic error, in the words of Pacemaker"
    );
    cluster.monitor_a();
    cluster.monitor_b();
}

/// promise: M6
#[test]
#[ignore = "needs root and packages; `cargo xtask test` runs it"]
fn pacemakers_older_agent_approves_for_the_node_that_is_ready() {
    let cluster = Cluster::of(Centre::start(), OLDER_AGENT);
    cluster.monitor_a();
    cluster.monitor_b();
    cluster.centre.server.run(&["vm", "redeploy", "db-0"]);
    cluster.monitor_a();
    assert_eq!(cluster.states(), ["STOPPING", ""]);
    assert_eq!(cluster.attribute("node-a", "standby").as_deref(), Some("on"));
    cluster.set_operation("node-a", "pending");
    cluster.monitor_b();
    assert_eq!(cluster.event_status("db-0"), "Scheduled", "something still runs on node-a");
    cluster.set_operation("node-a", "complete");
    cluster.monitor_a();
    assert_eq!(cluster.event_status("db-0"), "Scheduled", "node-a does not approve for itself");
    cluster.monitor_b();
    assert_eq!(cluster.event_status("db-0"), "Started", "node-b does");
    assert_eq!(cluster.states(), ["IN_EVENT", ""]);
    cluster.centre.finish("db-0");
    cluster.monitor_a();
    assert_eq!(cluster.states(), ["AVAILABLE", ""]);
    assert_eq!(cluster.attribute("node-a", "standby").as_deref(), Some("off"));
}
