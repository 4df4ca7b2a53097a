//! The sequence of a check: every order, its repetitions, and the state of the machine after each.
//!
//! A repetition that takes effect again shows only in a state that the order would change. So every order is repeated
//! twice: at once, and after another order has changed the state.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::CheckArgs;
use super::attempt::{AttemptEnd, CheckedResponse, MachineState, attempt};
use super::report::{DriverReport, Verdict};
use super::request::{ActionNames, CheckedMachine, HostVerb, NamedOrder, state_query};

/// Length of a pause that ends by itself.
const PAUSE_SECONDS: u32 = 2;

/// Attempts of an interrupted order until it has a result.
const ATTEMPTS_MAX: usize = 5;

/// Interruptions of an order, in percent of the time that it takes.
const INTERRUPTIONS: [u32; 3] = [20, 50, 80];

/// States in which a machine does not run.
const OFF: [MachineState; 2] = [MachineState::Stopped, MachineState::Missing];

/// The check of one program.
pub(super) struct DriverTrial {
    program: PathBuf,
    time_limit: Duration,
    at: CheckedMachine,
    to: Option<String>,
    host_orders: Vec<HostVerb>,
    is_destroyed: bool,
    names: ActionNames,
    /// False if the program does not answer the query for the state: effects are not seen.
    has_state: bool,
    report: DriverReport,
}

impl DriverTrial {
    pub(super) fn new(arguments: &CheckArgs) -> Result<Self> {
        let CheckArgs { program, machine, host, tenant, to, host_order, destroy, time_limit, .. } = arguments;
        let tenant = tenant.clone().unwrap_or_else(|| machine.clone());
        // A name without a slash would be searched for on the path.
        let program = std::path::absolute(program)?;
        Ok(Self {
            program,
            time_limit: *time_limit,
            at: CheckedMachine { tenant, machine: machine.clone(), host: host.clone() },
            to: to.clone(),
            host_orders: host_order.clone(),
            is_destroyed: *destroy,
            names: ActionNames::new()?,
            has_state: false,
            report: DriverReport::default(),
        })
    }

