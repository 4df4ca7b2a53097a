//! Operations: their maximum number, and the work that they wait for.

use axum::http::StatusCode;
use forewarn_control::ClusterId;
use forewarn_control::NamedCommand;
use forewarn_control::limits::OPERATIONS_OPEN_MAX;
use forewarn_control::request::{RequestContext, Transaction};
use forewarn_control::resources::{Operation, OperationResult, ResourceChange};
use forewarn_control::{ClusterEntry, ControlState, Record};
use forewarn_lifecycle::{Cause, MaintenanceId, Timestamp};
use forewarn_server::State;
use serde_json::{Value, json};

use super::{Client, SEED, clock, compute, own};
use crate::ArmError;

/// A server with the maximum number of pending operations.
async fn full() -> Client {
    let (mut state, now) = (ControlState::new(SEED), clock().now());
    for number in 0..OPERATIONS_OPEN_MAX as u64 {
        let operation = Operation {
            number,
            name: number.to_string(),
            about: String::new(),
            cluster: ClusterId::DEFAULT,
            token: None,
            waits: [MaintenanceId(u64::MAX)].into_iter().collect(),
            began: Timestamp::from_millis(0),
            ended: None,
            result: OperationResult::Succeeded,
        };
        let change = ClusterEntry::Resource(ResourceChange::Opened(operation));
        state.apply(&Record::in_cluster(now, ClusterId::DEFAULT, change));
    }
    Client::on(state).await
}

async fn enrol(client: &Client, tenant: &'static str) {
    let tenant = client.control.look(|state| state.cluster.tenant_named(tenant).unwrap()).unwrap();
    client.control.submit(forewarn_lifecycle::Command::Enrol(tenant)).await.unwrap();
}

/// promise: Z3
#[tokio::test]
async fn a_request_beyond_the_operation_limit_has_no_effect() {
    let client = full().await;
    enrol(&client, "solo").await;
    let seen = || {
        client.control.look(|state| (state.cluster.maintenances().count(), state.cluster.machines().count()))
    };
    let before = seen().unwrap();
    client.group().await;
    let vm = json!({ "location": "eastus", "properties": {} });
    for (method, target, body) in [
        ("POST", own("virtualMachines/solo/restart"), Value::Null),
        ("DELETE", own("virtualMachines/solo"), Value::Null),
        ("DELETE", own("virtualMachineScaleSets/web"), Value::Null),
        ("PUT", compute("virtualMachines/new"), vm),
    ] {
        let refused = client.send(method, &target, body).await;
        assert_eq!(
            (refused.status, &refused.body["error"]["code"]),
            (StatusCode::CONFLICT, &json!("OperationNotAllowed")),
            "{target}"
        );
        assert_eq!(seen().unwrap(), before, "{target}");
    }
    assert_eq!(client.get(own("virtualMachineScaleSets/web")).await.status, StatusCode::OK);
}

/// promise: Z3
#[tokio::test]
async fn a_request_without_an_operation_ignores_the_limit() {
    let client = full().await;
    let written = client.send("POST", &own("virtualMachines/solo/reapply"), Value::Null).await;
    assert_eq!(written.status, StatusCode::ACCEPTED, "{}", written.body);
    assert_eq!(client.status(&written).await, "Succeeded");
}

/// promise: Z3
#[tokio::test]
async fn operations_do_not_wait_for_host_work_announced_at_the_same_time() {
    let client = Client::new().await;
    for tenant in ["solo", "web"] {
        enrol(&client, tenant).await;
    }
    // Both are in one transaction here; usually the rules announce host work after a change.
    let commands =
        json!([{ "command": "reboot_hosts", "hosts": ["h2"] }, { "command": "restart", "machine": "solo" }]);
    let commands: Vec<NamedCommand> = serde_json::from_value(commands).unwrap();
    let operation = Some("/solo".to_owned());
    let transaction = Transaction { commands, operation, ..Transaction::default() };
    let plan = move |_: &State<'_>| Ok::<_, ArmError>((transaction.clone(), ()));
    let (transacted, ()) = client.control.transact(RequestContext::default(), plan).await.unwrap().unwrap();
    let causes = client.control.look(|state| {
        let cause = |id: &MaintenanceId| state.cluster.maintenance(*id).unwrap().plan.cause.clone();
        (
            state.cluster.maintenances().count(),
            transacted.operation.unwrap().waits.iter().map(cause).collect::<Vec<_>>(),
        )
    });
    assert_eq!(causes.unwrap(), (2, vec![Cause::UserRestart]));
}

/// promise: S3
#[tokio::test]
async fn a_token_of_a_tenant_reads_no_operation_of_another() {
    let client = Client::new().await;
    let (solo, web) = (client.of_tenant("solo").await, client.of_tenant("web").await);
    for (owner, other, target) in [
        (&solo, &web, own("virtualMachines/solo/restart")),
        (&web, &solo, own("virtualMachineScaleSets/web/virtualMachines/0/restart")),
        (&web, &solo, own("virtualMachineScaleSets/web/restart")),
    ] {
        let begun = owner.send("POST", &target, Value::Null).await;
        assert_eq!(begun.status, StatusCode::ACCEPTED, "{target}: {}", begun.body);
        for header in ["azure-asyncoperation", "location"] {
            let Some(address) = begun.headers.get(header) else { continue };
            let address = address.to_str().unwrap().strip_prefix("https://localhost:1340").unwrap();
            assert!(owner.get(address).await.status.is_success(), "{target}: {header}");
            assert!(client.get(address).await.status.is_success(), "{target}: {header}");
            let (start, end) = {
                let end = address.find('?').unwrap();
                (address[..end].rfind('/').unwrap() + 1, end)
            };
            let absent = address.replace(&address[start..end], "00000000-0000-4000-8000-000000000000");
            let (there, absent) = (other.get(address).await, other.get(absent).await);
            assert_eq!(there.status, StatusCode::NOT_FOUND, "{target}: {header}");
            assert_eq!(there.body["error"]["code"], absent.body["error"]["code"], "{target}");
        }
    }
}

/// promise: S3
#[tokio::test]
async fn a_token_reads_its_own_operation_after_the_machine_is_gone() {
    let client = Client::new().await;
    let solo = client.of_tenant("solo").await;
    let begun = solo.send("DELETE", &own("virtualMachines/solo"), Value::Null).await;
    assert_eq!(begun.status, StatusCode::ACCEPTED, "{}", begun.body);
    assert_eq!(solo.status(&begun).await, "Succeeded");
}
