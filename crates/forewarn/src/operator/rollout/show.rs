//! Rollouts and previews as tables and sentences.

use forewarn_cli_support::output::as_name;
use forewarn_control::{AwayView, ConfirmWord, HealthWord, RolloutView, TermsEntry, WindowSelection};
use forewarn_explain::{CourseView, PreviewView, StepView};
use forewarn_types::{Moment, Span, show_duration};
use serde_json::Value;

use super::super::rollout_progress::{all, progress, worked_on};
use super::super::sentences::{capital, date, when};
use super::super::table::{Table, Width, listed, some};

/// Characters of the progress bar.
const BAR_WIDTH: usize = 20;

/// Maximum number of machines that the status lists as away.
const AWAY_LISTED_MAX: usize = 20;

pub(super) fn table(rollouts: &[RolloutView], width: Width) -> String {
    let mut table = Table::new(width, &["id", "work", "hosts", "failed", "state", "now", "waiting"])
        .dropping(&["waiting", "now", "work"]);
    for rollout in rollouts {
        table.row([
            rollout.id.to_string(),
            rollout.work.clone(),
            format!("{}/{}", worked_on(rollout), all(rollout)),
            some(&rollout.failed),
            rollout.state.clone(),
            some(&rollout.current_hosts),
            some(&rollout.waiting),
        ]);
    }
    table.to_string()
}

fn bar(view: &RolloutView) -> String {
    let full = (worked_on(view) * BAR_WIDTH).checked_div(all(view)).unwrap_or(BAR_WIDTH);
    format!("[{}{}] {}", "#".repeat(full), ".".repeat(BAR_WIDTH - full), progress(view))
}

pub(super) fn status(view: &RolloutView, now: Moment) -> String {
    let mut facts = vec![
        ("id", vec![view.id.to_string()]),
        ("work", vec![view.work.clone()]),
        ("state", vec![view.state.clone()]),
        ("progress", vec![bar(view)]),
        ("now", vec![view.text.clone()]),
        ("hosts now", vec![listed(&view.current_hosts)]),
        ("waiting", vec![listed(&view.waiting)]),
        ("done", vec![listed(&view.done)]),
        ("failed", vec![listed(&view.failed)]),
        ("skipped", vec![listed(&view.skipped)]),
        ("groups done", vec![view.groups.to_string()]),
        ("failures", vec![format!("{} since its start or its last resume", view.failures)]),
        ("terms", terms(&view.terms)),
        ("planned", vec![when(view.planned_at, now)]),
    ];
    facts.extend((!view.away.is_empty()).then(|| ("away", away(view, now))));
    facts.extend(view.ended_at.map(|at| ("ended", vec![when(at, now)])));
    Table::long_facts(facts).to_string()
}

