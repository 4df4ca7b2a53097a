//! A world for one story: a network, `forewarn dev` on a clock that stands still, and agents in machines.
//!
//! ```text
//!   h1: db_0 db_1 db_2 (an availability set)    h2: web_0   h3: web_1 (a scale set with notice of deletion)
//!   h4: spot_0 (may be evicted)                 h5: solo    h6: empty
//! ```

mod agent;
mod beside;
mod settings;

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};

use crate::network::{METADATA, Network, address};
use crate::{TestDir, TestServer, wait_until};

pub use agent::{Agent, agent_program};
pub use beside::{Beside, Units};
pub use settings::AgentSettings;

const FLEET: &str = r#"
host = [{ name = "h1" }, { name = "h2" }, { name = "h3" }, { name = "h4" }, { name = "h5" }, { name = "h6" }]

[[availability_set]]
name = "db"
machine = [
    { name = "db_0", host = "h1" },
    { name = "db_1", host = "h1" },
    { name = "db_2", host = "h1" },
]

[[scale_set]]
name = "web"
terminate = "5m"
instance = [{ host = "h2", update_domain = 0 }, { host = "h3", update_domain = 1 }]

[[vm]]
name = "spot_0"
host = "h4"
spot = "deallocate"

[[vm]]
name = "solo"
host = "h5"
"#;

/// Where everything happens, without anybody in it yet.
pub struct AgentNetwork {
    program: OsString,
    network: Network,
    files: TestDir,
    machines: Vec<String>,
}

/// A place with a server and agents. What is declared first ends first.
pub struct RunningAgents<'a> {
    agents: Vec<Agent<'a>>,
    server: RefCell<Option<TestServer>>,
    place: &'a AgentNetwork,
}

impl AgentNetwork {
    /// A network with these machines of the fleet in it.
    pub fn of(program: OsString, machines: &[&str]) -> Self {
        let files = TestDir::new();
        files.write("fleet.toml", FLEET);
        let network = Network::of(u8::try_from(machines.len()).expect("a few machines"));
        Self { program, network, files, machines: machines.iter().map(|name| (*name).to_owned()).collect() }
    }

    pub fn network(&self) -> &Network {
        &self.network
    }

    pub fn files(&self) -> &Path {
        self.files.root()
    }

    /// From where the machine of that name calls.
    pub fn address(&self, name: &str) -> String {
        address(u8::try_from(self.number(name)).unwrap())
    }

    fn number(&self, name: &str) -> usize {
        self.machines.iter().position(|machine| machine == name).unwrap_or_else(|| panic!("not here: {name}"))
    }

    fn peers(&self) -> Vec<String> {
        self.machines.iter().map(|name| format!("{name}={}:9911", self.address(name))).collect()
    }

    /// Starts the server, and an agent with the same settings in each machine.
    pub fn begin(&self, settings: &AgentSettings) -> RunningAgents<'_> {
        let all: Vec<_> = self.machines.iter().map(|name| (name.as_str(), settings.clone())).collect();
        self.begin_each(&all)
    }

    /// Starts the server, and agents with settings of their own; waits until all of them have asked for events.
    pub fn begin_each(&self, settings: &[(&str, AgentSettings)]) -> RunningAgents<'_> {
        let world = self.prepare(settings);
        world.agents.iter().for_each(Agent::start);
        world.is_settled();
        world
    }

    /// The same with a server that machines do not reach by themselves: somebody has to stand between, at port 80.
    pub fn prepare_behind(&self, metadata: &str, settings: &[(&str, AgentSettings)]) -> RunningAgents<'_> {
        RunningAgents {
            server: RefCell::new(Some(self.serve_at(metadata))),
            agents: self.settle(settings),
            place: self,
        }
    }

    /// Starts the server, and has agents that do not run yet.
    pub fn prepare(&self, settings: &[(&str, AgentSettings)]) -> RunningAgents<'_> {
        RunningAgents { server: RefCell::new(Some(self.serve())), agents: self.settle(settings), place: self }
    }

    fn settle(&self, settings: &[(&str, AgentSettings)]) -> Vec<Agent<'_>> {
        let agents = settings.iter().map(|(name, settings)| {
            let namespace = self.network.machine(self.number(name));
            Agent::new(
                name,
                agent_program(&self.program),
                self.files.root(),
                namespace,
                settings,
                &self.peers(),
            )
        });
        agents.collect()
    }

    fn serve(&self) -> TestServer {
        self.serve_at(&format!("{METADATA}:80"))
    }

    fn serve_at(&self, metadata: &str) -> TestServer {
        let mut command = self.network.host().command(&self.program);
        command.arg("dev").arg("--fleet").arg(self.files.file("fleet.toml"));
        command.arg("--data-dir").arg(self.files.file("data"));
        command.args(["--metadata-listen", metadata, "--api-listen", "127.0.0.1:1339"]);
        command.args(["--i-know-this-is-open", "--arm-listen", "off", "--seed", "7"]);
        command.args(["--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z"]);
        TestServer::spawn(self.program.clone(), command).inside(self.network.host().name())
    }
}

