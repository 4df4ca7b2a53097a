//! Explanations: what is said of events and machines in the situations that people ask about.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use forewarn_lifecycle::*;
use forewarn_wire::arm::GroupId;
use forewarn_wire::operator::*;
use forewarn_wire::{Edition, Moment};

use crate::town::Town;

/// A town, with the trail that a server would have written of it.
struct Tale {
    town: Town,
    chain: Chain,
    trail: Vec<Arc<TrailEntry>>,
    polls: BTreeMap<MachineId, Poll>,
    troubles: BTreeMap<(MaintenanceId, MachineId), String>,
    refusals: Vec<RefusedView>,
    /// The tenants of whoever asks; all, if not said.
    scope: Option<&'static str>,
}

impl Tale {
    fn new() -> Self {
        let (town, chain, trail) = (Town::with_fleet(), Chain::default(), Vec::new());
        let (polls, troubles) = (BTreeMap::new(), BTreeMap::new());
        let mut tale = Self { town, chain, trail, polls, troubles, refusals: Vec::new(), scope: None };
        tale.tell(0, "forewarn", None);
        tale
    }

    /// Seals what the town has told from a place on.
    fn tell(&mut self, from: usize, by: &str, because: Option<u64>) {
        for happening in self.town.told[from..].iter().cloned() {
            let told = happening.into_told((0, "default"), by, because);
            self.trail.push(Arc::new(self.chain.seal(told)));
        }
    }

    /// Somebody asks for something.
    fn ask(&mut self, by: &str, json: &str) -> Outcome {
        let command: serde_json::Value = serde_json::from_str(json).unwrap();
        let named = |key: &str| command[key].as_str().map(str::to_owned).into_iter().collect::<Vec<_>>();
        let machines: Vec<_> = named("machine").iter().map(|name| format!("web/{name}")).collect();
        let tenants = if machines.is_empty() { named("tenant") } else { vec!["web".to_owned()] };
        let told = Told {
            at: Moment(self.town.now.wall),
            cluster: "default".to_owned(),
            by: by.to_owned(),
            kind: "command".to_owned(),
            text: format!("asked for: {}", command["command"].as_str().unwrap()),
            tenants,
            machines,
            ..Told::default()
        };
        self.trail.push(Arc::new(self.chain.seal(told)));
        let (from, because) = (self.town.told.len(), self.chain.number);
        let outcome = self.town.say(json);
        self.tell(from, "forewarn", Some(because));
        outcome
    }

    fn submit(&mut self, by: &str, command: &Command) {
        let from = self.town.told.len();
        self.town.submit(command);
        self.tell(from, by, None);
    }

    fn finish(&mut self) {
        let from = self.town.told.len();
        self.town.finish();
        self.tell(from, "forewarn", None);
    }

    fn enrol(&mut self, tenant: &str) -> TenantId {
        let from = self.town.told.len();
        let id = self.town.enrol(tenant);
        self.tell(from, "forewarn", None);
        id
    }

