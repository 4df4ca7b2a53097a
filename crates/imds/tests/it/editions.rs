//! Every edition, byte by byte: one event of each kind, Scheduled and Started. The lines are joined before comparing.

use crate::support::{announcement, scheduled, started};
use forewarn_imds::{Document, Edition, Naming};
use forewarn_types::{Announcement, Event, EventId, EventKind, EventSource, Name, Reason};

const SHOWN_BY_2017_03_01: &str = r#"
{"DocumentIncarnation":18446744073709551615,"Events":[
{"EventId":"ABCDEF00-0000-4000-8000-000000000001","EventStatus":"Scheduled","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["_web_0","_web_1"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000002","EventStatus":"Started","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["_web_0","_web_1"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000003","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["_web_0"],"NotBefore":"Thu, 01 Jan 1970 00:00:00 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000004","EventStatus":"Started","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["_web_0"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000005","EventStatus":"Scheduled","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["_web_1"],"NotBefore":"Tue, 29 Feb 2000 23:59:59 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000006","EventStatus":"Started","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["_web_1"],"NotBefore":""}
]}
"#;

const SHOWN_BY_2017_08_01: &str = r#"
{"DocumentIncarnation":18446744073709551615,"Events":[
{"EventId":"ABCDEF00-0000-4000-8000-000000000001","EventStatus":"Scheduled","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000002","EventStatus":"Started","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000003","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"Thu, 01 Jan 1970 00:00:00 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000004","EventStatus":"Started","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000005","EventStatus":"Scheduled","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"Tue, 29 Feb 2000 23:59:59 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000006","EventStatus":"Started","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":""}
]}
"#;

const SHOWN_BY_2017_11_01: &str = r#"
{"DocumentIncarnation":18446744073709551615,"Events":[
{"EventId":"ABCDEF00-0000-4000-8000-000000000001","EventStatus":"Scheduled","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000002","EventStatus":"Started","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000003","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"Thu, 01 Jan 1970 00:00:00 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000004","EventStatus":"Started","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000005","EventStatus":"Scheduled","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"Tue, 29 Feb 2000 23:59:59 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000006","EventStatus":"Started","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000007","EventStatus":"Scheduled","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":"Sat, 16 Mar 2024 19:52:09 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000008","EventStatus":"Started","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":""}
]}
"#;

const SHOWN_BY_2019_01_01: &str = r#"
{"DocumentIncarnation":18446744073709551615,"Events":[
{"EventId":"ABCDEF00-0000-4000-8000-000000000001","EventStatus":"Scheduled","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000002","EventStatus":"Started","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000003","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"Thu, 01 Jan 1970 00:00:00 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000004","EventStatus":"Started","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000005","EventStatus":"Scheduled","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"Tue, 29 Feb 2000 23:59:59 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000006","EventStatus":"Started","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000007","EventStatus":"Scheduled","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":"Sat, 16 Mar 2024 19:52:09 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000008","EventStatus":"Started","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000009","EventStatus":"Scheduled","EventType":"Terminate","ResourceType":"VirtualMachine","Resources":["web_3"],"NotBefore":"Fri, 31 Dec 9999 23:59:59 GMT"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000010","EventStatus":"Started","EventType":"Terminate","ResourceType":"VirtualMachine","Resources":["web_3"],"NotBefore":""}
]}
"#;

const SHOWN_BY_2019_04_01: &str = r#"
{"DocumentIncarnation":18446744073709551615,"Events":[
{"EventId":"ABCDEF00-0000-4000-8000-000000000001","EventStatus":"Scheduled","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT","Description":"Virtual machine is being paused because of a memory-preserving Live Migration operation."},
{"EventId":"ABCDEF00-0000-4000-8000-000000000002","EventStatus":"Started","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"","Description":"Virtual machine is being paused because of a memory-preserving Live Migration operation."},
{"EventId":"ABCDEF00-0000-4000-8000-000000000003","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"Thu, 01 Jan 1970 00:00:00 GMT","Description":"Virtual machine is going to be restarted as requested by authorized user."},
{"EventId":"ABCDEF00-0000-4000-8000-000000000004","EventStatus":"Started","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"","Description":"Virtual machine is going to be restarted as requested by authorized user."},
{"EventId":"ABCDEF00-0000-4000-8000-000000000005","EventStatus":"Scheduled","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"Tue, 29 Feb 2000 23:59:59 GMT","Description":"Virtual machine has encountered a failure."},
{"EventId":"ABCDEF00-0000-4000-8000-000000000006","EventStatus":"Started","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"","Description":"Virtual machine has encountered a failure."},
{"EventId":"ABCDEF00-0000-4000-8000-000000000007","EventStatus":"Scheduled","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":"Sat, 16 Mar 2024 19:52:09 GMT","Description":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000008","EventStatus":"Started","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":"","Description":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000009","EventStatus":"Scheduled","EventType":"Terminate","ResourceType":"VirtualMachine","Resources":["web_3"],"NotBefore":"Fri, 31 Dec 9999 23:59:59 GMT","Description":""},
{"EventId":"ABCDEF00-0000-4000-8000-000000000010","EventStatus":"Started","EventType":"Terminate","ResourceType":"VirtualMachine","Resources":["web_3"],"NotBefore":"","Description":""}
]}
"#;

const SHOWN_BY_2019_08_01: &str = r#"
{"DocumentIncarnation":18446744073709551615,"Events":[
{"EventId":"ABCDEF00-0000-4000-8000-000000000001","EventStatus":"Scheduled","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT","Description":"Virtual machine is being paused because of a memory-preserving Live Migration operation.","EventSource":"Platform"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000002","EventStatus":"Started","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"","Description":"Virtual machine is being paused because of a memory-preserving Live Migration operation.","EventSource":"Platform"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000003","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"Thu, 01 Jan 1970 00:00:00 GMT","Description":"Virtual machine is going to be restarted as requested by authorized user.","EventSource":"User"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000004","EventStatus":"Started","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"","Description":"Virtual machine is going to be restarted as requested by authorized user.","EventSource":"User"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000005","EventStatus":"Scheduled","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"Tue, 29 Feb 2000 23:59:59 GMT","Description":"Virtual machine has encountered a failure.","EventSource":"Platform"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000006","EventStatus":"Started","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"","Description":"Virtual machine has encountered a failure.","EventSource":"Platform"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000007","EventStatus":"Scheduled","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":"Sat, 16 Mar 2024 19:52:09 GMT","Description":"","EventSource":"Platform"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000008","EventStatus":"Started","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":"","Description":"","EventSource":"Platform"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000009","EventStatus":"Scheduled","EventType":"Terminate","ResourceType":"VirtualMachine","Resources":["web_3"],"NotBefore":"Fri, 31 Dec 9999 23:59:59 GMT","Description":"","EventSource":"User"},
{"EventId":"ABCDEF00-0000-4000-8000-000000000010","EventStatus":"Started","EventType":"Terminate","ResourceType":"VirtualMachine","Resources":["web_3"],"NotBefore":"","Description":"","EventSource":"User"}
]}
"#;

const SHOWN_BY_2020_07_01: &str = r#"
{"DocumentIncarnation":18446744073709551615,"Events":[
{"EventId":"ABCDEF00-0000-4000-8000-000000000001","EventStatus":"Scheduled","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT","Description":"Virtual machine is being paused because of a memory-preserving Live Migration operation.","EventSource":"Platform","DurationInSeconds":5},
{"EventId":"ABCDEF00-0000-4000-8000-000000000002","EventStatus":"Started","EventType":"Freeze","ResourceType":"VirtualMachine","Resources":["web_0","web_1"],"NotBefore":"","Description":"Virtual machine is being paused because of a memory-preserving Live Migration operation.","EventSource":"Platform","DurationInSeconds":5},
{"EventId":"ABCDEF00-0000-4000-8000-000000000003","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"Thu, 01 Jan 1970 00:00:00 GMT","Description":"Virtual machine is going to be restarted as requested by authorized user.","EventSource":"User","DurationInSeconds":-1},
{"EventId":"ABCDEF00-0000-4000-8000-000000000004","EventStatus":"Started","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["web_0"],"NotBefore":"","Description":"Virtual machine is going to be restarted as requested by authorized user.","EventSource":"User","DurationInSeconds":-1},
{"EventId":"ABCDEF00-0000-4000-8000-000000000005","EventStatus":"Scheduled","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"Tue, 29 Feb 2000 23:59:59 GMT","Description":"Virtual machine has encountered a failure.","EventSource":"Platform","DurationInSeconds":-1},
{"EventId":"ABCDEF00-0000-4000-8000-000000000006","EventStatus":"Started","EventType":"Redeploy","ResourceType":"VirtualMachine","Resources":["web_1"],"NotBefore":"","Description":"Virtual machine has encountered a failure.","EventSource":"Platform","DurationInSeconds":-1},
{"EventId":"ABCDEF00-0000-4000-8000-000000000007","EventStatus":"Scheduled","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":"Sat, 16 Mar 2024 19:52:09 GMT","Description":"","EventSource":"Platform","DurationInSeconds":-1},
{"EventId":"ABCDEF00-0000-4000-8000-000000000008","EventStatus":"Started","EventType":"Preempt","ResourceType":"VirtualMachine","Resources":["web_2"],"NotBefore":"","Description":"","EventSource":"Platform","DurationInSeconds":-1},
{"EventId":"ABCDEF00-0000-4000-8000-000000000009","EventStatus":"Scheduled","EventType":"Terminate","ResourceType":"VirtualMachine","Resources":["web_3"],"NotBefore":"Fri, 31 Dec 9999 23:59:59 GMT","Description":"","EventSource":"User","DurationInSeconds":0},
{"EventId":"ABCDEF00-0000-4000-8000-000000000010","EventStatus":"Started","EventType":"Terminate","ResourceType":"VirtualMachine","Resources":["web_3"],"NotBefore":"","Description":"","EventSource":"User","DurationInSeconds":0}
]}
"#;

fn names(names: &[&str]) -> Box<[Name]> {
    names.iter().map(|name| Name::new(name).unwrap()).collect()
}

fn id(number: usize) -> EventId {
    EventId::parse(&format!("abcdef00-0000-4000-8000-{number:012}")).unwrap()
}

fn announcements() -> [(Announcement, &'static str); 5] {
    let plain = |kind, machine| announcement("abcdef00-0000-4000-8000-000000000000", kind, machine);
    let migration = Announcement {
        reason: Reason::LiveMigration,
        duration_seconds: 5,
        resources: names(&["web_0", "web_1"]),
        ..plain(EventKind::Freeze, "web_0")
    };
    let restart = Announcement {
        source: EventSource::User,
        reason: Reason::UserRestart,
        ..plain(EventKind::Reboot, "web_0")
    };
    let failure = Announcement { reason: Reason::HostFailure, ..plain(EventKind::Redeploy, "web_1") };
    let deletion = Announcement {
        source: EventSource::User,
        duration_seconds: 0,
        ..plain(EventKind::Terminate, "web_3")
    };
    [
        (migration, "Wed, 24 Jan 2018 21:20:44 GMT"),
        (restart, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (failure, "Tue, 29 Feb 2000 23:59:59 GMT"),
        (plain(EventKind::Preempt, "web_2"), "Sat, 16 Mar 2024 19:52:09 GMT"),
        (deletion, "Fri, 31 Dec 9999 23:59:59 GMT"),
    ]
}

fn one_of_each() -> Vec<Event> {
    let both = |(index, (announcement, not_before)): (usize, (Announcement, &str))| {
        let first = Announcement { id: id(2 * index + 1), ..announcement.clone() };
        let second = Announcement { id: id(2 * index + 2), ..announcement };
        [scheduled(first, not_before), started(second)]
    };
    announcements().into_iter().enumerate().flat_map(both).collect()
}

/// promise: M1
#[test]
fn every_edition_shows_exactly_what_it_knows() {
    let document = Document { incarnation: u64::MAX, events: one_of_each(), naming: Naming::Machines };
    let shown = [
        SHOWN_BY_2017_03_01,
        SHOWN_BY_2017_08_01,
        SHOWN_BY_2017_11_01,
        SHOWN_BY_2019_01_01,
        SHOWN_BY_2019_04_01,
        SHOWN_BY_2019_08_01,
        SHOWN_BY_2020_07_01,
    ];
    for (edition, lines) in Edition::ALL.into_iter().zip(shown) {
        assert_eq!(document.render(edition), lines.replace('\n', ""), "{edition:?}");
    }
}

/// promise: M1
#[test]
fn role_instances_are_never_underlined() {
    let role = announcement("abcdef00-0000-4000-8000-000000000001", EventKind::Reboot, "FrontEnd_IN_0");
    let document = Document { incarnation: 2, events: vec![started(role)], naming: Naming::RoleInstances };
    let shown = r#"{"DocumentIncarnation":2,"Events":[{"EventId":"ABCDEF00-0000-4000-8000-000000000001","EventStatus":"Started","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["FrontEnd_IN_0"],"NotBefore":""}]}"#;
    for edition in [Edition::V2017_03_01, Edition::V2017_08_01] {
        assert_eq!(document.render(edition), shown);
    }
}

/// promise: M1
#[test]
fn when_all_events_are_unknown_the_list_is_empty() {
    let deletion = announcement("abcdef00-0000-4000-8000-000000000001", EventKind::Terminate, "web_0");
    let document = Document { incarnation: 7, events: vec![started(deletion)], naming: Naming::Machines };
    assert_eq!(document.render(Edition::V2017_11_01), r#"{"DocumentIncarnation":7,"Events":[]}"#);
}
