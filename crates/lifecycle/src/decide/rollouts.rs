//! Rollouts: accepted, paused, resumed, changed, cancelled; and the obstacles to their next group.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_types::{HostId, RolloutId};

use super::draft::Draft;
use crate::change::Change;
use crate::fleet::{Health, HostAttention};
use crate::host_step::HostTask;
use crate::host_step::HostWork;
use crate::limits::{HOSTS_PER_ROLLOUT_MAX, PAUSE_BETWEEN_MAX, ROLLOUTS_MAX, WINDOWS_PER_ROLLOUT_MAX};
use crate::maintenance::{Cause, Maintenance, Withdrawal};
use crate::policy::Brake;
use crate::refusal::Refusal;
use crate::rollout::{Announced, HealthGate, HostResult, Pause, Rollout, RolloutEnd, RolloutTerms, Standing};
use crate::window;

impl<'a> Draft<'a> {
    /// Accepts work on hosts, and announces the first group if it may be announced now.
    pub(super) fn rollout(
        &mut self,
        work: &HostTask,
        named: &[HostId],
        terms: &'a RolloutTerms,
    ) -> Result<(), Refusal> {
        if named.is_empty() {
            return Err(Refusal::NoHosts);
        }
        check_terms(terms)?;
        Refusal::check(named.len(), HOSTS_PER_ROLLOUT_MAX, "hosts in a rollout")?;
        Refusal::check(self.cluster.rollouts.len() + 1, ROLLOUTS_MAX, "rollouts at once")?;
        let hosts = deduplicated(named);
        self.check_free(&hosts)?;
        hosts.iter().try_for_each(|id| self.check_workable(work.kind, *id))?;
        self.check_windows_meet(terms, hosts.iter().copied())?;
        let rollout = RolloutId(self.next.rollout);
        let (windows, planned) = (&terms.windows, terms.clone());
        self.windows = windows;
        let (work_planned, hosts_planned) = (work.clone(), hosts.clone());
        self.changes.push(Change::RolloutPlanned {
            rollout,
            work: work_planned,
            terms: planned,
            hosts: hosts_planned,
        });
        match self.brake_or_window(work, terms) {
            Some(standing) => self.waits(rollout, standing),
            None => {
                let first = self.first_waiting(hosts.iter().copied(), work);
                self.announce_group(rollout, work, terms, &first)?;
            }
        }
        Ok(())
    }

    /// Rejects hosts that another rollout works on, or will. The rejection names all of them.
    fn check_free(&self, hosts: &[HostId]) -> Result<(), Refusal> {
        let known = hosts.iter().filter_map(|id| self.cluster.host(*id));
        let busy: Vec<_> =
            known.filter(|host| host.rollout.is_some()).map(|host| host.name.clone()).collect();
        if busy.is_empty() { Ok(()) } else { Err(Refusal::HostsInRollout(busy)) }
    }

    fn check_workable(&mut self, work: HostWork, id: HostId) -> Result<(), Refusal> {
        let host = self.cluster.known_host(id)?;
        if host.health == Health::Failed {
            return Err(Refusal::HostFailed(host.name.clone()));
        }
        if host.attention == HostAttention::Needed {
            return Err(Refusal::HostNeedsAttention(host.name.clone()));
        }
        if host.rollout.is_some() {
            return Err(Refusal::HostBusy(host.name.clone()));
        }
        let is_mode = matches!(work, HostWork::Maintenance { .. });
        match &host.mode {
            Some(_) if is_mode => return Ok(()),
            Some(_) => return Err(Refusal::HostInMaintenance(host.name.clone())),
            None if is_mode => return Err(Refusal::HostNotInMaintenance(host.name.clone())),
            None => {}
        }
        if work != HostWork::Migration {
            return Ok(());
        }
        let begun = self.moves.len();
        let stuck = self.stuck_machine(self.cluster.machines_on(id), &[id]);
        let refused = stuck.map_or(Ok(()), |machine| Err(self.no_host(machine, &[id])));
        self.moves.truncate(begun);
        refused
    }

    /// Continues a rollout: it announces a group, waits, or ends.
    pub(super) fn advance(&mut self, id: RolloutId) -> Result<(), Refusal> {
        let rollout = self.cluster.rollout(id).ok_or(Refusal::NoSuchRollout)?;
        if rollout.waiting.is_empty() {
            self.changes.push(Change::RolloutEnded { rollout: id, how: RolloutEnd::Finished });
            return Ok(());
        }
        if let Some(standing) = self.blocking_standing(id, rollout) {
            self.waits(id, standing);
            return Ok(());
        }
        let first = self.first_waiting(rollout.waiting.iter(), &rollout.work);
        self.announce_group(id, &rollout.work, &rollout.terms, &first)
    }

    pub(super) fn waits(&mut self, rollout: RolloutId, standing: Standing) {
        self.changes.push(Change::RolloutWaits { rollout, standing });
    }

