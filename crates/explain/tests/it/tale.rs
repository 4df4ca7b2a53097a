//! A town with a trail, as a server would have written it, for explanations to be made of.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forewarn_control::resource_id::GroupId;
use forewarn_control::*;
use forewarn_explain::*;
use forewarn_imds::Edition;
use forewarn_lifecycle::*;
use forewarn_types::Moment;

use forewarn_testkit::TestCluster;

/// What a client is told that speaks too old a version to enable terminate notification.
pub(crate) const UNKNOWN_MEMBER: &str =
    "Could not find member 'scheduledEventsProfile' on object of type 'VirtualMachineProfile'";

/// A town, with the trail that a server would have written of it.
pub(crate) struct Tale {
    pub(crate) town: TestCluster,
    pub(crate) chain: Chain,
    pub(crate) trail: Vec<Arc<AuditEntry>>,
    pub(crate) polls: BTreeMap<MachineId, Poll>,
    pub(crate) driver_errors: BTreeMap<(MaintenanceId, Target), String>,
    pub(crate) refusals: Vec<RefusedView>,
    /// The tenants of whoever asks; all, if not said.
    pub(crate) scope: Option<&'static str>,
}

impl Tale {
    pub(crate) fn new() -> Self {
        let (town, chain, trail) = (TestCluster::with_fleet(), Chain::default(), Vec::new());
        let (polls, driver_errors) = (BTreeMap::new(), BTreeMap::new());
        let mut tale = Self { town, chain, trail, polls, driver_errors, refusals: Vec::new(), scope: None };
        tale.tell(0, "forewarn", None);
        tale
    }

    /// Seals what the town has told from a place on.
    pub(crate) fn tell(&mut self, from: usize, by: &str, because: Option<u64>) {
        for happening in self.town.told[from..].iter().cloned() {
            let told = happening.into_entry((0, "default"), by, because);
            self.trail.push(Arc::new(self.chain.seal(told)));
        }
    }

    /// Somebody asks for something.
    pub(crate) fn ask(&mut self, by: &str, json: &str) -> Outcome {
        let command: serde_json::Value = serde_json::from_str(json).unwrap();
        let named = |key: &str| command[key].as_str().map(str::to_owned).into_iter().collect::<Vec<_>>();
        let machines: Vec<_> = named("machine").iter().map(|name| format!("web/{name}")).collect();
        let tenants = if machines.is_empty() { named("tenant") } else { vec!["web".to_owned()] };
        let told = NewAuditEntry {
            at: Moment(self.town.now.wall),
            cluster: "default".to_owned(),
            by: by.to_owned(),
            kind: "command".to_owned(),
            text: format!("requested: {}", command["command"].as_str().unwrap()),
            tenants,
            machines,
            ..NewAuditEntry::default()
        };
        self.trail.push(Arc::new(self.chain.seal(told)));
        let (from, because) = (self.town.told.len(), self.chain.number);
        let outcome = self.town.run_text(json);
        self.tell(from, "forewarn", Some(because));
        outcome
    }

    pub(crate) fn submit(&mut self, by: &str, command: &Command) {
        let from = self.town.told.len();
        self.town.submit(command);
        self.tell(from, by, None);
    }

    pub(crate) fn finish(&mut self) {
        let from = self.town.told.len();
        self.town.finish();
        self.tell(from, "forewarn", None);
    }

