//! A fleet of any size, made of equal blocks, so that a larger fleet is more of the same.
//!
//! ```text
//!   one block: 5 hosts, 100 machines, 21 tenants
//!              a scale set of 50, four availability sets of 5, two cloud services of 8, 14 standalone machines
//!   update domain u of every tenant lies on host u of its block; two standalone machines are spot
//! ```

use forewarn_lifecycle::{
    Change, Cluster, Command, EvictionPolicy, FaultDomain, HostId, Name, Now, Orchestration, Placement,
    Policy, Priority, Profile, Refusal, ScaleSetId, Seed, SetShape, Size, TenantId, TerminateNotice,
    UpdateDomain, UpgradePolicy,
};

/// What one block is made of.
pub const MACHINES_PER_BLOCK: u32 = 100;
pub const HOSTS_PER_BLOCK: u32 = 5;
const SCALE_SET_INSTANCES: u32 = 50;
const AVAILABILITY_SETS: u32 = 4;
const AVAILABILITY_SET_MACHINES: u32 = 5;
const CLOUD_SERVICES: u32 = 2;
const CLOUD_SERVICE_MACHINES: u32 = 8;
const STANDALONE_MACHINES: u32 = 14;
const SPOT_MACHINES: u32 = 2;
const TENANTS_PER_BLOCK: u32 = 1 + AVAILABILITY_SETS + CLOUD_SERVICES + STANDALONE_MACHINES;

/// The tenants that the mix works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block(pub u32);

/// A state that has the rules in it.
pub trait RulesState {
    fn rules(&self) -> &Cluster;

    fn evolve_rules(&mut self, now: Now, change: Change);
}

impl RulesState for Cluster {
    fn rules(&self) -> &Cluster {
        self
    }

    fn evolve_rules(&mut self, now: Now, change: Change) {
        self.evolve(now, &change);
    }
}

struct Builder<'a, S> {
    state: &'a mut S,
    block: u32,
}

/// A fleet of that many blocks, every tenant enrolled.
///
/// # Errors
/// Fails if the rules refuse it.
pub fn build(blocks: u32) -> Result<Cluster, Refusal> {
    let mut cluster = Cluster::new(Seed([7; 16]));
    build_in(&mut cluster, blocks)?;
    Ok(cluster)
}

/// Adds that many blocks to an empty state, every tenant enrolled.
///
/// # Errors
/// Fails if the rules refuse one of them.
pub fn build_in(state: &mut impl RulesState, blocks: u32) -> Result<(), Refusal> {
    (0..blocks).try_for_each(|block| Builder { state, block }.add_block())
}

/// Where the `index`-th machine of a set goes within a block.
fn placement(block: u32, index: u32) -> Placement {
    let domain = (index % HOSTS_PER_BLOCK) as u16;
    let host = HostId(block * HOSTS_PER_BLOCK + u32::from(domain));
    Placement {
        host,
        update_domain: UpdateDomain(domain),
        fault_domain: FaultDomain(domain % 3),
        size: Size::NONE,
    }
}

/// A name made of letters and digits, which is always one.
pub fn name(text: &str) -> Name {
    Name::new(text).expect("letters, digits and dashes, and short")
}

/// Machines of availability sets are told of their own deletion.
pub fn told_of_deletion() -> Profile {
    Profile { terminate: Some(TerminateNotice::MIN), ..Profile::default() }
}

impl Block {
    /// The scale set's only placement group.
    pub fn placement_group(self) -> TenantId {
        self.tenant(0)
    }

    pub fn availability_set(self, index: u32) -> TenantId {
        self.tenant(1 + index % AVAILABILITY_SETS)
    }

    pub fn cloud_service(self, index: u32) -> TenantId {
        self.tenant(1 + AVAILABILITY_SETS + index % CLOUD_SERVICES)
    }

    pub fn spot_machine(self, index: u32) -> TenantId {
        self.standalone(index % SPOT_MACHINES)
    }

    /// A standalone machine that is not spot.
    pub fn regular_machine(self, index: u32) -> TenantId {
        self.standalone(SPOT_MACHINES + index % (STANDALONE_MACHINES - SPOT_MACHINES))
    }

    pub fn host(self, index: u32) -> HostId {
        HostId(self.0 * HOSTS_PER_BLOCK + index % HOSTS_PER_BLOCK)
    }

    fn standalone(self, index: u32) -> TenantId {
        self.tenant(1 + AVAILABILITY_SETS + CLOUD_SERVICES + index)
    }

