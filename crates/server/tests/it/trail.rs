//! Audit entries of the driver: requests and their consequences.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::path::Path;
use std::sync::Arc;

use forewarn_control::ControlError;
use forewarn_control::request::{Administration, CommandBatch, RequestContext};
use forewarn_control::{AuditEntry, AuditVerifier, CommandJson, NamedCommand, Outcome};
use forewarn_lifecycle::{Approver, Command, Name, Seed};
use forewarn_server::ClockCommand;
use forewarn_server::{ClockPlan, ControlHandle, Hypervisor, Speed};
use forewarn_store::AuditQuery;

fn open(directory: &Path) -> ControlHandle {
    let clock = ClockPlan::Virtual { start: None, speed: Speed(0) };
    ControlHandle::open(directory, Seed([5; 16]), clock, Hypervisor::simulated()).unwrap()
}

async fn order(control: &ControlHandle, json: &str) -> Result<Outcome, ControlError> {
    let command: NamedCommand = serde_json::from_str(json).unwrap();
    let terms = RequestContext { by: "token alice".to_owned(), ..RequestContext::default() };
    control.run_commands(CommandBatch { commands: vec![command], context: terms }).await
}

async fn audit_entries(control: &ControlHandle) -> Vec<Arc<AuditEntry>> {
    let page = control.read_audit_log(AuditQuery::default()).await.unwrap();
    assert_eq!(page.next, None);
    page.entries.into_iter().map(|logged| logged.entry).collect()
}

/// A control handle with one enrolled machine and a scheduled restart.
async fn announced(directory: &Path) -> ControlHandle {
    let control = open(directory);
    order(&control, r#"{"command":"admit_host","name":"h1"}"#).await.unwrap();
    order(&control, r#"{"command":"admit_vm","name":"solo","host":"h1"}"#).await.unwrap();
    let tenant = control.look(|state| state.cluster.tenants().next().unwrap().0).unwrap();
    control.submit(Command::Enrol(tenant)).await.unwrap();
    order(&control, r#"{"command":"restart","machine":"solo"}"#).await.unwrap();
    control
}

#[tokio::test]
async fn every_command_has_one_entry_and_what_came_of_it_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let control = announced(directory.path()).await;
    let entries = audit_entries(&control).await;
    let restart = entries.iter().find(|entry| entry.text == "requested: restart, machine solo").unwrap();
    assert_eq!((restart.kind.as_str(), restart.by.as_str()), ("command", "token alice"));
    assert_eq!((restart.cluster.as_str(), &restart.machines), ("default", &vec!["solo/solo".to_owned()]));
    let stored = restart.command.as_ref().map(CommandJson::to_value);
    assert_eq!(stored, Some(serde_json::json!({"command":"restart","machine":"solo"})));
    let came: Vec<_> = entries.iter().filter(|entry| entry.because == Some(restart.number)).collect();
    assert_eq!(came.iter().map(|entry| entry.kind.as_str()).collect::<Vec<_>>(), ["announced"]);
    assert_eq!(entries.iter().filter(|entry| entry.kind == "command").count(), 3);

    // The machine approves itself: no operator asked for it.
    let (tenant, machine, event) = control
        .look(|state| {
            let (tenant, all) = state.cluster.tenants().next().unwrap();
            (tenant, all.machines()[0], all.events()[0].id())
        })
        .unwrap();
    let by = Approver::Machine(machine);
    control.submit(Command::Approve { tenant, events: vec![event], by }).await.unwrap();
    control.drive(ClockCommand::Advance(std::time::Duration::from_mins(5))).await.unwrap();
    let later = audit_entries(&control).await.split_off(entries.len());
    let found: Vec<_> = later.iter().map(|entry| (entry.kind.as_str(), entry.by.as_str())).collect();
    let solo = "machine solo/solo";
    let expected =
        [("approved", solo), ("started", solo), ("command", "forewarn"), ("completed", "forewarn")];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_is_refused_leaves_no_trace_and_the_chain_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let control = announced(directory.path()).await;
    let before = audit_entries(&control).await;
    assert!(order(&control, r#"{"command":"restart","machine":"solo"}"#).await.is_err());
    assert!(order(&control, r#"{"command":"restart","machine":"unknown"}"#).await.is_err());
    assert_eq!(audit_entries(&control).await, before);
    control.stop().await;

    let control = open(directory.path());
    order(&control, r#"{"command":"brake_on"}"#).await.unwrap();
    let create = Administration::CreateCluster(Name::new("west").unwrap());
    control.administer(create, RequestContext::default()).await.unwrap();
    let entries = audit_entries(&control).await;
    assert!(entries.starts_with(&before));
    assert_eq!(entries.last().unwrap().text, "requested: create cluster, cluster west");
    let mut verifier = AuditVerifier::new();
    entries.iter().for_each(|entry| verifier.verify(entry).unwrap());
    assert_eq!(verifier.chains().count(), 2, "of the default cluster and the shared stream");
    control.stop().await;
    assert_eq!(forewarn_store::check(directory.path()).unwrap().entries, verifier.entries());
}