    pub(crate) fn enrol(&mut self, tenant: &str) -> TenantId {
        let from = self.town.told.len();
        let id = self.town.enrol(tenant);
        self.tell(from, "forewarn", None);
        id
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).unwrap();
        self.town.now = Now::at_millis(self.town.now.wall.millis() + millis);
        self.submit("forewarn", &Command::Tick);
    }

    pub(crate) fn poll(&mut self, machine: u32, edition: Edition) {
        let at = Moment(self.town.now.wall);
        self.polls.insert(MachineId(machine), Poll { at, edition, last_entry: self.chain.number });
    }

    pub(crate) fn scene<T>(
        &self,
        subject: &Subject,
        explain: impl FnOnce(&ExplanationContext<'_>) -> T,
    ) -> T {
        let concerned = self.trail.iter().filter(|entry| entry.concerns(subject));
        let mut history = AuditHistory::new(concerned.cloned());
        loop {
            let wants = history.missing();
            if wants.is_empty() {
                break;
            }
            for wanted in wants {
                let is_wanted = |entry: &&Arc<AuditEntry>| match wanted {
                    HistoryLookup::Entry(number) => entry.number == number,
                    HistoryLookup::OfWork(work) => entry.work == Some(work),
                    HistoryLookup::OfRollout(rollout) => entry.rollout == Some(rollout),
                };
                history.add(wanted, self.trail.iter().find(is_wanted).cloned());
            }
        }
        let scope = self.scope;
        let may_read = |entry: &AuditEntry| {
            scope.is_none_or(|own| !entry.tenants.is_empty() && entry.tenants.iter().all(|name| name == own))
        };
        let may_see = |id: TenantId| {
            scope.is_none_or(|own| self.town.rules.tenant(id).is_some_and(|one| one.name.as_str() == own))
        };
        explain(&ExplanationContext {
            name: "default",
            cluster: &self.town.rules,
            now: self.town.now,
            polls: &|machine| self.polls.get(&machine).copied(),
            driver_errors: &self.driver_errors,
            history: &history,
            azure: AzureContext { group_of: &|_| group(), refusals: &self.refusals },
            viewer: Viewer { may_read: &may_read, may_see: &may_see, is_limited: scope.is_some() },
        })
    }

    pub(crate) fn event(&self, id: &str) -> Option<EventExplanation> {
        let subject = Subject::Event { cluster: "default".to_owned(), id: id.to_owned() };
        self.scene(&subject, |scene| explain_event(scene, id))
    }

    pub(crate) fn machine(&self, id: u32) -> MachineExplanation {
        let (id, none) = (MachineId(id), MachineDetails::default());
        let name = full_name(&self.town.rules, id);
        let subject = Subject::Machine { cluster: "default".to_owned(), name };
        self.scene(&subject, |scene| explain_machine(scene, ExplainedMachine::Existing(id, &none))).unwrap()
    }

    pub(crate) fn scale_set(&self, name: &str) -> Option<ScaleSetExplanation> {
        let subject = Subject::Cluster("default".to_owned());
        self.scene(&subject, |scene| explain_scale_set(scene, name))
    }

    /// A client of Azure was refused something about a resource of compute.
    pub(crate) fn refuse(&mut self, resource: &str, version: &str, message: &str) {
        self.refusals.push(RefusedView {
            at: Moment(self.town.now.wall),
            by: "anyone".to_owned(),
            method: "PUT".to_owned(),
            resource: format!("{}/providers/Microsoft.Compute/{resource}", group()),
            api_version: Some(version.to_owned()),
            code: "BadRequest".to_owned(),
            message: message.to_owned(),
            unknown_member: (message == UNKNOWN_MEMBER).then(|| UnknownMember {
                member: "scheduledEventsProfile".to_owned(),
                since: "2019-03-01".to_owned(),
            }),
        });
    }
}

/// Where everything is for clients of Azure.
pub(crate) fn group() -> GroupId {
    GroupId { subscription: "s".to_owned(), name: "g".to_owned() }
}

/// `web_0`, and a restart of it that Alice asked for.
pub(crate) const WEB_0: u32 = 1;
pub(crate) const RESTART: &str = r#"{"command":"restart","machine":"web_0"}"#;
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

pub(crate) fn restarted() -> (Tale, String) {
    let mut tale = Tale::new();
    tale.enrol("web");
    let outcome = tale.ask("token alice", RESTART);
    (tale, outcome.events[0].id.clone())
}
