//! The trail: what is told is sealed, and whatever is changed afterwards is noticed.

use forewarn_control::push::{Notice, NoticeStatus};
use forewarn_control::*;
use forewarn_lifecycle::Timestamp;
use forewarn_types::Moment;
use proptest::prelude::*;
use serde_json::{Value, json};

fn told(number: usize) -> NewAuditEntry {
    NewAuditEntry {
        at: Moment(Timestamp::from_millis(1_767_225_600_000)),
        cluster: "default".to_owned(),
        by: "token alice".to_owned(),
        kind: "command".to_owned(),
        text: format!("restart web_{number}"),
        tenants: vec!["web".to_owned()],
        machines: vec![format!("web/web_{number}")],
        command: CommandJson::from_value(
            &json!({ "command": "restart", "machine": format!("web_{number}") }),
        ),
        ..NewAuditEntry::default()
    }
}

/// One about that many machines.
fn notice(machines: usize) -> Notice {
    Notice {
        event: "28512AF7-C957-4500-9BC4-842D6FB531E4".to_owned(),
        status: NoticeStatus::Scheduled,
        kind: "Freeze".to_owned(),
        source: "Platform".to_owned(),
        description: String::new(),
        duration: i32::MIN,
        not_before: Some(Moment(Timestamp::from_millis(i64::MIN))),
        tenant: "web".to_owned(),
        resource: "availabilitySets/web".to_owned(),
        resources: (0..machines).map(|number| format!("{number:0>80}")).collect(),
        failures: Vec::new(),
    }
}

