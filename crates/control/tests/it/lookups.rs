//! Lookups by name: their cost does not depend on the size of the cluster.

use forewarn_control::{LookupError, NamedCommand, Permit, find_machine, full_name};
use forewarn_lifecycle::Cluster;
use forewarn_lifecycle::reads;
use forewarn_testkit::TestCluster;
use serde_json::json;

/// Rows that a lookup of one machine may read: itself, its tenant and its host, for a permit and for a command.
const READS_MAX: u64 = 40;

/// A cluster with that many pairs of machines. In each pair, both have a name of their own, `vm-N` and `db-N`, and one
/// is in a tenant with another machine of the common name `web`.
fn pairs(count: u32) -> TestCluster {
    let mut cluster = TestCluster::new(count.div_ceil(100));
    for number in 0..count {
        let host = format!("h{}", number / 100 + 1);
        let (vm, set) = (format!("vm-{number}"), format!("set-{number}"));
        cluster.run_json(&json!({ "command": "admit_vm", "name": vm, "host": host }));
        cluster.run_json(&json!({ "command": "admit_availability_set", "name": set }));
        for name in [format!("db-{number}"), "web".to_owned()] {
            let machine = json!({ "name": name, "host": host });
            cluster.run_json(&json!({ "command": "admit_machine", "tenant": set, "machine": machine }));
        }
    }
    cluster
}

fn reads_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = reads();
    let done = work();
    (done, reads() - before)
}

fn found(cluster: &Cluster, name: &str) -> Result<String, LookupError> {
    find_machine(cluster, name).map(|id| full_name(cluster, id))
}

#[test]
fn a_machine_is_found_by_its_name_alone_without_a_scan() {
    let cluster = pairs(700).rules;
    for (name, expected) in [
        ("vm-699", "vm-699/vm-699"),
        ("db-350", "set-350/db-350"),
        ("set-699/web", "set-699/web"),
        ("set-0/db-0", "set-0/db-0"),
    ] {
        let (found, reads) = reads_of(|| found(&cluster, name));
        assert_eq!(found.as_deref(), Ok(expected));
        assert!(reads <= READS_MAX, "{name}: {reads}");
    }
}

#[test]
fn an_ambiguous_name_is_refused_without_a_scan() {
    let cluster = pairs(700).rules;
    let (found, reads) = reads_of(|| found(&cluster, "web"));
    let tenants = ["set-0/web", "set-1/web", "set-2/web"].map(str::to_owned).to_vec();
    assert_eq!(found, Err(LookupError::Several { name: "web".to_owned(), tenants }));
    assert!(reads <= READS_MAX, "{reads}");
}

#[test]
fn a_command_with_an_unqualified_name_costs_the_same_in_every_cluster() {
    let cost = |cluster: &Cluster, machine: &str| {
        let command = NamedCommand::Restart { machine: machine.to_owned() };
        let permit = Permit::unlimited("anyone");
        let resolve = || (permit.check_request(&command, cluster).is_ok(), command.resolve(cluster).is_ok());
        let (done, reads) = reads_of(resolve);
        assert_eq!(done, (true, true), "{machine}");
        reads
    };
    let (small, large) = (pairs(30).rules, pairs(700).rules);
    assert_eq!(cost(&small, "db-29"), cost(&large, "db-699"));
    assert!(cost(&large, "db-699") <= READS_MAX);
}

#[test]
fn a_name_that_is_not_found_is_compared_with_a_limited_number_of_names() {
    let cluster = pairs(700).rules;
    let (found, reads) = reads_of(|| found(&cluster, "vm_3"));
    assert_eq!(found.unwrap_err().to_string(), "no such machine: vm_3\n  hint: did you mean vm-3?");
    assert!(reads <= 1_100, "{reads}");
}

/// The name of a machine that has left is free, and the index does not know it any more.
#[test]
fn a_machine_that_has_left_is_not_found() {
    let mut cluster = pairs(3);
    cluster.run_json(&json!({ "command": "delete", "machine": "vm-1" }));
    cluster.tick();
    cluster.finish();
    assert!(found(&cluster.rules, "vm-1").is_err());
    cluster.run_json(&json!({ "command": "admit_vm", "name": "vm-1", "host": "h1" }));
    assert_eq!(found(&cluster.rules, "vm-1").as_deref(), Ok("vm-1/vm-1"));
}