    fn pass(&mut self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).unwrap();
        self.town.now = Now::at_millis(self.town.now.wall.millis() + millis);
        self.submit("forewarn", &Command::Tick);
    }

    fn poll(&mut self, machine: u32, edition: Edition) {
        let at = Moment(self.town.now.wall);
        self.polls.insert(MachineId(machine), Poll { at, edition, told: self.chain.number });
    }

    fn scene<T>(&self, subject: &Subject, explain: impl FnOnce(&Scene<'_>) -> T) -> T {
        let concerned = self.trail.iter().filter(|entry| entry.concerns(subject));
        let mut chronicle = Chronicle::new(concerned.cloned());
        loop {
            let wants = chronicle.wants();
            if wants.is_empty() {
                break;
            }
            for wanted in wants {
                let is_wanted = |entry: &&Arc<TrailEntry>| match wanted {
                    Wanted::Entry(number) => entry.number == number,
                    Wanted::OfWork(work) => entry.work == Some(work),
                    Wanted::OfRollout(rollout) => entry.rollout == Some(rollout),
                };
                chronicle.learn(wanted, self.trail.iter().find(is_wanted).cloned());
            }
        }
        let scope = self.scope;
        let knows = |entry: &TrailEntry| {
            scope.is_none_or(|own| !entry.tenants.is_empty() && entry.tenants.iter().all(|name| name == own))
        };
        let sees = |id: TenantId| {
            scope.is_none_or(|own| self.town.cluster.tenant(id).is_some_and(|one| one.name.as_str() == own))
        };
        explain(&Scene {
            name: "default",
            cluster: &self.town.cluster,
            now: self.town.now,
            polls: &|machine| self.polls.get(&machine).copied(),
            troubles: &self.troubles,
            chronicle: &chronicle,
            azure: Azure { group_of: &|_| group(), refusals: &self.refusals },
            onlooker: Onlooker { knows: &knows, sees: &sees, is_limited: scope.is_some() },
        })
    }

    fn event(&self, id: &str) -> Option<EventExplanation> {
        let subject = Subject::Event { cluster: "default".to_owned(), id: id.to_owned() };
        self.scene(&subject, |scene| explain_event(scene, id))
    }

    fn machine(&self, id: u32) -> MachineExplanation {
        let (id, none) = (MachineId(id), Details::default());
        let name = full_name(&self.town.cluster, id);
        let subject = Subject::Machine { cluster: "default".to_owned(), name };
        self.scene(&subject, |scene| explain_machine(scene, Explained::There(id, &none))).unwrap()
    }

    fn scale_set(&self, name: &str) -> Option<ScaleSetExplanation> {
        let subject = Subject::Cluster("default".to_owned());
        self.scene(&subject, |scene| explain_scale_set(scene, name))
    }

    /// A client of Azure was refused something about a resource of compute.
    fn refuse(&mut self, resource: &str, version: &str, message: &str) {
        self.refusals.push(RefusedView {
            at: Moment(self.town.now.wall),
            by: "anyone".to_owned(),
            method: "PUT".to_owned(),
            resource: format!("{}/providers/Microsoft.Compute/{resource}", group()),
            api_version: Some(version.to_owned()),
            code: "BadRequest".to_owned(),
            message: message.to_owned(),
        });
    }
}

/// Where everything is for clients of Azure.
fn group() -> GroupId {
    GroupId { subscription: "s".to_owned(), name: "g".to_owned() }
}

/// `web_0`, and a restart of it that Alice asked for.
const WEB_0: u32 = 1;
const RESTART: &str = r#"{"command":"restart","machine":"web_0"}"#;
const MINUTE: Duration = Duration::from_mins(1);

fn restarted() -> (Tale, String) {
    let mut tale = Tale::new();
    tale.enrol("web");
    let outcome = tale.ask("token alice", RESTART);
    (tale, outcome.events[0].id.clone())
}

