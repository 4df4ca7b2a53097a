//! Messages for people: what happens to which machines, when, and whose approval is awaited.
//!
//! ```text
//! Push ──▶ ChatNote: a title and lines in plain English ──▶ Slack, Teams, PagerDuty, plain text
//! ```
//!
//! A note has a limited length, whatever the names and reasons in it, so that each format keeps the limits that its
//! receiver documents.

mod pagerduty;
mod slack;
mod teams;
#[cfg(test)]
mod tests;

use std::str::FromStr;

use forewarn_lifecycle::Timestamp;
use forewarn_types::{EventKind, Moment, show_duration};

use super::message::{Push, PushContent};
use crate::FailureView;
use crate::audit::host_notice::HostNoticeStatus;
use crate::audit::notice::{Notice, NoticeStatus};
use crate::push::HostPush;

/// Bytes of a title, and of the text of a line.
const TITLE_BYTES_MAX: usize = 500;
const LINE_BYTES_MAX: usize = 400;

/// Machines, and failures, that a note names.
const NAMES_MAX: usize = 5;
const FAILURES_NAMED_MAX: usize = 3;

/// A message about one event or one host in plain English.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChatNote {
    title: String,
    lines: Vec<NoteLine>,
}

/// A line of a note, with the command that it proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NoteLine {
    text: String,
    command: Option<String>,
}

/// The body of a message to Slack.
#[must_use]
pub fn slack(pushes: &[Push], now: Moment) -> String {
    slack::body(&notes(pushes, now))
}

/// The body of a message to a workflow of Microsoft Teams.
#[must_use]
pub fn teams(pushes: &[Push], now: Moment) -> String {
    teams::body(&notes(pushes, now))
}

/// The body of a message as plain text. Its last line ends with a line feed.
#[must_use]
pub fn plain_text(pushes: &[Push], now: Moment) -> String {
    let notes = notes(pushes, now);
    let lines = notes.iter().flat_map(|note| {
        let more = note.lines.iter().map(|line| format!("  {line}\n"));
        std::iter::once(format!("{}\n", note.title)).chain(more)
    });
    lines.collect()
}

/// The body of a message to PagerDuty about one push message. `key` is the routing key.
#[must_use]
pub fn pagerduty(push: &Push, key: &str, now: Moment) -> String {
    pagerduty::body(push, &ChatNote::of(push, now), key)
}

/// The body that resolves the alert of a push message.
#[must_use]
pub fn pagerduty_end(push: &Push, key: &str) -> String {
    pagerduty::resolve(push, key)
}

fn notes(pushes: &[Push], now: Moment) -> Vec<ChatNote> {
    pushes.iter().map(|push| ChatNote::of(push, now)).collect()
}

impl ChatNote {
    /// The note about a push message, at a time of the server's clock.
    fn of(push: &Push, now: Moment) -> Self {
        let note = match &push.content {
            PushContent::Event(notice) => Self::of_event(push, notice, now),
            PushContent::Host(host) => Self::of_host(push, host),
            PushContent::Test { webhook, .. } => Self::new(
                format!("Test of the webhook {webhook}"),
                vec!["Forewarn can send messages here. Nothing happens to any machine.".into()],
            ),
        };
        note.within_limits()
    }

    fn new(title: String, lines: Vec<NoteLine>) -> Self {
        Self { title, lines }
    }

    fn of_event(push: &Push, notice: &Notice, now: Moment) -> Self {
        let Notice { status, kind, resources, failures, .. } = notice;
        let has_failed = !failures.is_empty();
        let title = format!("{kind} of {} {}", names(resources), outcome(*status, has_failed));
        let words = EventWords::of(notice);
        let (subject, done) = (words.subject(), words.participle);
        let at = date(push.at);
        let mut lines = match status {
            NoticeStatus::Scheduled => words.scheduled(push, now),
            NoticeStatus::Started => {
                vec![format!("{subject} {} being {done} since {at}.", words.be()).into()]
            }
            NoticeStatus::Completed if has_failed => failure_lines(failures, &at),
            NoticeStatus::Completed => {
                vec![format!("{subject} {} {done}. It ended at {at}.", words.were()).into()]
            }
            NoticeStatus::Canceled => {
                vec![format!("{subject} will not be {done}. It was cancelled at {at}.").into()]
            }
        };
        if matches!(status, NoticeStatus::Scheduled | NoticeStatus::Started) && !notice.description.is_empty()
        {
            lines.push(notice.description.as_str().into());
        }
        Self::new(title, lines)
    }

    fn of_host(push: &Push, host: &HostPush) -> Self {
        let mut letters = host.text.chars();
        let title = letters.next().map(|first| first.to_uppercase().chain(letters).collect());
        let notice = &host.notice;
        let lines = match notice.status {
            HostNoticeStatus::Ready | HostNoticeStatus::Reminder => {
                let text =
                    format!("Its machines are aside since {}. When the work is done:", date(notice.since));
                let command = push.command(&format!("host done {}", notice.host));
                vec![NoteLine { text, command: Some(command) }]
            }
            HostNoticeStatus::Completed | HostNoticeStatus::Failed => {
                vec![format!("It ended at {}.", date(push.at)).into()]
            }
        };
        Self::new(title.unwrap_or_default(), lines)
    }