    /// Makes all checks.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub(super) fn run(mut self) -> Result<DriverReport> {
        self.query()?;
        self.incomplete()?;
        let start = self.order("start");
        self.carry_out(&start, &[MachineState::Running])?;
        self.unknown_verb()?;
        let resume = self.pauses()?;
        let took = self.reboots()?;
        self.powers(&start, &resume)?;
        self.interruptions(took)?;
        self.moves()?;
        self.hosts()?;
        if self.is_destroyed {
            let reimage = self.order("reimage");
            self.carry_out(&reimage, &[])?;
            let delete = self.order("delete");
            self.carry_out(&delete, &OFF)?;
        } else {
            self.skip("reimage, delete", "add --destroy to lose the machine");
        }
        Ok(self.report)
    }

    fn order(&mut self, verb: &str) -> NamedOrder {
        self.names.guest(&self.at, verb)
    }

    fn send(&self, body: &Value) -> Result<(AttemptEnd, Duration)> {
        attempt(&self.program, body.to_string().as_bytes(), self.time_limit)
    }

    fn skip(&mut self, check: &str, why: &str) {
        self.report.add(check, Verdict::Skipped, why);
    }

    fn finding(&mut self, check: &str, details: impl Into<String>) {
        self.report.add(check, Verdict::Finding, details);
    }

    /// The query for the state, which a program need not know.
    fn query(&mut self) -> Result<()> {
        match self.send(&state_query(&self.at.machine, &self.at.host))?.0 {
            AttemptEnd::Response(CheckedResponse::Done { state: Some(state) }) => {
                self.has_state = true;
                self.report.add("state", Verdict::Ok, state.as_str());
            }
            AttemptEnd::Response(CheckedResponse::Done { state: None }) => {
                self.finding("state", "answered done without a state");
            }
            end @ (AttemptEnd::Response(CheckedResponse::Failed { .. } | CheckedResponse::Unknown { .. })
            | AttemptEnd::Invalid(_)
            | AttemptEnd::Exit(_)
            | AttemptEnd::Interrupted) => {
                self.skip(
                    "state",
                    &format!("effects are not seen; the query has no answer: {}", described(&end)),
                );
            }
        }
        Ok(())
    }

    /// The state of the machine on a host; `None` if it is not known.
    fn state_on(&self, host: &str) -> Result<Option<MachineState>> {
        if !self.has_state {
            return Ok(None);
        }
        Ok(match self.send(&state_query(&self.at.machine, host))?.0 {
            AttemptEnd::Response(CheckedResponse::Done { state }) => state,
            AttemptEnd::Response(CheckedResponse::Failed { .. } | CheckedResponse::Unknown { .. })
            | AttemptEnd::Invalid(_)
            | AttemptEnd::Exit(_)
            | AttemptEnd::Interrupted => None,
        })
    }

    /// Requests that must do nothing: beginnings of an order, and an order without a name.
    fn incomplete(&mut self) -> Result<()> {
        let before = self.state_on(&self.at.host)?;
        let verb = if before == Some(MachineState::Running) { "stop" } else { "start" };
        let whole = self.order(verb).body.to_string();
        let mut unnamed = self.order(verb).body;
        drop(unnamed.as_object_mut().and_then(|members| members.remove("action")));
        let cut = |end: usize| whole.as_bytes()[..end].to_vec();
        let requests = [
            ("no request", Vec::new()),
            ("truncated request", cut(whole.len() / 2)),
            ("request without its last byte", cut(whole.len() - 1)),
            ("request without an action", unnamed.to_string().into_bytes()),
        ];
        for (check, request) in requests {
            let end = attempt(&self.program, &request, self.time_limit)?.0;
            let after = self.state_on(&self.at.host)?;
            if after != before {
                self.finding(check, format!("the machine was {}, is {}", shown(before), shown(after)));
            } else if matches!(end, AttemptEnd::Exit(_)) {
                self.report.add(check, Verdict::Ok, described(&end));
            } else {
                let details = format!("must exit with a code other than 0, but: {}", described(&end));
                self.finding(check, details);
            }
        }
        Ok(())
    }

    /// A verb of a later version must not count as done.
    fn unknown_verb(&mut self) -> Result<()> {
        let order = self.order("verb_of_no_version");
        let end = self.send(&order.body)?.0;
        if matches!(end, AttemptEnd::Response(CheckedResponse::Done { .. })) {
            self.finding("unknown verb", "answered done");
        } else {
            self.report.add("unknown verb", Verdict::Ok, described(&end));
        }
        Ok(())
    }

    fn pauses(&mut self) -> Result<NamedOrder> {
        let (pause, resume) = (self.order("pause"), self.order("resume"));
        let is_paused = self.carry_out(&pause, &[MachineState::Paused])?.is_some();
        if self.carry_out(&resume, &[MachineState::Running])?.is_some() && is_paused {
            self.repeat_late(&pause, MachineState::Running)?;
        }
        let short = self.names.pause_for(&self.at, PAUSE_SECONDS);
        if let Some(took) = self.carry_out(&short, &[MachineState::Running])? {
            let check = format!("{}, length", short.label);
            if took >= Duration::from_secs(PAUSE_SECONDS.into()) {
                self.report.add(&check, Verdict::Ok, format!("{:.1} s", took.as_secs_f64()));
            } else {
                self.finding(&check, "answered done before the pause was over");
            }
        }
        Ok(resume)
    }

    /// Returns the time that a reboot takes.
    fn reboots(&mut self) -> Result<Option<Duration>> {
        let reboot = self.order("reboot");
        self.carry_out(&reboot, &[MachineState::Running])
    }

    /// Off and on. Earlier orders must not switch the machine on again.
    fn powers(&mut self, first: &NamedOrder, resume: &NamedOrder) -> Result<()> {
        for verb in ["stop", "deallocate"] {
            let (off, on) = (self.order(verb), self.order("start"));
            if self.carry_out(&off, &OFF)?.is_none() {
                continue;
            }
            if verb == "stop" {
                self.repeat_late(first, MachineState::Stopped)?;
                self.repeat_late(resume, MachineState::Stopped)?;
            }
            if self.carry_out(&on, &[MachineState::Running])?.is_some() {
                self.repeat_late(&off, MachineState::Running)?;
            }
        }
        Ok(())
    }

    /// A reboot that is killed on the way has a result in the end, or waits for the operator.
    fn interruptions(&mut self, took: Option<Duration>) -> Result<()> {
        let Some(took) = took else {
            self.skip("reboot, interrupted", "the program does not reboot");
            return Ok(());
        };
        for percent in INTERRUPTIONS {
            let order = self.order("reboot");
            let limit = took * percent / 100;
            let check = format!("reboot, killed at {percent} %");
            let first = attempt(&self.program, order.body.to_string().as_bytes(), limit)?.0;
            let end = self.repeat_until_result(&order)?;
            match end {
                AttemptEnd::Response(CheckedResponse::Done { .. }) => {
                    let state = self.state_on(&self.at.host)?;
                    if state.is_none_or(|state| state == MachineState::Running) {
                        let when = if first == AttemptEnd::Interrupted { "repeated" } else { "ended before" };
                        self.report.add(&check, Verdict::Ok, format!("{when}: done"));
                    } else {
                        self.finding(&check, format!("done, but the machine is {}", shown(state)));
                    }
                }
                AttemptEnd::Response(CheckedResponse::Unknown { repeat: false, .. }) => {
                    self.report.add(&check, Verdict::Ok, "waits for the operator");
                    let resume = self.order("resume");
                    drop(self.send(&resume.body)?);
                }
                end @ (AttemptEnd::Response(
                    CheckedResponse::Failed { .. } | CheckedResponse::Unknown { .. },
                )
                | AttemptEnd::Invalid(_)
                | AttemptEnd::Exit(_)
                | AttemptEnd::Interrupted) => {
                    self.finding(&check, format!("no result: {}", described(&end)));
                }
            }
        }
        Ok(())
    }

    fn repeat_until_result(&self, order: &NamedOrder) -> Result<AttemptEnd> {
        let mut end = self.send(&order.body)?.0;
        for _ in 1..ATTEMPTS_MAX {
            match &end {
                AttemptEnd::Response(CheckedResponse::Unknown { repeat: true, .. })
                | AttemptEnd::Exit(_)
                | AttemptEnd::Interrupted => end = self.send(&order.body)?.0,
                AttemptEnd::Response(_) | AttemptEnd::Invalid(_) => break,
            }
        }
        Ok(end)
    }

    /// To the other host and back.
    fn moves(&mut self) -> Result<()> {
        let Some(to) = self.to.clone() else {
            self.skip("migrate, redeploy", "add --to HOST");
            return Ok(());
        };
        let home = self.at.host.clone();
        for verb in ["migrate", "redeploy"] {
            let away = self.names.transfer(&self.at, verb, &to);
            if self.carry_out(&away, &[MachineState::Running])?.is_none() {
                continue;
            }
            self.at.host.clone_from(&to);
            self.is_gone_from(&home, &away.label)?;
            let back = self.names.transfer(&self.at, verb, &home);
            if self.carry_out(&back, &[MachineState::Running])?.is_none() {
                return Ok(());
            }
            self.at.host.clone_from(&home);
            self.is_gone_from(&to, &back.label)?;
            self.repeat_late(&away, MachineState::Running)?;
        }
        Ok(())
    }

    /// A machine that runs on two hosts destroys its disks.
    fn is_gone_from(&mut self, host: &str, label: &str) -> Result<()> {
        let state = self.state_on(host)?;
        let check = format!("{label}, gone from {host}");
        match state {
            Some(MachineState::Running | MachineState::Paused) => {
                self.finding(&check, format!("still {}", shown(state)));
            }
            Some(MachineState::Stopped | MachineState::Missing) => {
                self.report.add(&check, Verdict::Ok, shown(state));
            }
            None => self.skip(&check, "the state is not known"),
        }
        Ok(())
    }

    fn hosts(&mut self) -> Result<()> {
        let verbs = self.host_orders.clone();
        if verbs.is_empty() {
            self.skip("orders on hosts", "add --host-order VERB");
        }
        for verb in verbs {
            let order = self.names.host(&self.at.host, verb);
            self.carry_out(&order, &[])?;
        }
        Ok(())
    }

    /// Sends an order, and repeats it at once. Returns the time that it took, if it was carried out.
    fn carry_out(&mut self, order: &NamedOrder, expected: &[MachineState]) -> Result<Option<Duration>> {
        let host = order.body["to"].as_str().unwrap_or(&self.at.host).to_owned();
        let before = self.state_on(&host)?;
        let (end, took) = self.send(&order.body)?;
        let after = self.state_on(&host)?;
        match &end {
            AttemptEnd::Response(CheckedResponse::Done { .. }) => {}
            AttemptEnd::Response(CheckedResponse::Failed { message }) if after == before => {
                self.report.add(&order.label, Verdict::Refused, message);
                return Ok(None);
            }
            AttemptEnd::Response(CheckedResponse::Failed { .. }) => {
                let change = format!("failed, but the machine was {}, is {}", shown(before), shown(after));
                self.finding(&order.label, change);
                return Ok(None);
            }
            AttemptEnd::Response(CheckedResponse::Unknown { .. })
            | AttemptEnd::Invalid(_)
            | AttemptEnd::Exit(_)
            | AttemptEnd::Interrupted => {
                self.finding(&order.label, described(&end));
                return Ok(None);
            }
        }
        match after {
            Some(state) if !expected.is_empty() && !expected.contains(&state) => {
                self.finding(&order.label, format!("answered done, but the machine is {}", state.as_str()));
            }
            Some(_) | None => {
                self.report.add(&order.label, Verdict::Ok, format!("{:.1} s", took.as_secs_f64()));
            }
        }
        self.repeat(order, &format!("{}, repeated", order.label), after, &host)?;
        Ok(Some(took))
    }

    /// Repeats an order after others have changed the state, which has to stay.
    fn repeat_late(&mut self, order: &NamedOrder, wanted: MachineState) -> Result<()> {
        let check = format!("{}, repeated later", order.label);
        let host = self.at.host.clone();
        let state = self.state_on(&host)?;
        let is_comparable =
            state.is_none_or(|state| state == wanted || !OFF.contains(&wanted) || OFF.contains(&state));
        if !is_comparable {
            self.skip(&check, &format!("the machine is {}", shown(state)));
            return Ok(());
        }
        self.repeat(order, &check, state, &host)
    }

    fn repeat(
        &mut self,
        order: &NamedOrder,
        check: &str,
        state: Option<MachineState>,
        host: &str,
    ) -> Result<()> {
        let end = self.send(&order.body)?.0;
        let after = self.state_on(host)?;
        if !matches!(end, AttemptEnd::Response(CheckedResponse::Done { .. })) {
            self.finding(check, format!("must be answered with done, but: {}", described(&end)));
        } else if after != state {
            self.finding(
                check,
                format!("took effect again: the machine was {}, is {}", shown(state), shown(after)),
            );
        } else {
            self.report.add(check, Verdict::Ok, shown(after));
        }
        Ok(())
    }
}

fn shown(state: Option<MachineState>) -> &'static str {
    state.map_or("-", MachineState::as_str)
}

fn described(end: &AttemptEnd) -> String {
    match end {
        AttemptEnd::Response(CheckedResponse::Done { .. }) => "done".to_owned(),
        AttemptEnd::Response(CheckedResponse::Failed { message }) => format!("failed: {message}"),
        AttemptEnd::Response(CheckedResponse::Unknown { message, repeat: true }) => {
            format!("unknown: {message}")
        }
        AttemptEnd::Response(CheckedResponse::Unknown { message, repeat: false }) => {
            format!("unknown, not to be repeated: {message}")
        }
        AttemptEnd::Invalid(problem) | AttemptEnd::Exit(problem) => problem.clone(),
        AttemptEnd::Interrupted => "no response within the time limit".to_owned(),
    }
}
