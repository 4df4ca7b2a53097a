//! Long lists.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use forewarn_control::Fleet;
use forewarn_control::Permit;
use forewarn_server::ControlHandle;
use serde_json::{Value, json};

use super::{Client, SEED, SUBSCRIPTION, clock, compute, group, own};

/// More machines than one list may have, with enough hosts.
async fn many() -> Client {
    use std::fmt::Write;
    let mut fleet = String::new();
    for host in 0..12 {
        writeln!(fleet, "[[host]]\nname = 'h{host}'").unwrap();
    }
    for vm in 0..5_002 {
        writeln!(fleet, "[[vm]]\nname = 'vm{vm}'\nhost = 'h{}'", vm / 500).unwrap();
    }
    let control = ControlHandle::simulated(SEED, clock());
    forewarn_server::admit_fleet_if_empty(&control, &Fleet::parse(&fleet).unwrap()).await.unwrap();
    Client::of(control, Permit::unlimited("anyone"))
}

/// promise: Z1
#[tokio::test]
async fn of_many_resources_those_that_are_wanted_are_listed() {
    let client = many().await;
    client.group().await;
    let body = json!({ "location": "eastus", "properties": {} });
    assert_eq!(client.send("PUT", &compute("virtualMachines/last"), body).await.status, StatusCode::CREATED);
    assert_eq!(all_pages(&client, &group("/resources")).await, (vec!["last".to_owned()], 1));
    let filtered = async |filter: &str| {
        let filter = filter.replace(' ', "%20");
        let target = format!("{SUBSCRIPTION}/resources?$filter={filter}&api-version=2024-07-01");
        all_pages(&client, &target).await
    };
    assert_eq!(filtered("name eq 'VM5001'").await, (vec!["vm5001".to_owned()], 1));
    assert_eq!(filtered("resourceGroup eq 'MINE'").await, (vec!["last".to_owned()], 1));
    // A page ends after 5,000 tenants and machines, wanted or not.
    assert_eq!(filtered("location eq 'eastus'").await, (vec!["last".to_owned()], 3));
    let (all, pages) = filtered("resourceGroup eq 'forewarn'").await;
    assert_eq!((all.len(), pages), (5_002, 12));
}

/// promise: Z1
#[tokio::test]
async fn every_item_is_listed_once_although_others_come_and_go_between_pages() {
    let lists = [
        own("virtualMachines"),
        format!("{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines?api-version=2024-07-01"),
        format!("{SUBSCRIPTION}/resources?api-version=2024-07-01"),
    ];
    for list in lists {
        let client = many().await;
        let (mut seen, mut next, mut page) = (Vec::new(), Some(list), 0);
        while let Some(target) = next {
            let (names, link) = one_page(&client, &target).await;
            assert!(names.len() <= 500, "{}", names.len());
            seen.extend(names);
            // One machine that was seen, one that was not, and the first of the next page go; another one comes.
            for gone in [page * 500 + 7, (page + 1) * 500, 5_000 - page] {
                let gone =
                    client.send("DELETE", &own(&format!("virtualMachines/vm{gone}")), Value::Null).await;
                assert!(gone.status.is_success(), "{}", gone.body);
            }
            let new = own(&format!("virtualMachines/new{page}"));
            let body = json!({ "location": "eastus", "properties": {} });
            assert_eq!(client.send("PUT", &new, body).await.status, StatusCode::CREATED);
            (next, page) = (link, page + 1);
        }
        let changed = |name: &String| {
            let number: Option<u32> = name.strip_prefix("vm").and_then(|digits| digits.parse().ok());
            number.is_none_or(|number| {
                (0..page).any(|page| [page * 500 + 7, (page + 1) * 500, 5_000 - page].contains(&number))
            })
        };
        let once: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!(once.len(), seen.len(), "nothing is listed twice");
        let stayed = (0..5_002).map(|number| format!("vm{number}")).filter(|name| !changed(name));
        assert!(stayed.into_iter().all(|name| once.contains(&name)));
        assert!(page > 9, "{page}");
    }
}

/// promise: Z1
#[tokio::test]
async fn a_token_that_the_server_did_not_write_is_refused() {
    let client = Client::new().await;
    client.group().await;
    let keys = |rest: &str| group(&format!("/providers/Microsoft.Compute/sshPublicKeys{rest}"));
    let all = format!("{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines?api-version=2024-07-01");
    let resources = format!("{SUBSCRIPTION}/resources?api-version=2024-07-01");
    let groups = format!("{SUBSCRIPTION}/resourceGroups?api-version=2024-07-01");
    for (list, tokens) in [
        (own("virtualMachines"), &["x", "-1", "01", "4294967296", ""][..]),
        (all, &["0", "0-", "x-0", "0-x", "0-01"]),
        (resources, &["0-0", "0-m-x", "0-z-1", "m-1"]),
        (groups, &["x", "/subscriptions/other/resourcegroups/x"]),
        (keys(""), &["x", "/subscriptions/other/resourcegroups/mine/providers/x"]),
    ] {
        for token in tokens {
            let refused = client.get(format!("{list}&$skiptoken={token}")).await;
            assert_eq!(refused.body["error"]["code"], "InvalidParameter", "{list} {token}: {}", refused.body);
        }
    }
}

