//! A fleet of any size, made of equal blocks.
//!
//! ```text
//!   one block: 5 hosts, 10 tenants, 100 machines; a tenant has 2 machines in each of 5 update domains
//!   update domain u of every tenant lies on host u of its block
//! ```

use forewarn_lifecycle::{
    Cluster, Command, FaultDomain, HostId, Name, Now, Placement, Policy, Priority, Profile, Refusal, Seed,
    SetShape, Size, TenantId, UpdateDomain,
};

const HOSTS: u32 = 5;
const TENANTS: u32 = 10;
const MACHINES_PER_TENANT: u32 = 10;
pub(crate) const MACHINES_PER_BLOCK: u32 = TENANTS * MACHINES_PER_TENANT;
pub(crate) const MACHINES_PER_HOST: u32 = MACHINES_PER_BLOCK / HOSTS;

/// Tenants that have enabled Scheduled Events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enrolled {
    All,
    One,
}

/// A fleet of whole blocks.
pub(crate) fn build(now: Now, machines: u32, enrolled: Enrolled) -> Result<Cluster, Refusal> {
    let mut cluster = Cluster::new(Seed([7; 16]));
    for block in 0..machines / MACHINES_PER_BLOCK {
        add_block(&mut cluster, now, block)?;
    }
    let tenants: Vec<_> = cluster.tenants().map(|(id, _)| id).collect();
    let count = match enrolled {
        Enrolled::All => tenants.len(),
        Enrolled::One => 1,
    };
    for tenant in tenants.into_iter().take(count) {
        submit(&mut cluster, now, &Command::Enrol(tenant))?;
    }
    Ok(cluster)
}

fn add_block(cluster: &mut Cluster, now: Now, block: u32) -> Result<(), Refusal> {
    for host in 0..HOSTS {
        let name = name(&format!("host-{block}-{host}"));
        submit(cluster, now, &Command::AdmitHost { name, zone: None, capacity: Size::NONE })?;
    }
    for index in 0..TENANTS {
        let (name, set) = (name(&format!("set-{block}-{index}")), SetShape::AvailabilitySet);
        submit(cluster, now, &Command::AdmitTenant { name, set, policy: Policy::default() })?;
        let tenant = TenantId(block * TENANTS + index);
        (0..MACHINES_PER_TENANT).try_for_each(|number| add_machine(cluster, now, (block, tenant), number))?;
    }
    Ok(())
}

fn add_machine(
    cluster: &mut Cluster,
    now: Now,
    (block, tenant): (u32, TenantId),
    number: u32,
) -> Result<(), Refusal> {
    let domain = number % HOSTS;
    let update_domain = UpdateDomain(u16::try_from(domain).unwrap_or(u16::MAX));
    let placement = Placement {
        host: HostId(block * HOSTS + domain),
        update_domain,
        fault_domain: FaultDomain(0),
        size: Size::NONE,
    };
    let name = name(&format!("vm-{number}"));
    let (priority, profile) = (Priority::Regular, Profile::default());
    submit(cluster, now, &Command::AdmitMachine { tenant, name, placement, priority, profile })
}

fn submit(cluster: &mut Cluster, now: Now, command: &Command) -> Result<(), Refusal> {
    for change in cluster.decide(now, command)? {
        cluster.evolve(now, &change);
    }
    Ok(())
}

fn name(text: &str) -> Name {
    Name::new(text).expect("letters, digits and dashes, and short")
}
