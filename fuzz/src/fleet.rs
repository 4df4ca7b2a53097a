//! Fleet files: written as they were read, no different from themselves, and admitted to an empty cluster or refused.

use std::collections::BTreeMap;

use forewarn_control::{
    CurrentFleet, Difference, Fleet, FleetFileError, MachineDetails, Resolved, Site, UnlistedObjects,
    difference,
};
use forewarn_lifecycle::{Change, Cluster, Command, MachineId, Now, Seed, Steady, Timestamp};

/// Commands of one file that are carried out: enough to reach every rule, few enough for one step of fuzzing.
const COMMANDS_MAX: usize = 200;

/// 2026-01-01.
const START_MILLIS: i64 = 1_767_225_600_000;

pub(crate) fn examine(bytes: &[u8]) -> String {
    let Ok(text) = str::from_utf8(bytes) else { return "not text".to_owned() };
    let fleet = match Fleet::parse(text) {
        Ok(fleet) => fleet,
        Err(problem) => return first_line(&problem.to_string()),
    };
    let printed = fleet.print().expect("a fleet that was read can be written");
    assert_eq!(Fleet::parse(&printed).as_ref(), Ok(&fleet), "read otherwise than written: {printed}");
    match admit(&fleet) {
        Ok(count) => format!("{count} commands"),
        Err(refusal) => first_line(&refusal),
    }
}

fn start_of_time() -> Now {
    Now { wall: Timestamp::from_millis(START_MILLIS), steady: Steady::START }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Carries out what the file asks for. If all of it was accepted, the cluster is what the file says.
fn admit(fleet: &Fleet) -> Result<usize, String> {
    let mut admitted =
        Admitted { cluster: Cluster::new(Seed([7; 16])), details: BTreeMap::new(), site: Site::default() };
    let differences = admitted.difference(fleet, UnlistedObjects::Keep).map_err(|bad| bad.to_string())?;
    let count = differences.len();
    for command in differences.into_iter().filter_map(|one| one.command).take(COMMANDS_MAX) {
        admitted.carry_out(command.resolve(&admitted.cluster).map_err(|bad| bad.to_string())?)?;
    }
    if count <= COMMANDS_MAX {
        let rest = admitted.difference(fleet, UnlistedObjects::Remove);
        assert!(rest.as_ref().is_ok_and(Vec::is_empty), "admitted, and not the same: {rest:?}");
    }
    Ok(count)
}

struct Admitted {
    cluster: Cluster,
    details: BTreeMap<MachineId, MachineDetails>,
    site: Site,
}

impl Admitted {
    fn difference(&self, fleet: &Fleet, rest: UnlistedObjects) -> Result<Vec<Difference>, FleetFileError> {
        let details = |machine: MachineId| self.details.get(&machine);
        let current = CurrentFleet {
            cluster: &self.cluster,
            site: &self.site,
            details: &details,
            now: start_of_time(),
        };
        difference(current, fleet, rest)
    }

    fn carry_out(&mut self, resolved: Resolved) -> Result<(), String> {
        match resolved {
            Resolved::Rules(command) | Resolved::Fail(command, _) => drop(self.decide(&command)?),
            Resolved::Admit(command, details) => {
                for change in self.decide(&command)? {
                    if let Change::MachineAdmitted { machine, .. } = change {
                        self.details.insert(machine, details.clone());
                    }
                }
            }
            Resolved::Describe(machine, change) => {
                let details = self.details.entry(machine).or_default();
                *details = change.apply(details);
            }
            Resolved::Site(change) => self.site = change.apply(&self.site),
            Resolved::Jam(_) => {}
        }
        Ok(())
    }

    fn decide(&mut self, command: &Command) -> Result<Vec<Change>, String> {
        let now = start_of_time();
        let changes = self.cluster.decide(now, command).map_err(|refusal| refusal.to_string())?;
        changes.iter().for_each(|change| drop(self.cluster.evolve(now, change)));
        Ok(changes)
    }
}