/// promise: Z1
#[tokio::test]
async fn groups_are_listed_page_by_page() {
    let client = Client::new().await;
    for number in 0..501 {
        let target = format!("{SUBSCRIPTION}/resourceGroups/g{number:03}?api-version=2024-07-01");
        let made = client.send("PUT", &target, json!({ "location": "eastus" })).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    }
    // Names that lie between a group and its resources.
    for name in ["g000-a", "g000.a"] {
        let target = format!("{SUBSCRIPTION}/resourceGroups/{name}?api-version=2024-07-01");
        client.send("PUT", &target, json!({ "location": "eastus" })).await;
    }
    let key = format!(
        "{SUBSCRIPTION}/resourceGroups/g000/providers/Microsoft.Compute/sshPublicKeys/k?api-version=2024-07-01"
    );
    let made = client.send("PUT", &key, json!({ "location": "eastus" })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let mut expected: Vec<_> = (0..501).map(|number| format!("g{number:03}")).collect();
    expected.extend(["forewarn", "g000-a", "g000.a"].map(str::to_owned));
    expected.sort_unstable();
    let (names, pages) =
        all_pages(&client, &format!("{SUBSCRIPTION}/resourceGroups?api-version=2024-07-01")).await;
    assert_eq!((names, pages), (expected, 2));
}

/// One page: its names, and the target of the next.
async fn one_page(client: &Client, target: &str) -> (Vec<String>, Option<String>) {
    let page = client.get(target).await;
    assert_eq!(page.status, StatusCode::OK, "{target}: {}", page.body);
    let items = page.body["value"].as_array().unwrap();
    let names = items.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    let address = page.body["nextLink"].as_str();
    (names, address.map(|address| address.strip_prefix("https://localhost:1340").unwrap().to_owned()))
}

/// All names of a list, page by page, and the number of pages.
async fn all_pages(client: &Client, target: &str) -> (Vec<String>, usize) {
    let (mut names, mut pages, mut next) = (Vec::new(), 0, Some(target.to_owned()));
    while let Some(target) = next {
        let (more, link) = one_page(client, &target).await;
        names.extend(more);
        (next, pages) = (link, pages + 1);
    }
    (names, pages)
}

/// promise: Z1
#[tokio::test]
async fn the_next_page_is_found_whatever_names_and_parameters_are_like() {
    let client = Client::new().await;
    let group = format!("{SUBSCRIPTION}/resourceGroups/%C3%A9");
    let version = "x=a%26b%20%23&api-version=2024-07-01";
    let made = client.send("PUT", &format!("{group}?{version}"), json!({ "location": "eastus" })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let keys = format!("{group}/providers/Microsoft.Compute/sshPublicKeys");
    let body = json!({ "location": "eastus" });
    for number in 0..501 {
        let made =
            client.send("PUT", &format!("{keys}/k%26%23%20+{number:03}?{version}"), body.clone()).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    }
    let expected: Vec<_> = (0..501).map(|number| format!("k&# +{number:03}")).collect();
    assert_eq!(all_pages(&client, &format!("{keys}?{version}")).await, (expected.clone(), 2));
    let of_all = format!("{SUBSCRIPTION}/providers/Microsoft.Compute/sshPublicKeys?{version}");
    assert_eq!(all_pages(&client, &of_all).await, (expected, 2));
    // Addresses in headers are encoded, too.
    let template = json!({ "properties": { "mode": "incremental", "template": { "resources": [] } } });
    let target = format!("{group}/providers/Microsoft.Resources/deployments/d?{version}");
    let made = client.send("PUT", &target, template).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    let address = made.headers["azure-asyncoperation"].to_str().unwrap();
    let status = client.get(address.strip_prefix("https://localhost:1340").unwrap()).await;
    assert_eq!(status.body["status"], "Succeeded", "{address}");
}

/// promise: Z1
#[tokio::test]
async fn instances_are_listed_page_by_page() {
    use std::fmt::Write;
    let mut fleet = String::new();
    for host in 0..6 {
        writeln!(fleet, "[[host]]\nname = 'h{host}'").unwrap();
    }
    writeln!(fleet, "[[scale_set]]\nname = 'big'").unwrap();
    for host in (0..601).map(|number| number % 6) {
        writeln!(fleet, "[[scale_set.instance]]\nhost = 'h{host}'\nupdate_domain = {host}").unwrap();
    }
    let control = ControlHandle::simulated(SEED, clock());
    forewarn_server::admit_fleet_if_empty(&control, &Fleet::parse(&fleet).unwrap()).await.unwrap();
    let client = Client::of(control, Permit::unlimited("anyone"));
    let instances = own("virtualMachineScaleSets/big/virtualMachines");
    let expected: Vec<_> = (0..601).map(|number| format!("big_{number}")).collect();
    assert_eq!(all_pages(&client, &instances).await, (expected, 2));
    let wrong = client.get(format!("{instances}&$skiptoken=x")).await;
    assert_eq!(wrong.body["error"]["code"], "InvalidParameter");
}
