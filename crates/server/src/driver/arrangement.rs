//! Arrangements: commands, entries of the register and operations in one commit; and what becomes of them by themselves.

use forewarn_control::resource_id::ResourceId;
use forewarn_control::shared::limits::OPERATION_WAITS_MAX;
use forewarn_control::shared::{
    ClusterId, Command as Administered, Ending, Entry, Filing, Leaving, Link, Refusal,
};
use forewarn_control::{Details, Home, find_machine, find_scale_set, find_tenant};
use forewarn_lifecycle::{Change, Command, EventId, MachineId, MaintenanceId, Now, Shape, Stage, Withdrawal};

use super::Driver;
use super::listing::details_of;
use crate::engine::{Arrange, Arranged, Arrangement, LinkTo, Order, Paper, Problem, Terms};

impl Driver {
    /// Does what somebody arranges with a look at the state; nothing, if they say no.
    pub(super) fn arrange(
        &mut self,
        id: ClusterId,
        terms: Terms,
        arrange: Arrange,
    ) -> Result<Option<Arranged>, Problem> {
        let now = self.clock.now();
        self.check_token(now, &terms)?;
        let Some(arrangement) = arrange(&self.state(id).ok_or(Problem::NoSuchCluster)?) else {
            return Ok(None);
        };
        let Arrangement { commands, papers, asked, operation } = arrangement;
        self.check_room(id, &papers)?;
        if let Some(about) = &operation {
            self.kept.catalogue.check_room_for_operation(about, commands.len())?;
        }
        let token = terms.token;
        let outcome = self.order(id, Order { commands, terms: Terms { asked, ..terms } })?;
        papers.into_iter().try_for_each(|paper| self.write(now, id, paper))?;
        let open = |about: String| self.open_operation(now, id, (&about, token), &outcome.work);
        let operation = operation.map(open).transpose()?;
        Ok(Some(Arranged { outcome, operation }))
    }

    /// Whether everything can be written: nothing is done otherwise.
    fn check_room(&self, cluster: ClusterId, papers: &[Paper]) -> Result<(), Refusal> {
        let put = papers.iter().filter_map(|paper| match paper {
            Paper::Put { id, body, notes, .. } => Some((id, body, notes)),
            Paper::Remove(_) | Paper::Leave(_) => None,
        });
        self.kept.catalogue.check_room(cluster, put)
    }

    fn write(&mut self, now: Now, cluster: ClusterId, paper: Paper) -> Result<(), Problem> {
        let filing = match paper {
            Paper::Put { id, link, body, notes } => {
                let link = link.map(|link| self.linked(cluster, &link)).transpose()?;
                Filing::Put { id, cluster, link, body, notes }
            }
            Paper::Remove(id) => Filing::Remove(id),
            Paper::Leave(id) => Filing::Mark { id, leaving: Leaving::Leaves },
        };
        let link = match &filing {
            Filing::Put { link, .. } => *link,
            Filing::Remove(_) | Filing::Mark { .. } | Filing::Open { .. } | Filing::Over { .. } => None,
        };
        self.file(now, filing)?;
        link.into_iter().for_each(|link| self.move_in(now, cluster, link));
        Ok(())
    }

    /// Machines are told which resource group they are in: that of what was written of them, or of the set that they are in.
    fn move_in(&mut self, now: Now, cluster: ClusterId, link: Link) {
        let Ok(estate) = self.estate(cluster) else { return };
        let rules = &estate.cluster;
        let machines = match link {
            Link::Machine(machine) => vec![machine],
            Link::Tenant(_) => Vec::new(),
            Link::ScaleSet(set) => {
                let groups = rules.scale_set(set).map_or(&[][..], |set| &set.groups);
                let tenants = groups.iter().filter_map(|group| rules.tenant(*group));
                tenants.flat_map(|tenant| tenant.machines().iter().copied()).collect()
            }
        };
        for machine in machines {
            let Ok(estate) = self.estate(cluster) else { return };
            let known = details_of(estate, machine);
            let home = self.home_of(cluster, machine);
            if home.is_some() && known.home != home {
                let details = Details { home, ..known.clone() };
                self.describe(now, cluster, machine, details);
            }
        }
    }

