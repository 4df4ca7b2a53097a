//! A small cluster without a server: commands by name, time, and what became of both.

use std::time::Duration;

use forewarn_control::push::{Notice, NoticeContext, notices};
use forewarn_control::*;
use forewarn_lifecycle::simulator::{EmptyEnvironment, due};
use forewarn_lifecycle::*;
use serde_json::{Value, json};

/// A cluster that takes commands by name; its machines finish their work when a test calls [`TestCluster::finish`].
pub struct TestCluster {
    pub rules: Cluster,
    pub now: Now,
    pub site: Site,
    pub details: DetailsTable,
    pub told: Vec<AuditFact>,
    pub noticed: Vec<Notice>,
    /// What has been asked of machines and is not done.
    pub work: Vec<Action>,
}

impl TestCluster {
    /// A cluster with the hosts `h1`, `h2` and so on, at the beginning of time.
    pub fn new(hosts: u32) -> Self {
        let mut cluster = Self::with(Seed([1; 16]), Now::at_millis(0));
        for host in 1..=hosts {
            cluster.run_json(&json!({ "command": "admit_host", "name": format!("h{host}") }));
        }
        cluster
    }

    /// A cluster without hosts, in 2026.
    pub fn empty() -> Self {
        Self::with(Seed([3; 16]), Now::at_millis(1_767_225_600_000))
    }

    fn with(seed: Seed, now: Now) -> Self {
        Self {
            rules: Cluster::new(seed),
            now,
            site: Site::default(),
            details: DetailsTable::default(),
            told: Vec::new(),
            noticed: Vec::new(),
            work: Vec::new(),
        }
    }

    /// Two hosts; `solo`, which is told of its end; a scale set `web` with an instance on each host. Nobody is enrolled.
    pub fn with_fleet() -> Self {
        let mut town = Self::empty();
        for command in [
            r#"{"command":"admit_host","name":"h1"}"#,
            r#"{"command":"admit_host","name":"h2","zone":2}"#,
            r#"{"command":"admit_vm","name":"solo","host":"h1","terminate":"5m","addresses":["10.0.0.4"]}"#,
            r#"{"command":"admit_scale_set","name":"web"}"#,
            r#"{"command":"admit_instance","scale_set":"web","instance":{"host":"h1"}}"#,
            r#"{"command":"admit_instance","scale_set":"web","instance":{"host":"h2","update_domain":1}}"#,
        ] {
            town.run_text(command);
        }
        town
    }

    /// Decides everything that is due.
    pub fn tick(&mut self) {
        self.pass(Duration::ZERO);
    }

