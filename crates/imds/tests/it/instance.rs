//! Instance metadata: every version, every path, every format.

use std::net::Ipv4Addr;

use forewarn_imds::{
    Format, Instance, InstanceVersion, Interface, OsType, RequestError, ScaleSetMembership, VersionList,
    computer_name, versions_body,
};
use forewarn_types::{FaultDomain, Name, UpdateDomain, Zone};

const VERSIONS: &str = r#"{"apiVersions":["2017-03-01","2017-04-02","2017-08-01","2017-10-01","2017-12-01","2018-02-01","2018-04-02","2018-10-01","2019-02-01","2019-03-11","2019-04-30","2019-06-01","2019-06-04","2019-08-01","2019-08-15","2019-11-01","2020-06-01","2020-07-15","2020-09-01","2020-10-01","2020-12-01","2021-01-01","2021-02-01","2021-03-01","2021-05-01","2021-08-01","2021-10-01","2021-11-01","2021-11-15","2021-12-13","2023-07-01","2023-11-15","2024-03-15","2024-07-17","2025-04-07"]}"#;

const NEWEST: &str = "2025-04-07";

fn version(text: &str) -> InstanceVersion {
    InstanceVersion::parse(text).unwrap()
}

fn instance_of_a_scale_set() -> Instance {
    Instance {
        name: Name::new("web_46").unwrap(),
        vm_id: "02aab8a4-74ef-476e-8182-f6d2ba4166a6".to_owned(),
        location: "westus".to_owned(),
        os_type: OsType::Linux,
        computer_name: computer_name("web", 46),
        vm_size: "Standard_A3".to_owned(),
        update_domain: UpdateDomain(4),
        fault_domain: FaultDomain(2),
        zone: Some(Zone(3)),
        priority: "Spot",
        eviction_policy: "Delete",
        subscription_id: "8d10da13-8125-4ba9-a717-bf7490507b3d".to_owned(),
        resource_group_name: "shop".to_owned(),
        resource_id: "/subscriptions/8d10/web/46".to_owned(),
        tags: vec![("team".to_owned(), "a \"b\"".to_owned()), ("tier".to_owned(), "front".to_owned())],
        scale_set: Some(ScaleSetMembership {
            name: "web".to_owned(),
            id: "/subscriptions/8d10/web".to_owned(),
            placement_group_id: "f67c14ab-e92c-408c-ae2d-da15866ec79a".to_owned(),
        }),
        interfaces: vec![
            Interface {
                mac: [0x00, 0x0d, 0x3a, 0xff, 0xbb, 0x02],
                private: Ipv4Addr::new(10, 144, 133, 132),
                public: Some(Ipv4Addr::new(203, 0, 113, 9)),
                subnet: Ipv4Addr::new(10, 144, 133, 128),
                subnet_prefix_bits: 26,
            },
            Interface {
                mac: [1, 2, 3, 4, 5, 6],
                private: Ipv4Addr::new(10, 0, 0, 4),
                public: None,
                subnet: Ipv4Addr::new(10, 0, 0, 0),
                subnet_prefix_bits: 8,
            },
        ],
    }
}

fn standalone_machine() -> Instance {
    Instance {
        name: Name::new("solo").unwrap(),
        os_type: OsType::Windows,
        zone: None,
        priority: "Regular",
        eviction_policy: "",
        tags: vec![],
        scale_set: None,
        interfaces: vec![],
        ..instance_of_a_scale_set()
    }
}

fn json(version_text: &str, path: &str) -> Result<String, RequestError> {
    instance_of_a_scale_set().answer(version(version_text), path, Format::Json)
}

fn text(path: &str) -> Result<String, RequestError> {
    instance_of_a_scale_set().answer(version(NEWEST), path, Format::Text)
}