    /// Every text on one line, and not too long.
    fn within_limits(self) -> Self {
        let line = |line: NoteLine| NoteLine { text: clip(&line.text, LINE_BYTES_MAX), ..line };
        let lines = self.lines.into_iter().map(line).collect();
        Self { title: clip(&self.title, TITLE_BYTES_MAX), lines }
    }
}

impl From<String> for NoteLine {
    fn from(text: String) -> Self {
        Self { text, command: None }
    }
}

impl From<&str> for NoteLine {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl std::fmt::Display for NoteLine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text)?;
        self.command.iter().try_for_each(|command| write!(out, " {command}"))
    }
}

impl Push {
    /// A command of `forewarn` for the cluster of this message.
    fn command(&self, arguments: &str) -> String {
        let cluster = self.cluster.as_ref().map(|name| format!(" --cluster {name}")).unwrap_or_default();
        format!("forewarn {arguments}{cluster}")
    }
}

/// Words for the machines of an event and what happens to them.
struct EventWords<'a> {
    notice: &'a Notice,
    /// As in `will be restarted`.
    participle: &'static str,
}

impl<'a> EventWords<'a> {
    fn of(notice: &'a Notice) -> Self {
        let participle = match EventKind::from_str(&notice.kind) {
            Ok(EventKind::Freeze) => "frozen",
            Ok(EventKind::Reboot) => "restarted",
            Ok(EventKind::Redeploy) => "moved to another host",
            Ok(EventKind::Preempt) => "evicted",
            Ok(EventKind::Terminate) => "deleted",
            Err(_) => "affected",
        };
        Self { notice, participle }
    }

    fn is_one(&self) -> bool {
        self.notice.resources.len() == 1
    }

    fn subject(&self) -> String {
        names(&self.notice.resources)
    }

    fn be(&self) -> &'static str {
        if self.is_one() { "is" } else { "are" }
    }

    fn were(&self) -> &'static str {
        if self.is_one() { "was" } else { "were" }
    }

    /// The earliest start, and the approval that the event waits for until then.
    fn scheduled(&self, push: &Push, now: Moment) -> Vec<NoteLine> {
        let Notice { event, tenant, duration, not_before, .. } = self.notice;
        let length = match u64::try_from(*duration) {
            Ok(seconds @ 1..) => {
                format!(" for about {}", show_duration(std::time::Duration::from_secs(seconds)))
            }
            Ok(0) | Err(_) => String::new(),
        };
        let when =
            not_before.map(|at| format!(", not before {}", date_and_distance(at, now))).unwrap_or_default();
        let first = format!("{} will be {}{length}{when}.", self.subject(), self.participle);
        let text = format!("Until then it waits for the approval of tenant {tenant}:");
        let command = Some(push.command(&format!("event approve {event}")));
        vec![first.into(), NoteLine { text, command }]
    }
}

fn outcome(status: NoticeStatus, has_failed: bool) -> &'static str {
    match status {
        NoticeStatus::Scheduled => "scheduled",
        NoticeStatus::Started => "started",
        NoticeStatus::Completed if has_failed => "failed",
        NoticeStatus::Completed => "completed",
        NoticeStatus::Canceled => "cancelled",
    }
}

fn failure_lines(failures: &[FailureView], at: &str) -> Vec<NoteLine> {
    let named = failures.iter().take(FAILURES_NAMED_MAX);
    let mut lines: Vec<NoteLine> =
        named.map(|failure| format!("{}: {}", failure.machine, failure.reason).into()).collect();
    if let more @ 1.. = failures.len().saturating_sub(FAILURES_NAMED_MAX) {
        lines.push(format!("It failed for {more} more.").into());
    }
    lines.push(format!("It ended at {at}.").into());
    lines
}

/// The first names of a list, and the number of the others.
fn names(all: &[String]) -> String {
    let shown = &all[..all.len().min(NAMES_MAX)];
    match (shown, all.len() - shown.len()) {
        ([], _) => "no machine".to_owned(),
        ([one], 0) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (some, more) => format!("{} and {more} more", some.join(", ")),
    }
}

/// `2026-01-01 00:15:00 UTC`.
fn date(Moment(at): Moment) -> String {
    let whole = Moment(Timestamp::from_millis(at.seconds().saturating_mul(1_000)));
    whole.to_string().replace('T', " ").replace('Z', " UTC")
}

fn date_and_distance(at: Moment, now: Moment) -> String {
    let distance = match at.0.since(now.0) {
        left if left.as_secs() > 0 => format!("in {}", show_duration(left)),
        _ => "now".to_owned(),
    };
    format!("{} ({distance})", date(at))
}

/// A text on one line, of at most `max` bytes.
fn clip(text: &str, max: usize) -> String {
    const MORE: &str = "…";
    let line: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    if line.len() <= max {
        return line;
    }
    let mut end = max - MORE.len();
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MORE}", &line[..end])
}