    /// Lets seconds pass.
    pub fn advance(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    /// The view of a rollout.
    pub fn rollout(&self, id: u64) -> RolloutView {
        rollout_view(&self.rules, self.now, RolloutId(id)).unwrap()
    }

    /// Six hosts, with three update domains of `web` in pairs; enrolled.
    pub fn with_pairs() -> Self {
        let mut town = Self::empty();
        for number in 1..=6 {
            town.run_text(&format!(r#"{{"command":"admit_host","name":"h{number}","zone":{}}}"#, number % 2));
        }
        town.run_text(r#"{"command":"admit_scale_set","name":"web"}"#);
        for number in 0..6 {
            let (host, domain) = (number + 1, number / 2);
            town.run_text(&format!(
                r#"{{"command":"admit_instance","scale_set":"web","instance":{{"host":"h{host}","update_domain":{domain}}}}}"#
            ));
        }
        town.enrol("web");
        town
    }

    /// Does what a command in JSON says, which has to succeed.
    pub fn run_text(&mut self, json: &str) -> Outcome {
        let command: NamedCommand = serde_json::from_str(json).unwrap();
        self.perform(&command)
    }

    /// The same for a command that is a JSON value.
    pub fn run_json(&mut self, command: &Value) -> Outcome {
        self.perform(&serde_json::from_value(command.clone()).expect("a command"))
    }

    /// Submits the commands of a scale set command; gives their number.
    pub fn run(&mut self, wish: &ScaleSetCommand) -> usize {
        let commands = wish.commands(&self.rules).expect("a wish that can be had");
        commands.iter().for_each(|command| self.run_named(command));
        commands.len()
    }

    /// Creates the scale set `web`.
    pub fn create(&mut self, more: &Value) {
        let mut new = json!({ "name": "web" });
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.run(&ScaleSetCommand::CreateScaleSet(serde_json::from_value(new).expect("a scale set")));
    }

    /// The view of the scale set `web`.
    pub fn view(&self) -> ScaleSetView {
        let id = self.rules.scale_set_named("web").unwrap();
        scale_set_view(&self.rules, id).unwrap()
    }

    /// Host, update domain and fault domain of each instance of `web`.
    pub fn placements(&self) -> Vec<(String, u16, u16)> {
        let instances = self.view().instances.into_iter().map(|instance| instance.member);
        instances.map(|one| (one.host, one.update_domain, one.fault_domain)).collect()
    }

    pub fn run_named(&mut self, command: &NamedCommand) {
        self.perform(command);
    }

    pub fn perform(&mut self, command: &NamedCommand) -> Outcome {
        let changes = match command.resolve(&self.rules).unwrap() {
            Resolved::Rules(command) | Resolved::Fail(command, _) => self.submit(&command),
            Resolved::Admit(command, details) => {
                let changes = self.submit(&command);
                for change in &changes {
                    if let Change::MachineAdmitted { machine, .. } = change {
                        self.details.insert(*machine, details.clone());
                    }
                }
                changes
            }
            Resolved::Describe(machine, details) => {
                let known = self.details.get(&machine).cloned().unwrap_or_default();
                self.details.insert(machine, details.apply(&known));
                Vec::new()
            }
            Resolved::Site(site) => {
                self.site = site.apply(&self.site);
                Vec::new()
            }
            Resolved::Jam(_) => Vec::new(),
        };
        outcome(&self.rules, self.now, &changes, &|_| true)
    }

    /// Asks the rules, and keeps what is told of it.
    pub fn submit(&mut self, command: &Command) -> Vec<Change> {
        let changes = self.rules.decide(self.now, command).unwrap();
        for change in &changes {
            self.told.extend(describe_change(&self.rules, self.now, change));
            let beside = NoticeContext { decided: &changes, ..NoticeContext::NOTHING };
            self.noticed.extend(notices(&self.rules, change, beside));
            for effect in self.rules.evolve(self.now, change) {
                match effect {
                    forewarn_lifecycle::Effect::Perform(action) => self.work.push(action),
                    forewarn_lifecycle::Effect::Publish(_) | forewarn_lifecycle::Effect::Unpublish(_) => {}
                }
            }
        }
        changes
    }

    /// The machines do what was asked of them.
    pub fn finish(&mut self) {
        while let Some(Action { maintenance, target, .. }) = self.work.pop() {
            self.submit(&Command::Complete { maintenance, target, report: Report::Done });
        }
    }

    /// Time passes, and what is due is done.
    pub fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        while let Some(command) = due(&self.rules, self.now, &mut EmptyEnvironment) {
            assert_eq!(command, Command::Tick, "no silences here");
            self.submit(&command);
        }
    }

    pub fn enrol_all(&mut self) {
        let tenants: Vec<_> = self.rules.tenants().map(|(id, _)| id).collect();
        tenants.into_iter().for_each(|tenant| drop(self.submit(&Command::Enrol(tenant))));
    }

    pub fn enrol(&mut self, tenant: &str) -> TenantId {
        let id = find_tenant(&self.rules, tenant).unwrap();
        self.submit(&Command::Enrol(id));
        id
    }

    pub fn fleet(&self) -> Fleet {
        self.with_current(|current| current.fleet())
    }

    /// The differences that turn its fleet into that one.
    pub fn difference(
        &self,
        wanted: &Fleet,
        rest: UnlistedObjects,
    ) -> Result<Vec<Difference>, FleetFileError> {
        self.with_current(|current| difference(current, wanted, rest))
    }

    fn with_current<T>(&self, look: impl FnOnce(CurrentFleet<'_>) -> T) -> T {
        let details = |machine: MachineId| self.details.get(&machine);
        look(CurrentFleet { cluster: &self.rules, site: &self.site, details: &details, now: self.now })
    }
}
