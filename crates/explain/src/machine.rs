//! What a machine is, what has happened to it, and what is coming.

use forewarn_control::view::deletion::unannounced_told;
use forewarn_control::view::wording::{cause, few};
use forewarn_control::{AuditEntry, MachineDetails, event_view, full_name, machine_view, rollout_view};
use forewarn_lifecycle::{Event, EventKind, Machine, MachineId, Maintenance, Tenant};
use forewarn_types::Moment;

use crate::obstacles::{AGAIN, Behind};
use crate::{ComingView, MachineExplanation, RefusedView, Scene, notification};

/// The machine that is explained.
#[derive(Clone, Copy, Debug)]
pub enum Explained<'a> {
    /// It is there.
    There(MachineId, &'a MachineDetails),
    /// It is gone, and was called so: `tenant/name`.
    Gone(&'a str),
}

/// Explains a machine; nothing, if neither the cluster nor the trail knows of it. Where the history goes on is for others to say.
#[must_use]
pub fn explain_machine(scene: &Scene<'_>, machine: Explained<'_>) -> Option<MachineExplanation> {
    let history = scene.chronicle.entries().rev().map(|entry| scene.step(entry)).collect();
    let mut explanation = MachineExplanation {
        name: String::new(),
        cluster: scene.name.to_owned(),
        now: Moment(scene.now.wall),
        summary: String::new(),
        machine: None,
        enrolled: false,
        asked_last: None,
        coming: Vec::new(),
        refused: Vec::new(),
        hints: Vec::new(),
        history,
        next: None,
        swept: 0,
    };
    match machine {
        Explained::There(id, details) => scene.there(id, details, &mut explanation)?,
        Explained::Gone(_) if scene.chronicle.is_empty() => return None,
        Explained::Gone(name) => {
            name.clone_into(&mut explanation.name);
            let summary = if scene.was_forgotten() { "It is managed no longer" } else { "It is gone" };
            summary.clone_into(&mut explanation.summary);
            explanation.hints.extend(scene.went_untold());
        }
    }
    if let Some(last) = scene.last_done() {
        explanation.summary.push_str(&format!(". {last}"));
    }
    Some(explanation)
}

impl Scene<'_> {
    fn there(
        &self,
        id: MachineId,
        details: &MachineDetails,
        explanation: &mut MachineExplanation,
    ) -> Option<()> {
        let machine = self.cluster.machine(id)?;
        let tenant = self.cluster.tenant(machine.tenant)?;
        let view = machine_view(self.cluster, id, details)?;
        explanation.name = full_name(self.cluster, id);
        explanation.summary = format!("It is {} on {}", view.power, view.host);
        explanation.machine = Some(view);
        explanation.enrolled = tenant.is_enrolled();
        explanation.asked_last = self.poll_view(id, None).filter(|poll| poll.last.is_some());
        explanation.coming = self.coming(id, machine, tenant);
        explanation.refused = self.refused(self.resources_of(id, tenant));
        explanation.hints = self.troubles_known(id, machine, tenant, &explanation.refused);
        Some(())
    }

    /// Whether the last thing that the trail has of a machine that is gone is that it was forgotten.
    fn was_forgotten(&self) -> bool {
        let is_end = |entry: &&AuditEntry| ["forgotten", "completed"].contains(&entry.kind.as_str());
        let known = self.chronicle.entries().rev().filter(|entry| (self.onlooker.knows)(entry));
        known.into_iter().find(is_end).is_some_and(|entry| entry.kind == "forgotten")
    }

    /// What was last done to it, and who asked for that.
    fn last_done(&self) -> Option<String> {
        let is_known = |entry: &&AuditEntry| (self.onlooker.knows)(entry);
        let done = self.chronicle.entries().rev().filter(|entry| entry.kind == "completed");
        let last = done.filter(is_known).find(|entry| entry.work.is_some())?;
        let asked = self.chronicle.origin(last).map(|command| self.asked_view(command));
        let who = match asked {
            Some(asked) => format!("because of entry {}, by {}: {}", asked.number, asked.by, asked.text),
            None => "nobody asked for it, or that is not kept any more".to_owned(),
        };
        Some(format!("Last: {}, {}; {who}", last.at, last.text))
    }

    fn coming(&self, id: MachineId, machine: &Machine, tenant: &Tenant) -> Vec<ComingView> {
        let concerns = |event: &&Event| {
            let work = self.cluster.maintenance(event.maintenance);
            work.is_some_and(|work| work.plan.machines().any(|other| other == id))
        };
        let mut all: Vec<_> = tenant
            .events()
            .iter()
            .filter(concerns)
            .map(|event| {
                let view = event_view(self.cluster, machine.tenant, event);
                let work = self.cluster.maintenance(event.maintenance);
                let behind = work.map(|work| Behind { work, tenant: machine.tenant, event });
                let next = behind.map(|behind| self.next(&behind).join("; ")).unwrap_or_default();
                let mut text = format!(
                    "{} of {} ({}): {}; {next}",
                    view.kind,
                    few(&view.resources),
                    view.cause,
                    view.progress
                );
                let trouble = self.troubles.get(&(event.maintenance, id)).cloned();
                text.extend(trouble.iter().map(|trouble| format!("; {AGAIN}: {trouble}")));
                ComingView { event: Some(view.id), text, not_before: view.not_before, trouble }
            })
            .collect();
        all.extend(self.untold_troubles(id, tenant));
        all.extend(self.rollout_to_come(machine));
        all
    }

    /// Work that has no event, as its tenant is not enrolled, and that the driver program has to be asked for again.
    fn untold_troubles(&self, id: MachineId, tenant: &Tenant) -> Vec<ComingView> {
        let has_event =
            |work: &Maintenance| tenant.events().iter().any(|event| event.maintenance == work.plan.id);
        let untold = self.cluster.pending_of(id).filter(|work| !has_event(work));
        let views = untold.filter_map(|work| {
            let trouble = self.troubles.get(&(work.plan.id, id))?.clone();
            let text = format!("{}: under way; {AGAIN}: {trouble}", cause(self.cluster, &work.plan.cause));
            Some(ComingView { event: None, text, not_before: None, trouble: Some(trouble) })
        });
        views.collect()
    }

    /// The rollout that will come to its host, and what that waits for.
    fn rollout_to_come(&self, machine: &Machine) -> Option<ComingView> {
        let host = self.cluster.host(machine.host)?;
        let rollout = host.rollout.filter(|_| host.work.is_none())?;
        let mut text = format!("rollout {rollout} will come to its host, {}", host.name);
        // What a rollout waits for may be somewhere else altogether.
        if let Some(view) =
            rollout_view(self.cluster, self.now, rollout).filter(|_| !self.onlooker.is_limited)
        {
            text.push_str(&format!(" ({})", view.text));
        }
        Some(ComingView { event: None, text, not_before: None, trouble: None })
    }

    /// What of the usual troubles can be seen here.
    fn troubles_known(
        &self,
        id: MachineId,
        machine: &Machine,
        tenant: &Tenant,
        refused: &[RefusedView],
    ) -> Vec<String> {
        let mut all: Vec<_> = self.not_enrolled(tenant).into_iter().collect();
        all.extend(self.older_models([id]));
        all.extend(self.no_notice(machine));
        all.extend(
            self.poll_view(id, None)
                .iter()
                .flat_map(|poll| notification::blind(std::slice::from_ref(poll), EventKind::Terminate)),
        );
        all.extend(notification::causes(refused));
        all
    }

    /// Why a machine that is gone was not told of its deletion.
    fn went_untold(&self) -> Option<String> {
        let known = self.chronicle.entries().rev().filter(|entry| (self.onlooker.knows)(entry));
        let why = known.filter_map(|entry| unannounced_told(&entry.text)).next()?;
        Some(format!("it was deleted without a Terminate event: {why}"))
    }
}
