//! Driver programs that run while their cluster moves to another server and back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_hypervisor::Program;
use forewarn_lifecycle::{
    Command, FaultDomain, HostId, MachineId, Name, Placement, Policy, Priority, Profile, Size, UpdateDomain,
};
use forewarn_realm::SimulatedEngine;
use tempfile::TempDir;

use super::tests::{TestServer, host, server_on, until};
use crate::hypervisor::Hypervisor;

/// A driver program that notes its start, and ends once it may.
struct WaitingProgram(TempDir);

impl WaitingProgram {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (path, place) = (directory.path().join("driver"), directory.path().display());
        let script = format!(
            "#!/bin/sh\ncat > /dev/null\necho begun >> {place}/begun\n\
             while [ ! -e {place}/go ]; do sleep 0.05; done\necho '{{\"result\":\"done\"}}'\n"
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(directory)
    }

    fn hypervisor(&self) -> Hypervisor {
        let path = self.0.path().join("driver");
        Hypervisor::program(Program { path, time_limit: Duration::from_secs(60) })
    }

    fn starts(&self) -> usize {
        fs::read_to_string(self.0.path().join("begun")).unwrap_or_default().lines().count()
    }

    fn let_end(&self) {
        fs::write(self.0.path().join("go"), "").unwrap();
    }
}

async fn move_to(server: &TestServer, name: &str) {
    let admin = server.control.realm_admin().unwrap();
    admin.move_cluster(ClusterId::DEFAULT, name).await.unwrap();
}

/// promise: D2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_still_runs_is_not_started_again_when_the_cluster_comes_back() {
    let (engine, first, second) = (SimulatedEngine::new(), WaitingProgram::new(), WaitingProgram::new());
    let one = server_on(first.hypervisor(), &engine, "one").await;
    one.control.submit(host("h1")).await.unwrap();
    let two = server_on(second.hypervisor(), &engine, "two").await;
    let servers = [&one, &two];
    until("both are live", || {
        let live = |server: &&TestServer| {
            let admin = server.control.realm_admin().unwrap();
            admin.view.lock().peers.live(super::view::uptime()).len() == 2
        };
        servers.iter().all(live)
    })
    .await;
    let (update_domain, fault_domain) = (UpdateDomain(0), FaultDomain(0));
    let placement = Placement { host: HostId(0), update_domain, fault_domain, size: Size::NONE };
    let (priority, profile, policy) = (Priority::Regular, Profile::default(), Policy::default());
    let name = Name::new("solo").unwrap();
    let admit = Command::AdmitStandalone { name, placement, priority, profile, policy };
    one.control.submit(admit).await.unwrap();
    one.control.submit(Command::Restart(MachineId(0))).await.unwrap();
    until("the program runs", || first.starts() == 1).await;
    move_to(&one, "two").await;
    until("the other server carries it out too", || second.starts() == 1).await;
    move_to(&one, "one").await;
    one.control.submit(host("h2")).await.unwrap();
    first.let_end();
    until("the restart is over", || {
        one.control.look(|state| state.cluster.unfinished().count() == 0).unwrap()
    })
    .await;
    second.let_end();
    one.control.stop().await;
    two.control.stop().await;
    assert_eq!((first.starts(), second.starts()), (1, 1));
}