#[test]
fn an_event_is_explained_from_its_announcement_to_long_after_its_end() {
    let (mut tale, id) = restarted();
    let told = tale.event(&id).unwrap();
    assert_eq!((told.status.as_str(), told.why.as_str()), ("Scheduled", "restart by the owner"));
    let asked = told.asked.clone().unwrap();
    assert_eq!((asked.by.as_str(), asked.text.as_str()), ("token alice", "restart"));
    assert_eq!(told.announced, Some(told.now));
    assert_eq!(told.not_before.unwrap().to_string(), "2026-01-01T00:15:00Z");
    assert_eq!(told.blockers, ["tenant web has not approved"]);
    let next =
        "it starts as soon as its tenant approves, and at NotBefore, 2026-01-01T00:15:00Z, at the latest";
    assert_eq!(told.next, [next]);
    assert_eq!(told.machines[0].text, "is restarted: memory is lost, disks are kept");
    assert_eq!(told.history.len(), 1);

    tale.pass(MINUTE);
    let by = Approver::Machine(MachineId(WEB_0));
    let event = EventId::parse(&id).unwrap();
    let tenant = find_tenant(&tale.town.cluster, "web").unwrap();
    tale.submit("machine web/web_0", &Command::Approve { tenant, events: vec![event], by });
    let told = tale.event(&id).unwrap();
    assert_eq!((told.status.as_str(), told.blockers.as_slice()), ("Started", &[][..]));
    let approval = &told.approvals[0];
    assert_eq!(
        (approval.by.as_str(), approval.at.to_string().as_str()),
        ("machine web/web_0", "2026-01-01T00:01:00Z")
    );
    assert_eq!(told.next, ["1 machine is being worked on; with the last one the event goes"]);
    assert_eq!(told.not_before.unwrap().to_string(), "2026-01-01T00:15:00Z");

    tale.finish();
    let over = tale.event(&id).unwrap();
    assert_eq!((over.status.as_str(), over.event), ("Completed", None));
    assert_eq!(over.summary, "It is over: Reboot of web_0 (restart by the owner) is done for web_0");
    assert_eq!((over.tenant.as_str(), over.why.as_str()), ("web", "restart by the owner"));
    assert_eq!(over.asked, told.asked);
    assert_eq!((over.not_before, over.approvals), (told.not_before, told.approvals));
    let kinds: Vec<_> = over.history.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["announced", "approved", "started", "completed"]);
    assert_eq!(over.history[3].origin, told.asked, "what time has brought came of the same command");
    assert_eq!(tale.event("00000000-0000-0000-0000-000000000000"), None);
}

#[test]
fn who_was_shown_an_event_is_known_whatever_the_clock_says() {
    let mut tale = Tale::new();
    tale.enrol("web");
    tale.poll(WEB_0, Edition::V2020_07_01);
    let id = tale.ask("token alice", RESTART).events[0].id.clone();
    let told = tale.event(&id).unwrap();
    let shown = |told: &EventExplanation| {
        told.polls.iter().map(|poll| (poll.last.is_some(), poll.shown)).collect::<Vec<_>>()
    };
    // It asked at the same moment, but before there was anything to show.
    assert_eq!(shown(&told), [(true, false), (false, false)]);
    assert_eq!(
        told.hints,
        ["no machine of web has asked since this was announced: nobody there knows of it"]
    );
    tale.poll(WEB_0 + 1, Edition::V2017_08_01);
    let told = tale.event(&id).unwrap();
    assert_eq!(shown(&told), [(true, false), (true, true)]);
    assert_eq!(told.hints, [""; 0]);
    tale.polls.clear();
    let hint = &tale.event(&id).unwrap().hints[0];
    assert!(hint.ends_with("nobody there knows of it; none has asked since the server started"), "{hint}");
}

