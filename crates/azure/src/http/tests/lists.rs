//! Long lists.

use axum::http::StatusCode;
use forewarn_control::Fleet;
use forewarn_control::Permit;
use forewarn_server::ControlHandle;
use serde_json::json;

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
    let names = async |target: &str| {
        let listed = client.get(target).await.body;
        let Some(all) = listed["value"].as_array() else { return vec![listed["error"]["code"].clone()] };
        all.iter().map(|one| one["name"].clone()).collect()
    };
    assert_eq!(names(&group("/resources")).await, ["last"]);
    let filtered = async |filter: &str| {
        let filter = filter.replace(' ', "%20");
        names(&format!("{SUBSCRIPTION}/resources?$filter={filter}&api-version=2024-07-01")).await
    };
    assert_eq!(filtered("name eq 'VM5001'").await, ["vm5001"]);
    assert_eq!(filtered("location eq 'eastus'").await, ["last"]);
    assert_eq!(filtered("resourceGroup eq 'forewarn'").await, ["ResponseTooLarge"]);
}

/// All names of a list, page by page, and the number of pages.
async fn all_pages(client: &Client, target: &str) -> (Vec<String>, usize) {
    let (mut names, mut pages, mut next) = (Vec::new(), 0, Some(target.to_owned()));
    while let Some(target) = next {
        let page = client.get(&target).await;
        assert_eq!(page.status, StatusCode::OK, "{target}: {}", page.body);
        let items = page.body["value"].as_array().unwrap();
        names.extend(items.iter().map(|one| one["name"].as_str().unwrap().to_owned()));
        let address = page.body["nextLink"].as_str();
        next = address.map(|address| address.strip_prefix("https://localhost:1340").unwrap().to_owned());
        pages += 1;
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
