//! Explanation of a machine: its state, history and upcoming work.

use forewarn_control::view::deletion::unannounced_reason;
use forewarn_control::view::describe::{cause, join_names, progress};
use forewarn_control::{AuditEntry, MachineDetails, event_view, full_name, machine_view, rollout_view};
use forewarn_lifecycle::{
    Enrolment, Event, EventKind, Hold, Machine, MachineId, Maintenance, MaintenanceId, Presence, Target,
    Tenant, Wait,
};
use forewarn_types::Moment;

use crate::obstacles::{EventWork, RETRIED};
use crate::{ExplanationContext, MachineExplanation, RefusedView, UpcomingView, notification};

/// The machine to explain.
#[derive(Clone, Copy, Debug)]
pub enum ExplainedMachine<'a> {
    /// A machine of the cluster.
    Existing(MachineId, &'a MachineDetails),
    /// A machine that was removed, by its former name: `tenant/name`.
    Removed(&'a str),
}

/// Explains a machine. None if neither the cluster nor the audit log has it. The caller adds the cursor of the history.
#[must_use]
pub fn explain_machine(
    context: &ExplanationContext<'_>,
    machine: ExplainedMachine<'_>,
) -> Option<MachineExplanation> {
    let history = context.history.entries().rev().map(|entry| context.step(entry)).collect();
    let mut explanation = MachineExplanation {
        name: String::new(),
        cluster: context.name.to_owned(),
        now: Moment(context.now.wall),
        summary: String::new(),
        machine: None,
        enrolled: false,
        enrolled_by_setting: false,
        last_poll: None,
        coming: Vec::new(),
        refused: Vec::new(),
        hints: Vec::new(),
        history,
        next: None,
        swept: false,
    };
    match machine {
        ExplainedMachine::Existing(id, details) => context.existing(id, details, &mut explanation)?,
        ExplainedMachine::Removed(_) if context.history.is_empty() => return None,
        ExplainedMachine::Removed(name) => {
            name.clone_into(&mut explanation.name);
            let summary = if context.was_forgotten() {
                "The machine is no longer managed"
            } else {
                "The machine was removed"
            };
            summary.clone_into(&mut explanation.summary);
            explanation.hints.extend(context.unannounced_deletion());
        }
    }
    if let Some(last) = context.last_work() {
        explanation.summary.push_str(&format!(". {last}"));
    }
    Some(explanation)
}

impl ExplanationContext<'_> {
    fn existing(
        &self,
        id: MachineId,
        details: &MachineDetails,
        explanation: &mut MachineExplanation,
    ) -> Option<()> {
        let machine = self.cluster.machine(id)?;
        let tenant = self.cluster.tenant(machine.tenant)?;
        let view = machine_view(self.cluster, id, details)?;
        explanation.name = full_name(self.cluster, id);
        explanation.summary = format!("The machine is {} on {}", view.power, view.host);
        explanation.machine = Some(view);
        explanation.enrolled = tenant.is_enrolled();
        explanation.enrolled_by_setting = tenant.enrolment == Enrolment::BySetting;
        explanation.last_poll = self.poll_view(id, None).filter(|poll| poll.last.is_some());
        explanation.coming = self.coming(id, machine, tenant);
        explanation.refused = self.refused(self.resources_of(id, tenant));
        explanation.hints = self.machine_hints(id, machine, tenant, &explanation.refused);
        Some(())
    }

    /// Returns true if the last entry about a machine that was removed says that it was forgotten.
    fn was_forgotten(&self) -> bool {
        let is_end = |entry: &&AuditEntry| ["forgotten", "completed"].contains(&entry.kind.as_str());
        let known = self.history.entries().rev().filter(|entry| (self.viewer.may_read)(entry));
        known.into_iter().find(is_end).is_some_and(|entry| entry.kind == "forgotten")
    }

    /// The last work on the machine, and the request behind it.
    fn last_work(&self) -> Option<String> {
        let is_known = |entry: &&AuditEntry| (self.viewer.may_read)(entry);
        let done = self.history.entries().rev().filter(|entry| entry.kind == "completed");
        let last = done.filter(is_known).find(|entry| entry.work.is_some())?;
        let request = self.history.origin(last).map(|command| self.request_view(command));
        let cause = match request {
            Some(request) => {
                format!("because of entry {}, by {}: {}", request.number, request.by, request.text)
            }
            None => "no request caused it, or its audit entry is no longer stored".to_owned(),
        };
        Some(format!("Last: {}, {}; {cause}", last.at, last.text))
    }

    fn coming(&self, id: MachineId, machine: &Machine, tenant: &Tenant) -> Vec<UpcomingView> {
        let concerns = |event: &&Event| {
            let work = self.cluster.maintenance(event.maintenance);
            work.is_some_and(|work| work.plan.machines().any(|other| other == id))
        };
        let mut all: Vec<_> = tenant
            .events()
            .iter()
            .filter(concerns)
            .map(|event| {
                let view = event_view(self.cluster, machine.tenant, event, self.viewer.may_see);
                let work = self.cluster.maintenance(event.maintenance);
                let event_work = work.map(|work| EventWork { work, tenant: machine.tenant, event });
                let next = event_work.map(|event_work| self.next(&event_work).join("; ")).unwrap_or_default();
                let mut text = format!(
                    "{} of {} ({}): {}; {next}",
                    view.kind,
                    join_names(&view.resources),
                    view.cause,
                    view.progress
                );
                let error = self.driver_error(event.maintenance, id);
                text.extend(error.iter().map(|error| format!("; {RETRIED}: {error}")));
                UpcomingView { event: Some(view.id), text, not_before: view.not_before, error }
            })
            .collect();
        all.extend(self.unannounced_work(id, tenant));
        all.extend(self.awaited_return(id));
        all.extend(self.upcoming_rollout(machine));
        all
    }

    /// The rollouts that announce no group until the machine polls.
    fn awaited_return(&self, id: MachineId) -> Vec<UpcomingView> {
        let away = self.cluster.presences_of(id).filter_map(|(rollout, presence)| match presence {
            Presence::Away { since } => Some((rollout, Moment(since))),
            Presence::Unseen | Presence::Polling => None,
        });
        let views = away.map(|(rollout, since)| {
            let text = format!(
                "rollout {rollout} waits until the machine polls: its maintenance ended at {since}, and it has not polled \
                 since"
            );
            UpcomingView { event: None, text, not_before: None, error: None }
        });
        views.collect()
    }

    /// The error of a driver program whose action on the machine is retried.
    fn driver_error(&self, work: MaintenanceId, machine: MachineId) -> Option<String> {
        let of = |target| self.driver_errors.get(&(work, target)).cloned();
        of(Target::Machine(machine)).or_else(|| of(Target::Returning(machine)))
    }

    /// Work on the machine without an event: its tenant is not enrolled, or its cause makes no event.
    fn unannounced_work(&self, id: MachineId, tenant: &Tenant) -> Vec<UpcomingView> {
        let has_event =
            |work: &Maintenance| tenant.events().iter().any(|event| event.maintenance == work.plan.id);
        let unannounced = self.cluster.pending_of(id).filter(|work| !has_event(work));
        let views = unannounced.map(|work| {
            let mut text = format!("{}: {}", cause(self.cluster, &work.plan.cause), progress(work));
            if work.wait() == Some(Wait::Held(Hold::Fencing)) {
                text.push_str(&format!("; {}", self.awaited_fences(work).join("; ")));
            }
            let error = self.driver_error(work.plan.id, id);
            text.extend(error.iter().map(|error| format!("; {RETRIED}: {error}")));
            let waits = matches!(work.wait(), Some(Wait::Notice | Wait::Wall));
            let not_before = waits.then_some(Moment(work.plan.not_before));
            UpcomingView { event: None, text, not_before, error }
        });
        views.collect()
    }

    /// The rollout that will reach the host of the machine, and its state.
    fn upcoming_rollout(&self, machine: &Machine) -> Option<UpcomingView> {
        let host = self.cluster.host(machine.host)?;
        let rollout = host.rollout.filter(|_| host.work.is_none())?;
        if let Some(text) = self.awaited_mode(machine.host) {
            return Some(UpcomingView { event: None, text, not_before: None, error: None });
        }
        let mut text = format!("rollout {rollout} will reach its host, {}", host.name);
        // The state of a rollout may reveal other tenants.
        if let Some(view) = rollout_view(self.cluster, self.now, rollout).filter(|_| !self.viewer.is_limited)
        {
            text.push_str(&format!(" ({})", view.text));
        }
        Some(UpcomingView { event: None, text, not_before: None, error: None })
    }

    /// Hints about the notice of deletion.
    fn machine_hints(
        &self,
        id: MachineId,
        machine: &Machine,
        tenant: &Tenant,
        refused: &[RefusedView],
    ) -> Vec<String> {
        let mut all: Vec<_> = self.not_enrolled(tenant).into_iter().collect();
        all.extend(self.older_models([id]));
        all.extend(self.no_notice(machine));
        all.extend(self.poll_view(id, None).iter().flat_map(|poll| {
            notification::outdated_versions(std::slice::from_ref(poll), EventKind::Terminate)
        }));
        all.extend(notification::causes(refused));
        all
    }

    /// The reason why the deletion of a machine was not announced.
    fn unannounced_deletion(&self) -> Option<String> {
        let known = self.history.entries().rev().filter(|entry| (self.viewer.may_read)(entry));
        let why = known.filter_map(|entry| unannounced_reason(&entry.text)).next()?;
        Some(format!("it was deleted without a Terminate event: {why}"))
    }
}
