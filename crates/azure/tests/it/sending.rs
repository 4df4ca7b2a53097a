//! What clients of Azure Resource Manager send, from the bytes to the fleet, as a server would have it: merged into what is
//! shown, planned, carried out by the rules, kept.

use forewarn_azure::*;
use forewarn_control::resource_id::*;
use forewarn_control::*;
use forewarn_lifecycle::*;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use forewarn_testkit::TestCluster;

const SEED: Seed = Seed([7; 16]);
const NEW: ApiVersion = ApiVersion::new(2025, 4, 1);
const KINDS: [&str; 5] =
    [VIRTUAL_MACHINES, SCALE_SETS, INSTANCES, AVAILABILITY_SETS, "Microsoft.Network/virtualNetworks"];

/// A server that keeps one resource.
struct Office {
    town: TestCluster,
    id: ResourceId,
    kept: Option<Value>,
}

impl Office {
    fn new(kind: &str, name: &str) -> Self {
        let mut town = TestCluster::empty();
        for host in 1..=6 {
            town.run_text(&format!(r#"{{"command":"admit_host","name":"h{host}"}}"#));
        }
        let group = GroupId { subscription: "s".to_owned(), name: "g".to_owned() };
        Self { town, id: group.resource("Microsoft.Compute", kind, name), kept: None }
    }

    fn machine(&self) -> MachineId {
        find_machine(&self.town.rules, self.id.name()).unwrap()
    }

    fn set(&self) -> ScaleSetId {
        self.town.rules.scale_set_named(self.id.name()).unwrap()
    }

    /// What a client is shown.
    fn shown(&self) -> Option<Value> {
        let body = self.kept.as_ref()?;
        let (cluster, now) = (&self.town.rules, self.town.now.wall);
        let (site, details, seed) = (&self.town.site, &self.town.details, &SEED);
        let context = ShowContext { cluster, site, details, seed, now, version: NEW };
        let kept =
            StoredResource { id: &self.id, body, etag: 1, created: None, state: Provisioning::Succeeded };
        Some(if self.id.is(SCALE_SETS) {
            show_scale_set(&context, &kept, self.set())
        } else {
            show_machine(&context, &kept, self.machine(), Expand::Nothing)
        })
    }

    /// What a PUT or PATCH comes to.
    fn plan(&self, sent: &Value) -> Result<(Value, Vec<NamedCommand>), ArmError> {
        let kind = self.id.kind();
        let mut base = self.shown();
        base.iter_mut().for_each(|base| canonical(&kind, base));
        let body = settle(&kind, base.as_ref(), sent, NEW)?;
        let (cluster, name) = (&self.town.rules, self.id.name());
        let commands = if self.id.is(SCALE_SETS) {
            let before = base.as_ref().map(|base| (self.set(), base));
            plan_scale_set(cluster, name, before, &body, &|_| Protection::default())?
        } else {
            let before = base.as_ref().map(|base| (self.machine(), base));
            plan_machine(cluster, name, before, &body, Domains::default())?.commands
        };
        Ok((body, commands))
    }

    /// Has it done and kept; the rules have to accept it.
    fn put(&mut self, sent: &Value) -> Result<Vec<NamedCommand>, ArmError> {
        let (body, commands) = self.plan(sent)?;
        commands.iter().for_each(|command| drop(self.town.perform(command)));
        self.town.finish();
        self.kept = Some(body);
        Ok(commands)
    }
}

/// Members that mean something, of which bodies are made.
fn member(
    name: &'static str,
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Option<(String, Value)>> {
    prop::option::of(value.prop_map(move |value| (name.to_owned(), value)))
}

fn object(members: Vec<BoxedStrategy<Option<(String, Value)>>>) -> BoxedStrategy<Value> {
    members.prop_map(|members| members.into_iter().flatten().collect::<Map<_, _>>().into()).boxed()
}

fn one_of(values: &[Value]) -> impl Strategy<Value = Value> + use<> {
    prop::sample::select(values.to_vec())
}

fn profile() -> BoxedStrategy<Value> {
    let flag = || one_of(&[json!(true), json!("false"), json!(null)]);
    let length = one_of(&["PT5M", "PT600S", "PT15M", "PT16M"].map(Value::from));
    let terminate =
        object(vec![member("enable", flag()).boxed(), member("notBeforeTimeout", length).boxed()]);
    let os_image = object(vec![member("enable", flag()).boxed()]);
    object(vec![
        member("terminateNotificationProfile", terminate).boxed(),
        member("osImageNotificationProfile", os_image).boxed(),
    ])
}

fn policy() -> BoxedStrategy<Value> {
    let approve =
        || object(vec![member("automaticallyApprove", any::<bool>().prop_map(Value::from)).boxed()]);
    object(vec![
        member("userInitiatedReboot", approve()).boxed(),
        member("allInstancesDown", approve()).boxed(),
    ])
}

fn tags() -> BoxedStrategy<Option<(String, Value)>> {
    member("tags", object(vec![member("a", one_of(&[json!("b"), json!(1)])).boxed()])).boxed()
}

fn priority() -> BoxedStrategy<Option<(String, Value)>> {
    member("priority", one_of(&[json!("Regular"), json!("regular"), json!("Low"), json!("Spot")])).boxed()
}

fn scale_set_body() -> BoxedStrategy<Value> {
    let image = object(vec![member("id", one_of(&[json!("/a"), json!("/A"), json!("/b")])).boxed()]);
    let storage = object(vec![member("imageReference", image).boxed()]);
    let model = object(vec![
        priority(),
        member("scheduledEventsProfile", profile()).boxed(),
        member("storageProfile", storage).boxed(),
        member("licenseType", one_of(&[json!("x"), json!("y")])).boxed(),
    ]);
    let mode =
        object(vec![member("mode", one_of(&["manual", "Automatic", "Rolling"].map(Value::from))).boxed()]);
    let rules = one_of(&[json!({ "rules": ["OldestVM"] }), json!({ "rules": [] })]);
    let properties = object(vec![
        member("upgradePolicy", mode).boxed(),
        member("scaleInPolicy", rules).boxed(),
        member("platformFaultDomainCount", (1..=3_u64).prop_map(Value::from)).boxed(),
        member("scheduledEventsPolicy", policy()).boxed(),
        member("virtualMachineProfile", model).boxed(),
    ]);
    let sku = object(vec![
        member("capacity", (0..6_u64).prop_map(Value::from)).boxed(),
        member("name", one_of(&[json!("s"), json!("t")])).boxed(),
    ]);
    let location = Just(Some(("location".to_owned(), json!("l")))).boxed();
    object(vec![location, tags(), member("sku", sku).boxed(), member("properties", properties).boxed()])
}

fn machine_body() -> BoxedStrategy<Value> {
    let properties = object(vec![
        priority(),
        member("scheduledEventsProfile", profile()).boxed(),
        member("scheduledEventsPolicy", policy()).boxed(),
    ]);
    let location = Just(Some(("location".to_owned(), json!("l")))).boxed();
    object(vec![location, tags(), member("properties", properties).boxed()])
}

/// Whatever is sent, one thing after the other: what is planned is accepted by the rules, and is then so.
fn whatever_is_sent_is_then_so(mut office: Office, bodies: &[Value]) -> Result<(), TestCaseError> {
    for sent in bodies {
        let before = office.shown();
        match office.put(sent) {
            Ok(_) => {
                let again = office.plan(sent).map(|(_, commands)| commands);
                prop_assert_eq!(again, Ok(vec![]), "sent again: {}", sent);
            }
            Err(error) => {
                prop_assert!((400..500).contains(&error.status), "{}", error);
                prop_assert_eq!(office.shown(), before, "refused, and another one");
            }
        }
        if let Some(shown) = office.shown() {
            let back = office.plan(&shown).map(|(_, commands)| commands);
            prop_assert_eq!(back, Ok(vec![]), "what is shown, sent back: {}", shown);
        }
    }
    Ok(())
}

/// Any JSON, with a liking for names that mean something.
fn any_json() -> impl Strategy<Value = Value> {
    let known = [
        "properties",
        "Properties",
        "location",
        "tags",
        "zones",
        "sku",
        "capacity",
        "virtualMachineProfile",
        "priority",
        "scheduledEventsProfile",
        "terminateNotificationProfile",
        "enable",
        "notBeforeTimeout",
        "upgradePolicy",
        "mode",
        "scheduledEventsPolicy",
        "userInitiatedReboot",
        "automaticallyApprove",
        "availabilitySet",
        "id",
        "instanceIds",
        "platformFaultDomainCount",
        "scaleInPolicy",
        "rules",
        "protectionPolicy",
        "storageProfile",
        "imageReference",
    ];
    let names =
        prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "[a-zA-Z]{0,3}"];
    let texts =
        ["true", "Manual", "rolling", "Spot", "3", "0", "*", "PT5M", "PT1H", "", "é", "/subscriptions/s"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-1..2_000_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(texts.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 8, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::vec((names.clone(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_version() -> impl Strategy<Value = ApiVersion> {
    prop::sample::select(vec![
        ApiVersion::FIRST,
        ApiVersion::SCHEDULED_EVENTS_PROFILE,
        ApiVersion::new(2024, 3, 1),
        NEW,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(100)
    ))]

    /// promise: Z1
    #[test]
    fn whatever_is_sent_of_a_scale_set_is_then_so(bodies in prop::collection::vec(scale_set_body(), 1..5)) {
        whatever_is_sent_is_then_so(Office::new("virtualMachineScaleSets", "web"), &bodies)?;
    }

    /// promise: Z1
    #[test]
    fn whatever_is_sent_of_a_machine_is_then_so(bodies in prop::collection::vec(machine_body(), 1..5)) {
        whatever_is_sent_is_then_so(Office::new("virtualMachines", "solo"), &bodies)?;
    }

    /// promise: Z1
    #[test]
    fn what_is_settled_is_canonical_and_stays(
        kept in any_json(),
        sent in any_json(),
        kind in prop::sample::select(&KINDS[..]),
        version in any_version(),
    ) {
        let kept = settle(kind, None, &json!({ "location": "l", "properties": kept }), NEW);
        let settled = settle(kind, kept.as_ref().ok(), &sent, version);
        if let Ok(settled) = settled {
            let mut same = settled.clone();
            canonical(kind, &mut same);
            prop_assert_eq!(&same, &settled);
            prop_assert_eq!(settle(kind, Some(&settled), &json!({}), version), Ok(settled));
        }
    }

    /// promise: Z1
    #[test]
    fn no_body_makes_a_plan_stumble(sent in any_json(), properties in any_json(), model in any_json()) {
        let mut office = Office::new("virtualMachineScaleSets", "web");
        let mut bodies = vec![sent, json!({ "location": "l", "properties": properties })];
        bodies.push(json!({ "location": "l", "properties": { "virtualMachineProfile": model } }));
        for body in bodies {
            let refused = |error: &ArmError| (400..500).contains(&error.status);
            for kind in [VIRTUAL_MACHINES, AVAILABILITY_SETS] {
                if let Ok(body) = settle(kind, None, &body, NEW) {
                    let cluster = &office.town.rules;
                    let machine = plan_machine(cluster, "solo", None, &body, Domains::default());
                    prop_assert!(machine.as_ref().err().is_none_or(refused));
                    let set = plan_availability_set(cluster, "db", None, &body);
                    prop_assert!(set.as_ref().err().is_none_or(refused));
                }
            }
            let put = office.put(&body);
            prop_assert!(put.as_ref().err().is_none_or(refused));
            if office.kept.is_some() {
                let chosen = read_instances(&office.town.rules, office.set(), &body);
                prop_assert!(chosen.as_ref().err().is_none_or(refused));
                let _ = read_protection(&body);
            }
        }
    }
}

#[test]
fn any_bytes_are_a_body_or_refused() {
    for bytes in [&b"{"[..], b"\xff", b"[1,", b"{\"a\":1}{", b"nul", b"\"\\ud800\"", b"1e999"] {
        assert_eq!(read_body(bytes).unwrap_err().status, 400, "{bytes:?}");
    }
}
