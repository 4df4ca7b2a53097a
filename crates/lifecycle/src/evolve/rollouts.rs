//! Application of changes to rollouts, from the plan to the record of ended ones.

use std::sync::Arc;

use forewarn_types::{HostId, MachineId, MaintenanceId, Now, RolloutId};

use crate::action::Action;
use crate::agenda::Due;
use crate::change::Effect;
use crate::cluster::Cluster;
use crate::host_step::HostTask;
use crate::limits::{ENDED_ROLLOUT_HOSTS_MAX, ENDED_ROLLOUTS_MAX};
use crate::maintenance::{Cause, Hold, Wait};
use crate::paged::{PagedMap, PagedSet};
use crate::rollout::{
    EndedRollout, HealthGate, HostResult, Pause, Presence, RecheckTime, Rollout, RolloutEnd, RolloutTerms,
    Standing,
};

/// The way in which a group ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupEnd {
    /// It was carried out.
    Done,
    /// It never started, and will not.
    Skipped,
    /// It has not started, and its hosts wait again.
    Postponed,
}

impl Cluster {
    pub(super) fn rollout_planned(
        &mut self,
        now: Now,
        id: RolloutId,
        work: &HostTask,
        terms: &RolloutTerms,
        hosts: &[HostId],
    ) {
        self.next.rollout = id.0 + 1;
        self.claim(hosts.iter().copied(), Some(id));
        let rollout = Rollout {
            work: work.clone(),
            terms: terms.clone(),
            planned_at: now.wall,
            waiting: hosts.iter().copied().collect(),
            past: PagedMap::new(),
            standing: Standing::Next,
            pause: None,
            failures: 0,
            groups: 0,
            confirmed: 0,
            group_over: None,
            last_machines: Vec::new(),
            excused: PagedSet::new(),
        };
        self.rollouts.insert(id, Arc::new(rollout));
        self.list_rollout(id);
    }

    /// Gives hosts to a rollout, or sets them free.
    fn claim(&mut self, hosts: impl Iterator<Item = HostId>, rollout: Option<RolloutId>) {
        for host in hosts {
            if let Some(host) = self.hosts.get_mut(&host) {
                host.rollout = rollout;
            }
        }
    }

    /// Moves a rollout from one list to another.
    pub(super) fn set_standing(&mut self, id: RolloutId, standing: Standing) {
        self.unlist_rollout(id);
        if let Some(rollout) = self.rollouts.get_mut(&id).map(Arc::make_mut) {
            rollout.standing = standing;
        }
        self.list_rollout(id);
    }

    /// Puts a rollout into the list in which it waits, if it waits for time.
    pub(crate) fn list_rollout(&mut self, id: RolloutId) {
        match self.rollout(id).and_then(Rollout::recheck_time) {
            Some(RecheckTime::Steady(at)) => self.agenda.add(at, Due::Advance(id)),
            Some(RecheckTime::Wall(at)) => self.agenda.add_wall(at, Due::Advance(id)),
            None => {}
        }
    }

    fn unlist_rollout(&mut self, id: RolloutId) {
        match self.rollout(id).and_then(Rollout::recheck_time) {
            Some(RecheckTime::Steady(at)) => self.agenda.remove(at, Due::Advance(id)),
            Some(RecheckTime::Wall(at)) => self.agenda.remove_wall(at, Due::Advance(id)),
            None => {}
        }
    }

    pub(super) fn rollout_paused(&mut self, id: RolloutId, why: Pause) {
        let Some(rollout) = self.rollouts.get_mut(&id).map(Arc::make_mut) else { return };
        rollout.pause = Some(why);
        if rollout.current().is_none() {
            self.set_standing(id, Standing::Paused);
        }
    }

    /// Resuming acknowledges the failures so far; and the unhealthy hosts and the machines that have not returned, if the
    /// rollout waits for them.
    pub(super) fn rollout_resumed(&mut self, id: RolloutId, out: &mut Vec<Effect>) {
        let Some(rollout) = self.rollouts.get(&id) else { return };
        let looked = rollout.standing == Standing::Unwell;
        let seen: Vec<_> = self.unhealthy_hosts_of(rollout).filter(|_| looked).collect();
        let Some(rollout) = self.rollouts.get_mut(&id).map(Arc::make_mut) else { return };
        (rollout.pause, rollout.failures, rollout.confirmed) = (None, 0, rollout.groups);
        rollout.excused.extend(seen);
        if looked {
            self.forget_presences(id, |_| true, out);
        }
        self.recheck_if_idle(id);
    }