/// The reason is part of what the hash is of, and entries from before there were reasons verify as they did.
/// promise: C5, C6
#[test]
fn the_reason_of_a_failure_is_sealed_and_bounded() {
    let mut chain = Chain::default();
    let plain = chain.seal(told(0));
    assert!(!plain.to_line().contains("reason"));
    let failed = chain.seal(NewAuditEntry { reason: Some("no such domain".to_owned()), ..told(1) });
    assert!(failed.to_line().contains(r#","reason":"no such domain","hash":""#), "{}", failed.to_line());
    let read: AuditEntry = serde_json::from_str(&failed.to_line()).unwrap();
    assert!(verify(&[plain.clone(), read.clone()]).is_ok());
    let changed = AuditEntry { reason: Some("none".to_owned()), ..read };
    assert_eq!(verify(&[plain, changed]), Err(BrokenLink::Hash(2)));
    let long = chain.seal(NewAuditEntry { reason: Some("ä".repeat(5_000)), ..told(2) });
    assert!(long.reason.is_some_and(|reason| reason.len() <= 1_024 && reason.ends_with('…')));
}

fn sealed(count: usize) -> Vec<AuditEntry> {
    let mut chain = Chain::default();
    (0..count).map(|number| chain.seal(told(number))).collect()
}

fn verify(entries: &[AuditEntry]) -> Result<Chain, BrokenLink> {
    let mut chain = Chain::default();
    entries.iter().try_for_each(|entry| chain.verify(entry))?;
    Ok(chain)
}

/// The form is published: others must be able to verify a trail. This is `printf` and `sha256sum`, written down.
/// promise: C5
#[test]
fn an_entry_is_one_line_and_its_hash_is_of_the_rest_of_it() {
    let entry = &sealed(1)[0];
    let line = entry.to_line();
    let content = concat!(
        r#"{"number":1,"at":"2026-01-01T00:00:00Z","cluster":"default","by":"token alice","kind":"command","#,
        r#""text":"restart web_0","tenants":["web"],"machines":["web/web_0"],"#,
        r#""command":{"command":"restart","machine":"web_0"}"#,
    );
    let hash = "6ad2c7456ff2c096ef0465f54f110663b6d57e08e8dbd98761f17775a9444bde";
    assert_eq!(line, format!(r#"{content},"hash":"{hash}"}}"#));
}

/// promise: C5
#[test]
fn a_trail_is_verified_from_its_beginning_and_from_the_middle() {
    let entries = sealed(5);
    let end = verify(&entries).unwrap();
    assert_eq!((end.number, end.hash_in_hex()), (5, entries[4].hash.clone()));
    let mut chain = Chain::at(&entries[2]).unwrap();
    entries[3..].iter().for_each(|entry| chain.verify(entry).unwrap());
    assert_eq!(chain, end);
}

/// promise: C5
#[test]
fn what_is_missing_or_comes_again_is_named() {
    let entries = sealed(5);
    let without = |gone: usize| {
        let mut left = entries.clone();
        left.remove(gone);
        verify(&left).unwrap_err()
    };
    assert_eq!(without(0), BrokenLink::Missing { expected: 1, found: 2 });
    assert_eq!(without(2), BrokenLink::Missing { expected: 3, found: 4 });
    // The end can be cut off without a trace in what is left: who keeps a trail remembers its end.
    assert_eq!(verify(&entries[..4]).unwrap().number, 4);
    let twice = [&entries[..3], &entries[1..]].concat();
    assert_eq!(verify(&twice), Err(BrokenLink::Again { expected: 4, found: 2 }));
    let mut swapped = entries.clone();
    swapped[1].number = 3;
    swapped[2].number = 2;
    swapped.swap(1, 2);
    assert_eq!(verify(&swapped), Err(BrokenLink::Hash(2)));
    assert!(without(2).to_string().starts_with("audit entry 3 is missing"));
}

/// promise: C5
#[test]
fn whatever_is_changed_is_noticed() {
    let entries = sealed(3);
    let changes: [fn(&mut AuditEntry); 17] = [
        |entry| entry.at.0 = Timestamp::from_millis(entry.at.0.millis() + 1),
        |entry| entry.cluster.push('x'),
        |entry| entry.by.push('x'),
        |entry| entry.kind.push('x'),
        |entry| entry.text.push('x'),
        |entry| entry.tenants.clear(),
        |entry| entry.machines.push("web/web_9".to_owned()),
        |entry| entry.hosts.push("h1".to_owned()),
        |entry| entry.events.push("x".to_owned()),
        |entry| entry.work = Some(0),
        |entry| entry.rollout = Some(0),
        |entry| entry.because = Some(0),
        |entry| entry.command = None,
        |entry| entry.notices.push(notice(1)),
        |entry| entry.stream = Some(Stream::Shared),
        |entry| entry.hash.replace_range(..1, if entry.hash.starts_with('0') { "1" } else { "0" }),
        |entry| entry.hash = entry.hash.to_uppercase(),
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut changed = entries.clone();
        change(&mut changed[1]);
        assert_eq!(verify(&changed), Err(BrokenLink::Hash(2)), "change {number}");
    }
    // Whoever makes a new hash for what he has changed has to make all that follow.
    let mut chain = Chain::at(&entries[0]).unwrap();
    let forged = chain.seal(told(9));
    assert_eq!(verify(&[entries[0].clone(), forged, entries[2].clone()]), Err(BrokenLink::Hash(3)));
}

/// promise: C5
#[test]
fn what_nobody_knows_is_not_an_entry() {
    let line = sealed(1)[0].to_line();
    for wrong in [
        line.replace("{\"number\"", "{\"also\":1,\"number\""),
        line.replace("{\"number\"", "{\"by\":\"token bob\",\"number\""),
        line.replace("\"by\":\"token alice\",", ""),
        line[..line.len() - 1].to_owned(),
    ] {
        assert!(serde_json::from_str::<AuditEntry>(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_entry_is_found_under_all_that_it_concerns_and_nothing_else() {
    let told = NewAuditEntry {
        hosts: vec!["h1".to_owned(), "h1".to_owned()],
        events: vec!["E1".to_owned()],
        work: Some(3),
        rollout: Some(4),
        because: Some(5),
        ..told(0)
    };
    let entry = Chain::default().seal(told);
    let mut keys: Vec<_> = entry.subjects().iter().map(ToString::to_string).collect();
    keys.sort();
    let expected = [
        "because:5",
        "by:token alice",
        "cluster:default",
        "default/event:E1",
        "default/host:h1",
        "default/machine:web/web_0",
        "default/rollout:4",
        "default/tenant:web",
        "default/work:3",
        "kind:command",
    ];
    assert_eq!(keys, expected);
    assert!(entry.subjects().iter().all(|subject| entry.concerns(subject)));
    let elsewhere = AuditEntry { cluster: "other".to_owned(), ..entry.clone() };
    let shared = entry.subjects().into_iter().filter(|subject| elsewhere.concerns(subject)).count();
    assert_eq!(shared, 3, "who, which kind and because of what");
}

/// promise: S3
#[test]
fn a_cluster_is_found_under_every_name_and_is_no_other_of_its_name() {
    let of = |cluster: &str, cluster_number| {
        let cluster = cluster.to_owned();
        Chain::default().seal(NewAuditEntry {
            cluster,
            cluster_number,
            work: Some(3),
            ..NewAuditEntry::default()
        })
    };
    let work = |number, name: &str| Subject::Work { cluster: cluster_key(number, name), number: 3 };
    let (west, renamed, another) = (of("west", 1), of("east", 1), of("west", 2));
    for subject in [work(1, "west"), work(1, "east")] {
        assert!(west.concerns(&subject) && renamed.concerns(&subject) && !another.concerns(&subject));
    }
    assert!(of("default", 0).concerns(&work(0, "default")) && !west.concerns(&work(0, "west")));
    assert!(another.subjects().iter().all(|subject| another.concerns(subject)));
    assert!(!of("default", 0).to_line().contains("cluster_number"), "the first has none");
}

/// promise: C5
#[test]
fn whatever_is_told_the_entry_is_small_enough_and_says_what_was_cut() {
    let names = || (0..20_000).map(|number| format!("{number:0>80}/{number:0>80}")).collect::<Vec<_>>();
    let command = json!({ "vms": vec!["x".repeat(1_000); 1_000] });
    let bytes = command.to_string().len();
    let told = NewAuditEntry {
        text: "ä".repeat(10_000),
        by: "\u{1}".repeat(1_000),
        tenants: vec!["\u{1}".repeat(1_000); 20_000],
        machines: names(),
        hosts: (0..10_000).map(|number| format!("{number:0>80}")).collect(),
        events: names(),
        command: CommandJson::from_value(&command),
        notices: vec![notice(500); 1_000],
        ..told(0)
    };
    let entry = Chain::default().seal(told);
    let line = entry.to_line();
    assert!(line.len() <= ENTRY_BYTES_MAX, "{}", line.len());
    assert!(line.len() > 3 << 20, "there is room, and it is used: {}", line.len());
    assert!((15..30).contains(&entry.notices.len()), "{}", entry.notices.len());
    assert!(entry.text.contains("of 1000 events)"), "{}", &entry.text[4_000..]);
    assert_eq!(entry.hosts.len(), 10_000);
    assert!(entry.text.contains("of 20000 machines are listed"), "{}", &entry.text[4_000..]);
    assert_eq!(entry.command.as_ref().unwrap().to_value()["left_out"]["bytes"], bytes);
    let read: AuditEntry = serde_json::from_str(&line).unwrap();
    assert_eq!(Chain::default().verify(&read), Ok(()));

    let all = Chain::default().seal(NewAuditEntry { notices: vec![notice(1); 1_000], ..self::told(0) });
    assert_eq!(all.notices.len(), 1_000, "as many machines as work may be on, each of another tenant");

    let deep = (0..120).fold(Value::Null, |inside, _| json!([inside]));
    let entry =
        Chain::default().seal(NewAuditEntry { command: CommandJson::from_value(&deep), ..self::told(0) });
    assert_eq!(serde_json::from_str::<AuditEntry>(&entry.to_line()).unwrap(), entry);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // Whatever the bits are; what is no number becomes null.
        any::<u64>().prop_map(|bits| Value::from(f64::from_bits(bits))),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn tales() -> impl Strategy<Value = NewAuditEntry> {
    let names = || prop::collection::vec(any::<String>(), 0..3);
    let texts = (any::<String>(), any::<String>(), any::<String>(), any::<String>());
    let lists = (names(), names(), names(), names());
    let numbers = (any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<u64>>());
    let reason = prop::option::of(any::<String>());
    let stream = prop::option::of(any::<Option<u32>>()).prop_map(|stream| {
        stream.map(|cluster| cluster.map_or(Stream::Shared, |number| Stream::Cluster(ClusterId(number))))
    });
    (any::<(i64, u32)>(), texts, lists, numbers, (prop::option::of(values()), reason, stream)).prop_map(
        |((millis, cluster_number), (cluster, by, kind, text), lists, numbers, (command, reason, stream))| {
            let (work, rollout, because) = numbers;
            let command = command.as_ref().and_then(CommandJson::from_value);
            let at = Moment(Timestamp::from_millis(millis));
            let (tenants, machines, hosts, events) = lists;
            NewAuditEntry {
                at,
                cluster,
                cluster_number,
                by,
                kind,
                text,
                tenants,
                machines,
                hosts,
                events,
                work,
                rollout,
                because,
                command,
                notices: Vec::new(),
                host_notice: None,
                reason,
                stream,
            }
        },
    )
}

proptest! {
    /// promise: C5
    #[test]
    fn an_exported_line_is_read_to_the_byte_and_verifies(tales in prop::collection::vec(tales(), 1..5)) {
        let (mut chain, mut reading) = (Chain::default(), Chain::default());
        for told in tales {
            let line = chain.seal(told).to_line();
            prop_assert!(!line.contains('\n'));
            let read: AuditEntry = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(reading.verify(&read), Ok(()));
            prop_assert_eq!(read.to_line(), line);
            prop_assert!(read.subjects().iter().all(|subject| read.concerns(subject)));
        }
        prop_assert_eq!(reading, chain);
    }
}
