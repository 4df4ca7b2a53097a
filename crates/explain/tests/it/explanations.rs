//! Explanations: what is said of events and machines in the situations that people ask about.

use forewarn_control::*;
use forewarn_explain::*;
use forewarn_imds::Edition;
use forewarn_lifecycle::*;

use crate::tale::*;

#[test]
fn a_request_that_an_earlier_version_recorded_is_shown_without_its_prefix() {
    let (mut tale, id) = restarted();
    let command = tale.trail.iter_mut().find(|entry| entry.kind == "command").unwrap();
    std::sync::Arc::make_mut(command).text = "asked for: restart".to_owned();
    assert_eq!(tale.event(&id).unwrap().request.unwrap().text, "restart");
}

/// promise: C6
#[test]
fn an_event_is_explained_from_its_announcement_to_long_after_its_end() {
    let (mut tale, id) = restarted();
    let told = tale.event(&id).unwrap();
    assert_eq!((told.status.as_str(), told.why.as_str()), ("Scheduled", "restart by the owner"));
    let asked = told.request.clone().unwrap();
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
    let tenant = find_tenant(&tale.town.rules, "web").unwrap();
    tale.submit("machine web/web_0", &Command::Approve { tenant, events: vec![event], by });
    let told = tale.event(&id).unwrap();
    assert_eq!((told.status.as_str(), told.blockers.as_slice()), ("Started", &[][..]));
    let approval = &told.approvals[0];
    assert_eq!(
        (approval.by.as_str(), approval.at.to_string().as_str()),
        ("machine web/web_0", "2026-01-01T00:01:00Z")
    );
    assert_eq!(told.next, ["1 machine is being worked on; the event completes with the last one"]);
    assert_eq!(told.not_before.unwrap().to_string(), "2026-01-01T00:15:00Z");

    tale.finish();
    let over = tale.event(&id).unwrap();
    assert_eq!((over.status.as_str(), over.event), ("Completed", None));
    assert_eq!(over.summary, "Ended: Reboot of web_0 (restart by the owner) completed for web_0");
    assert_eq!((over.tenant.as_str(), over.why.as_str()), ("web", "restart by the owner"));
    assert_eq!(over.request, told.request);
    assert_eq!((over.not_before, over.approvals), (told.not_before, told.approvals));
    let kinds: Vec<_> = over.history.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds, ["announced", "approved", "started", "completed"]);
    assert_eq!(over.history[3].origin, told.request, "what time has brought came of the same command");
    assert_eq!(tale.event("00000000-0000-0000-0000-000000000000"), None);
}

