//! The report as a page: the verdict, and a timeline of the events. It needs no other file, and is readable on a light
//! and on a dark background.

use std::fmt::Write as _;
use std::time::Duration;

use forewarn_reports::escape_xml;
use forewarn_types::show_duration;
use forewarn_verdict::{ApprovedBy, EventEnd, EventVerdict, Finding, Occurrence};

use super::outcome::TestOutcome;

/// Widths and heights of the timeline, in units of the picture.
const LABEL_WIDTH: f64 = 190.0;
const LINE_WIDTH: f64 = 700.0;
const MARGIN: f64 = 20.0;
const ROW_HEIGHT: f64 = 44.0;
const AXIS_HEIGHT: f64 = 34.0;

/// Marks on the axis.
const TICKS: u32 = 5;

/// Events in the timeline; the table has all of them.
const ROWS_MAX: usize = 200;

const STYLE: &str = "\
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1c2024; --soft: #60646c; --line: #d9d9e0;
  --wait: #f3c26b; --work: #5b8def; --good: #218358; --bad: #ce2c31; }
@media (prefers-color-scheme: dark) { :root { --ground: #18191b; --ink: #edeef0; --soft: #b0b4ba; --line: #43484e;
  --wait: #8a6420; --work: #3e63dd; --good: #3dd68c; --bad: #ff9592; } }
body { background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.conclusion { border-left: .4rem solid; padding: .4rem .8rem; font-weight: 600; }
.passed { border-color: var(--good); } .failed { border-color: var(--bad); }
.soft { color: var(--soft); } svg { width: 100%; height: auto; } pre { overflow-x: auto; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; } svg .small { fill: var(--soft); font-size: 11px; }
svg .axis { stroke: var(--line); } svg .wait { fill: var(--wait); } svg .work { fill: var(--work); }
svg .good { fill: var(--good); } svg .bad { fill: var(--bad); }
.key span { display: inline-block; width: .8rem; height: .8rem; margin: 0 .3rem 0 1rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; }
";

/// The page of an outcome.
pub(super) fn page(outcome: &TestOutcome) -> String {
    let name = escape_xml(&outcome.name);
    let class = if outcome.passed() { "passed" } else { "failed" };
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>forewarn test: {name}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<h1>forewarn test: {name}</h1>\n<p class=\"conclusion {class}\">{}</p>\n",
        escape_xml(&outcome.conclusion())
    );
    page.push_str("<ul>\n");
    // Writing to a text cannot fail.
    for sentence in outcome.sentences() {
        writeln!(page, "<li>{}</li>", escape_xml(&sentence)).ok();
    }
    page.push_str("</ul>\n");
    for hint in outcome.hints.iter().filter(|_| !outcome.passed()) {
        writeln!(page, "<p class=\"soft\">Hint: {}</p>", escape_xml(hint)).ok();
    }
    if let Some(details) = &outcome.details {
        writeln!(page, "<pre>{}</pre>", lines(details)).ok();
    }
    if !outcome.verdict.events.is_empty() {
        page.push_str("<h2>Timeline</h2>\n");
        page.push_str(&Timeline::of(outcome).picture());
        page.push_str(
            "<p class=\"key soft\"><span style=\"background:var(--wait)\"></span>scheduled<span \
             style=\"background:var(--work)\"></span>under way<span style=\"background:var(--good)\"></span>approved\
             <span style=\"background:var(--bad)\"></span>started without approval</p>\n",
        );
        page.push_str(&table(outcome));
    }
    let (virtual_time, real_time) = (show_duration(outcome.virtual_time), outcome.real_time.as_secs_f64());
    writeln!(
        page,
        "<p class=\"soft\">{virtual_time} on the clock of the test took {real_time:.1} s. Times are those of the clock, \
         and the real time for which it stood still.</p>"
    )
    .ok();
    if let Some(transcript) = &outcome.transcript {
        writeln!(page, "<h2>Transcript</h2>\n<pre>{}</pre>", lines(transcript)).ok();
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn lines(text: &str) -> String {
    text.lines().map(escape_xml).collect::<Vec<_>>().join("\n")
}

fn table(outcome: &TestOutcome) -> String {
    let mut table =
        "<table>\n<tr><th>Event</th><th>Type</th><th>Machines</th><th>Read by</th><th>Approved by</th>\
                     <th>End</th></tr>\n"
            .to_owned();
    for event in &outcome.verdict.events {
        let approvers: Vec<_> =
            event.history.approvals.iter().map(|approval| approver(&approval.by)).collect();
        let end = match &event.history.end {
            Some(EventEnd::Completed(_)) => "completed",
            Some(EventEnd::Failed { .. }) => "failed",
            Some(EventEnd::Withdrawn { .. }) => "withdrawn",
            None => "–",
        };
        let cells = [
            event.name.clone(),
            event.history.kind.clone(),
            event.history.machines.join(", "),
            event.readers.join(", "),
            approvers.join(", "),
            end.to_owned(),
        ];
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape_xml(cell))).collect();
        writeln!(table, "<tr>{cells}</tr>").ok();
    }
    table + "</table>\n"
}

fn approver(by: &ApprovedBy) -> String {
    match by {
        ApprovedBy::Machine(machine) => machine.clone(),
        ApprovedBy::Operator(caller) => format!("operator ({caller})"),
        ApprovedBy::Policy => "policy".to_owned(),
    }
}

/// The timeline of a test. Times are counted from its beginning, and contain the real time for which the clock stood.
struct Timeline<'a> {
    outcome: &'a TestOutcome,
    end: Duration,
}

impl<'a> Timeline<'a> {
    fn of(outcome: &'a TestOutcome) -> Self {
        let end = outcome.virtual_time.saturating_add(outcome.real_time).max(Duration::from_secs(1));
        Self { outcome, end }
    }

    /// Time of an occurrence.
    fn time(&self, when: Occurrence) -> Duration {
        let real_time = self.outcome.real_times.get(&when.entry).copied().unwrap_or_default();
        when.at.0.since(self.outcome.beginning).saturating_add(real_time)
    }

    /// Place of a time on the line.
    fn x(&self, time: Duration) -> f64 {
        LABEL_WIDTH + LINE_WIDTH * (time.as_secs_f64() / self.end.as_secs_f64()).min(1.0)
    }

    fn picture(&self) -> String {
        let events = &self.outcome.verdict.events;
        let rows = events.len().min(ROWS_MAX);
        let width = LABEL_WIDTH + LINE_WIDTH + MARGIN * 2.0;
        let bottom = ROW_HEIGHT * rows as f64;
        let mut picture = format!(
            "<svg viewBox=\"0 0 {width:.0} {:.0}\" role=\"img\" aria-label=\"Timeline of the events\">\n",
            bottom + AXIS_HEIGHT
        );
        for tick in 0..=TICKS {
            let time = self.end * tick / TICKS;
            let (x, words) = (self.x(time), show_duration(time));
            writeln!(
                picture,
                "<line class=\"axis\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"small\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{words}</text>",
                bottom + AXIS_HEIGHT / 2.0
            )
            .ok();
        }
        for (row, event) in events.iter().take(rows).enumerate() {
            picture.push_str(&self.row(ROW_HEIGHT * row as f64, event));
        }
        picture + "</svg>\n"
    }

    fn row(&self, top: f64, event: &EventVerdict) -> String {
        let history = &event.history;
        let title = escape_xml(&event.sentence);
        let label = escape_xml(&format!("{} {}", event.name, history.kind));
        let machines = escape_xml(&shortened(&history.machines.join(", ")));
        let mut row = format!(
            "<g><title>{title}</title>\n<text x=\"0\" y=\"{:.1}\">{label}</text>\
             <text class=\"small\" x=\"0\" y=\"{:.1}\">{machines}</text>\n",
            top + 19.0,
            top + 34.0
        );
        let end = history.end.as_ref().map_or(self.end, |end| self.time(end.when()));
        let start = history.start.map(|start| self.time(start.when));
        if let Some(announced) = history.announced {
            let announced = self.time(announced);
            row += &self.bar("wait", top, announced, start.unwrap_or(end));
        }
        if let Some(start) = start {
            let class = if event.finding == Finding::Unapproved || event.finding == Finding::Unread {
                "bad"
            } else {
                "work"
            };
            row += &self.bar(class, top, start, end);
        }
        for approval in &history.approvals {
            let (x, y) = (self.x(self.time(approval.when)), top + 22.0);
            writeln!(row, "<circle class=\"good\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"7\"/>").ok();
        }
        row + "</g>\n"
    }

    fn bar(&self, class: &str, top: f64, from: Duration, to: Duration) -> String {
        let (x, y) = (self.x(from), top + 12.0);
        let width = (self.x(to) - x).max(2.0);
        format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"20\" rx=\"3\"/>\n"
        )
    }
}

/// Characters of a label.
const LABEL_CHARS_MAX: usize = 30;

fn shortened(text: &str) -> String {
    if text.chars().count() <= LABEL_CHARS_MAX {
        return text.to_owned();
    }
    let first: String = text.chars().take(LABEL_CHARS_MAX - 1).collect();
    format!("{first}…")
}
