//! The document that the machines of a tenant read.

use forewarn_control::document_of;
use forewarn_imds::{Edition, Naming, print_date};
use forewarn_lifecycle::{
    Cluster, Command, FaultDomain, HostId, MachineId, Name, Now, Placement, Policy, Priority, Profile, Seed,
    Size, TenantId, UpdateDomain,
};

#[test]
fn a_document_is_what_its_tenant_sees() {
    let mut cluster = Cluster::new(Seed([7; 16]));
    let now = Now::at_millis(1_516_827_944_001);
    let placement = Placement {
        host: HostId(0),
        update_domain: UpdateDomain(0),
        fault_domain: FaultDomain(0),
        size: Size::NONE,
    };
    for command in [
        Command::AdmitHost { name: Name::new("h1").unwrap(), zone: None, capacity: Size::NONE },
        Command::AdmitStandalone {
            name: Name::new("solo").unwrap(),
            placement,
            priority: Priority::Regular,
            profile: Profile::default(),
            policy: Policy::default(),
        },
        Command::Enrol(TenantId(0)),
        Command::Restart(MachineId(0)),
    ] {
        for change in cluster.decide(now, &command).unwrap() {
            drop(cluster.evolve(now, &change));
        }
    }
    let tenant = cluster.tenant(TenantId(0)).unwrap();
    let document = document_of(tenant);
    assert_eq!(document.naming, Naming::Machines);
    let id = tenant.events()[0].id();
    let shown = format!(
        r#"{{"DocumentIncarnation":2,"Events":[{{"EventId":"{id}","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["_solo"],"NotBefore":"Wed, 24 Jan 2018 21:20:45 GMT"}}]}}"#
    );
    assert_eq!(document.render(Edition::V2017_03_01), shown);
    assert_eq!(print_date(now.wall), "Wed, 24 Jan 2018 21:05:44 GMT");
}