/// promise: C6
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
        ["no machine of web has polled since this was announced: none of them has seen the event"]
    );
    tale.poll(WEB_0 + 1, Edition::V2017_08_01);
    let told = tale.event(&id).unwrap();
    assert_eq!(shown(&told), [(true, false), (true, true)]);
    assert_eq!(told.hints, [""; 0]);
    tale.polls.clear();
    let hint = &tale.event(&id).unwrap().hints[0];
    assert!(
        hint.ends_with("none of them has seen the event; none has polled since the server started"),
        "{hint}"
    );
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

    tale.ask("socket", r#"{"command":"approve","tenant":"solo","events":"all"}"#);
    tale.ask("token bob", r#"{"command":"brake_on"}"#);
    tale.ask("token bob", r#"{"command":"approve","tenant":"web","events":"all"}"#);
    let told = tale.event(&web).unwrap();
    assert_eq!(told.blockers, ["the brake is on: nothing starts until `forewarn brake off`"]);
    assert_eq!(told.next, ["it starts as soon as nothing holds it any more: late, but not skipped"]);
    let by: Vec<_> = told.approvals.iter().map(|one| (one.tenant.as_str(), one.by.as_str())).collect();
    assert_eq!(by, [("web", "token bob"), ("solo", "its owner")]);

    tale.ask("token bob", r#"{"command":"brake_off"}"#);
    tale.submit("forewarn", &Command::Tick);
    let work = tale.town.rules.maintenances().next().unwrap().plan.id;
    tale.driver_errors.insert((work, MachineId(WEB_0).into()), "exit code 7".to_owned());
    assert_eq!(
        tale.event(&web).unwrap().blockers,
        [
            "the update of host h1 waits for 2 machines to step aside",
            "web_0: the action is retried: exit code 7"
        ]
    );

    // The second step of a rollout comes of the command that planned it, too.
    tale.finish();
    tale.submit("forewarn", &Command::Tick);
    let second = tale.town.rules.tenant_named("web").and_then(|id| tale.town.rules.tenant(id)).unwrap();
    let second = second.events()[0].id().to_string();
    assert_ne!(second, web);
    let asked = tale.event(&second).unwrap().request.unwrap();
    assert_eq!((asked.by.as_str(), asked.text.as_str()), ("socket", "update_hosts"));
    assert_eq!(tale.event(&solo).unwrap().status, "Completed");
}

#[test]
fn closed_windows_of_tenants_are_named() {
    let mut tale = Tale::new();
    tale.enrol("web");
    tale.enrol("solo");
    let outcome = tale.ask("socket", r#"{"command":"update_hosts","hosts":["h1"]}"#);
    let web = outcome.events.iter().find(|event| event.tenant == "web").unwrap().id.clone();
    tale.ask("socket", r#"{"command":"change_windows","tenant":"solo","windows":["12:00-13:00 +01:00"]}"#);
    for tenant in ["web", "solo"] {
        tale.ask("socket", &format!(r#"{{"command":"approve","tenant":"{tenant}","events":"all"}}"#));
    }
    let told = tale.event(&web).unwrap();
    let [held, closed] = told.blockers.as_slice() else { panic!("{:?}", told.blockers) };
    assert!(held.starts_with("held until the next window: ") && held.ends_with("T11:00:00Z"), "{held}");
    assert!(closed.starts_with("the windows of tenant solo are closed until "), "{closed}");
    assert!(closed.ends_with("T11:00:00Z: 12:00-13:00 +01:00"), "{closed}");
}

/// promise: S3
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
    assert_eq!(
        (told.request.unwrap().by.as_str(), told.history[0].by.as_str()),
        ("an operator", "another caller")
    );
    assert!(told.announced.is_some(), "when it was announced is theirs to know");
    let text = serde_json::to_string(&tale.machine(WEB_0)).unwrap();
    assert!(!text.contains("solo") && !text.contains("alice"), "{text}");
}

/// promise: C6
#[test]
fn a_withdrawn_event_says_so_and_a_terminate_waits_for_the_others() {
    let (mut tale, id) = restarted();
    tale.ask("token bob", &format!(r#"{{"command":"cancel","event":"{id}"}}"#));
    let over = tale.event(&id).unwrap();
    assert_eq!((over.status.as_str(), over.history.len()), ("Withdrawn", 2));
    assert_eq!(over.summary, "Ended: Reboot of web_0 (restart by the owner) is cancelled");
    let (asked, origin) = (&over.history[1].request, &over.history[1].origin);
    let who = |one: &Option<RequestView>| one.as_ref().map(|asked| asked.by.clone()).unwrap();
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
    let blind = "machine web_0 polls with api-version 2017-11-01, which does not include Terminate events: 2019-01-01 does";
    assert_eq!(told.hints, [blind]);
}

/// promise: C6
#[test]
fn a_machine_is_explained_with_who_restarted_it_and_what_is_coming() {
    let (mut tale, id) = restarted();
    tale.pass(15 * MINUTE);
    tale.finish();
    let told = tale.machine(WEB_0);
    assert_eq!((told.name.as_str(), told.enrolled), ("web/web_0", true));
    let number = tale.trail.iter().find(|entry| entry.kind == "command").unwrap().number;
    let done = "The machine is running on h1. Last: 2026-01-01T00:15:00Z, Reboot of web_0 (restart by the owner) completed for web_0";
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
        coming.starts_with("rollout 0 will reach its host, h2 (1 host of it: waits for approval"),
        "{coming}"
    );
}

/// promise: C6
#[test]
fn a_machine_that_is_gone_is_explained_from_the_trail() {
    let (tale, _) = restarted();
    let subject = Subject::Machine { cluster: "default".to_owned(), name: "web/web_0".to_owned() };
    let told =
        tale.scene(&subject, |scene| explain_machine(scene, ExplainedMachine::Removed("web/web_0"))).unwrap();
    assert_eq!((told.summary.as_str(), told.machine), ("The machine was removed", None));
    assert_eq!(told.history.len(), 3);
    let subject = Subject::Machine { cluster: "default".to_owned(), name: "web/web_9".to_owned() };
    assert_eq!(
        tale.scene(&subject, |scene| explain_machine(scene, ExplainedMachine::Removed("web/web_9"))),
        None
    );
}

/// promise: C6
#[test]
fn work_that_waits_without_an_event_is_explained_with_its_time() {
    let mut tale = Tale::new();
    tale.ask("socket", r#"{"command":"change_settings","unenrolled":"waits"}"#);
    tale.ask("socket", r#"{"command":"restart","machine":"web_0"}"#);
    let told = tale.machine(WEB_0);
    let [coming] = told.coming.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        coming.text,
        "restart by the owner: waits as long as a notice, until 2026-01-01T00:15:00Z: none of its tenants is enrolled"
    );
    assert_eq!(coming.not_before.unwrap().to_string(), "2026-01-01T00:15:00Z");
    assert!(
        told.hints[0].ends_with("; work on them waits as long as a notice, without an event"),
        "{told:?}"
    );
    tale.pass(15 * MINUTE);
    let coming = &tale.machine(WEB_0).coming[0];
    assert_eq!(
        (coming.text.as_str(), coming.not_before),
        ("restart by the owner: under way: 1 machine to go", None)
    );
}

/// promise: C6
#[test]
fn what_an_approval_would_lead_to_is_as_the_rules_decide() {
    let (mut tale, id) = restarted();
    tale.ask("socket", r#"{"command":"brake_on"}"#);
    assert_eq!(
        tale.event(&id).unwrap().next,
        [
            "it is due as soon as its tenant approves, and at NotBefore, 2026-01-01T00:15:00Z, at the latest; as it stands \
          now, it is then held by the brake"
        ]
    );
    tale.ask("socket", r#"{"command":"brake_off"}"#);
    assert!(tale.event(&id).unwrap().next[0].starts_with("it starts as soon as its tenant approves, "));
}
