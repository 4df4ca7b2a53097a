//! Commands as statements of a story.

use std::fmt::{Display, Write as _};

use forewarn_control::{
    ApproveWord, ConfirmWord, EventSelection, Eviction, FailureWord, HealthWord, HostSelection, HostStepWord,
    HostWorkEntry, InstanceEntry, LeavingWord, MachineEntry, MaintenanceEntry, NamedCommand,
    OrchestrationWord, PolicyEntry, RollingEntry, RolloutEntry, ScaleSetEntry, SetEntry, SettingsChange,
    TermsEntry, UnenrolledWord, UpgradeWord, VmEntry, WindowSelection, WorkWord,
};
use forewarn_types::{Span, show_duration};

/// A command in the words of the language.
pub(super) enum Phrase {
    /// Statements without a time; the first stands for the whole command, or for what is left of it.
    Lines(Vec<String>),
    /// Settings, with a statement for each.
    Settings(Vec<String>),
    /// An operation on an event: the verb, and the id.
    Event(&'static str, String),
    /// An approval of the owner of a tenant: of these events, or of all.
    Approval(String, Option<Vec<String>>),
    /// An operation on the rollout with this number.
    Rollout(u64, String),
    /// A change of a policy.
    Policy(String, PolicyEntry),
    /// The language has no words for it.
    Nothing,
}

/// A command without the parts that have statements of their own, and without those that the language lacks.
pub(super) struct StrippedCommand {
    pub(super) command: NamedCommand,
    /// Statements for parts of the command.
    pub(super) more: Vec<String>,
    /// True if addresses or tags of a machine are left out. No document depends on them.
    pub(super) has_left_out: bool,
}

impl StrippedCommand {
    pub(super) fn new(command: &NamedCommand) -> Self {
        let mut command = command.clone();
        let mut more = Vec::new();
        if let NamedCommand::AdmitVm(VmEntry { name, policy, .. })
        | NamedCommand::AdmitAvailabilitySet(SetEntry { name, policy, .. })
        | NamedCommand::AdmitCloudService(SetEntry { name, policy, .. })
        | NamedCommand::AdmitScaleSet(ScaleSetEntry { name, policy, .. }) = &mut command
        {
            more = policies(name, &std::mem::take(policy), PolicyEntry::default());
        }
        if let NamedCommand::AdmitInstance { instance: InstanceEntry { id, .. }, .. } = &mut command {
            // Instances get their numbers in order; whether it is the right one is seen when the statement has run.
            *id = None;
        }
        let mut has_left_out = false;
        if let NamedCommand::AdmitVm(VmEntry { addresses, tags, .. })
        | NamedCommand::AdmitMachine { machine: MachineEntry { addresses, tags, .. }, .. }
        | NamedCommand::AdmitInstance { instance: InstanceEntry { addresses, tags, .. }, .. } =
            &mut command
        {
            has_left_out = !(std::mem::take(addresses).is_empty() && std::mem::take(tags).is_empty());
        }
        Self { command, more, has_left_out }
    }
}

/// Statements for the rules of a policy that differ from the present ones.
pub(super) fn policies(tenant: &str, wanted: &PolicyEntry, present: PolicyEntry) -> Vec<String> {
    let rules = [
        ("restart", wanted.restart, present.restart),
        ("redeploy", wanted.redeploy, present.redeploy),
        ("alldown", wanted.all_down, present.all_down),
    ];
    let changed = rules.into_iter().filter(|(_, wanted, present)| wanted != present);
    let word = |approve| match approve {
        ApproveWord::Automatic => "automatic",
        ApproveWord::Asked => "asked",
    };
    changed.map(|(rule, wanted, _)| format!("policy {tenant} {rule} {}", word(wanted))).collect()
}

/// The words for a command.
#[allow(clippy::too_many_lines, reason = "one arm for each command")]
pub(super) fn phrase(command: &NamedCommand) -> Phrase {
    let line = match command {
        NamedCommand::AdmitHost(host) => {
            let zone = host.zone.map(|zone| format!(" zone {zone}")).unwrap_or_default();
            format!("host {}{zone}{}", host.name, size(host.cpus, host.memory))
        }
        NamedCommand::RemoveHost { host } => format!("remove host {host}"),
        NamedCommand::AdmitVm(vm) => {
            let place = place(&vm.host, vm.update_domain, vm.fault_domain);
            let traits = traits(vm.spot, vm.terminate, vm.os_image);
            format!("vm {}{place}{traits}{}", vm.name, size(vm.cpus, vm.memory))
        }
        NamedCommand::AdmitAvailabilitySet(set) => format!("availabilityset {}", set.name),
        NamedCommand::AdmitCloudService(set) => format!("service {}", set.name),
        NamedCommand::AdmitMachine { tenant, machine } => {
            let place = place(&machine.host, machine.update_domain, machine.fault_domain);
            let traits = traits(machine.spot, machine.terminate, machine.os_image);
            format!(
                "machine {} of {tenant}{place}{traits}{}",
                machine.name,
                size(machine.cpus, machine.memory)
            )
        }
        NamedCommand::AdmitScaleSet(set) => {
            let flexible = match set.orchestration {
                OrchestrationWord::Uniform => "",
                OrchestrationWord::Flexible => " flexible",
            };
            let traits = traits(set.spot, set.terminate, set.os_image);
            let upgrade = match set.upgrade {
                UpgradeWord::Manual => String::new(),
                other @ (UpgradeWord::Automatic | UpgradeWord::Rolling(_)) => {
                    format!(" {}", upgrading(other))
                }
            };
            format!("scaleset {}{flexible}{upgrade}{traits}{}", set.name, size(set.cpus, set.memory))
        }
        NamedCommand::AdmitInstance { scale_set, instance } => {
            let place = place(&instance.host, instance.update_domain, instance.fault_domain);
            format!("instance of {scale_set}{place}")
        }
        NamedCommand::RemoveTenant { tenant } => format!("remove tenant {tenant}"),
        NamedCommand::RemoveScaleSet { scale_set } => format!("remove scaleset {scale_set}"),
        NamedCommand::ChangeWindows { tenant, windows } => {
            let shown: Vec<_> = windows.entries().iter().map(ToString::to_string).collect();
            let windows = if shown.is_empty() { "any".to_owned() } else { shown.join(" and ") };
            format!("windows {tenant} {windows}")
        }
        NamedCommand::ChangeModel { scale_set, terminate, os_image } => {
            format!("model {scale_set}{}", profile(*terminate, *os_image))
        }
        NamedCommand::ReviseModel { scale_set } => format!("revise {scale_set}"),
        NamedCommand::ChangeUpgradePolicy { scale_set, upgrade } => {
            format!("upgrading {scale_set} {}", upgrading(*upgrade))
        }
        NamedCommand::ChangeProfile { machine, terminate, os_image } => {
            format!("profile {machine}{}", profile(*terminate, *os_image))
        }
        NamedCommand::UpgradeInstance { machine } => format!("upgrade {machine}"),
        NamedCommand::Forget { machine } => format!("forget {machine}"),
        NamedCommand::ForgetHost { host } => format!("forget host {host}"),
        NamedCommand::Move { machine, host, force } => {
            format!("move {machine} to {host}{}", if *force { " force" } else { "" })
        }
        NamedCommand::ChangeCapacity { host, cpus, memory } => {
            format!("capacity {host}{}", size(*cpus, *memory))
        }
        NamedCommand::Resize { machine, cpus, memory } => format!("resize {machine}{}", size(*cpus, *memory)),
        NamedCommand::Restart { machine } => format!("restart {machine}"),
        NamedCommand::Redeploy { machine } => format!("redeploy {machine}"),
        NamedCommand::Delete { machine } => format!("delete {machine}"),
        NamedCommand::Reimage { machine } => format!("reimage {machine}"),
        NamedCommand::Evict { machine } => format!("evict {machine}"),
        NamedCommand::Stop { machine } => format!("stop {machine}"),
        NamedCommand::Start { machine } => format!("start {machine}"),
        NamedCommand::Deallocate { machine } => format!("deallocate {machine}"),
        NamedCommand::UpdateHosts(work) => format!("update host {}", hosts_and_work(work)),
        NamedCommand::UpdateNetwork(work) => format!("update network {}", hosts_and_work(work)),
        NamedCommand::MigrateHosts(work) => format!("migrate host {}", hosts_and_work(work)),
        NamedCommand::RebootHosts(work) => format!("reboot host {}", hosts_and_work(work)),
        NamedCommand::StartRollout(rollout) => start_rollout(rollout),
        NamedCommand::DegradeHost { host, fails_in } => {
            let fails = fails_in.map(|Span(span)| format!(" fails in {}", show_duration(span)));
            format!("degrade host {host}{}", fails.unwrap_or_default())
        }
        NamedCommand::FailHost { host, fenced } => {
            format!("fail host {host}{}", if *fenced { " fenced" } else { "" })
        }
        NamedCommand::RecoverHost { host } => format!("recover host {host}"),
        NamedCommand::CompleteHost { host, failed } => {
            let failed = failed.as_ref().map(|why| format!(" failed {why}")).unwrap_or_default();
            format!("done host {host}{failed}")
        }
        NamedCommand::RetryHost { host } => format!("retry host {host}"),
        NamedCommand::GiveUpHost { host } => format!("giveup host {host}"),
        NamedCommand::ClearHost { host } => format!("clear host {host}"),
        NamedCommand::EnterMaintenance(entry) => enter_maintenance(entry),
        NamedCommand::ExitMaintenance { host, return_guests } => {
            format!("maintenance exit {host}{}", if *return_guests { " return" } else { "" })
        }
        NamedCommand::BrakeOn {} => "brake on".to_owned(),
        NamedCommand::BrakeOff {} => "brake off".to_owned(),
        NamedCommand::ChangeSettings(change) => return Phrase::Settings(settings(*change)),
        NamedCommand::Jam { machine } => format!("jam {machine}"),
        NamedCommand::Cancel { event } => return Phrase::Event("cancel", event.clone()),
        NamedCommand::ForceStart { event } => return Phrase::Event("force", event.clone()),
        NamedCommand::Approve { tenant, events } => {
            let ids = match events {
                EventSelection::Ids(ids) => Some(ids.clone()),
                EventSelection::Every(_) => None,
            };
            return Phrase::Approval(tenant.clone(), ids);
        }
        NamedCommand::CancelRollout { rollout } => {
            return Phrase::Rollout(*rollout, "cancel rollout".to_owned());
        }
        NamedCommand::PauseRollout { rollout, take_back } => {
            let taking_back = if *take_back { " taking-back" } else { "" };
            return Phrase::Rollout(*rollout, format!("pause rollout{taking_back}"));
        }
        NamedCommand::ResumeRollout { rollout } => {
            return Phrase::Rollout(*rollout, "resume rollout".to_owned());
        }
        NamedCommand::ChangeRollout { rollout, terms, add, remove } => {
            return Phrase::Rollout(*rollout, change_rollout(terms, add, remove));
        }
        NamedCommand::ChangePolicy { tenant, policy } => return Phrase::Policy(tenant.clone(), *policy),
        NamedCommand::ResizeInstances { .. }
        | NamedCommand::Describe { .. }
        | NamedCommand::ChangeSite(_)
        | NamedCommand::Retry { .. }
        | NamedCommand::GiveUp { .. } => return Phrase::Nothing,
    };
    Phrase::Lines(vec![line])
}

fn place(host: &str, update_domain: u16, fault_domain: u16) -> String {
    let mut text = format!(" on {host}");
    for (word, number) in [("ud", update_domain), ("fd", fault_domain)] {
        if number > 0 {
            let _ = write!(text, " {word} {number}");
        }
    }
    text
}

fn size(cpus: Option<impl Display>, memory: Option<impl Display>) -> String {
    let cpus = cpus.map(|cpus| format!(" cpus {cpus}")).unwrap_or_default();
    let memory = memory.map(|memory| format!(" memory {memory}")).unwrap_or_default();
    cpus + &memory
}

fn traits(spot: Option<Eviction>, terminate: Option<Span>, os_image: bool) -> String {
    let spot = match spot {
        Some(Eviction::Delete) => " spot delete",
        Some(Eviction::Deallocate) => " spot deallocate",
        None => "",
    };
    let terminate = terminate.map(|Span(span)| format!(" terminate {}", show_duration(span)));
    format!("{spot}{}{}", terminate.unwrap_or_default(), if os_image { " osimage" } else { "" })
}

fn profile(terminate: Option<Span>, os_image: bool) -> String {
    let terminate = terminate.map_or_else(|| "off".to_owned(), |Span(span)| show_duration(span));
    format!(" terminate {terminate}{}", if os_image { " osimage" } else { "" })
}

fn upgrading(upgrade: UpgradeWord) -> String {
    match upgrade {
        UpgradeWord::Manual => "manual".to_owned(),
        UpgradeWord::Automatic => "automatic".to_owned(),
        UpgradeWord::Rolling(RollingEntry { batch_percent, pause: Span(pause) }) => {
            let pause =
                if pause.is_zero() { String::new() } else { format!(" pause {}", show_duration(pause)) };
            format!("rolling {batch_percent}%{pause}")
        }
    }
}

/// Hosts and the text about the work. A length that is not the usual one is lost, which the recorder notices.
fn hosts_and_work(entry: &HostWorkEntry) -> String {
    let work = entry.work.as_ref().map(|work| format!(" work {work}")).unwrap_or_default();
    format!("{}{work}", entry.hosts.join(" "))
}

fn enter_maintenance(entry: &MaintenanceEntry) -> String {
    let leaving = match entry.leaving {
        LeavingWord::Live => " live",
        LeavingWord::Redeploy => " redeploy",
        LeavingWord::Stop => " stop",
    };
    let then = match entry.kind {
        Some(HostStepWord::Update) => " then update",
        Some(HostStepWord::Reboot) => " then reboot",
        None if entry.no_work => " then nothing",
        None => "",
    };
    format!("maintenance enter {}{leaving}{then}", entry.host)
}

fn start_rollout(entry: &RolloutEntry) -> String {
    let kind = match entry.kind {
        WorkWord::Update => "update",
        WorkWord::Network => "network",
        WorkWord::Migrate => "migrate",
        WorkWord::Reboot => "reboot",
    };
    let hosts = match &entry.hosts {
        HostSelection::Names(names) => names.join(" "),
        HostSelection::Every(_) => "all".to_owned(),
        HostSelection::Zone(zone) => format!("zone {}", zone.zone),
    };
    let terms = terms(&entry.terms);
    let with = if terms.is_empty() { "" } else { " with" };
    format!("rollout {kind} {hosts}{with}{terms}")
}

/// The statement for a change of the oldest rollout.
fn change_rollout(new: &TermsEntry, add: &[String], remove: &[String]) -> String {
    let mut line = "change rollout".to_owned();
    for (word, hosts) in [("add", add), ("remove", remove)] {
        if !hosts.is_empty() {
            let _ = write!(line, " {word} {}", hosts.join(" "));
        }
    }
    let terms = terms(new);
    if !terms.is_empty() {
        let _ = write!(line, " with{terms}");
    }
    line
}

fn terms(terms: &TermsEntry) -> String {
    let mut text = String::new();
    let mut add = |term: String| text.push_str(&format!(" {term}"));
    if let Some(hosts) = terms.at_once {
        add(format!("at-once {hosts}"));
    }
    if let Some(share) = terms.tenant_share {
        add(format!("share {share}%"));
    }
    if terms.one_fault_domain == Some(true) {
        add("one-fault-domain".to_owned());
    }
    match &terms.windows {
        Some(WindowSelection::Any(_)) => add("window any".to_owned()),
        Some(WindowSelection::Windows(all)) => all.iter().for_each(|window| add(format!("window {window}"))),
        None => {}
    }
    if let Some(Span(pause)) = terms.pause_between {
        add(format!("pause {}", show_duration(pause)));
    }
    if let Some(confirm) = terms.confirm {
        add(match confirm {
            ConfirmWord::Never => "confirm never".to_owned(),
            ConfirmWord::First => "confirm first".to_owned(),
            ConfirmWord::Each => "confirm each".to_owned(),
        });
    }
    match terms.stop_after {
        Some(0) => add("stop-after never".to_owned()),
        Some(failures) => add(format!("stop-after {failures}")),
        None => {}
    }
    if let Some(health) = terms.health {
        add(match health {
            HealthWord::Awaited => "health awaited".to_owned(),
            HealthWord::Machines => "health machines".to_owned(),
            HealthWord::Ignored => "health ignored".to_owned(),
        });
    }
    text
}

fn settings(change: SettingsChange) -> Vec<String> {
    let SettingsChange { unenrolled, user_operations_max, failure, enrolment } = change;
    let unenrolled = unenrolled.map(|word| match word {
        UnenrolledWord::Runs => "set unenrolled runs".to_owned(),
        UnenrolledWord::Waits => "set unenrolled waits".to_owned(),
    });
    let operations = user_operations_max.map(|limit| match limit {
        0 => "set useroperations unlimited".to_owned(),
        limit => format!("set useroperations {limit}"),
    });
    let failure = failure.map(|word| match word {
        FailureWord::Reboot => "set failure reboot".to_owned(),
        FailureWord::Redeploy => "set failure redeploy".to_owned(),
    });
    let enrolment = enrolment.map(|enrolment| format!("enrolment {}", enrolment.word()));
    [unenrolled, operations, failure, enrolment].into_iter().flatten().collect()
}