    /// Where somebody has put a machine, or the scale set that it is of.
    pub(super) fn home_of(&self, cluster: ClusterId, machine: MachineId) -> Option<Home> {
        let rules = &self.estate(cluster).ok()?.cluster;
        let own = self.kept.catalogue.entry_of(cluster, Link::Machine(machine));
        let of_set = || match rules.tenant(rules.machine(machine)?.tenant)?.shape {
            Shape::PlacementGroup(set) => self.kept.catalogue.entry_of(cluster, Link::ScaleSet(set)),
            Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
        };
        let entries = [own, of_set()].map(|entry| entry.map(|(_, entry)| entry));
        let (first, site) = (entries.iter().flatten().next()?, &self.estate(cluster).ok()?.site);
        let location = |entry: &&Entry| {
            let body: serde_json::Value = serde_json::from_slice(&entry.body.0).ok()?;
            Some(body["location"].as_str()?.to_owned())
        };
        let location = entries.iter().flatten().find_map(location).unwrap_or_else(|| site.location.clone());
        Some(Home { resource_group: ResourceId::parse(&first.id)?.group.name, location })
    }

    fn linked(&self, cluster: ClusterId, link: &LinkTo) -> Result<Link, Problem> {
        let rules = &self.estate(cluster)?.cluster;
        let unknown = |unknown| Problem::from(forewarn_control::BadCommand::Unknown(unknown));
        Ok(match link {
            LinkTo::Known(link) => *link,
            LinkTo::Machine(name) => Link::Machine(find_machine(rules, name).map_err(unknown)?),
            LinkTo::Tenant(name) => Link::Tenant(find_tenant(rules, name).map_err(unknown)?),
            LinkTo::ScaleSet(name) => Link::ScaleSet(find_scale_set(rules, name).map_err(unknown)?),
        })
    }

    fn open_operation(
        &mut self,
        now: Now,
        cluster: ClusterId,
        (about, token): (&str, Option<u32>),
        work: &[u64],
    ) -> Result<forewarn_control::shared::Operation, Problem> {
        let rules = &self.estate(cluster)?.cluster;
        let waits = |id: &MaintenanceId| {
            let work = rules.maintenance(*id);
            work.is_some_and(|work| matches!(work.stage, Stage::Waiting(_)) && work.plan.cause.is_asked_for())
        };
        // What there is room for was looked at before anything was done.
        let waits = work.iter().copied().map(MaintenanceId).filter(waits).take(OPERATION_WAITS_MAX).collect();
        let mut own = self.identity;
        own.0[0] ^= OPERATIONS;
        let name = EventId::nth(&own, self.kept.catalogue.next_operation()).to_string().to_lowercase();
        let about = about.to_owned();
        self.file(now, Filing::Open { name: name.clone(), about, cluster, waits, token })?;
        self.kept.catalogue.operation(&name).cloned().ok_or(Problem::Unavailable)
    }

    fn file(&mut self, now: Now, filing: Filing) -> Result<usize, Refusal> {
        self.catalogue(now, &Administered::File(filing))
    }

    /// A change of a cluster may end what somebody waits for, or take along what was written of something.
    pub(super) fn follow_up(&mut self, now: Now, cluster: ClusterId, change: &Change) {
        let filing = self.work_over(cluster, change).or_else(|| self.gone_with(cluster, change));
        if let Some(Err(refusal)) = filing.map(|filing| self.file(now, filing)) {
            tracing::error!(%refusal, "the register refuses what follows from the rules");
        }
    }

    /// Work that has started, or has been taken back, ends what waits for it.
    fn work_over(&self, cluster: ClusterId, change: &Change) -> Option<Filing> {
        let (maintenance, how) = if let Change::Started { maintenance, .. } = change {
            (*maintenance, Ending::Succeeded)
        } else if let Change::Withdrawn { maintenance, why, .. } = change {
            (self.is_gone(cluster, *maintenance).then_some(*maintenance)?, ending_of(*why))
        } else {
            return None;
        };
        Some(Filing::Over { cluster, maintenance, how })
    }

    /// What was written of something goes with it.
    fn gone_with(&self, cluster: ClusterId, change: &Change) -> Option<Filing> {
        let link = if let Change::Completed { machine, .. } | Change::MachineForgotten(machine) = change {
            Link::Machine(*machine)
        } else if let Change::TenantRemoved(tenant) = change {
            Link::Tenant(*tenant)
        } else if let Change::ScaleSetRemoved(set) = change {
            Link::ScaleSet(*set)
        } else {
            return None;
        };
        self.entry_if_gone(cluster, link).map(Filing::Remove)
    }

    fn is_gone(&self, cluster: ClusterId, maintenance: MaintenanceId) -> bool {
        self.estate(cluster).is_ok_and(|estate| estate.cluster.maintenance(maintenance).is_none())
    }

