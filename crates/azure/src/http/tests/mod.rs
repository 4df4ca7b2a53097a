//! The routes of Azure Resource Manager on a small fleet, without a network.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use forewarn_control::ControlState;
use forewarn_control::Permit;
use forewarn_control::request::{Administration, RequestContext};
use forewarn_control::shared::{Reach, Role, Scope, TokenHash};
use forewarn_control::{Fleet, NamedCommand};
use forewarn_lifecycle::{Name, Seed, Timestamp};
use forewarn_server::{Clock, ClockCommand, ControlHandle, Scheme, Speed, admit_fleet_if_empty};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{ArmContext, respond};

pub(super) const SEED: Seed = Seed([5; 16]);
pub(super) const SUBSCRIPTION: &str = "/subscriptions/00000000-0000-0000-0000-000000000000";
const FLEET: &str = r#"
host = [{ name = "h1" }, { name = "h2" }, { name = "h3" }]
[[vm]]
name = "solo"
host = "h1"
[[scale_set]]
name = "web"
terminate = "5m"
instance = [{ host = "h1", update_domain = 0 }, { host = "h2", update_domain = 1 }]
"#;

mod conditions;
mod cost;
mod lists;
mod opaque_resources;
mod operations;
mod permits;
pub(super) mod realm;
mod scopes;

pub(super) fn clock() -> Clock {
    Clock::virtual_at(Timestamp::from_millis(1_767_225_600_000), Speed(0))
}

pub(super) struct Client {
    pub(super) control: ControlHandle,
    router: axum::Router,
}

pub(super) struct TestResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Client {
    pub(super) async fn new() -> Self {
        Self::on(ControlState::new(SEED)).await
    }

    /// A client of a server with a stored state and the same fleet.
    pub(super) async fn on(state: ControlState) -> Self {
        let control = ControlHandle::simulated_on(state, SEED, clock());
        admit_fleet_if_empty(&control, &Fleet::parse(FLEET).unwrap()).await.unwrap();
        Self::of(control, Permit::unlimited("anyone"))
    }

    /// A client with a permit.
    pub(super) fn of(control: ControlHandle, permit: Permit) -> Self {
        let router =
            axum::Router::new().fallback(respond).with_state(ArmContext::new(&control, Scheme::Https, "d"));
        let router = router.layer(axum::Extension(Arc::new(permit)));
        Self { control, router }
    }

    /// A client with a token of a tenant, on the same server.
    pub(super) async fn of_tenant(&self, tenant: &str) -> Self {
        let name = Name::new(tenant).unwrap();
        let number = self.control.shared().next_token();
        let scope = Scope { tenants: Reach::Only([name.clone()].into()), ..Scope::default() };
        let (role, hash) = (Role::Operator, TokenHash([7; 32]));
        let issue = Administration::IssueToken { number, name, role, scope, hash, expires: None };
        self.control.administer(issue, RequestContext::default()).await.unwrap();
        let permit = Permit::of(self.control.shared().find_token(number).unwrap());
        Self::of(self.control.clone(), permit)
    }

    pub(super) async fn send(&self, method: &str, target: &str, body: Value) -> TestResponse {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.send_text(method, target, &text).await
    }

    pub(super) async fn send_text(&self, method: &str, target: &str, text: &str) -> TestResponse {
        self.send_if(method, target, text, &[]).await
    }

    /// Sends a request with headers.
    pub(super) async fn send_if(
        &self,
        method: &str,
        target: &str,
        text: &str,
        headers: &[(&str, &str)],
    ) -> TestResponse {
        let request = Request::builder().method(method).uri(target).header("host", "localhost:1340");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let body = Body::from(text.to_owned());
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = to_bytes(response.into_body(), 1 << 24).await.unwrap();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        TestResponse { status, headers, body }
    }

    pub(super) async fn get(&self, target: impl AsRef<str>) -> TestResponse {
        self.send("GET", target.as_ref(), Value::Null).await
    }

    pub(super) async fn group(&self) {
        let made = self.send("PUT", &group(""), json!({ "location": "East US" })).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        assert_eq!(made.body["location"], "eastus");
    }

