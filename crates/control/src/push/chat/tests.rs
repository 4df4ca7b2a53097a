//! The words of notes, and the limits of each format.

use forewarn_testkit::chat::ChatService;

use super::*;
use crate::audit::host_notice::HostNotice;
use crate::push::sample;
use crate::{FailureView, Site};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const EVENT: &str = "55CC1B1A-3E82-4E84-AF5C-1C1BD7778447";

fn moment(text: &str) -> Moment {
    text.parse().unwrap()
}

fn notice(status: NoticeStatus, kind: &str, machines: &[&str]) -> Notice {
    Notice {
        event: EVENT.to_owned(),
        status,
        kind: kind.to_owned(),
        source: "Platform".to_owned(),
        description: "Host server is undergoing maintenance.".to_owned(),
        duration: if kind == "Freeze" { 9 } else { -1 },
        not_before: (status == NoticeStatus::Scheduled).then(|| moment("2026-01-01T00:15:00Z")),
        tenant: "web".to_owned(),
        resource: "virtualMachineScaleSets/web".to_owned(),
        resources: machines.iter().map(|name| (*name).to_owned()).collect(),
        failures: Vec::new(),
    }
}

fn push(content: PushContent) -> Push {
    let (id, site) = ("id".to_owned(), Site::default());
    Push { id, at: moment("2026-01-01T00:00:00.250Z"), site, cluster: None, content }
}

fn of_event(status: NoticeStatus, kind: &str, machines: &[&str]) -> Push {
    push(PushContent::Event(notice(status, kind, machines)))
}

fn of_host(status: HostNoticeStatus, text: &str) -> Push {
    let notice = HostNotice {
        host: "kvm1".to_owned(),
        status,
        operation: "update".to_owned(),
        work: Some("kernel 6.12.9".to_owned()),
        since: moment("2026-01-01T00:00:00Z"),
        reminder: None,
        reason: None,
    };
    let (text, cluster) = (text.to_owned(), "default".to_owned());
    push(PushContent::Host(HostPush { notice, text, cluster, rollout: None }))
}

fn text(push: &Push) -> String {
    plain_text(std::slice::from_ref(push), moment("2026-01-01T00:00:00Z"))
}

/// promise: W1
#[test]
fn a_scheduled_event_says_what_when_and_whose_approval_it_waits_for() {
    assert_eq!(
        text(&of_event(NoticeStatus::Scheduled, "Reboot", &["web_0", "web_1"])),
        "Reboot of web_0 and web_1 scheduled\n  \
         web_0 and web_1 will be restarted, not before 2026-01-01 00:15:00 UTC (in 15m).\n  \
         Until then it waits for the approval of tenant web: forewarn event approve \
         55CC1B1A-3E82-4E84-AF5C-1C1BD7778447\n  \
         Host server is undergoing maintenance.\n"
    );
    let freeze = text(&of_event(NoticeStatus::Scheduled, "Freeze", &["db-0"]));
    assert!(freeze.contains("db-0 will be frozen for about 9s, not before"), "{freeze}");
    let west = Push {
        cluster: Some("west".to_owned()),
        ..of_event(NoticeStatus::Scheduled, "Terminate", &["a", "b", "c", "d", "e", "f", "g"])
    };
    let west = text(&west);
    assert!(west.starts_with("Terminate of a, b, c, d, e and 2 more scheduled\n"), "{west}");
    assert!(west.contains(&format!("forewarn event approve {EVENT} --cluster west\n")), "{west}");
    // A message that was delayed is not wrong.
    let late =
        plain_text(&[of_event(NoticeStatus::Scheduled, "Redeploy", &["a"])], moment("2026-01-01T01:00:00Z"));
    assert!(late.contains("moved to another host, not before 2026-01-01 00:15:00 UTC (now).\n"), "{late}");
}

/// promise: W1
#[test]
fn the_start_and_the_end_of_an_event_are_told() {
    let lines = |status, kind| text(&of_event(status, kind, &["web_0"]));
    assert!(
        lines(NoticeStatus::Started, "Preempt").starts_with(
            "Preempt of web_0 started\n  web_0 is being evicted since 2026-01-01 00:00:00 UTC.\n"
        )
    );
    assert_eq!(
        lines(NoticeStatus::Completed, "Reboot"),
        "Reboot of web_0 completed\n  web_0 was restarted. It ended at 2026-01-01 00:00:00 UTC.\n"
    );
    assert_eq!(
        lines(NoticeStatus::Canceled, "Terminate"),
        "Terminate of web_0 cancelled\n  web_0 will not be deleted. It was cancelled at 2026-01-01 00:00:00 UTC.\n"
    );
    let failure =
        |machine: &str| FailureView { machine: machine.to_owned(), reason: "no such domain".to_owned() };
    let failures = ["a", "b", "c", "d"].map(failure).to_vec();
    let failed = Notice { failures, ..notice(NoticeStatus::Completed, "Reboot", &["a", "b", "c", "d"]) };
    assert_eq!(
        text(&push(PushContent::Event(failed))),
        "Reboot of a, b, c and d failed\n  a: no such domain\n  b: no such domain\n  c: no such domain\n  \
         It failed for 1 more.\n  It ended at 2026-01-01 00:00:00 UTC.\n"
    );
}

/// promise: W1
#[test]
fn a_host_that_is_ready_and_a_test_have_texts_too() {
    assert_eq!(
        text(&of_host(HostNoticeStatus::Ready, "host kvm1 is ready for work: kernel 6.12.9")),
        "Host kvm1 is ready for work: kernel 6.12.9\n  Its machines are aside since 2026-01-01 00:00:00 UTC. \
         When the work is done: forewarn host done kvm1\n"
    );
    let test = text(&sample("ops", "x", moment("2026-01-01T00:00:00Z"), &Site::default()));
    assert_eq!(
        test,
        "Test of the webhook ops\n  Forewarn can send messages here. Nothing happens to any machine.\n"
    );
}