    fn tenant(self, index: u32) -> TenantId {
        TenantId(self.0 * TENANTS_PER_BLOCK + index)
    }
}

impl<S: RulesState> Builder<'_, S> {
    fn add_block(&mut self) -> Result<(), Refusal> {
        for host in 0..HOSTS_PER_BLOCK {
            let name = name(&format!("host-{}", self.block * HOSTS_PER_BLOCK + host));
            self.submit(&Command::AdmitHost { name, zone: None, capacity: Size::NONE })?;
        }
        self.add_scale_set()?;
        for set in 0..AVAILABILITY_SETS {
            let name = format!("set-{}-{set}", self.block);
            self.add_set(&name, SetShape::AvailabilitySet, AVAILABILITY_SET_MACHINES, told_of_deletion())?;
        }
        for service in 0..CLOUD_SERVICES {
            let name = format!("service-{}-{service}", self.block);
            self.add_set(&name, SetShape::CloudService, CLOUD_SERVICE_MACHINES, Profile::default())?;
        }
        (0..STANDALONE_MACHINES).try_for_each(|index| self.add_standalone(index))?;
        let first = self.block * TENANTS_PER_BLOCK;
        (first..first + TENANTS_PER_BLOCK).try_for_each(|id| self.submit(&Command::Enrol(TenantId(id))))
    }

    fn add_scale_set(&mut self) -> Result<(), Refusal> {
        self.submit(&Command::AdmitScaleSet {
            name: name(&format!("web-{}", self.block)),
            orchestration: Orchestration::Uniform,
            priority: Priority::Regular,
            upgrade: UpgradePolicy::Manual,
            model: Profile::default(),
            policy: Policy::default(),
            size: Size::NONE,
        })?;
        let (scale_set, block) = (ScaleSetId(self.block), self.block);
        (0..SCALE_SET_INSTANCES).try_for_each(|index| {
            self.submit(&Command::AdmitInstance {
                scale_set,
                placement: placement(block, index),
                number: None,
            })
        })
    }

    fn add_set(
        &mut self,
        set_name: &str,
        set: SetShape,
        machines: u32,
        profile: Profile,
    ) -> Result<(), Refusal> {
        self.submit(&Command::AdmitTenant { name: name(set_name), set, policy: Policy::default() })?;
        let tenant = self.state.rules().tenant_named(set_name).ok_or(Refusal::NoSuchTenant)?;
        let block = self.block;
        (0..machines).try_for_each(|index| {
            self.submit(&Command::AdmitMachine {
                tenant,
                name: name(&format!("{set_name}-{index}")),
                placement: placement(block, index),
                priority: Priority::Regular,
                profile,
            })
        })
    }

    fn add_standalone(&mut self, index: u32) -> Result<(), Refusal> {
        let spot = Priority::Spot(EvictionPolicy::Deallocate);
        self.submit(&Command::AdmitStandalone {
            name: name(&format!("vm-{}-{index}", self.block)),
            placement: placement(self.block, index),
            priority: if index < SPOT_MACHINES { spot } else { Priority::Regular },
            profile: Profile::default(),
            policy: Policy::default(),
        })
    }

    fn submit(&mut self, command: &Command) -> Result<(), Refusal> {
        let now = Now::at_millis(0);
        for change in self.state.rules().decide(now, command)? {
            self.state.evolve_rules(now, change);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_lifecycle::{Enrolment, Shape};

    #[test]
    fn a_block_is_what_its_picture_says() {
        let cluster = build(3).unwrap();
        assert_eq!((cluster.machines().count(), cluster.hosts().count()), (300, 15));
        assert!(cluster.tenants().all(|(_, tenant)| tenant.enrolment != Enrolment::Disabled));
        assert!(cluster.hosts().all(|(_, host)| (18..=23).contains(&host.machines().len())));
        let block = Block(2);
        let shape = |tenant| cluster.tenant(tenant).unwrap().shape;
        assert_eq!(shape(block.placement_group()), Shape::PlacementGroup(ScaleSetId(2)));
        assert_eq!(shape(block.availability_set(7)), Shape::AvailabilitySet);
        assert_eq!(shape(block.cloud_service(1)), Shape::CloudService);
        assert_eq!(shape(block.spot_machine(1)), Shape::StandaloneMachine);
        assert_eq!(cluster.tenant(block.regular_machine(11)).unwrap().name.as_str(), "vm-2-13");
        assert_eq!(cluster.host(block.host(4)).unwrap().name.as_str(), "host-14");
    }
}
