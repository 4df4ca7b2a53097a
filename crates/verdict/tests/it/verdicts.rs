//! Findings, sentences and conclusions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use forewarn_control::push::NoticeStatus;
use forewarn_lifecycle::StartCause;
use forewarn_verdict::*;

use crate::log::{TestLog, moment};

fn web(name: &str) -> MachineName {
    MachineName { tenant: "web".to_owned(), name: name.to_owned() }
}

/// Observations of a program that is `machine` and has read the events.
fn read_by(machine: &str, events: &[&str]) -> Observations {
    let readings = events.iter().map(|event| ((*event).to_owned(), BTreeSet::from([web(machine)])));
    Observations {
        polled: Some(BTreeMap::from([(web(machine), 0)])),
        readings: readings.collect(),
        ..Observations::default()
    }
}

fn verdict(log: &TestLog, observations: &Observations) -> Verdict {
    judge(event_histories(&log.entries), observations, VerdictRules::default())
}

/// Announced, approved 3 s later by `by`, and completed.
fn approved(by: &str) -> (TestLog, [u64; 2]) {
    let mut log = TestLog::default();
    let announced = log.event("a", NoticeStatus::Scheduled, "");
    let approved = log.approve("a", by, None);
    log.event("a", NoticeStatus::Started, "Reboot of web_0 has started, by approval");
    log.pass(60);
    log.event("a", NoticeStatus::Completed, "");
    (log, [announced, approved])
}

#[test]
fn a_history_has_every_step_of_an_event() {
    let (log, [announcement, approval]) = approved("machine web/web_0");
    let histories = event_histories(&log.entries);
    let [history] = histories.as_slice() else { panic!("{histories:?}") };
    assert_eq!((history.id.as_str(), history.kind.as_str(), history.tenant.as_str()), ("a", "Reboot", "web"));
    assert_eq!(history.announced, Some(Occurrence { at: moment(0), entry: announcement }));
    assert_eq!(history.not_before, Some(moment(900)));
    let by = ApprovedBy::Machine("web_0".to_owned());
    let when = Occurrence { at: moment(0), entry: approval };
    assert_eq!(history.approvals, [EventApproval { by, when }]);
    assert_eq!(history.start.unwrap().cause, StartCause::Approved);
    assert_eq!(history.end.as_ref().unwrap().when().at, moment(60));
    assert!(history.is_approved_by("web_0") && !history.is_approved_by("web_1"));
    assert!(!history.has_started_unapproved() && history.is_over());
}

#[test]
fn the_time_of_an_approval_is_virtual_time_and_the_real_time_that_the_clock_stood() {
    let (log, [announcement, approval]) = approved("machine web/web_0");
    let mut observations = read_by("web_0", &["a"]);
    observations.real_time.insert(announcement, Duration::from_millis(100));
    observations.real_time.insert(approval, Duration::from_millis(3_200));
    let verdict = verdict(&log, &observations);
    assert_eq!(
        verdict.sentences(),
        [
            "web_0 approved E1 (Reboot) 3 s after the announcement, 14m57s before NotBefore",
            "nothing was interrupted before it was drained"
        ]
    );
    assert_eq!(verdict.conclusion(), "PASSED: 1 event announced, 1 approved before the start");
    assert!(verdict.passed());
}

#[test]
fn an_event_that_is_read_and_not_approved_is_a_failure_unless_approvals_are_optional() {
    let mut log = TestLog::default();
    log.expire("a");
    let observations = read_by("web_0", &["a"]);
    let failed = verdict(&log, &observations);
    let sentence = "web_0 did not approve E1 (Reboot); it was restarted at NotBefore";
    assert_eq!(failed.sentences(), [sentence]);
    assert_eq!(failed.conclusion(), format!("FAILED: {sentence}"));
    assert!(failed.events[0].history.has_started_unapproved());
    let rules = VerdictRules { approval: ApprovalRule::Optional, ..VerdictRules::default() };
    assert!(judge(event_histories(&log.entries), &observations, rules).passed());
}

#[test]
fn a_test_of_nothing_fails_unless_that_is_allowed() {
    let mut log = TestLog::default();
    let nobody = Observations { polled: Some(BTreeMap::new()), ..Observations::default() };
    assert_eq!(verdict(&log, &nobody).conclusion(), "FAILED: no machine polled, so nothing was tested");
    let idle = read_by("web_0", &[]);
    assert_eq!(verdict(&log, &idle).conclusion(), "FAILED: no event was announced, so nothing was tested");
    let rules = VerdictRules { untested: UntestedRule::Passes, ..VerdictRules::default() };
    assert!(judge(Vec::new(), &nobody, rules).passed());
    log.expire("a");
    let unread = verdict(&log, &idle);
    assert_eq!(unread.failures.len(), 2, "{:?}", unread.failures);
    let sentence = "web_0 did not poll while E1 (Reboot) was scheduled; it was restarted at NotBefore";
    assert_eq!(unread.sentences(), [sentence]);
}