    /// The reason why a rollout announces nothing, whatever its hosts are. Reasons that need an operator come first.
    fn blocking_standing(&self, id: RolloutId, rollout: &Rollout) -> Option<Standing> {
        if rollout.pause.is_some() {
            return Some(Standing::Paused);
        }
        if rollout.is_unconfirmed() {
            return Some(Standing::Unconfirmed);
        }
        if let Some(until) = rollout.rests_until().filter(|until| *until > self.now.steady) {
            return Some(Standing::Rests { until });
        }
        let is_unwell = match rollout.terms.health {
            HealthGate::Ignored => false,
            HealthGate::Awaited => self.cluster.unhealthy_hosts_of(rollout).next().is_some(),
            HealthGate::Machines => {
                let mut hosts = self.cluster.unhealthy_hosts_of(rollout);
                hosts.next().is_some() || self.cluster.machines_away(id).next().is_some()
            }
        };
        if is_unwell {
            return Some(Standing::Unwell);
        }
        self.brake_or_window(&rollout.work, &rollout.terms)
    }

    /// While the brake is on, a notice would run out in vain. A notice also has to end in a window.
    fn brake_or_window(&self, work: &HostTask, terms: &RolloutTerms) -> Option<Standing> {
        if self.cluster.brake == Brake::On {
            return Some(Standing::Brake);
        }
        let announces = window::next_announcement(&terms.windows, self.now.wall, notice_of(work));
        (announces > self.now.wall).then_some(Standing::Window { announces })
    }

    /// Stops new announcements. The announced group stays, or is withdrawn.
    pub(super) fn pause_rollout(&mut self, id: RolloutId, announced: Announced) -> Result<(), Refusal> {
        let rollout = self.cluster.rollout(id).ok_or(Refusal::NoSuchRollout)?;
        if rollout.pause.is_none() {
            self.changes.push(Change::RolloutPaused { rollout: id, why: Pause::Operator });
        }
        if let (Announced::TakenBack, Some(group)) = (announced, self.announced_group(rollout)) {
            self.withdraw_all(group, Withdrawal::Postponed);
        }
        Ok(())
    }

    fn announced_group(&self, rollout: &Rollout) -> Option<&'a Maintenance> {
        let group = rollout.current().and_then(|id| self.cluster.maintenance(id));
        group.filter(|group| group.wait().is_some())
    }

    /// Resumes a rollout. No effect if it only waits for time or room.
    pub(super) fn resume_rollout(&mut self, id: RolloutId) -> Result<(), Refusal> {
        let rollout = self.cluster.rollout(id).ok_or(Refusal::NoSuchRollout)?;
        let waits = matches!(rollout.standing, Standing::Unconfirmed | Standing::Unwell);
        if rollout.pause.is_some() || waits {
            self.changes.push(Change::RolloutResumed(id));
        }
        Ok(())
    }

    /// Changes the terms and the hosts of a rollout. The announced group stays announced.
    pub(super) fn change_rollout(
        &mut self,
        id: RolloutId,
        terms: &RolloutTerms,
        add: &[HostId],
        remove: &[HostId],
    ) -> Result<(), Refusal> {
        let rollout = self.cluster.rollout(id).ok_or(Refusal::NoSuchRollout)?;
        check_terms(terms)?;
        let waiting = &rollout.waiting;
        let removed = deduplicated(remove);
        for host in &removed {
            let known = self.cluster.known_host(*host)?;
            if !waiting.contains(*host) {
                return Err(Refusal::NotWaiting(known.name.clone()));
            }
        }
        let mut added = deduplicated(add);
        added.retain(|host| !waiting.contains(*host));
        for host in &added {
            self.check_workable(rollout.work.kind, *host)?;
            if rollout.past.get(host) == Some(&HostResult::Done) {
                return Err(Refusal::AlreadyDone(self.cluster.known_host(*host)?.name.clone()));
            }
        }
        let all = rollout.host_count() + added.len();
        Refusal::check(all, HOSTS_PER_ROLLOUT_MAX, "hosts in a rollout")?;
        if terms.windows != rollout.terms.windows || !added.is_empty() {
            let gone: BTreeSet<_> = removed.iter().collect();
            let left = waiting.iter().filter(|host| !gone.contains(host));
            self.check_windows_meet(terms, left.chain(added.iter().copied()))?;
        }
        if *terms != rollout.terms || !added.is_empty() || !removed.is_empty() {
            let terms = terms.clone();
            self.changes.push(Change::RolloutChanged { rollout: id, terms, added, removed });
        }
        Ok(())
    }

    /// Cancels a rollout. Started work continues.
    pub(super) fn cancel_rollout(&mut self, id: RolloutId) -> Result<(), Refusal> {
        let rollout = self.cluster.rollout(id).ok_or(Refusal::NoSuchRollout)?;
        if let Some(group) = self.announced_group(rollout) {
            self.withdraw_all(group, Withdrawal::Cancelled);
        }
        self.changes.push(Change::RolloutEnded { rollout: id, how: RolloutEnd::Cancelled });
        Ok(())
    }
}

/// The notice of work on hosts.
pub(super) fn notice_of(work: &HostTask) -> Duration {
    let cause = Cause::HostWork { rollout: RolloutId(0), work: work.clone(), hosts: Vec::new() };
    cause.event_template().map(|template| template.notice).unwrap_or_default()
}

fn check_terms(terms: &RolloutTerms) -> Result<(), Refusal> {
    Refusal::check(terms.windows.len(), WINDOWS_PER_ROLLOUT_MAX, "windows of a rollout")?;
    if terms.pause_between > PAUSE_BETWEEN_MAX { Err(Refusal::PauseTooLong) } else { Ok(()) }
}

/// The hosts in the order in which they are named, each once.
fn deduplicated(named: &[HostId]) -> Vec<HostId> {
    let mut seen = BTreeSet::new();
    named.iter().copied().filter(|id| seen.insert(*id)).collect()
}
