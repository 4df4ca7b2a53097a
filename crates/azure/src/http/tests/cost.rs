//! Cost of requests: the rows that they read do not depend on the size of the cluster.

use axum::http::StatusCode;
use forewarn_control::{Fleet, Permit};
use forewarn_lifecycle::reads;
use forewarn_server::{ControlHandle, admit_fleet_if_empty};
use serde_json::{Value, json};

use super::{Client, SEED, SUBSCRIPTION, clock, compute, group, own};

/// A client of a cluster with that many hosts and two machines on each, and one machine in a group of a client.
async fn with_hosts(hosts: usize) -> Client {
    use std::fmt::Write;
    let mut fleet = String::new();
    for host in 0..hosts {
        writeln!(fleet, "[[host]]\nname = 'h{host}'").unwrap();
    }
    for vm in 0..2 * hosts {
        writeln!(fleet, "[[vm]]\nname = 'vm{vm}'\nhost = 'h{}'", vm / 2).unwrap();
    }
    let control = ControlHandle::simulated(SEED, clock());
    admit_fleet_if_empty(&control, &Fleet::parse(&fleet).unwrap()).await.unwrap();
    let client = Client::of(control, Permit::unlimited("anyone"));
    client.group().await;
    let body = json!({ "location": "eastus", "properties": {} });
    assert_eq!(client.send("PUT", &compute("virtualMachines/mine"), body).await.status, StatusCode::CREATED);
    client
}

/// Rows that a request reads in the task of the client.
async fn cost(client: &Client, method: &str, target: &str, body: Value) -> u64 {
    let before = reads();
    let response = client.send(method, target, body).await;
    assert!(response.status.is_success(), "{method} {target}: {}", response.body);
    reads() - before
}

fn set(capacity: u32) -> Value {
    json!({
        "location": "eastus",
        "sku": { "name": "Standard_D2s_v5", "capacity": capacity },
        "properties": { "orchestrationMode": "Flexible", "platformFaultDomainCount": 1 },
    })
}

#[tokio::test]
async fn a_request_about_one_object_costs_the_same_in_a_large_cluster() {
    let (small, large) = (with_hosts(150).await, with_hosts(1_500).await);
    let filter = "%27virtualMachineScaleSet%2Fid%27%20eq%20%27";
    let instances =
        format!("{SUBSCRIPTION}/resourceGroups/mine/providers/Microsoft.Compute/virtualMachineScaleSets/web");
    for (method, target, body) in [
        ("PUT", compute("virtualMachineScaleSets/web"), set(100)),
        ("PUT", compute("virtualMachineScaleSets/web"), set(101)),
        ("GET", compute("virtualMachineScaleSets/WEB"), Value::Null),
        ("GET", compute("virtualMachines") + "&$filter=" + filter + &instances + "%27", Value::Null),
        ("PUT", compute("virtualMachines/other"), json!({ "location": "eastus", "properties": {} })),
        ("PUT", compute("availabilitySets/set"), json!({ "location": "eastus", "properties": {} })),
        ("GET", compute("availabilitySets/SET"), Value::Null),
        ("GET", own("virtualMachines/VM299"), Value::Null),
        ("GET", compute("virtualMachines/MINE"), Value::Null),
        ("POST", own("virtualMachines/vm0/restart"), Value::Null),
        ("GET", compute("virtualMachines"), Value::Null),
        ("GET", compute("virtualMachineScaleSets"), Value::Null),
        ("GET", compute("availabilitySets"), Value::Null),
        ("GET", group("/resources"), Value::Null),
        ("DELETE", compute("virtualMachines/mine"), Value::Null),
        ("DELETE", group(""), Value::Null),
    ] {
        let one = cost(&small, method, &target, body.clone()).await;
        let other = cost(&large, method, &target, body).await;
        assert!(other <= one + one / 5 + 50, "{method} {target}: {one} and {other} rows");
    }
}
