//! Batches of named commands: all or none, and details of machines.

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::ControlError;
use forewarn_control::NamedCommand;
use forewarn_hypervisor::Program;
use forewarn_lifecycle::{Seed, Timestamp};
use forewarn_metadata::ControlPlane;
use forewarn_server::ClockCommand;
use forewarn_server::{CLOCK_END, Clock, ControlHandle, Hypervisor, Speed};
use serde_json::{Value, json};

fn frozen() -> Clock {
    Clock::virtual_at(Timestamp::from_millis(0), Speed(0))
}

fn commands(all: Value) -> Vec<NamedCommand> {
    serde_json::from_value(all).expect("commands")
}

/// Two machines, `a` at 10.0.0.1 and `b` at 10.0.0.2.
async fn server(hypervisor: Hypervisor) -> ControlHandle {
    let control = ControlHandle::in_memory(Seed([5; 16]), frozen(), hypervisor);
    let fleet = json!([
        { "command": "admit_host", "name": "h1" },
        { "command": "admit_vm", "name": "a", "host": "h1", "addresses": ["10.0.0.1"], "tags": { "k": "v" } },
        { "command": "admit_vm", "name": "b", "host": "h1", "addresses": ["10.0.0.2"] },
    ]);
    control.run_commands(commands(fleet)).await.expect("a fleet");
    control
}

fn at(control: &ControlHandle, address: &str) -> Option<String> {
    let address: IpAddr = address.parse().expect("an address");
    let caller = control.caller_at(ClusterId::DEFAULT, address)?;
    Some(control.instance(&caller)?.name.to_string())
}

#[tokio::test]
async fn addresses_may_change_hands_in_one_order() {
    let control = server(Hypervisor::simulated()).await;
    let swap = json!([
        { "command": "describe", "machine": "a", "addresses": ["10.0.0.2"] },
        { "command": "describe", "machine": "b", "addresses": ["10.0.0.1"] },
    ]);
    control.run_commands(commands(swap)).await.expect("both let go of what they had");
    assert_eq!(
        (at(&control, "10.0.0.2").as_deref(), at(&control, "10.0.0.1").as_deref()),
        (Some("a"), Some("b"))
    );
    let moved = json!([
        { "command": "describe", "machine": "b", "addresses": [] },
        { "command": "admit_vm", "name": "c", "host": "h1", "addresses": ["::ffff:10.0.0.1"] },
    ]);
    control.run_commands(commands(moved)).await.expect("b has let go of it");
    assert_eq!(at(&control, "10.0.0.1").as_deref(), Some("c"));
}

#[tokio::test]
async fn an_address_is_that_of_one_machine_and_a_rehearsal_says_so_too() {
    let control = server(Hypervisor::simulated()).await;
    let taken = json!([
        { "command": "admit_host", "name": "h2" },
        { "command": "describe", "machine": "a", "addresses": ["10.0.0.2"] },
    ]);
    let twice = json!([
        { "command": "admit_vm", "name": "c", "host": "h1", "addresses": ["10.0.0.7"] },
        { "command": "admit_vm", "name": "d", "host": "h1", "addresses": ["10.0.0.7"] },
    ]);
    for wrong in [taken, twice, json!([{ "command": "describe", "machine": "a", "addresses": ["10.0.0.2"] }])]
    {
        let rehearsed = control.rehearse(&commands(wrong.clone()));
        assert!(matches!(rehearsed, Err(ControlError::AddressTaken { .. })), "{wrong}");
        assert_eq!(control.run_commands(commands(wrong)).await.map(drop), rehearsed);
    }
    let hosts = control.look(|state| state.cluster.hosts().count());
    assert_eq!(hosts, Ok(1), "nothing of what was refused was done");
    assert_eq!(at(&control, "10.0.0.7"), None);
}

#[tokio::test]
async fn what_is_not_said_of_a_machine_or_a_site_stays() {
    let control = server(Hypervisor::simulated()).await;
    let order = async |all: Value| control.run_commands(commands(all)).await.expect("accepted").changes;
    assert_eq!(order(json!([{ "command": "describe", "machine": "a", "tags": { "x": "y" } }])).await, 1);
    assert_eq!(order(json!([{ "command": "describe", "machine": "a", "tags": { "x": "y" } }])).await, 0);
    assert_eq!(at(&control, "10.0.0.1").as_deref(), Some("a"), "its address was not mentioned");
    assert_eq!(order(json!([{ "command": "change_site", "location": "here" }])).await, 1);
    let site = control.look(|state| state.site.clone()).expect("a running driver");
    assert_eq!((site.location.as_str(), site.resource_group.as_str()), ("here", "forewarn"));
}

#[tokio::test]
async fn a_virtual_clock_ends_before_documents_do() {
    let control = server(Hypervisor::simulated()).await;
    let most = CLOCK_END.since(control.clock().now().wall);
    let beyond = control.drive(ClockCommand::Advance(most + Duration::from_secs(1))).await;
    assert_eq!(beyond, Err(ControlError::EndOfTime));
    control.drive(ClockCommand::Advance(most)).await.expect("it ends there");
    control.drive(ClockCommand::Run(Speed(1_000_000))).await.expect("a virtual clock");
    assert_eq!(control.clock().now().wall, CLOCK_END, "and goes no farther");
}

/// A program that reports its start, and ends on command.
#[tokio::test]
async fn a_server_that_stops_lets_a_program_end_its_work() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("driver");
    let place = folder.path().display();
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\necho > {place}/begun\ncat {place}/go > /dev/null\n\
         touch {place}/done\necho '{{\"result\":\"done\"}}'\n"
    );
    std::fs::write(&path, script).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a program");
    for pipe in ["begun", "go"].map(|name| folder.path().join(name)) {
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().expect("mkfifo").success());
    }
    let control = server(Hypervisor::program(Program { path, time_limit: Duration::from_secs(60) })).await;
    control.run_commands(commands(json!([{ "command": "restart", "machine": "a" }]))).await.expect("at once");
    let begun = folder.path().join("begun");
    tokio::task::spawn_blocking(move || std::fs::read(begun)).await.expect("no panic").expect("a pipe");
    let stopping = tokio::spawn({
        let control = control.clone();
        async move { control.stop().await }
    });
    // Nothing new starts.
    std::fs::write(folder.path().join("go"), "").expect("a file");
    stopping.await.expect("it stops");
    assert!(folder.path().join("done").exists(), "the program was heard to its end");
}
