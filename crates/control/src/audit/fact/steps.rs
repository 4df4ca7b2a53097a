//! Facts about the end of actions, and about steps on hosts.

use std::collections::BTreeSet;
use std::time::Duration;

use forewarn_lifecycle::{
    Action, Aside, HostId, HostOperation, Impact, MachineId, Maintenance, MaintenanceId, Report, Target,
};

use super::{AuditFact, FactWriter};
use crate::audit::notice::part_of_machine;
use crate::command::host_work::work_text;
use crate::command::lookup::full_name;
use forewarn_types::show_duration;

impl FactWriter<'_> {
    pub(super) fn completed(&self, work: MaintenanceId, target: Target, report: Report) -> AuditFact {
        match target {
            Target::Machine(machine) | Target::Returning(machine) => {
                self.machine_completed(work, (target, machine), report)
            }
            Target::Host(host) => {
                let how = match report {
                    Report::Done => "completed",
                    Report::Failed => "failed",
                };
                self.of_step("completed", work, host, &format!("{how}{}", self.text_of(work)))
            }
        }
    }

    /// The result of an action is unknown, and it waits for an operator.
    pub(super) fn suspended(&self, work: MaintenanceId, target: Target) -> AuditFact {
        self.of_action("suspended", work, target, "has an unknown result, and waits for an operator")
    }

    pub(super) fn retried(&self, work: MaintenanceId, target: Target) -> AuditFact {
        self.of_action("retried", work, target, "is requested again")
    }

    fn of_action(&self, kind: &str, work: MaintenanceId, target: Target, text: &str) -> AuditFact {
        match target {
            Target::Host(host) => self.of_step(kind, work, host, text),
            Target::Machine(machine) | Target::Returning(machine) => {
                let fact = self.of_machine(kind, machine, None, &format!("has an action that {text}"));
                AuditFact { work: Some(work.0), ..fact }
            }
        }
    }

    /// Affects the one machine, not all machines of the work.
    fn machine_completed(
        &self,
        work: MaintenanceId,
        (target, machine): (Target, MachineId),
        report: Report,
    ) -> AuditFact {
        let maintenance = self.cluster.maintenance(work);
        let action = maintenance.and_then(|maintenance| maintenance.action_on(target));
        let (kind, text) = match (report, action.map(|action| action.impact)) {
            (Report::Done, Some(Impact::StepAside(aside))) => {
                ("aside", format!("goes on: {} is {}", self.machine(machine), aside_word(aside)))
            }
            (Report::Done, _) => ("completed", format!("completed for {}", self.machine(machine))),
            (Report::Failed, _) => ("completed", format!("failed for {}", self.machine(machine))),
        };
        let Some(maintenance) = maintenance else {
            let fact = self.of_work(kind, work, &text);
            return AuditFact { machines: vec![full_name(self.cluster, machine)], ..fact };
        };
        let plan = &maintenance.plan;
        let mut fact = self.of_plan(kind, plan, format!("{} {text}", self.what_is_left(plan)));
        fact.machines = vec![full_name(self.cluster, machine)];
        let part = part_of_machine(self.cluster, plan, machine);
        let announcement = part.and_then(|part| part.announcement.as_ref());
        fact.tenants = part.map(|part| self.tenant(part.tenant)).into_iter().collect();
        fact.events = announcement.map(|announcement| announcement.id.to_string()).into_iter().collect();
        let places = [
            self.cluster.machine(machine).map(|machine| machine.host),
            action.and_then(|action| action.impact.destination()),
        ];
        let places: BTreeSet<_> = places.into_iter().flatten().collect();
        fact.hosts = places.into_iter().map(|host| self.host(host)).collect();
        fact
    }

    /// The work on a host goes on: its step begins, or its machines return.
    pub(super) fn host_advanced(&self, work: MaintenanceId, host: HostId, actions: &[Action]) -> AuditFact {
        if actions.iter().any(|action| action.target == Target::Host(host)) {
            return self.of_step("step", work, host, &format!("begins{}", self.text_of(work)));
        }
        let mut fact = self.of_step("returns", work, host, "is over: its machines return");
        let Some(Maintenance { plan, .. }) = self.cluster.maintenance(work) else { return fact };
        let machines: Vec<_> = actions.iter().filter_map(|action| action.target.machine()).collect();
        let parts = machines.iter().filter_map(|machine| part_of_machine(self.cluster, plan, *machine));
        let released = self.cluster.parts_released(work, host, actions);
        let tenants: BTreeSet<_> = parts.map(|part| part.tenant).chain(released).collect();
        fact.tenants = tenants.into_iter().map(|tenant| self.tenant(tenant)).collect();
        fact.machines = machines.into_iter().map(|machine| full_name(self.cluster, machine)).collect();
        fact
    }

    /// A host is ready for the work of a person, or still is after a time.
    pub(super) fn ready(&self, work: MaintenanceId, host: HostId, waits: Option<Duration>) -> AuditFact {
        let (name, what) = (self.host(host), self.text_of(work));
        let (kind, since) = match waits {
            None => ("ready", String::new()),
            Some(waits) => ("reminder", format!(" since {}", show_duration(waits))),
        };
        let text = format!("host {name} is ready for work{since}{what}");
        let fact = match self.cluster.maintenance(work) {
            Some(known) => self.of_plan(kind, &known.plan, text),
            None => AuditFact { work: Some(work.0), ..self.plain(kind, text) },
        };
        AuditFact { hosts: vec![name], ..fact }
    }

    /// A fact about the step on a host: `update of host h1 begins`.
    fn of_step(&self, kind: &str, work: MaintenanceId, host: HostId, text: &str) -> AuditFact {
        let name = self.host(host);
        let plan = self.cluster.maintenance(work).map(|known| &known.plan);
        let operation = plan.and_then(|plan| plan.cause.host_operation());
        let what = operation.map_or("work on", operation_words);
        let text = format!("{what} host {name} {text}");
        let fact = match plan {
            Some(plan) => self.of_plan(kind, plan, text),
            None => AuditFact { work: Some(work.0), ..self.plain(kind, text) },
        };
        AuditFact { hosts: vec![name], ..fact }
    }

    /// The operator's words about the work, as the end of a sentence.
    fn text_of(&self, work: MaintenanceId) -> String {
        let text = self.cluster.maintenance(work).and_then(|known| work_text(&known.plan));
        text.map(|text| format!(": {text}")).unwrap_or_default()
    }
}

fn operation_words(operation: HostOperation) -> &'static str {
    match operation {
        HostOperation::Update => "update of",
        HostOperation::Reboot => "restart of",
        HostOperation::Fence => "fence of",
    }
}

fn aside_word(aside: Aside) -> &'static str {
    match aside {
        Aside::Paused => "paused",
        Aside::Stopped => "stopped",
    }
}