    /// Status of the operation of a response.
    pub(super) async fn status(&self, response: &TestResponse) -> Value {
        let address = response.headers["azure-asyncoperation"].to_str().unwrap();
        self.get(address.strip_prefix("https://localhost:1340").unwrap()).await.body["status"].clone()
    }
}

pub(super) fn group(rest: &str) -> String {
    format!("{SUBSCRIPTION}/resourcegroups/mine{rest}?api-version=2024-07-01")
}

/// Path in the group of the fleet.
pub(super) fn own(rest: &str) -> String {
    format!(
        "{SUBSCRIPTION}/resourceGroups/forewarn/providers/Microsoft.Compute/{rest}?api-version=2024-07-01"
    )
}

pub(super) fn compute(rest: &str) -> String {
    group(&format!("/providers/Microsoft.Compute/{rest}"))
}

/// promise: Z1
#[tokio::test]
async fn machines_of_the_fleet_file_are_resources() {
    let client = Client::new().await;
    let groups = client.get(format!("{SUBSCRIPTION}/resourceGroups?api-version=2024-07-01")).await.body;
    assert_eq!(groups["value"][0]["name"], "forewarn");
    let vms = client
        .get(format!("{SUBSCRIPTION}/providers/Microsoft.Compute/virtualMachines?api-version=2024-07-01"));
    let vms = vms.await.body;
    assert_eq!(vms["value"].as_array().unwrap().len(), 1);
    assert_eq!(vms["value"][0]["name"], "solo");
    let own = format!("{SUBSCRIPTION}/RESOURCEGROUPS/Forewarn/providers/microsoft.compute");
    let web = client.get(format!("{own}/virtualmachinescalesets/WEB?api-version=2024-07-01")).await;
    assert_eq!((web.status, &web.body["sku"]["capacity"]), (StatusCode::OK, &json!(2)));
    let profile = &web.body["properties"]["virtualMachineProfile"]["scheduledEventsProfile"];
    assert_eq!(
        profile["terminateNotificationProfile"],
        json!({ "notBeforeTimeout": "PT5M", "enable": true })
    );
    let instances =
        client.get(format!("{own}/virtualMachineScaleSets/web/virtualMachines?api-version=2024-07-01"));
    assert_eq!(instances.await.body["value"][1]["instanceId"], "1");
}

