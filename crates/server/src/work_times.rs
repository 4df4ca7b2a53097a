//! Times of unfinished actions, for metrics. They are lost with the process: after a restart, ages count from it.

use forewarn_control::{Effect, FinishedWork};
use forewarn_lifecycle::paged::PagedMap;
use forewarn_lifecycle::{Action, Cluster, MaintenanceId, Steady, Target};

type ActionKey = (MaintenanceId, Target);

/// Times of unfinished actions of one cluster. It may also contain finished actions of unfinished work.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkTimes {
    /// Requests of the steps on hosts.
    host_steps: PagedMap<ActionKey, Steady>,
    /// First responses of the driver program that left the result of an action unknown.
    unknown: PagedMap<ActionKey, Steady>,
}

/// Unfinished actions of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WaitingActions {
    pub(crate) count: u64,
    /// Time of the oldest.
    pub(crate) since: Option<Steady>,
}

impl WorkTimes {
    /// Records that an action begins, or is repeated. Returns true if readers can see it.
    pub(crate) fn begin(&mut self, action: &Action, now: Steady) -> bool {
        match action.target {
            Target::Host(_) => {
                insert_first(&mut self.host_steps, (action.maintenance, action.target), now);
                true
            }
            Target::Machine(_) | Target::Returning(_) => false,
        }
    }

    /// Records that the result of an action is unknown.
    pub(crate) fn is_unknown(&mut self, work: MaintenanceId, target: Target, now: Steady) {
        insert_first(&mut self.unknown, (work, target), now);
    }

    /// Forgets the times of work that is finished.
    pub(crate) fn follow(&mut self, effect: &Effect) {
        let Effect::WorkFinished(FinishedWork { work, .. }) = effect else { return };
        let of_work = (*work, Target::FIRST)..=(*work, Target::LAST);
        for times in [&mut self.host_steps, &mut self.unknown] {
            let keys: Vec<_> = times.range(of_work.clone()).map(|(key, _)| *key).collect();
            for key in &keys {
                times.remove(key);
            }
        }
    }

    /// The steps on hosts that are in progress.
    pub(crate) fn host_steps(&self, cluster: &Cluster) -> WaitingActions {
        unfinished(&self.host_steps, cluster)
    }

    /// The actions whose result is unknown.
    pub(crate) fn unknown(&self, cluster: &Cluster) -> WaitingActions {
        unfinished(&self.unknown, cluster)
    }
}

/// A repetition does not change the time.
fn insert_first(times: &mut PagedMap<ActionKey, Steady>, key: ActionKey, now: Steady) {
    if !times.contains_key(&key) {
        times.insert(key, now);
    }
}

fn unfinished(times: &PagedMap<ActionKey, Steady>, cluster: &Cluster) -> WaitingActions {
    let is_unfinished = |(work, target): ActionKey| {
        cluster.maintenance(work).is_some_and(|maintenance| maintenance.action_on(target).is_some())
    };
    let waiting = times.iter().filter(|(key, _)| is_unfinished(**key));
    waiting.fold(WaitingActions::default(), |WaitingActions { count, since }, (_, begun)| WaitingActions {
        count: count + 1,
        since: Some(since.map_or(*begun, |oldest| oldest.min(*begun))),
    })
}

#[cfg(test)]
mod tests {
    use forewarn_control::{ClusterId, Ending};
    use forewarn_lifecycle::{
        Command, FaultDomain, HostId, MachineId, Name, Now, Placement, Policy, Priority, Profile, Report,
        Seed, Size, UpdateDomain,
    };

    use super::*;

    const WORK: MaintenanceId = MaintenanceId(0);
    const TARGET: Target = Target::Machine(MachineId(0));

    fn submit(cluster: &mut Cluster, command: &Command) {
        let now = Now::at_millis(0);
        for change in cluster.decide(now, command).unwrap() {
            cluster.evolve(now, &change);
        }
    }

    /// A cluster with a machine that is being restarted.
    fn restarting() -> Cluster {
        let mut cluster = Cluster::new(Seed([7; 16]));
        submit(
            &mut cluster,
            &Command::AdmitHost { name: Name::new("h1").unwrap(), zone: None, capacity: Size::NONE },
        );
        let (update_domain, fault_domain) = (UpdateDomain(0), FaultDomain(0));
        let admission = Command::AdmitStandalone {
            name: Name::new("solo").unwrap(),
            placement: Placement { host: HostId(0), update_domain, fault_domain, size: Size::NONE },
            priority: Priority::Regular,
            profile: Profile::default(),
            policy: Policy::default(),
        };
        submit(&mut cluster, &admission);
        submit(&mut cluster, &Command::Restart(MachineId(0)));
        cluster
    }

    #[test]
    fn an_unknown_result_keeps_its_first_time_until_the_action_ends() {
        let (mut cluster, mut times) = (restarting(), WorkTimes::default());
        assert_eq!(times.unknown(&cluster), WaitingActions::default());
        for millis in [5, 9] {
            times.is_unknown(WORK, TARGET, Steady::from_millis(millis));
        }
        let expected = WaitingActions { count: 1, since: Some(Steady::from_millis(5)) };
        assert_eq!(times.unknown(&cluster), expected);
        let report = Report::Done;
        submit(&mut cluster, &Command::Complete { maintenance: WORK, target: TARGET, report });
        assert_eq!(times.unknown(&cluster), WaitingActions::default());
    }

    #[test]
    fn finished_work_is_forgotten() {
        let mut times = WorkTimes::default();
        times.is_unknown(WORK, TARGET, Steady::START);
        times.is_unknown(MaintenanceId(1), TARGET, Steady::START);
        let (cluster, ending, failures) = (ClusterId(0), Ending::Done, Vec::new());
        times.follow(&Effect::WorkFinished(FinishedWork { cluster, work: WORK, ending, failures }));
        let left: Vec<_> = times.unknown.keys().copied().collect();
        assert_eq!(left, [(MaintenanceId(1), TARGET)]);
    }
}