fn check_all(pushes: &[Push]) {
    let now = moment("2026-01-01T00:00:00Z");
    let bodies = [
        (ChatService::Slack, slack(pushes, now)),
        (ChatService::Teams, teams(pushes, now)),
        (ChatService::PagerDuty, pagerduty(&pushes[0], KEY, now)),
        (ChatService::PagerDuty, pagerduty_end(&pushes[0], KEY)),
        (ChatService::Text, plain_text(pushes, now)),
    ];
    for (service, body) in bodies {
        assert_eq!(service.check_body(&body), Ok(()), "{service:?}: {body}");
    }
}

/// Every status of every kind, and the longest texts, of characters that formats escape.
/// promise: W1
#[test]
fn every_message_keeps_the_limits_of_each_chat() {
    let longest_name = "n".repeat(91);
    let names = vec![longest_name.as_str(); 500];
    let statuses =
        [NoticeStatus::Scheduled, NoticeStatus::Started, NoticeStatus::Completed, NoticeStatus::Canceled];
    for status in statuses {
        for kind in EventKind::ALL {
            check_all(&[of_event(status, kind.as_str(), &["web_0"])]);
            check_all(&vec![of_event(status, kind.as_str(), &names); 5]);
        }
    }
    for letter in ["&", "<", "\"", "\\", "é", "🙂", "\u{1}", "\n", "x"] {
        let reason = letter.repeat(1_000);
        let failures = vec![FailureView { machine: longest_name.clone(), reason: reason.clone() }; 16];
        let failed = Notice { failures, ..notice(NoticeStatus::Completed, "Reboot", &names) };
        check_all(&vec![push(PushContent::Event(failed)); 5]);
        for status in [HostNoticeStatus::Ready, HostNoticeStatus::Failed, HostNoticeStatus::Completed] {
            check_all(&vec![of_host(status, &reason); 5]);
        }
    }
}

#[test]
fn slack_gets_no_mention_and_no_link_from_a_name() {
    let body = slack(
        &[of_host(HostNoticeStatus::Ready, "host kvm1 is ready for work: <!channel> & <https://h|x>")],
        moment("2026-01-01T00:00:00Z"),
    );
    let value: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(value["text"], "Host kvm1 is ready for work: &lt;!channel&gt; &amp; &lt;https://h|x&gt;");
    let section = value["blocks"][0]["text"]["text"].as_str().unwrap();
    assert!(section.starts_with("*Host kvm1 is ready for work: &lt;!channel&gt;"), "{section}");
    assert!(section.ends_with("When the work is done: `forewarn host done kvm1`"), "{section}");
    assert!(section.len() <= slack::SECTION_CHARS_MAX);
}

#[test]
fn a_card_that_would_be_too_large_has_titles_only() {
    let line = NoteLine { text: "x".repeat(LINE_BYTES_MAX), command: None };
    let long = ChatNote { title: "t".to_owned(), lines: vec![line; 20] };
    let body = teams::body(&vec![long; 5]);
    assert!(body.len() < teams::BODY_BYTES_MAX && body.contains("\"text\":\"t\""), "{body}");
    assert_eq!(ChatService::Teams.check_body(&body), Ok(()));
}

/// promise: W1
#[test]
fn an_alert_is_open_from_the_announcement_to_the_end() {
    let alert = |push: &Push| -> serde_json::Value {
        serde_json::from_str(&pagerduty(push, KEY, moment("2026-01-01T00:00:00Z"))).unwrap()
    };
    let of = |status, kind| alert(&of_event(status, kind, &["web_0"]));
    let scheduled = of(NoticeStatus::Scheduled, "Reboot");
    assert_eq!(
        (&scheduled["event_action"], &scheduled["dedup_key"], &scheduled["payload"]["severity"]),
        (&"trigger".into(), &EVENT.into(), &"warning".into())
    );
    assert_eq!(
        scheduled["payload"]["summary"],
        "Reboot of web_0 scheduled. web_0 will be restarted, not before 2026-01-01 00:15:00 UTC (in 15m)."
    );
    let severity = |kind| of(NoticeStatus::Started, kind)["payload"]["severity"].clone();
    assert_eq!(
        ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"].map(severity),
        ["info", "warning", "warning", "error", "error"]
    );
    for end in [NoticeStatus::Completed, NoticeStatus::Canceled] {
        let expected = serde_json::json!({
            "routing_key": KEY, "event_action": "resolve", "dedup_key": EVENT,
        });
        assert_eq!(of(end, "Reboot"), expected);
    }
    let failures = vec![FailureView { machine: "web_0".to_owned(), reason: "no such domain".to_owned() }];
    let failed = Notice { failures, ..notice(NoticeStatus::Completed, "Reboot", &["web_0"]) };
    let failed = alert(&push(PushContent::Event(failed)));
    assert_eq!(
        (&failed["event_action"], &failed["payload"]["severity"], &failed["payload"]["summary"]),
        (&"trigger".into(), &"critical".into(), &"Reboot of web_0 failed. web_0: no such domain".into())
    );
    let host = |status| alert(&of_host(status, "host kvm1 …"));
    let (ready, done) = (host(HostNoticeStatus::Ready), host(HostNoticeStatus::Completed));
    assert_eq!((&ready["event_action"], &done["event_action"]), (&"trigger".into(), &"resolve".into()));
    assert_eq!(ready["dedup_key"], done["dedup_key"]);
}