/// promise: Z1
#[tokio::test]
async fn a_machine_is_made_shown_and_deleted() {
    let client = Client::new().await;
    client.group().await;
    let body = json!({ "location": "eastus", "tags": { "a": "b" }, "properties": { "hardwareProfile": { "vmSize": "S" }, "odd": [1] } });
    let made = client.send("PUT", &compute("virtualMachines/Vm1"), body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(made.body["properties"]["provisioningState"], "Creating");
    assert_eq!(client.status(&made).await, "Succeeded");
    let shown = client.get(&compute("virtualMachines/vm1")).await.body;
    assert_eq!((&shown["name"], &shown["properties"]["odd"]), (&json!("Vm1"), &json!([1])));
    assert_eq!(shown["properties"]["provisioningState"], "Succeeded");
    let again = client.send("PATCH", &compute("virtualMachines/vm1"), json!({ "tags": { "a": "c" } })).await;
    assert_eq!(again.status, StatusCode::OK, "{}", again.body);
    let shown = client.get(&compute("virtualMachines/vm1")).await.body;
    assert_eq!((&shown["tags"]["a"], &shown["properties"]["odd"]), (&json!("c"), &json!([1])));
    let deleted = client.send("DELETE", &compute("virtualMachines/vm1"), Value::Null).await;
    assert_eq!(deleted.status, StatusCode::ACCEPTED, "{}", deleted.body);
    assert_eq!(client.status(&deleted).await, "Succeeded");
    assert_eq!(client.get(&compute("virtualMachines/vm1")).await.status, StatusCode::NOT_FOUND);
    let absent = client.send("DELETE", &compute("virtualMachines/vm1"), Value::Null).await;
    assert_eq!(absent.status, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_forgotten_machine_is_no_longer_a_resource_and_its_name_is_free() {
    let client = Client::new().await;
    client.group().await;
    let body = json!({ "location": "eastus", "tags": { "a": "b" }, "properties": {} });
    let path = compute("virtualMachines/Vm1");
    assert_eq!(client.send("PUT", &path, body.clone()).await.status, StatusCode::CREATED);
    let entries = || client.control.look(|state| state.all.resources_below("").count());
    let written = entries().unwrap();
    let machine = "Vm1".to_owned();
    client.control.run_commands(vec![NamedCommand::Forget { machine }]).await.unwrap();
    assert_eq!(client.get(&path).await.status, StatusCode::NOT_FOUND);
    assert_eq!(entries().unwrap(), written - 1, "what the client wrote of it is gone, too");
    assert_eq!(client.send("PUT", &path, body).await.status, StatusCode::CREATED);
}

/// promise: Z3
#[tokio::test]
async fn an_instance_is_deleted_when_its_event_starts_and_the_operation_waits_for_that() {
    let client = Client::new().await;
    let tenant = client.control.look(|state| state.cluster.tenant_named("web").unwrap()).unwrap();
    client.control.submit(forewarn_lifecycle::Command::Enrol(tenant)).await.unwrap();
    let own = format!(
        "{SUBSCRIPTION}/resourceGroups/forewarn/providers/Microsoft.Compute/virtualMachineScaleSets/web"
    );
    let body = json!({ "instanceIds": ["0"] });
    let deleting = client.send("POST", &format!("{own}/delete?api-version=2024-07-01"), body).await;
    assert_eq!(deleting.status, StatusCode::ACCEPTED, "{}", deleting.body);
    assert_eq!(client.status(&deleting).await, "InProgress");
    let instance = format!("{own}/virtualMachines/0?api-version=2024-07-01");
    assert_eq!(client.get(&instance).await.body["properties"]["provisioningState"], "Deleting");
    client.control.drive(ClockCommand::Advance(std::time::Duration::from_mins(5))).await.unwrap();
    assert_eq!(client.status(&deleting).await, "Succeeded");
    let gone = client.get(&instance).await;
    assert_eq!((gone.status, &gone.body["error"]["code"]), (StatusCode::NOT_FOUND, &json!("NotFound")));
}

/// promise: Z1
#[tokio::test]
async fn a_group_goes_with_what_is_in_it() {
    let client = Client::new().await;
    client.group().await;
    let set = json!({
        "location": "eastus",
        "sku": { "name": "S", "capacity": 2 },
        "properties": { "upgradePolicy": { "mode": "manual" }, "orchestrationMode": "Uniform", "virtualMachineProfile": {} },
    });
    let made = client.send("PUT", &compute("virtualMachineScaleSets/ss"), set).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
    assert_eq!(made.body["properties"]["upgradePolicy"]["mode"], "Manual");
    let gone = client.send("DELETE", &group(""), Value::Null).await;
    assert_eq!(gone.status, StatusCode::ACCEPTED, "{}", gone.body);
    let address = gone.headers["location"].to_str().unwrap().strip_prefix("https://localhost:1340").unwrap();
    assert_eq!(client.get(address).await.status, StatusCode::OK);
    assert_eq!(client.get(&group("")).await.status, StatusCode::NOT_FOUND);
    let left = client
        .control
        .look(|state| (state.cluster.scale_set_named("ss"), state.all.resources_below("/").count()));
    assert_eq!(left.unwrap(), (None, 0));
}

/// promise: Z6
#[tokio::test]
async fn missing_and_unsupported_resources_get_arm_errors() {
    let client = Client::new().await;
    for (method, target, code) in [
        ("GET", "/subscriptions".to_owned(), "MissingApiVersionParameter"),
        ("GET", "/subscriptions?api-version=2010-01-01".to_owned(), "InvalidApiVersionParameter"),
        ("GET", "/subscriptions/x/resourceGroups?api-version=2024-07-01".to_owned(), "SubscriptionNotFound"),
        ("GET", group(""), "ResourceGroupNotFound"),
        ("GET", compute("virtualMachines/x"), "ResourceGroupNotFound"),
        (
            "GET",
            format!(
                "{SUBSCRIPTION}/resourceGroups/forewarn/providers/Microsoft.Compute/virtualMachines/x?api-version=2024-07-01"
            ),
            "ResourceNotFound",
        ),
        (
            "POST",
            format!(
                "{SUBSCRIPTION}/resourceGroups/forewarn/providers/Microsoft.Compute/virtualMachines/solo/runCommand?api-version=2024-07-01"
            ),
            "OperationNotSupported",
        ),
        (
            "POST",
            format!(
                "{SUBSCRIPTION}/resourceGroups/forewarn/providers/Microsoft.Compute/virtualMachines/solo/simulateEviction?api-version=2024-07-01"
            ),
            "OperationNotAllowed",
        ),
    ] {
        let refused = client.send(method, &target, Value::Null).await;
        assert_eq!(refused.body["error"]["code"], code, "{target}: {}", refused.body);
    }
}

/// promise: C6
#[tokio::test]
async fn rejections_are_remembered_per_resource() {
    let client = Client::new().await;
    let web = format!(
        "{SUBSCRIPTION}/resourceGroups/forewarn/providers/Microsoft.Compute/virtualMachineScaleSets/web"
    );
    let profile = json!({ "terminateNotificationProfile": { "notBeforeTimeout": "PT10M", "enable": true } });
    let body = json!({ "properties": { "virtualMachineProfile": { "scheduledEventsProfile": profile } } });
    let refused = client.send("PUT", &format!("{web}?api-version=2018-10-01"), body.clone()).await;
    assert_eq!(
        (refused.status, &refused.body["error"]["code"]),
        (StatusCode::BAD_REQUEST, &json!("BadRequest"))
    );
    let unsupported = client.send("POST", &format!("{web}/fly?api-version=2024-07-01"), Value::Null).await;
    assert_eq!(unsupported.status, StatusCode::BAD_REQUEST);
    let refused = client.send("PUT", &format!("{web}?api-version=2018-10-01"), body.clone()).await;
    // Accepted requests and reads are not remembered.
    assert_eq!(
        client.send("PUT", &format!("{web}?api-version=2019-03-01"), body).await.status,
        StatusCode::OK
    );
    assert!(client.get(format!("{web}/fly?api-version=2024-07-01")).await.status.is_client_error());
    let rejection = client.control.rejections().of_groups(|group| group.name == "forewarn");
    let [rejection] = rejection.as_slice() else { panic!("of each resource the newest: {rejection:?}") };
    assert_eq!(
        (rejection.method.as_str(), rejection.by.as_str(), rejection.resource.as_str()),
        ("PUT", "anyone", web.as_str())
    );
    assert_eq!(rejection.api_version.as_deref(), Some("2018-10-01"));
    assert_eq!(rejection.at.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(json!(rejection.message), refused.body["error"]["message"]);
}

/// promise: Z1
#[tokio::test]
async fn everything_is_listed_or_what_a_filter_leaves() {
    let client = Client::new().await;
    client.group().await;
    let body = json!({ "location": "eastus", "properties": {} });
    assert_eq!(client.send("PUT", &compute("virtualMachines/mine"), body).await.status, StatusCode::CREATED);
    let list = async |filter: &str| {
        let filter = filter.replace(' ', "%20");
        let listed =
            client.get(format!("{SUBSCRIPTION}/resources?$filter={filter}&api-version=2024-07-01")).await;
        match listed.body["value"].as_array() {
            Some(all) => all.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>(),
            None => vec![listed.body["error"]["code"].as_str().unwrap().to_owned()],
        }
    };
    assert_eq!(list("resourceGroup eq 'MINE'").await, ["mine"]);
    assert_eq!(list("resourceType eq 'Microsoft.Compute/virtualMachines'").await, ["solo", "mine"]);
    assert_eq!(
        list("resourceType eq 'Microsoft.Compute/virtualMachines' and resourceGroup eq 'forewarn'").await,
        ["solo"]
    );
    assert_eq!(list("name eq 'web' and location eq 'local'").await, ["web"]);
    assert_eq!(list("name eq 'nothing'").await, [""; 0]);
    for unclear in ["name", "name ne 'x'", "name eq x", "name eq 'x' or name eq 'y'", "tagName eq 'x'"] {
        assert_eq!(list(unclear).await, ["InvalidParameter"], "{unclear}");
    }
}