    pub(super) fn rollout_changed(
        &mut self,
        id: RolloutId,
        terms: &RolloutTerms,
        added: &[HostId],
        removed: &[HostId],
        out: &mut Vec<Effect>,
    ) {
        let Some(rollout) = self.rollouts.get_mut(&id).map(Arc::make_mut) else { return };
        rollout.terms = terms.clone();
        removed.iter().for_each(|host| rollout.waiting.remove(*host));
        for host in added {
            rollout.waiting.push(*host);
            rollout.past.remove(host);
        }
        let current = rollout.current();
        self.claim(removed.iter().copied(), None);
        self.claim(added.iter().copied(), Some(id));
        let group = current.and_then(|group| self.maintenances.get(&group));
        let held = group.filter(|group| matches!(group.wait(), Some(Wait::Held(Hold::Window { .. }))));
        if let Some(group) = held.map(|group| group.plan.id) {
            self.recheck(group);
        }
        if terms.health != HealthGate::Machines {
            self.forget_presences(id, |_| true, out);
        }
        self.recheck_if_idle(id);
    }

    /// Hosts of a group in progress are released when the group ends.
    pub(super) fn rollout_ended(&mut self, now: Now, id: RolloutId, how: RolloutEnd, out: &mut Vec<Effect>) {
        self.unlist_rollout(id);
        let Some(rollout) = self.rollouts.remove(&id) else { return };
        self.forget_presences(id, |_| true, out);
        self.claim(rollout.waiting.iter(), None);
        let mut hosts = rollout.host_count();
        self.ended_rollouts
            .push((id, Arc::new(EndedRollout { rollout: Arc::unwrap_or_clone(rollout), at: now.wall, how })));
        let latest_first = self.ended_rollouts.iter().rev().skip(1);
        let fits = |(_, ended): &&(RolloutId, Arc<EndedRollout>)| {
            hosts += ended.rollout.host_count();
            hosts <= ENDED_ROLLOUT_HOSTS_MAX
        };
        let kept = 1 + latest_first.take(ENDED_ROLLOUTS_MAX - 1).take_while(fits).count();
        self.ended_rollouts.drain(..self.ended_rollouts.len() - kept);
    }

    /// A group of a rollout is announced.
    pub(super) fn group_planned(&mut self, id: RolloutId, group: MaintenanceId, hosts: &[HostId]) {
        let ill = |host: &&HostId| self.unhealthy.contains(*host);
        let excused: Vec<_> = hosts.iter().filter(ill).copied().collect();
        if let Some(rollout) = self.rollouts.get_mut(&id).map(Arc::make_mut) {
            hosts.iter().for_each(|host| rollout.waiting.remove(*host));
            rollout.excused.extend(excused);
        }
        self.set_standing(id, Standing::Works(group));
    }

    /// A group of a rollout has started.
    pub(super) fn group_started(&mut self, group: MaintenanceId, actions: &[Action]) {
        let cause = self.maintenances.get(&group).map(|group| &group.plan.cause);
        let Some(Cause::HostWork { rollout, .. }) = cause else { return };
        if let Some(rollout) = self.rollouts.get_mut(rollout).map(Arc::make_mut) {
            rollout.last_machines = actions.iter().filter_map(|action| action.target.machine()).collect();
        }
    }

    /// Records a failed impact of a group.
    pub(super) fn impact_failed(&mut self, group: MaintenanceId, machine: MachineId) {
        let cause = self.maintenances.get(&group).map(|group| &group.plan.cause);
        let Some(Cause::HostWork { rollout, hosts, .. }) = cause else { return };
        let (id, host) = (*rollout, self.machines.get(&machine).map(|machine| machine.host));
        let host = host.filter(|host| hosts.contains(host));
        if let Some(rollout) = self.remembered_rollout(id) {
            rollout.failures += 1;
            rollout.past.extend(host.map(|host| (host, HostResult::Failed)));
        }
    }

