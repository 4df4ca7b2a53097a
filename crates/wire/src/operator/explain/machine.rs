//! What a machine is, what has happened to it, and what is coming.

use forewarn_lifecycle::{Event, EventKind, Machine, MachineId, Shape, Tenant};

use super::super::find::full_name;
use super::super::resolve::Details;
use super::super::rollout::rollout_view;
use super::super::view::{event_view, few, machine_view};
use super::event::blindness;
use super::obstacles::Behind;
use super::{ComingView, MachineExplanation, Scene};
use crate::span::{Moment, show_duration};

/// The machine that is explained.
#[derive(Clone, Copy, Debug)]
pub enum Explained<'a> {
    /// It is there.
    There(MachineId, &'a Details),
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
            explanation.summary = "It is gone".to_owned();
        }
    }
    if let Some(last) = scene.last_done() {
        explanation.summary.push_str(&format!(". {last}"));
    }
    Some(explanation)
}

impl Scene<'_> {
    fn there(&self, id: MachineId, details: &Details, explanation: &mut MachineExplanation) -> Option<()> {
        let machine = self.cluster.machine(id)?;
        let tenant = self.cluster.tenant(machine.tenant)?;
        let view = machine_view(self.cluster, id, details)?;
        explanation.name = full_name(self.cluster, id);
        explanation.summary = format!("It is {} on {}", view.power, view.host);
        explanation.machine = Some(view);
        explanation.enrolled = tenant.is_enrolled();
        explanation.asked_last = self.poll_view(id, None).filter(|poll| poll.last.is_some());
        explanation.coming = self.coming(id, machine, tenant);
        explanation.hints = self.troubles_known(id, machine, tenant);
        Some(())
    }

    /// What was last done to it, and who asked for that.
    fn last_done(&self) -> Option<String> {
        let is_known = |entry: &&super::TrailEntry| (self.onlooker.knows)(entry);
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
                let text = format!(
                    "{} of {} ({}): {}; {next}",
                    view.kind,
                    few(&view.resources),
                    view.cause,
                    view.progress
                );
                ComingView { event: Some(view.id), text, not_before: view.not_before }
            })
            .collect();
        all.extend(self.rollout_to_come(machine));
        all
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
        Some(ComingView { event: None, text, not_before: None })
    }

    /// What of the usual troubles can be seen here.
    fn troubles_known(&self, id: MachineId, machine: &Machine, tenant: &Tenant) -> Vec<String> {
        let mut all = Vec::new();
        if !tenant.is_enrolled() {
            all.push(format!(
                "tenant {} is not enrolled: what is done to its machines happens unannounced, until one of them asks for events",
                tenant.name
            ));
        }
        let notice = |terminate: Option<forewarn_lifecycle::TerminateNotice>| match terminate {
            Some(notice) => show_duration(notice.length()),
            None => "none".to_owned(),
        };
        let set = match tenant.shape {
            Shape::PlacementGroup(set) => self.cluster.scale_set(set),
            Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => None,
        };
        if let Some(set) = set.filter(|set| set.model_version != machine.model_version) {
            let mut hint = format!("it runs model {} of {}", machine.model_version, set.model_version);
            if set.model.terminate != machine.profile.terminate {
                let (own, new) = (notice(machine.profile.terminate), notice(set.model.terminate));
                hint.push_str(&format!(": its notice of deletion is {own}, that of the model is {new}"));
            }
            hint.push_str(&match set.next_batch() {
                Some(at) => format!("; instances get it batch by batch, the next at {}", Moment(at.wall)),
                None => "; an upgrade of the instance brings it up to date".to_owned(),
            });
            all.push(hint);
        }
        if machine.profile.terminate.is_none() {
            all.push("it has no notice of deletion: a delete makes no Terminate event".to_owned());
        }
        let poll = self.poll_view(id, None);
        let edition = (self.polls)(id).map(|poll| poll.edition);
        if let Some((poll, _)) = poll.zip(edition.filter(|edition| !edition.knows(EventKind::Terminate))) {
            all.push(blindness(&poll, EventKind::Terminate));
        }
        all
    }
}