/// The machines that have not returned, each with the end of its maintenance.
fn away(view: &RolloutView, now: Moment) -> Vec<String> {
    let shown = |away: &AwayView| format!("{}, since {}", away.machine, when(away.since, now));
    let mut lines: Vec<_> = view.away.iter().take(AWAY_LISTED_MAX).map(shown).collect();
    if let Some(more) = view.away.len().checked_sub(AWAY_LISTED_MAX).filter(|more| *more > 0) {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The terms that differ from the defaults.
fn terms(terms: &TermsEntry) -> Vec<String> {
    let mut words = Vec::new();
    match terms.at_once {
        Some(0) | None => {}
        Some(1) => words.push("one host at once".to_owned()),
        Some(max) => words.push(format!("at most {max} hosts at once")),
    }
    match terms.tenant_share {
        Some(100) | None => {}
        Some(share) => words.push(format!("at most {share} % of a tenant at once")),
    }
    if terms.one_fault_domain == Some(true) {
        words.push("one fault domain of a tenant at a time".to_owned());
    }
    words.extend(
        terms
            .windows
            .iter()
            .flat_map(WindowSelection::entries)
            .map(|window| format!("in the window {window}")),
    );
    match terms.pause_between {
        Some(Span(span)) if !span.is_zero() => {
            words.push(format!("pauses {} between groups", show_duration(span)));
        }
        Some(_) | None => {}
    }
    match terms.confirm {
        Some(ConfirmWord::First) => words.push("waits for resume after the first group".to_owned()),
        Some(ConfirmWord::Each) => words.push("waits for resume after each group".to_owned()),
        Some(ConfirmWord::Never) | None => {}
    }
    match terms.health {
        Some(HealthWord::Ignored) => words.push("ignores the health of hosts".to_owned()),
        Some(HealthWord::Machines) => {
            words.push("waits until the machines of each group have polled again".to_owned());
        }
        Some(HealthWord::Awaited) | None => {}
    }
    match terms.stop_after {
        Some(0) => words.push("does not pause after failures".to_owned()),
        Some(1) | None => {}
        Some(max) => words.push(format!("pauses after {max} failures")),
    }
    words
}

pub(super) fn preview(view: &PreviewView, width: Width) -> String {
    let PreviewView { work, hosts, longest, shortest, manual, notes } = view;
    let host = if *hosts == 1 { "host" } else { "hosts" };
    let mut text = format!(
        "{} of {hosts} {host}: {} without approvals, {} with immediate approvals.\n",
        capital(work),
        length(longest),
        length(shortest)
    );
    notes.iter().for_each(|note| text.push_str(&format!("{}.\n", capital(note))));
    text.push_str(&format!("{}\n{}", steps(longest, *manual, width), tenants(longest, width)));
    if let Some(stuck) = &longest.stuck {
        text.push_str(&format!("After that the rollout waits for an operator: {stuck}.\n"));
    }
    text
}

fn length(course: &CourseView) -> String {
    let steps = course.steps.len();
    let step = if steps == 1 { "step" } else { "steps" };
    format!("{} in {steps} {step}", show_duration(course.lasts.0))
}

/// The hosts of a preview, in the order of their work.
pub(super) fn hosts(preview: &Value) -> Vec<String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let steps = list(&preview["longest"]["steps"]).into_iter();
    steps.flat_map(|step| list(&step["hosts"])).filter_map(|host| as_name(&host)).collect()
}

/// The steps with their hosts and times; and the work on the hosts themselves, if there is any.
fn steps(course: &CourseView, manual: bool, width: Width) -> Table {
    let has_work = course.steps.iter().any(|step| !step.host_steps.is_empty());
    let work = has_work.then_some("work on hosts");
    let columns: Vec<_> =
        ["step", "hosts", "announced", "starts"].into_iter().chain(work).chain(["ends"]).collect();
    let mut table = Table::new(width, &columns).dropping(&["announced", "work on hosts", "ends", "hosts"]);
    for (number, step) in (1usize..).zip(&course.steps) {
        let mut row = vec![number.to_string(), some(&step.hosts), date(step.announced), date(step.starts)];
        row.extend(has_work.then(|| host_work(step, manual)));
        row.push(date(step.ends));
        table.row(row);
    }
    table
}

/// The times of the work on the hosts of a step. Of a time on the day of the start, the day is left out.
fn host_work(step: &StepView, manual: bool) -> String {
    let begins = step.host_steps.iter().map(|host| host.begins.0).min();
    let ends = step.host_steps.iter().map(|host| host.ends.0).max();
    let Some((begins, ends)) = begins.zip(ends) else { return "-".to_owned() };
    let start = date(step.starts);
    let short = |at| {
        let at = date(Moment(at));
        match (at.split_once(' '), start.split_once(' ')) {
            (Some((day, time)), Some((same, _))) if day == same => time.to_owned(),
            (Some(_) | None, _) => at,
        }
    };
    let end = if manual { "until finished".to_owned() } else { format!("- {}", short(ends)) };
    format!("{} {end}", short(begins))
}

/// The events of each tenant; and its windows, if one has any.
fn tenants(course: &CourseView, width: Width) -> Table {
    let mut tenants = course.steps.iter().flat_map(|step| &step.tenants);
    let has_windows = tenants.any(|tenant| !tenant.windows.is_empty());
    let windows = has_windows.then_some("windows");
    let columns: Vec<_> =
        ["step", "tenant", "ud", "event"].into_iter().chain(windows).chain(["machines"]).collect();
    let mut table = Table::new(width, &columns).dropping(&["ud", "windows", "machines"]);
    for (number, step) in (1usize..).zip(&course.steps) {
        for tenant in &step.tenants {
            let event = tenant.event.clone().unwrap_or_else(|| "no notice".to_owned());
            let mut row =
                vec![number.to_string(), tenant.tenant.clone(), tenant.update_domain.to_string(), event];
            row.extend(has_windows.then(|| match tenant.windows.as_slice() {
                [] => "any time".to_owned(),
                some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
            }));
            row.push(some(&tenant.machines));
            table.row(row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout() -> RolloutView {
        serde_json::from_value(serde_json::json!({
            "id": 3, "work": "update", "state": "rests", "text": "pauses for 9m before its next group",
            "terms": {"at_once": 2, "tenant_share": 25, "one_fault_domain": true, "windows": ["22:00-06:00"],
                      "pause_between": "10m", "confirm": "first", "health": "ignored", "stop_after": 2},
            "planned_at": "2026-01-01T00:00:00Z", "ended_at": null, "waiting": ["h3", "h4"], "current": null,
            "current_hosts": [], "done": ["h1"], "failed": ["h2"], "skipped": [], "failures": 1, "groups": 1
        }))
        .unwrap()
    }

    #[test]
    fn rollouts_are_listed_with_their_progress() {
        assert_eq!(
            table(&[rollout()], Width::USUAL),
            "ID  WORK    HOSTS  FAILED  STATE  NOW  WAITING\n3   update  2/4    h2      rests  -    h3, h4\n"
        );
    }

    #[test]
    fn the_status_of_a_rollout_is_complete() {
        let shown = status(&rollout(), "2026-01-01T01:00:00Z".parse().unwrap());
        for line in [
            "progress     [##########..........] 2 of 4 hosts",
            "now          pauses for 9m before its next group",
            "failed       h2",
            "failures     1 since its start or its last resume",
            "terms        at most 2 hosts at once",
            "             at most 25 % of a tenant at once",
            "             one fault domain of a tenant at a time",
            "             in the window 22:00-06:00",
            "             pauses 10m between groups",
            "             waits for resume after the first group",
            "             ignores the health of hosts",
            "             pauses after 2 failures",
            "planned      2026-01-01 00:00:00Z (1h ago)",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
        }
    }

    #[test]
    fn a_preview_has_its_steps_and_both_durations() {
        let step = serde_json::json!({
            "hosts": ["h1"], "announced": "2026-01-01T00:00:00Z", "starts": "2026-01-01T00:15:00Z",
            "ends": "2026-01-01T00:15:09Z",
            "tenants": [{"tenant": "web", "event": "Freeze", "update_domain": 0, "machines": ["web_0"]},
                        {"tenant": "solo", "event": null, "update_domain": 0, "machines": ["solo"]}]
        });
        let view = serde_json::from_value(serde_json::json!({
            "work": "update", "hosts": 1, "notes": ["the brake is on"],
            "longest": {"steps": [step], "lasts": "15m9s", "stuck": "waits: it does"},
            "shortest": {"steps": [step], "lasts": "9s"}
        }));
        assert_eq!(
            preview(&view.unwrap(), Width::USUAL),
            "Update of 1 host: 15m9s in 1 step without approvals, 9s in 1 step with immediate approvals.\n\
             The brake is on.\n\
             STEP  HOSTS  ANNOUNCED             STARTS                ENDS\n\
             1     h1     2026-01-01 00:00:00Z  2026-01-01 00:15:00Z  2026-01-01 00:15:09Z\n\
             \n\
             STEP  TENANT  UD  EVENT      MACHINES\n\
             1     web     0   Freeze     web_0\n\
             1     solo    0   no notice  solo\n\
             After that the rollout waits for an operator: waits: it does.\n"
        );
    }
}