    /// The id under which something was written that the rules no longer know.
    fn entry_if_gone(&self, cluster: ClusterId, link: Link) -> Option<String> {
        let rules = &self.estate(cluster).ok()?.cluster;
        let is_there = match link {
            Link::Machine(machine) => rules.machine(machine).is_some(),
            Link::Tenant(tenant) => rules.tenant(tenant).is_some(),
            Link::ScaleSet(set) => rules.scale_set(set).is_some(),
        };
        let (_, entry) = self.kept.catalogue.entry_of(cluster, link)?;
        (!is_there).then(|| entry.id.clone())
    }

    /// Takes away the first thing that goes and of which nothing is left. Says whether there was one.
    pub(super) fn sweep(&mut self, now: Now) -> bool {
        let keys: Vec<_> = self.kept.catalogue.entries_leaving().map(str::to_owned).collect();
        keys.iter().any(|key| self.sweep_one(now, key))
    }

    fn sweep_one(&mut self, now: Now, key: &str) -> bool {
        let Some(entry) = self.kept.catalogue.entry(key).cloned() else { return false };
        match self.fate(key, &entry) {
            Fate::Waits => false,
            Fate::Goes(Some(command)) => match self.decide(now, entry.cluster, &command) {
                // The entry goes with what it is linked to.
                Ok(changes) => !changes.is_empty(),
                Err(refusal) => {
                    tracing::debug!(%refusal, id = entry.id, "something that goes is still needed");
                    false
                }
            },
            Fate::Goes(None) => self.file(now, Filing::Remove(entry.id)).is_ok_and(|changes| changes > 0),
            Fate::Stays => {
                let stays = Filing::Mark { id: entry.id, leaving: Leaving::Stays };
                self.file(now, stays).is_ok_and(|changes| changes > 0)
            }
        }
    }

    /// What becomes of an entry that is on its way out.
    fn fate(&self, key: &str, entry: &Entry) -> Fate {
        let Ok(estate) = self.estate(entry.cluster) else { return Fate::Goes(None) };
        let rules = &estate.cluster;
        let of = |machines: Vec<MachineId>, command| {
            if machines.is_empty() {
                return Fate::Goes(Some(command));
            }
            // What was to be deleted and could not be keeps its set.
            if machines.iter().any(|machine| rules.is_leaving(*machine)) { Fate::Waits } else { Fate::Stays }
        };
        match entry.link {
            Some(Link::ScaleSet(id)) => match rules.scale_set(id) {
                None => Fate::Goes(None),
                Some(set) => {
                    let groups = set.groups.iter().filter_map(|group| rules.tenant(*group));
                    let machines = groups.flat_map(|tenant| tenant.machines().iter().copied()).collect();
                    of(machines, Command::RemoveScaleSet(id))
                }
            },
            Some(Link::Tenant(id)) => match rules.tenant(id) {
                None => Fate::Goes(None),
                Some(tenant) => of(tenant.machines().to_vec(), Command::RemoveTenant(id)),
            },
            Some(Link::Machine(_)) => Fate::Waits,
            None => self.fate_of_group(key, entry),
        }
    }

    fn fate_of_group(&self, key: &str, entry: &Entry) -> Fate {
        let catalogue = &self.kept.catalogue;
        let Ok(estate) = self.estate(entry.cluster) else { return Fate::Goes(None) };
        let (mut any, mut any_leaves) = (false, false);
        for (_, inside) in catalogue.entries_below(&format!("{key}/")) {
            any = true;
            any_leaves |= inside.leaving == Leaving::Leaves
                || matches!(inside.link, Some(Link::Machine(machine)) if estate.cluster.is_leaving(machine));
        }
        match (any, any_leaves) {
            (false, _) => Fate::Goes(None),
            (true, true) => Fate::Waits,
            (true, false) => Fate::Stays,
        }
    }
}

/// What becomes of an entry that is on its way out.
enum Fate {
    /// Something of it is still there.
    Waits,
    /// Nothing is left of it: it goes by itself, or with this.
    Goes(Option<Command>),
    /// What it has will stay.
    Stays,
}

/// Names of operations are made as ids of events are, of a secret of their own.
const OPERATIONS: u8 = 3;

fn ending_of(why: Withdrawal) -> Ending {
    match why {
        Withdrawal::Cancelled | Withdrawal::Postponed => Ending::Canceled,
        Withdrawal::Superseded
        | Withdrawal::Unconcerned
        | Withdrawal::HostFailed
        | Withdrawal::HostRecovered => Ending::Failed {
            code: "OperationPreempted".to_owned(),
            message: "The operation has been preempted by a more recent operation.".to_owned(),
        },
    }
}