#[test]
fn an_approval_by_the_story_or_by_an_operator_is_not_one_of_the_program() {
    let (log, _) = approved("machine web/web_0");
    let mut scripted = read_by("web_0", &["a"]);
    scripted.scripted.insert(("a".to_owned(), "web_0".to_owned()));
    let by_story = verdict(&log, &scripted);
    assert!(!by_story.passed());
    assert!(by_story.sentences()[0].contains("by the story and not by the program"), "{by_story:?}");

    let mut log = TestLog::default();
    log.event("a", NoticeStatus::Scheduled, "");
    let command = log.command("token alice");
    log.approve("a", "forewarn", Some(command));
    let verdict = verdict(&log, &read_by("web_0", &["a"]));
    let sentence = "web_0 did not approve E1 (Reboot); it was approved by an operator (token alice)";
    assert_eq!(verdict.sentences(), [sentence]);
}

#[test]
fn events_without_notice_or_of_other_tenants_or_withdrawn_are_no_failure() {
    let mut log = TestLog::default();
    log.event("a", NoticeStatus::Scheduled, "");
    log.event("a", NoticeStatus::Canceled, "Reboot of web_0 is cancelled");
    log.event("b", NoticeStatus::Scheduled, "");
    log.event("b", NoticeStatus::Started, "Reboot of web_0 has started, by an operator");
    log.event("c", NoticeStatus::Started, "Reboot of web_0 has started, by the policy of its tenant");
    let observations = read_by("web_0", &["a", "b"]);
    let of_web = verdict(&log, &observations);
    assert!(of_web.passed(), "{:?}", of_web.failures);
    assert_eq!(of_web.events[2].history.approvals[0].by, ApprovedBy::Policy);
    assert!(!of_web.sentences().iter().any(|sentence| sentence.contains("drained")));

    let mut log = TestLog::default();
    log.expire("a");
    let other = MachineName { tenant: "db".to_owned(), name: "db-0".to_owned() };
    let polled = Some(BTreeMap::from([(other, 0)]));
    let verdict = verdict(&log, &Observations { polled, ..Observations::default() });
    assert_eq!(verdict.events[0].finding, Finding::Unconcerned);

    // It polled for the first time when the event had started.
    let started = log.entries.last().unwrap().number;
    let polled = Some(BTreeMap::from([(web("web_0"), started)]));
    let shown = BTreeSet::from(["a".to_owned()]);
    let late = Observations { polled, shown, ..Observations::default() };
    let late = judge(event_histories(&log.entries), &late, VerdictRules::default());
    assert_eq!((&late.events[0].finding, late.passed()), (&Finding::Unconcerned, true));
}

#[test]
fn a_peer_that_approves_is_named_with_the_machine_of_the_event() {
    let (log, _) = approved("machine web/web_1");
    let verdict = verdict(&log, &read_by("web_1", &["a"]));
    let sentence =
        "web_1 approved E1 (Reboot of web_0) less than 1 s after the announcement, 15m before NotBefore";
    assert_eq!(verdict.sentences()[0], sentence);
}

#[test]
fn without_observed_polls_every_announced_event_counts() {
    let mut log = TestLog::default();
    log.event("a", NoticeStatus::Scheduled, "");
    let pending = verdict(&log, &Observations::default());
    assert_eq!(pending.events[0].finding, Finding::Pending);
    assert_eq!(pending.conclusion(), "FAILED: web_0 has not approved E1 (Reboot), which is still scheduled");
    let (log, _) = approved("machine web/web_0");
    assert!(verdict(&log, &Observations::default()).passed());
}

#[test]
fn a_verdict_is_an_object_in_json() {
    let (log, _) = approved("machine web/web_0");
    let json = serde_json::to_value(verdict(&log, &read_by("web_0", &["a"]))).unwrap();
    let event = &json["events"][0];
    assert_eq!((event["name"].as_str(), event["type"].as_str()), (Some("E1"), Some("Reboot")));
    assert_eq!(event["finding"]["approved"]["seconds_before_not_before"], 900);
    assert_eq!(event["start"]["cause"], "approved");
    assert_eq!(event["end"]["result"], "completed");
    assert_eq!(event["approvals"][0]["by"]["machine"], "web_0");
}