#[test]
fn the_newest_version_shows_everything() {
    let everything = concat!(
        r#"{"compute":{"evictionPolicy":"Delete","location":"westus","name":"web_46","#,
        r#""osProfile":{"computerName":"web00001A"},"osType":"Linux","#,
        r#""placementGroupId":"f67c14ab-e92c-408c-ae2d-da15866ec79a","platformFaultDomain":"2","#,
        r#""platformUpdateDomain":"4","priority":"Spot","resourceGroupName":"shop","#,
        r#""resourceId":"/subscriptions/8d10/web/46","subscriptionId":"8d10da13-8125-4ba9-a717-bf7490507b3d","#,
        r#""tags":"team:a \"b\";tier:front","#,
        r#""tagsList":[{"name":"team","value":"a \"b\""},{"name":"tier","value":"front"}],"#,
        r#""virtualMachineScaleSet":{"id":"/subscriptions/8d10/web"},"#,
        r#""vmId":"02aab8a4-74ef-476e-8182-f6d2ba4166a6","vmScaleSetName":"web","vmSize":"Standard_A3","zone":"3"},"#,
        r#""network":{"interface":["#,
        r#"{"ipv4":{"ipAddress":[{"privateIpAddress":"10.144.133.132","publicIpAddress":"203.0.113.9"}],"#,
        r#""subnet":[{"address":"10.144.133.128","prefix":"26"}]},"ipv6":{"ipAddress":[]},"macAddress":"000D3AFFBB02"},"#,
        r#"{"ipv4":{"ipAddress":[{"privateIpAddress":"10.0.0.4","publicIpAddress":""}],"#,
        r#""subnet":[{"address":"10.0.0.0","prefix":"8"}]},"ipv6":{"ipAddress":[]},"macAddress":"010203040506"}]}}"#,
    );
    assert_eq!(json(NEWEST, ""), Ok(everything.to_owned()));
}

#[test]
fn what_a_machine_does_not_have_is_empty() {
    let body = standalone_machine().answer(version(NEWEST), "", Format::Json);
    let expected = concat!(
        r#"{"compute":{"evictionPolicy":"","location":"westus","name":"solo","#,
        r#""osProfile":{"computerName":"web00001A"},"osType":"Windows","placementGroupId":"","#,
        r#""platformFaultDomain":"2","platformUpdateDomain":"4","priority":"Regular","#,
        r#""resourceGroupName":"shop","resourceId":"/subscriptions/8d10/web/46","#,
        r#""subscriptionId":"8d10da13-8125-4ba9-a717-bf7490507b3d","tags":"","tagsList":[],"#,
        r#""virtualMachineScaleSet":{"id":""},"vmId":"02aab8a4-74ef-476e-8182-f6d2ba4166a6","#,
        r#""vmScaleSetName":"","vmSize":"Standard_A3","zone":""},"network":{"interface":[]}}"#,
    );
    assert_eq!(body, Ok(expected.to_owned()));
    let deallocated = Instance { priority: "Spot", eviction_policy: "Deallocate", ..standalone_machine() };
    let policy = deallocated.answer(version(NEWEST), "compute/evictionPolicy", Format::Text);
    assert_eq!(policy.as_deref(), Ok("Deallocate"));
}

/// promise: M1
#[test]
fn a_field_is_there_from_its_version_on() {
    for (field, before, since) in [
        ("location", "2017-03-01", "2017-04-02"),
        ("name", "2017-03-01", "2017-04-02"),
        ("osType", "2017-03-01", "2017-04-02"),
        ("platformFaultDomain", "2017-03-01", "2017-04-02"),
        ("platformUpdateDomain", "2017-03-01", "2017-04-02"),
        ("vmId", "2017-03-01", "2017-04-02"),
        ("vmSize", "2017-03-01", "2017-04-02"),
        ("placementGroupId", "2017-04-02", "2017-08-01"),
        ("resourceGroupName", "2017-04-02", "2017-08-01"),
        ("subscriptionId", "2017-04-02", "2017-08-01"),
        ("tags", "2017-04-02", "2017-08-01"),
        ("vmScaleSetName", "2017-10-01", "2017-12-01"),
        ("zone", "2017-10-01", "2017-12-01"),
        ("resourceId", "2019-02-01", "2019-03-11"),
        ("tagsList", "2019-06-01", "2019-06-04"),
        ("osProfile", "2020-06-01", "2020-07-15"),
        ("evictionPolicy", "2020-10-01", "2020-12-01"),
        ("priority", "2020-10-01", "2020-12-01"),
        ("virtualMachineScaleSet", "2021-02-01", "2021-03-01"),
    ] {
        let at =
            |text| instance_of_a_scale_set().answer(version(text), &format!("compute/{field}"), Format::Text);
        assert_eq!(at(before), Err(RequestError::NotFound), "{field}");
        assert!(at(since).is_ok_and(|value| !value.is_empty()), "{field}");
    }
    assert_eq!(json("2017-03-01", "compute").as_deref(), Ok("{}"));
    assert_eq!(json("2017-03-01", "network"), json(NEWEST, "network"));
}

