//! Permissions of tokens.

use axum::http::StatusCode;
use forewarn_control::Permit;
use forewarn_control::shared::Role;
use serde_json::{Value, json};

use super::{Client, SUBSCRIPTION, compute, own};

/// A client with another role, on the same server.
fn with_role(client: &Client, role: Role) -> Client {
    let mut permit = Permit::unlimited("test");
    permit.role = role;
    Client::of(client.control.clone(), permit)
}

/// promise: S2
#[tokio::test]
async fn an_operator_cannot_delete_a_set() {
    let client = Client::new().await;
    client.group().await;
    let set = json!({ "location": "eastus", "sku": { "name": "Aligned" }, "properties": {} });
    assert_eq!(client.send("PUT", &compute("availabilitySets/db"), set).await.status, StatusCode::OK);
    let (operator, admin) = (with_role(&client, Role::Operator), with_role(&client, Role::Admin));
    let (group, mine) = (
        format!("{SUBSCRIPTION}/resourceGroups/forewarn?api-version=2024-07-01"),
        format!("{SUBSCRIPTION}/resourceGroups/mine?api-version=2024-07-01"),
    );
    for target in [own("virtualMachineScaleSets/web"), compute("availabilitySets/db"), group.clone(), mine] {
        let refused = operator.send("DELETE", &target, Value::Null).await;
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (StatusCode::FORBIDDEN, &json!("AuthorizationFailed")),
            "{target}"
        );
    }
    let there =
        client.control.look(|state| (state.cluster.machines().count(), state.cluster.maintenances().count()));
    assert_eq!(there.unwrap(), (3, 0), "nothing has been done");
    // Machines need the role operator.
    let instance =
        operator.send("DELETE", &own("virtualMachineScaleSets/web/virtualMachines/0"), Value::Null).await;
    assert_eq!(instance.status, StatusCode::ACCEPTED, "{}", instance.body);
    for target in [own("virtualMachineScaleSets/web"), group] {
        assert_eq!(admin.send("DELETE", &target, Value::Null).await.status, StatusCode::ACCEPTED, "{target}");
    }
}
