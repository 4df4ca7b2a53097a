//! Checks of expectations.

use forewarn_control::LookupError;
use forewarn_imds::{Status, Word};

use crate::error::StoryError;
use crate::runner::Runner;
use crate::statement::{EventPhase, Expectation, Expected, SourceLine, SourceName};

impl Runner<'_> {
    pub(crate) fn check(
        &mut self,
        location: &SourceLine,
        expectation: &Expectation,
    ) -> Result<(), StoryError> {
        let found = self.examine(location, expectation)?;
        self.transcript.expectation(self.backend.elapsed(), &expectation.text, found.as_deref());
        match found {
            None => Ok(()),
            Some(found) => {
                let hint = self.approval_hint(expectation).unwrap_or_default();
                let message = format!("expectation failed, found: {found}{hint}");
                let error = location.error_at(&expectation.subject, message);
                Err(error.expecting(&expectation.text, &found))
            }
        }
    }

    /// A hint about an event that a simulated program has approved before the expectation.
    fn approval_hint(&self, expectation: &Expectation) -> Option<String> {
        let is_unapproved =
            matches!(&expectation.is, Expected::Events(all) if all.contains(&EventPhase::Scheduled));
        let tenant = expectation.subject.as_str();
        let machines = self.programs.iter().filter_map(|program| program.machine.as_str().split_once('/'));
        let (_, machine) = machines.into_iter().find(|(own, _)| is_unapproved && *own == tenant)?;
        Some(format!(
            "\n  hint: the simulated program of {machine} approves in the same instant; write `await {machine} approved \
             within 1m`"
        ))
    }

    /// Describes the condition that is found if it is not the expected one.
    pub(crate) fn examine(
        &mut self,
        location: &SourceLine,
        expectation: &Expectation,
    ) -> Result<Option<String>, StoryError> {
        let subject = &expectation.subject;
        Ok(match &expectation.is {
            Expected::Events(wanted) => {
                let found = self.observed_phases(location, subject)?;
                (found != *wanted).then(|| show(&found))
            }
            Expected::Enrolled | Expected::NotEnrolled => {
                let enrolled = self.tenant(location, subject)?.enrolled;
                let wanted = expectation.is == Expected::Enrolled;
                (enrolled != wanted).then(|| if enrolled { "enrolled" } else { "not enrolled" }.to_owned())
            }
            Expected::Incarnation(wanted) => {
                let found = self.tenant(location, subject)?.incarnation;
                (found != *wanted).then(|| format!("incarnation {found}"))
            }
            Expected::Gone => match self.find_machine(location, subject)? {
                Ok(_) => Some("still there".to_owned()),
                Err(LookupError::Nothing { .. }) => None,
                Err(several @ LookupError::Several { .. }) => {
                    return Err(location.error_at(subject, several.to_string()));
                }
            },
            Expected::On(wanted) => {
                let found = self.machine(location, subject)?.host;
                (found != wanted.as_str()).then(|| format!("on {found}"))
            }
            Expected::Boots(wanted) => {
                let found = self.machine(location, subject)?.boots;
                (found != *wanted).then(|| format!("boot {found}"))
            }
            Expected::Disk(wanted) => {
                let found = self.machine(location, subject)?.disk;
                (found != *wanted).then(|| format!("disk {found}"))
            }
            Expected::Model(wanted) => {
                let found = self.machine(location, subject)?.model;
                (found != *wanted).then(|| format!("model {found}"))
            }
            Expected::Rollout(wanted) => {
                let rollouts =
                    self.backend.rollouts().map_err(|error| location.error_on_line(error.to_string()))?;
                let found = rollouts.last().map_or("none", |rollout| &rollout.state).to_owned();
                (found != *wanted).then_some(found)
            }
            Expected::Mode(wanted) => {
                let hosts =
                    self.backend.hosts().map_err(|error| location.error_on_line(error.to_string()))?;
                let host = hosts.iter().find(|host| host.name == subject.as_str());
                let host = host.ok_or_else(|| location.error_at(subject, "no such host"))?;
                let found = host.maintenance.as_ref().map_or("open", |mode| &mode.state);
                (found != *wanted).then(|| found.to_owned())
            }
            Expected::Power(wanted) => {
                let found = self.machine(location, subject)?.power;
                (found != *wanted).then_some(found)
            }
            Expected::Approved(source) => self.examine_approval(location, subject, *source)?,
            Expected::NoUnapprovedStart => self.examine_starts(location)?,
        })
    }

    fn observed_phases(
        &self,
        location: &SourceLine,
        tenant: &SourceName,
    ) -> Result<Vec<EventPhase>, StoryError> {
        let events = self.events_of(location, tenant)?;
        let observed = events.iter().map(|event| match &event.status {
            Word::Known(Status::Scheduled) => Ok(EventPhase::Scheduled),
            Word::Known(Status::Started) => Ok(EventPhase::Started),
            Word::Other(status) => {
                Err(location.error_at(tenant, format!("expectation failed, found: {status}")))
            }
        });
        observed.collect()
    }
}

fn show(observed: &[EventPhase]) -> String {
    let words: Vec<_> = observed.iter().map(|observed| format!("{observed:?}")).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
}