#[test]
fn a_path_is_found_in_any_case_and_with_slashes_at_its_ends() {
    for path in ["compute/name", "/compute/name", "/compute/name/", "COMPUTE/Name"] {
        assert_eq!(text(path).as_deref(), Ok("web_46"), "{path}");
    }
    assert_eq!(json(NEWEST, "/"), json(NEWEST, ""));
    let address = "network/interface/1/ipv4/ipAddress/0/privateIpAddress";
    assert_eq!(text(address).as_deref(), Ok("10.0.0.4"));
    assert_eq!(text("compute/tagsList/1/value").as_deref(), Ok("front"));
    assert_eq!(text("compute/tags").as_deref(), Ok("team:a \"b\";tier:front"));
    assert_eq!(
        json(NEWEST, "network/interface/1/ipv4/subnet").as_deref(),
        Ok(r#"[{"address":"10.0.0.0","prefix":"8"}]"#)
    );
}

#[test]
fn a_path_that_leads_nowhere_is_not_found() {
    for path in [
        "nothing",
        "compute//name",
        "compute/name//",
        "compute/nam",
        "compute/name/0",
        "compute/0",
        "network/interface/2",
        "network/interface/-1",
        "network/interface/+1",
        "network/interface/01",
        "network/interface/x",
        "network/interface/99999999999999999999999",
    ] {
        for format in [Format::Json, Format::Text] {
            let answer = instance_of_a_scale_set().answer(version(NEWEST), path, format);
            assert_eq!(answer, Err(RequestError::NotFound), "{path}");
        }
    }
}

/// promise: M1
#[test]
fn a_single_value_is_shown_as_text_only() {
    assert_eq!(json(NEWEST, "compute/name"), Err(RequestError::LeafNeedsText));
    assert_eq!(json(NEWEST, "compute/osProfile").as_deref(), Ok(r#"{"computerName":"web00001A"}"#));
}

/// promise: M1
#[test]
fn an_inner_node_as_text_lists_what_is_below_it() {
    assert_eq!(text("").as_deref(), Ok("compute/\nnetwork/"));
    assert_eq!(text("network/interface").as_deref(), Ok("0/\n1/"));
    assert_eq!(text("network/interface/0").as_deref(), Ok("ipv4/\nipv6/\nmacAddress"));
    assert_eq!(text("network/interface/0/ipv6/ipAddress").as_deref(), Ok(""));
    let compute = instance_of_a_scale_set().answer(version("2017-04-02"), "compute", Format::Text);
    assert_eq!(
        compute.as_deref(),
        Ok("location\nname\nosType\nplatformFaultDomain\nplatformUpdateDomain\nvmId\nvmSize")
    );
}

#[test]
fn the_format_is_read_in_any_case() {
    assert_eq!(["json", "JSON", "Json"].map(Format::parse), [Some(Format::Json); 3]);
    assert_eq!(["text", "TEXT", "Text"].map(Format::parse), [Some(Format::Text); 3]);
    assert_eq!(["", "xml", "jsontext"].map(Format::parse), [None; 3]);
}

#[test]
fn versions_are_listed_and_ordered_by_their_age() {
    assert_eq!(versions_body(), VERSIONS);
    let listed: Vec<_> = VersionList::Instance.versions().into_iter().map(version).collect();
    assert_eq!(listed.len(), 35);
    assert!(listed.is_sorted_by(|older, newer| older < newer));
    for listed in listed {
        assert_eq!(version(listed.as_str()), listed);
        assert!(VERSIONS.contains(&format!("{:?}", listed.as_str())));
    }
    for wrong in ["", "latest", "2020-07-01", "2017-04-2", "2021-02-01 "] {
        assert_eq!(InstanceVersion::parse(wrong), None, "{wrong:?}");
    }
}

#[test]
fn a_computer_name_ends_in_six_digits_of_base_36() {
    for (instance, name) in [
        (0, "web000000"),
        (9, "web000009"),
        (10, "web00000A"),
        (35, "web00000Z"),
        (36, "web000010"),
        (37, "web000011"),
        (2_176_782_335, "webZZZZZZ"),
        (2_176_782_336, "web1000000"),
        (u32::MAX, "web1Z141Z3"),
    ] {
        assert_eq!(computer_name("web", instance), name);
    }
}
