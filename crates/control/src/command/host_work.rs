//! Work on hosts in its written form: the hosts, the step on each of them, and the length of the interruption.

use std::num::NonZeroU16;

use forewarn_lifecycle::{HostTask, HostWork, Plan, WorkText};
use forewarn_types::{Span, list};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::command::object::objects;
use crate::command::schema;

/// Work on hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct HostWorkEntry {
    /// The hosts.
    #[serde(deserialize_with = "list::at_least_one")]
    #[schemars(with = "schema::AtLeastOne<schema::Name>")]
    pub hosts: Vec<String>,
    /// The work on each host, for the driver and for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::WorkText>")]
    pub work: Option<String>,
    /// True if only machines are worked on, and no step is taken on the hosts themselves. `work` has no effect then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_work: bool,
    /// Announced length of the interruption: 1 second to 18 hours; the usual one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Interruption>")]
    pub duration: Option<Span>,
}

objects! { HostWorkEntry }

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}

/// The reason why work on hosts is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub enum HostWorkError {
    #[error(
        "the text about the work must be one line of 1 to {} bytes, without control characters",
        WorkText::BYTES_MAX
    )]
    Text,
    #[error("the interruption must last 1s to 18h, in whole seconds, not {}", forewarn_types::show_duration(.0.0))]
    Duration(Span),
}

/// The details of work on hosts, as its commands give them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepOptions<'a> {
    pub(crate) work: Option<&'a str>,
    pub(crate) no_work: bool,
    pub(crate) duration: Option<Span>,
}

/// The longest announced interruption.
const INTERRUPTION_MAX: u64 = 18 * 3600;

impl StepOptions<'_> {
    /// The work. Every kind has a step on the host, unless the caller wants none; a live migration only has one if the
    /// caller says what is to be done.
    pub(crate) fn task(self, kind: HostWork) -> Result<HostTask, HostWorkError> {
        let text = self.work.map(|work| WorkText::new(work).ok_or(HostWorkError::Text)).transpose()?;
        let seconds = self.duration.map(interruption).transpose()?;
        let task = HostTask { seconds, ..HostTask::from(kind) };
        let has_step = match kind {
            HostWork::Update | HostWork::NetworkUpdate | HostWork::Restart => true,
            HostWork::Migration | HostWork::Maintenance { .. } => text.is_some(),
        };
        Ok(if has_step && !self.no_work { task.with_step(text) } else { task })
    }
}

/// The operator's words about the step of some work.
pub(crate) fn work_text(plan: &Plan) -> Option<String> {
    let text = plan.cause.host_task()?.step.as_ref()?.text.as_ref()?;
    Some(text.to_string())
}

fn interruption(span: Span) -> Result<NonZeroU16, HostWorkError> {
    let Span(length) = span;
    let seconds = u16::try_from(length.as_secs()).ok().and_then(NonZeroU16::new);
    let is_good = length.subsec_nanos() == 0 && length.as_secs() <= INTERRUPTION_MAX;
    seconds.filter(|_| is_good).ok_or(HostWorkError::Duration(span))
}

impl HostWorkEntry {
    /// Work on these hosts, with all else as usual.
    #[must_use]
    pub fn on(hosts: Vec<String>) -> Self {
        Self { hosts, ..Self::default() }
    }

    pub(crate) fn options(&self) -> StepOptions<'_> {
        StepOptions { work: self.work.as_deref(), no_work: self.no_work, duration: self.duration }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn task(
        kind: HostWork,
        work: Option<&str>,
        no_work: bool,
        seconds: u64,
    ) -> Result<HostTask, HostWorkError> {
        let duration = (seconds > 0).then(|| Span(Duration::from_secs(seconds)));
        StepOptions { work, no_work, duration }.task(kind)
    }

    #[test]
    fn work_has_a_step_unless_the_caller_wants_none() {
        assert!(task(HostWork::Update, None, false, 0).unwrap().step.is_some());
        assert!(task(HostWork::Update, Some("kernel"), true, 0).unwrap().step.is_none());
        assert!(task(HostWork::Migration, None, false, 0).unwrap().step.is_none());
        let emptied = task(HostWork::Migration, Some("kernel"), false, 0).unwrap();
        assert_eq!(emptied.step.unwrap().text.unwrap().as_str(), "kernel");
    }

    #[test]
    fn texts_and_durations_have_limits() {
        assert_eq!(task(HostWork::Update, None, false, 45).unwrap().duration_seconds(), 45);
        assert!(task(HostWork::Update, None, false, INTERRUPTION_MAX).is_ok());
        assert!(task(HostWork::Update, None, false, INTERRUPTION_MAX + 1).is_err());
        assert_eq!(task(HostWork::Update, Some("a\nb"), false, 0), Err(HostWorkError::Text));
    }
}
