//! The trail that a driver leaves: who asked for what, and what came of it.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::path::Path;
use std::sync::Arc;

use forewarn_control::ControlError;
use forewarn_control::request::{Administration, CommandBatch, RequestContext};
use forewarn_control::{AuditEntry, Chain, NamedCommand, Outcome};
use forewarn_lifecycle::{Approver, Command, Name, Seed};
use forewarn_server::ClockCommand;
use forewarn_server::{ClockPlan, ControlHandle, Hypervisor, Speed};
use forewarn_store::AuditQuery;

fn open(place: &Path) -> ControlHandle {
    let clock = ClockPlan::Virtual { start: None, speed: Speed(0) };
    ControlHandle::open(place, Seed([5; 16]), clock, Hypervisor::Simulated).unwrap()
}

async fn order(engine: &ControlHandle, json: &str) -> Result<Outcome, ControlError> {
    let command: NamedCommand = serde_json::from_str(json).unwrap();
    let terms = RequestContext { by: "token alice".to_owned(), ..RequestContext::default() };
    engine.order(CommandBatch { commands: vec![command], context: terms }).await
}

async fn trail(engine: &ControlHandle) -> Vec<Arc<AuditEntry>> {
    let page = engine.read_trail(AuditQuery::default()).await.unwrap();
    assert_eq!(page.next, None);
    page.entries
}

/// An engine with one machine that is enrolled and knows of its restart.
async fn announced(place: &Path) -> ControlHandle {
    let engine = open(place);
    order(&engine, r#"{"command":"admit_host","name":"h1"}"#).await.unwrap();
    order(&engine, r#"{"command":"admit_vm","name":"solo","host":"h1"}"#).await.unwrap();
    let tenant = engine.look(|state| state.cluster.tenants().next().unwrap().0).unwrap();
    engine.submit(Command::Enrol(tenant)).await.unwrap();
    order(&engine, r#"{"command":"restart","machine":"solo"}"#).await.unwrap();
    engine
}

#[tokio::test]
async fn every_command_has_one_entry_and_what_came_of_it_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let engine = announced(directory.path()).await;
    let entries = trail(&engine).await;
    let restart = entries.iter().find(|entry| entry.text == "asked for: restart, machine solo").unwrap();
    assert_eq!((restart.kind.as_str(), restart.by.as_str()), ("command", "token alice"));
    assert_eq!((restart.cluster.as_str(), &restart.machines), ("default", &vec!["solo/solo".to_owned()]));
    assert_eq!(restart.command, Some(serde_json::json!({"command":"restart","machine":"solo"})));
    let came: Vec<_> = entries.iter().filter(|entry| entry.because == Some(restart.number)).collect();
    assert_eq!(came.iter().map(|entry| entry.kind.as_str()).collect::<Vec<_>>(), ["announced"]);
    assert_eq!(entries.iter().filter(|entry| entry.kind == "command").count(), 3);

    // The machine is ready: nobody but itself has asked for that.
    let (tenant, machine, event) = engine
        .look(|state| {
            let (tenant, all) = state.cluster.tenants().next().unwrap();
            (tenant, all.machines()[0], all.events()[0].id())
        })
        .unwrap();
    let by = Approver::Machine(machine);
    engine.submit(Command::Approve { tenant, events: vec![event], by }).await.unwrap();
    engine.drive(ClockCommand::Advance(std::time::Duration::from_mins(5))).await.unwrap();
    let later = trail(&engine).await.split_off(entries.len());
    let told: Vec<_> = later.iter().map(|entry| (entry.kind.as_str(), entry.by.as_str())).collect();
    let solo = "machine solo/solo";
    let expected =
        [("approved", solo), ("started", solo), ("command", "forewarn"), ("completed", "forewarn")];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_is_refused_leaves_no_trace_and_the_chain_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let engine = announced(directory.path()).await;
    let before = trail(&engine).await;
    assert!(order(&engine, r#"{"command":"restart","machine":"solo"}"#).await.is_err());
    assert!(order(&engine, r#"{"command":"restart","machine":"nobody"}"#).await.is_err());
    assert_eq!(trail(&engine).await, before);
    engine.stop().await;

    let engine = open(directory.path());
    order(&engine, r#"{"command":"brake_on"}"#).await.unwrap();
    let create = Administration::CreateCluster(Name::new("west").unwrap());
    engine.administer(create, RequestContext::default()).await.unwrap();
    let entries = trail(&engine).await;
    assert!(entries.starts_with(&before));
    assert_eq!(entries.last().unwrap().text, "asked for: create cluster, cluster west");
    let mut chain = Chain::default();
    entries.iter().for_each(|entry| chain.verify(entry).unwrap());
    engine.stop().await;
    assert_eq!(forewarn_store::check(directory.path()).unwrap().entries, chain.number);
}