#[test]
fn what_is_in_the_way_is_named() {
    let mut tale = Tale::new();
    tale.enrol("web");
    tale.enrol("solo");
    let outcome = tale.ask("socket", r#"{"command":"update_hosts","hosts":["h1","h2"]}"#);
    let of = |tenant: &str| outcome.events.iter().find(|event| event.tenant == tenant).unwrap().id.clone();
    let (web, solo) = (of("web"), of("solo"));
    let told = tale.event(&web).unwrap();
    assert_eq!(told.why, "update of h1: step 1 of rollout 0");
    let other = "tenant solo has not approved, whose machines are part of the same work";
    assert_eq!(told.blockers, [other, "tenant web has not approved"]);
    assert!(told.next[0].starts_with("it starts as soon as all its tenants approve"), "{:?}", told.next);
    assert_eq!(
        told.machines[0].text,
        "is paused for about 9 seconds: memory, disks and connections are kept"
    );

    tale.ask("socket", r#"{"command":"approve","tenant":"solo"}"#);
    tale.ask("token bob", r#"{"command":"brake_on"}"#);
    tale.ask("token bob", r#"{"command":"approve","tenant":"web"}"#);
    let told = tale.event(&web).unwrap();
    assert_eq!(told.blockers, ["the brake is on: nothing starts until `forewarn brake off`"]);
    assert_eq!(told.next, ["it starts as soon as nothing holds it any more: late, never lost"]);
    let by: Vec<_> = told.approvals.iter().map(|one| (one.tenant.as_str(), one.by.as_str())).collect();
    assert_eq!(by, [("web", "token bob"), ("solo", "its owner")]);

    tale.ask("token bob", r#"{"command":"brake_off"}"#);
    tale.submit("forewarn", &Command::Tick);
    let work = tale.town.cluster.maintenances().next().unwrap().plan.id;
    tale.troubles.insert((work, MachineId(WEB_0)), "exit code 7".to_owned());
    assert_eq!(tale.event(&web).unwrap().blockers, ["web_0: the order has to be given again: exit code 7"]);

    // The second step of a rollout comes of the command that planned it, too.
    tale.finish();
    tale.submit("forewarn", &Command::Tick);
    let second = tale.town.cluster.tenant_named("web").and_then(|id| tale.town.cluster.tenant(id)).unwrap();
    let second = second.events()[0].id().to_string();
    assert_ne!(second, web);
    let asked = tale.event(&second).unwrap().asked.unwrap();
    assert_eq!((asked.by.as_str(), asked.text.as_str()), ("socket", "update_hosts"));
    assert_eq!(tale.event(&solo).unwrap().status, "Completed");
}

#[test]
fn a_tenant_is_not_told_of_others() {
    let mut tale = Tale::new();
    tale.enrol("web");
    tale.enrol("solo");
    let outcome = tale.ask("token alice", r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let id = &outcome.events.iter().find(|event| event.tenant == "web").unwrap().id;
    tale.scope = Some("web");
    let told = tale.event(id).unwrap();
    let text = serde_json::to_string(&told).unwrap();
    assert!(!text.contains("solo") && !text.contains("alice"), "{text}");
    let other = "another tenant, part of the same work, has not approved";
    assert_eq!(told.blockers, ["tenant web has not approved", other]);
    assert_eq!((told.asked.unwrap().by.as_str(), told.history[0].by.as_str()), ("an operator", "somebody"));
    assert!(told.announced.is_some(), "when it was announced is theirs to know");
    let text = serde_json::to_string(&tale.machine(WEB_0)).unwrap();
    assert!(!text.contains("solo") && !text.contains("alice"), "{text}");
}

#[test]
fn a_withdrawn_event_says_so_and_a_terminate_waits_for_the_others() {
    let (mut tale, id) = restarted();
    tale.ask("token bob", &format!(r#"{{"command":"cancel","event":"{id}"}}"#));
    let over = tale.event(&id).unwrap();
    assert_eq!((over.status.as_str(), over.history.len()), ("Withdrawn", 2));
    assert_eq!(over.summary, "It is over: Reboot of web_0 (restart by the owner) is cancelled");
    let (asked, origin) = (&over.history[1].asked, &over.history[1].origin);
    let who = |one: &Option<AskedView>| one.as_ref().map(|asked| asked.by.clone()).unwrap();
    assert_eq!((who(asked), who(origin)), ("token bob".to_owned(), "token alice".to_owned()));

    tale.ask("socket", r#"{"command":"change_model","scale_set":"web","terminate":"5m"}"#);
    tale.ask("socket", r#"{"command":"upgrade_instance","machine":"web_0"}"#);
    tale.ask("socket", r#"{"command":"upgrade_instance","machine":"web_1"}"#);
    let mut end = |machine: &str| {
        let json = format!(r#"{{"command":"delete","machine":"{machine}"}}"#);
        tale.ask("socket", &json).events[0].id.clone()
    };
    let (one, other) = (end("web_0"), end("web_1"));
    tale.ask("socket", &format!(r#"{{"command":"approve","tenant":"web","events":["{one}"]}}"#));
    tale.poll(WEB_0, Edition::V2017_11_01);
    let told = tale.event(&one).unwrap();
    assert_eq!(told.blockers, [format!("other Terminate events of the tenant are not approved: {other}")]);
    let next =
        "it starts as soon as the other Terminate events of its tenant are approved, and at NotBefore, ";
    assert!(told.next[0].starts_with(next), "{:?}", told.next);
    assert_eq!(told.machines[0].text, "is deleted: everything on it is lost");
    let blind =
        "machine web_0 asks with api-version 2017-11-01, which does not show Terminate: 2019-01-01 does";
    assert_eq!(told.hints, [blind]);
}

#[test]
fn a_machine_is_explained_with_who_restarted_it_and_what_is_coming() {
    let (mut tale, id) = restarted();
    tale.pass(15 * MINUTE);
    tale.finish();
    let told = tale.machine(WEB_0);
    assert_eq!((told.name.as_str(), told.enrolled), ("web/web_0", true));
    let number = tale.trail.iter().find(|entry| entry.kind == "command").unwrap().number;
    let done = "It is running on h1. Last: 2026-01-01T00:15:00Z, Reboot of web_0 (restart by the owner) is done for web_0";
    assert_eq!(told.summary, format!("{done}; because of entry {number}, by token alice: restart"));
    let kinds: Vec<_> = told.history.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["completed", "started", "announced", "command", "admitted"]);
    let started = told.history[1].origin.as_ref().unwrap();
    assert_eq!((started.by.as_str(), told.history[1].events[0].as_str()), ("token alice", id.as_str()));

    tale.ask("socket", r#"{"command":"update_hosts","hosts":["h1","h2"]}"#);
    let coming = tale.machine(WEB_0).coming;
    assert!(coming[0].text.starts_with("Freeze of web_0 (update of h1): waits for approval"), "{coming:?}");
    let coming = &tale.machine(WEB_0 + 1).coming[0].text;
    assert!(
        coming.starts_with("rollout 0 will come to its host, h2 (1 host of it: waits for approval"),
        "{coming}"
    );
}

#[test]
fn the_usual_troubles_are_seen() {
    let mut tale = Tale::new();
    let hints = tale.machine(WEB_0).hints;
    assert!(hints[0].starts_with("tenant web is not enrolled: "), "{hints:?}");
    assert_eq!(hints[1], "it has no notice of deletion: a delete makes no Terminate event");
    tale.enrol("web");
    tale.ask("socket", r#"{"command":"change_model","scale_set":"web","terminate":"10m"}"#);
    tale.poll(WEB_0, Edition::V2017_11_01);
    let told = tale.machine(WEB_0);
    let upgrade = "`forewarn scaleset upgrade web web_0`, or `az vmss update-instances --resource-group g --name web --instance-ids 0`";
    let model = format!(
        "instance web_0 runs model 1 of 2: no notice of deletion, where model 2 has PT10M; upgrade: {upgrade}"
    );
    let blind =
        "machine web_0 asks with api-version 2017-11-01, which does not show Terminate: 2019-01-01 does";
    assert_eq!(told.hints, [model.as_str(), blind]);
    assert_eq!(told.asked_last.unwrap().edition.as_deref(), Some("2017-11-01"));
    let rolling = r#"{"rolling":{"batch_percent":50,"pause":"1h"}}"#;
    tale.ask(
        "socket",
        &format!(r#"{{"command":"change_upgrade_policy","scale_set":"web","upgrade":{rolling}}}"#),
    );
    tale.ask("socket", r#"{"command":"revise_model","scale_set":"web"}"#);
    let model = &tale.machine(WEB_0).hints[0];
    assert!(
        model.ends_with("; instances get it batch by batch, the next at 2026-01-01T01:00:00Z"),
        "{model}"
    );
}

/// What a client is told that speaks too old a version to enable terminate notification.
const UNKNOWN_MEMBER: &str =
    "Could not find member 'scheduledEventsProfile' on object of type 'VirtualMachineProfile'";

#[test]
fn a_notice_that_could_not_be_enabled_is_explained_by_the_api_version() {
    let mut tale = Tale::new();
    tale.enrol("web");
    tale.refuse("virtualMachineScaleSets/other", "2018-10-01", UNKNOWN_MEMBER);
    tale.refuse("virtualmachinescalesets/WEB", "2018-10-01", UNKNOWN_MEMBER);
    let cause = "a PUT of WEB was refused (BadRequest): api-version 2018-10-01 does not know scheduledEventsProfile, 2019-03-01 and newer do";
    let told = tale.scale_set("web").unwrap();
    assert_eq!(told.refused, [tale.refusals[1].clone()]);
    assert_eq!(told.hints.last().unwrap(), cause);
    let machine = tale.machine(WEB_0);
    assert_eq!((machine.refused.len(), machine.hints.last().unwrap().as_str()), (1, cause));
    // What was refused for another reason is shown, and speaks for itself. The newest comes first.
    tale.pass(MINUTE);
    tale.refuse("virtualMachineScaleSets/web/virtualMachines/0", "2024-07-01", "not so");
    let machine = tale.machine(WEB_0);
    assert_eq!(
        machine.refused.iter().map(|one| one.message.as_str()).collect::<Vec<_>>(),
        ["not so", UNKNOWN_MEMBER]
    );
    assert_eq!(machine.hints.last().unwrap(), cause);
    assert_eq!(tale.machine(WEB_0 + 1).refused.len(), 1);
    assert_eq!(tale.machine(0).refused, [], "solo is another");
    let id = tale.ask("token alice", RESTART).events[0].id.clone();
    assert_eq!(tale.event(&id).unwrap().refused.len(), 2);
    // A scale set that could not even be made is known by what was refused.
    let absent = tale.scale_set("Other").unwrap();
    assert_eq!((absent.scale_set, absent.refused.len(), absent.hints.len()), (None, 1, 1));
    assert_eq!(tale.scale_set("nothing"), None);
}

#[test]
fn a_not_before_that_surprises_is_explained_by_the_model_that_counts() {
    let mut tale = Tale::new();
    tale.enrol("web");
    for (version, length) in [(2, "6m"), (3, "5m"), (4, "7m30s"), (5, "10m")] {
        let change = format!(r#"{{"command":"change_model","scale_set":"web","terminate":"{length}"}}"#);
        tale.ask("socket", &change);
        if version == 3 {
            tale.ask("socket", r#"{"command":"upgrade_instance","machine":"web_0"}"#);
        }
    }
    let id = tale.ask("socket", r#"{"command":"delete","machine":"web_0"}"#).events[0].id.clone();
    tale.poll(WEB_0, Edition::V2020_07_01);
    let told = tale.event(&id).unwrap();
    assert_eq!(told.not_before.unwrap().to_string(), "2026-01-01T00:05:00Z");
    let upgrade = |name: &str, number: u8| {
        format!(
            "upgrade: `forewarn scaleset upgrade web {name}`, or `az vmss update-instances --resource-group g --name web --instance-ids {number}`"
        )
    };
    let first =
        format!("instance web_0 runs model 3 of 5: PT5M, where model 5 has PT10M; {}", upgrade("web_0", 0));
    assert_eq!(told.hints, std::slice::from_ref(&first));
    assert_eq!(tale.machine(WEB_0).hints, std::slice::from_ref(&first));
    let other = format!(
        "instance web_1 runs model 1 of 5: no notice of deletion, where model 5 has PT10M; {}",
        upgrade("web_1", 1)
    );
    let set = tale.scale_set("web").unwrap();
    assert_eq!(set.summary, "Model 5 has PT10M. There are 2 instances, 2 with an older model");
    assert_eq!((set.hints, set.coming.len(), set.enrolled), (vec![other, first], 1, true));
    // A model that differs in something else does not change when anything happens.
    tale.ask("socket", r#"{"command":"upgrade_instance","machine":"web_1"}"#);
    tale.ask("socket", r#"{"command":"revise_model","scale_set":"web"}"#);
    let hint = &tale.machine(WEB_0 + 1).hints[0];
    assert!(hint.starts_with("instance web_1 runs model 5 of 6: PT10M, as model 6 has; upgrade: "), "{hint}");
}

#[test]
fn a_terminate_that_nobody_saw_is_explained() {
    let mut tale = Tale::new();
    let set = tale.scale_set("web").unwrap();
    assert!(set.hints[0].starts_with("tenant web is not enrolled: "), "{:?}", set.hints);
    let enable = "model 1 has no notice of deletion: a delete makes no Terminate event; enable: `forewarn scaleset update web --terminate-notification on`, \
                  or `az vmss update --resource-group g --name web --enable-terminate-notification true --terminate-notification-time 5`";
    assert_eq!((set.hints.len(), set.hints[1].as_str()), (2, enable));
    assert_eq!(set.summary, "Model 1 has no notice of deletion. There are 2 instances, with this model");
    tale.poll(WEB_0, Edition::V2017_11_01);
    tale.poll(WEB_0 + 1, Edition::V2017_11_01);
    let blind = "machines web_0, web_1 ask with api-version 2017-11-01, which does not show Terminate: 2019-01-01 does";
    assert_eq!(tale.scale_set("web").unwrap().hints[2], blind);
    // When it is gone, the trail says why it was not told.
    let gone = |tale: &Tale, name: &str| {
        let subject = Subject::Machine { cluster: "default".to_owned(), name: name.to_owned() };
        tale.scene(&subject, |scene| explain_machine(scene, Explained::Gone(name))).unwrap().hints
    };
    tale.ask("socket", r#"{"command":"delete","machine":"solo"}"#);
    tale.finish();
    assert_eq!(
        gone(&tale, "solo/solo"),
        ["it was deleted without a Terminate event: tenant solo is not enrolled"]
    );
    tale.enrol("web");
    tale.ask("socket", r#"{"command":"change_model","scale_set":"web","terminate":"5m"}"#);
    tale.ask("socket", r#"{"command":"delete","machine":"web_0"}"#);
    tale.finish();
    let why = "it was deleted without a Terminate event: web_0 runs model 1 of 2: no notice of deletion";
    assert_eq!(gone(&tale, "web/web_0"), [why]);
    tale.ask("socket", r#"{"command":"upgrade_instance","machine":"web_1"}"#);
    tale.ask("socket", r#"{"command":"deallocate","machine":"web_1"}"#);
    tale.finish();
    tale.ask("socket", r#"{"command":"delete","machine":"web_1"}"#);
    let why =
        "it was deleted without a Terminate event: web_1 is deallocated, and nobody is there to be told";
    assert_eq!(gone(&tale, "web/web_1"), [why]);
}

#[test]
fn spot_machines_have_no_notice_whatever_is_done() {
    let mut tale = Tale::new();
    tale.ask("socket", r#"{"command":"admit_scale_set","name":"cheap","spot":"delete"}"#);
    tale.ask("socket", r#"{"command":"admit_instance","scale_set":"cheap","instance":{"host":"h1"}}"#);
    tale.enrol("cheap");
    let machine = find_machine(&tale.town.cluster, "cheap_0").unwrap();
    let none =
        "it is a spot machine, and those have no notice of deletion: a delete makes no Terminate event";
    assert_eq!(tale.machine(machine.0).hints, [none]);
    let none = "its instances are spot machines, and those have no notice of deletion";
    assert_eq!(tale.scale_set("cheap").unwrap().hints, [none]);
}

#[test]
fn a_machine_that_is_gone_is_explained_from_the_trail() {
    let (tale, _) = restarted();
    let subject = Subject::Machine { cluster: "default".to_owned(), name: "web/web_0".to_owned() };
    let told = tale.scene(&subject, |scene| explain_machine(scene, Explained::Gone("web/web_0"))).unwrap();
    assert_eq!((told.summary.as_str(), told.machine), ("It is gone", None));
    assert_eq!(told.history.len(), 3);
    let subject = Subject::Machine { cluster: "default".to_owned(), name: "web/web_9".to_owned() };
    assert_eq!(tale.scene(&subject, |scene| explain_machine(scene, Explained::Gone("web/web_9"))), None);
}
