//! Lists that are long.

use axum::http::StatusCode;
use forewarn_wire::operator::Fleet;
use serde_json::json;

use super::tests::{Client, SEED, SUBSCRIPTION, clock, compute, group};
use crate::engine::Engine;
use crate::operator::Permit;

/// More machines than are listed at once, on as many hosts as they need.
async fn many() -> Client {
    use std::fmt::Write;
    let mut fleet = String::new();
    for host in 0..12 {
        writeln!(fleet, "[[host]]\nname = 'h{host}'").unwrap();
    }
    for vm in 0..5_002 {
        writeln!(fleet, "[[vm]]\nname = 'vm{vm}'\nhost = 'h{}'", vm / 500).unwrap();
    }
    let engine = Engine::on(forewarn_store::State::new(SEED), SEED, clock());
    crate::service::fill(&engine, &Fleet::parse(&fleet).unwrap()).await.unwrap();
    Client::of(engine, Permit::unlimited("anyone"))
}

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
