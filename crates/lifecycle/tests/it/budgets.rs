//! The budgets of a rollout, one at a time: which hosts its first group has.

use forewarn_lifecycle::*;

use crate::bare::{TestRules, at};

/// The first group of a rollout over four hosts. Each has a machine of one tenant, in fault domains 0, 1, 0 and 1.
fn first_group(terms: RolloutTerms) -> Vec<u32> {
    let mut bare = TestRules::with_hosts(4);
    let scale_set = bare.scale_set("web", Orchestration::Uniform, Profile::default());
    for host in 0..4 {
        let fault_domain = FaultDomain(u16::from(host % 2 == 1));
        let placement = Placement { fault_domain, ..at(host, 0) };
        bare.submit(Command::AdmitInstance { scale_set, placement, number: None }).unwrap();
    }
    let (work, hosts) = (HostWork::Restart.into(), (0..4).map(HostId).collect());
    bare.submit(Command::Rollout { work, hosts, terms }).unwrap();
    let group = bare.cluster.maintenance(MaintenanceId(0)).unwrap();
    group.plan.hosts().iter().map(|HostId(host)| *host).collect()
}

/// promise: R1
#[test]
fn each_budget_limits_the_first_group_without_the_other() {
    let terms = RolloutTerms::default;
    let half = Percent::new(50);
    assert_eq!(first_group(terms()), [0, 1, 2, 3], "no budget");
    assert_eq!(first_group(RolloutTerms { tenant_share: half, ..terms() }), [0, 1], "a share");
    let fault_domains = FaultDomains::OneAtATime;
    assert_eq!(first_group(RolloutTerms { fault_domains, ..terms() }), [0, 2], "one fault domain");
}