    /// A rollout, current or ended.
    pub(super) fn remembered_rollout(&mut self, id: RolloutId) -> Option<&mut Rollout> {
        if let Some(rollout) = self.rollouts.get_mut(&id) {
            return Some(Arc::make_mut(rollout));
        }
        let ended = self.ended_rollouts.iter_mut().find(|(ended, _)| *ended == id);
        ended.map(|(_, ended)| &mut Arc::make_mut(ended).rollout)
    }

    /// Ends a group: releases its hosts, unless they wait again, and rechecks every waiting rollout.
    pub(super) fn group_ended(
        &mut self,
        now: Now,
        id: RolloutId,
        hosts: &[HostId],
        end: GroupEnd,
        out: &mut Vec<Effect>,
    ) {
        self.forget_presences(id, |presence| !matches!(presence, Presence::Away { .. }), out);
        let goes_on = self.rollouts.contains_key(&id);
        for host in hosts {
            self.change_host(*host, |host| {
                host.work = None;
                host.rollout = host.rollout.filter(|_| goes_on && end == GroupEnd::Postponed);
            });
        }
        if let Some(rollout) = self.remembered_rollout(id) {
            match end {
                GroupEnd::Done => {
                    rollout.groups += 1;
                    rollout.group_over = Some(now.steady);
                    for host in hosts {
                        if !rollout.past.contains_key(host) {
                            rollout.past.insert(*host, HostResult::Done);
                        }
                    }
                }
                GroupEnd::Skipped => {
                    rollout.past.extend(hosts.iter().map(|host| (*host, HostResult::Skipped)));
                }
                GroupEnd::Postponed => rollout.waiting.put_first(hosts),
            }
            if !goes_on {
                rollout.standing = Standing::Next;
            }
        }
        self.set_standing(id, Standing::Next);
        self.advance_rollouts();
    }

    /// Removes a failed host from its announced group; the rollout returns to it when it is healthy again.
    pub(super) fn postpone_work(&mut self, id: HostId) {
        let Some(host) = self.hosts.get_mut(&id) else { return };
        let work = host.work.and_then(|work| self.maintenances.get_mut(&work));
        let Some(work) = work.filter(|work| work.wait().is_some()).map(Arc::make_mut) else { return };
        if let Cause::HostWork { rollout, hosts, .. } = &mut work.plan.cause {
            hosts.retain(|other| *other != id);
            // The host is not healthy, so it does not open.
            host.work = None;
            match self.rollouts.get_mut(rollout).map(Arc::make_mut) {
                Some(rollout) => rollout.waiting.push(id),
                None => host.rollout = None,
            }
        }
    }

    /// Rechecks the rollout that waits for a changed host.
    pub(super) fn advance_rollout_of(&mut self, host: HostId) {
        let rollout = self.hosts.get(&host).and_then(|host| host.rollout);
        let waits = |id: &RolloutId| self.rollout(*id).is_some_and(Rollout::waits_for_room);
        if let Some(id) = rollout.filter(waits) {
            self.set_standing(id, Standing::Next);
        }
    }

    /// Has the next ticks recheck every rollout that waits for capacity.
    pub(super) fn advance_rollouts(&mut self) {
        self.recheck_rollouts(Rollout::waits_for_room);
    }

    /// Has the next ticks recheck every rollout that waits for hosts to be healthy.
    pub(super) fn recheck_rollouts_awaiting_health(&mut self) {
        self.recheck_rollouts(|rollout| rollout.standing == Standing::Unwell);
    }

    /// Has the next ticks recheck some waiting rollouts.
    pub(super) fn recheck_rollouts(&mut self, which: impl Fn(&Rollout) -> bool) {
        let some: Vec<_> =
            self.rollouts.iter().filter(|(_, rollout)| which(rollout)).map(|(id, _)| *id).collect();
        some.into_iter().for_each(|id| self.set_standing(id, Standing::Next));
    }

    /// Has the next tick recheck a rollout, unless it is busy with a group.
    fn recheck_if_idle(&mut self, id: RolloutId) {
        if self.rollouts.get(&id).is_some_and(|rollout| rollout.current().is_none()) {
            self.set_standing(id, Standing::Next);
        }
    }
}