impl RunningAgents<'_> {
    pub fn agent(&self, name: &str) -> &Agent<'_> {
        self.agents.iter().find(|agent| agent.name == name).unwrap_or_else(|| panic!("no agent: {name}"))
    }

    pub fn agents(&self) -> impl Iterator<Item = &Agent<'_>> {
        self.agents.iter()
    }

    /// A command of the operator's.
    pub fn run(&self, words: &[&str]) -> String {
        self.server.borrow().as_ref().expect("the server runs").run(words)
    }

    fn json(&self, words: &[&str]) -> Value {
        self.server.borrow().as_ref().expect("the server runs").json(words)
    }

    /// Waits until every agent waits for news, or has asked once if it does not wait.
    pub fn is_settled(&self) {
        let waiting = self.agents.iter().filter(|agent| agent.waits_for_news()).count().to_string();
        wait_until("agents wait for news", || {
            if let Some(agent) = self.agents.iter().find(|agent| !agent.runs()) {
                panic!("{} has ended\n{}", agent.name, agent.log());
            }
            (self.metric("forewarn_metadata_waiting_requests") == waiting).then_some(())
        });
        for agent in self.agents.iter().filter(|agent| !agent.waits_for_news()) {
            wait_until("agents have asked", || self.is_enrolled(&agent.name).then_some(()));
        }
    }

    fn is_enrolled(&self, machine: &str) -> bool {
        let tenants = self.json(&["tenant", "ls"]);
        let mut tenants = tenants["items"].as_array().expect("a list").iter();
        let tenant = tenants.find(|tenant| tenant["machines"].as_array().unwrap().contains(&json!(machine)));
        tenant.is_some_and(|tenant| tenant["enrolled"] == true)
    }

    /// What the server counts.
    pub fn metric(&self, name: &str) -> String {
        let metrics = self.place.network.host().shell("curl --silent http://127.0.0.1:1339/metrics");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no metric: {name}")).to_owned()
    }

    /// Has an operator do something that announces one event; gives its id.
    pub fn announce(&self, words: &[&str]) -> String {
        let before = self.events();
        self.run(words);
        let mut new = self.events();
        new.retain(|event| !before.contains(event));
        assert_eq!(new.len(), 1, "{words:?} announces one event: {new:?}");
        new.remove(0)
    }

    /// Announces a restart of a machine, and waits until its agent has let it start; gives the id of the event.
    pub fn restart(&self, machine: &str) -> String {
        let reboot = self.announce(&["vm", "restart", machine]);
        self.is(&reboot, "Started");
        reboot
    }

    fn events(&self) -> Vec<String> {
        let events = self.json(&["event", "ls"]);
        let events = events["items"].as_array().expect("a list").iter();
        events.map(|event| event["id"].as_str().expect("an id").to_owned()).collect()
    }

    pub fn advance(&self, span: &str) {
        self.run(&["clock", "advance", span]);
    }

    /// `Scheduled`, `Started` or `gone`: where an event stands.
    pub fn status(&self, event: &str) -> String {
        let events = self.json(&["event", "ls"]);
        let mut events = events["items"].as_array().expect("a list").iter();
        let event = events.find(|listed| listed["id"] == event);
        event.map_or("gone", |event| event["status"].as_str().expect("a status")).to_owned()
    }

    /// Waits until an event stands there.
    pub fn is(&self, event: &str, status: &str) {
        wait_until(&format!("the event is {status}"), || (self.status(event) == status).then_some(()));
    }

    /// Who has approved an event, as the trail has it.
    pub fn approvers(&self, event: &str) -> Vec<String> {
        let trail = self.json(&["audit", "ls", "--limit", "1000"]);
        let entries = trail["items"].as_array().expect("a list").iter();
        let approvals = entries.filter(|entry| entry["kind"] == "approved" && entry["events"][0] == event);
        approvals.map(|entry| entry["by"].as_str().expect("a name").to_owned()).collect()
    }

    /// How many approvals the endpoint was asked for, whatever came of them.
    pub fn start_requests(&self) -> u32 {
        let count = |outcome: &str| {
            let name = format!("forewarn_metadata_start_requests_total{{outcome=\"{outcome}\"}}");
            self.metric(&name).parse::<u32>().expect("a number")
        };
        count("accepted") + count("refused")
    }

    /// Ends the server as a power cut would.
    pub fn server_dies(&self) {
        self.server.take().expect("the server runs").kill();
    }

    /// The server goes on with what it has kept.
    pub fn server_returns(&self) {
        assert!(self.server.replace(Some(self.place.serve())).is_none(), "the server runs already");
    }
}
