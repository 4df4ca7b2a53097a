//! A cluster that is spoken to by name, whose machines do at once whatever is asked of them.

use std::time::Duration;

use forewarn_control::push::{Beside, Notice, notices};
use forewarn_control::*;
use forewarn_lifecycle::player::{EmptySurroundings, due};
use forewarn_lifecycle::*;

pub(crate) struct Town {
    pub(crate) cluster: Cluster,
    pub(crate) now: Now,
    pub(crate) site: Site,
    pub(crate) details: DetailsTable,
    pub(crate) told: Vec<AuditFact>,
    pub(crate) noticed: Vec<Notice>,
    /// What has been asked of machines and is not done.
    pub(crate) work: Vec<Action>,
}

impl Town {
    pub(crate) fn new() -> Self {
        Self {
            cluster: Cluster::new(Seed([3; 16])),
            now: Now::at_millis(1_767_225_600_000),
            site: Site::default(),
            details: DetailsTable::default(),
            told: Vec::new(),
            noticed: Vec::new(),
            work: Vec::new(),
        }
    }

    /// Two hosts; `solo`, which is told of its end; a scale set `web` with an instance on each host. Nobody is enrolled.
    pub(crate) fn with_fleet() -> Self {
        let mut town = Self::new();
        for command in [
            r#"{"command":"admit_host","name":"h1"}"#,
            r#"{"command":"admit_host","name":"h2","zone":2}"#,
            r#"{"command":"admit_vm","name":"solo","host":"h1","terminate":"5m","addresses":["10.0.0.4"]}"#,
            r#"{"command":"admit_scale_set","name":"web"}"#,
            r#"{"command":"admit_instance","scale_set":"web","instance":{"host":"h1"}}"#,
            r#"{"command":"admit_instance","scale_set":"web","instance":{"host":"h2","update_domain":1}}"#,
        ] {
            town.say(command);
        }
        town
    }

    /// Decides everything that is due.
    pub(crate) fn tick(&mut self) {
        self.pass(Duration::ZERO);
    }

    /// Lets seconds pass.
    pub(crate) fn advance(&mut self, seconds: u64) {
        self.pass(Duration::from_secs(seconds));
    }

    /// The view of a rollout.
    pub(crate) fn rollout(&self, id: u64) -> RolloutView {
        rollout_view(&self.cluster, self.now, RolloutId(id)).unwrap()
    }

    /// Six hosts, with three update domains of `web` in pairs; enrolled.
    pub(crate) fn with_pairs() -> Self {
        let mut town = Self::new();
        for number in 1..=6 {
            town.say(&format!(r#"{{"command":"admit_host","name":"h{number}","zone":{}}}"#, number % 2));
        }
        town.say(r#"{"command":"admit_scale_set","name":"web"}"#);
        for number in 0..6 {
            let (host, domain) = (number + 1, number / 2);
            town.say(&format!(
                r#"{{"command":"admit_instance","scale_set":"web","instance":{{"host":"h{host}","update_domain":{domain}}}}}"#
            ));
        }
        town.enrol("web");
        town
    }

    /// Does what a command in JSON says, which has to succeed.
    pub(crate) fn say(&mut self, json: &str) -> Outcome {
        let command: NamedCommand = serde_json::from_str(json).unwrap();
        self.perform(&command)
    }

    pub(crate) fn perform(&mut self, command: &NamedCommand) -> Outcome {
        let changes = match command.resolve(&self.cluster).unwrap() {
            Resolved::Rules(command) => self.submit(&command),
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
        outcome(&self.cluster, self.now, &changes)
    }

    /// Asks the rules, and keeps what is told of it.
    pub(crate) fn submit(&mut self, command: &Command) -> Vec<Change> {
        let changes = self.cluster.decide(self.now, command).unwrap();
        for change in &changes {
            self.told.extend(happening(&self.cluster, self.now, change));
            let beside = Beside { decided: &changes, ..Beside::NOTHING };
            self.noticed.extend(notices(&self.cluster, change, beside));
            for effect in self.cluster.evolve(self.now, change) {
                match effect {
                    forewarn_lifecycle::Effect::Perform(action) => self.work.push(action),
                    forewarn_lifecycle::Effect::Publish(_) | forewarn_lifecycle::Effect::Unpublish(_) => {}
                }
            }
        }
        changes
    }

    /// The machines do what was asked of them.
    pub(crate) fn finish(&mut self) {
        while let Some(Action { maintenance, machine, .. }) = self.work.pop() {
            self.submit(&Command::Complete { maintenance, machine, report: Report::Done });
        }
    }

    /// Time passes, and what is due is done.
    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now.plus(span);
        while let Some(command) = due(&self.cluster, self.now, &mut EmptySurroundings) {
            assert_eq!(command, Command::Tick, "silences are not for this town");
            self.submit(&command);
        }
    }

    /// A tenant listens.
    pub(crate) fn enrol(&mut self, tenant: &str) -> TenantId {
        let id = find_tenant(&self.cluster, tenant).unwrap();
        self.submit(&Command::Enrol(id));
        id
    }

    pub(crate) fn fleet(&self) -> Fleet {
        let none = MachineDetails::default();
        fleet_of(&self.cluster, &self.site, |machine| self.details.get(&machine).unwrap_or(&none))
    }
}
