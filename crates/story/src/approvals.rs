//! Approvals and starts of events, from the audit log.

use forewarn_lifecycle::EventId;
use forewarn_verdict::{ApprovedBy, EventHistory};

use crate::error::StoryError;
use crate::runner::Runner;
use crate::statement::{ApprovalSource, SourceLine, SourceName};

impl Runner<'_> {
    /// Describes the approval of the newest event that was announced to a machine, if it is not as required.
    pub(crate) fn examine_approval(
        &mut self,
        location: &SourceLine,
        name: &SourceName,
        source: ApprovalSource,
    ) -> Result<Option<String>, StoryError> {
        let machine = self.machine(location, name)?;
        let histories = self.event_histories(location)?;
        let is_announced = |history: &&EventHistory| {
            history.announced.is_some()
                && history.tenant == machine.tenant
                && history.machines.contains(&machine.name)
        };
        let Some(newest) = histories.iter().rfind(is_announced) else {
            return Ok(Some("no event has been announced to it".to_owned()));
        };
        let event = self.event_name(newest);
        Ok(match (newest.approvals.first(), source) {
            (None, _) => Some(format!("{event} is not approved")),
            (Some(_), ApprovalSource::Anyone) => None,
            (Some(_), ApprovalSource::Itself) if newest.is_approved_by(&machine.name) => None,
            (Some(approval), ApprovalSource::Itself) => Some(match &approval.by {
                ApprovedBy::Machine(other) => format!("{event} was approved by {other}"),
                ApprovedBy::Operator(_) => format!("{event} was approved by its owner or an operator"),
                ApprovedBy::Policy => format!("{event} was approved by the policy"),
            }),
        })
    }

    /// Names the events that have started without approval, if there are any.
    pub(crate) fn examine_starts(&mut self, location: &SourceLine) -> Result<Option<String>, StoryError> {
        let histories = self.event_histories(location)?;
        let early = histories.iter().filter(|history| history.has_started_unapproved());
        let names: Vec<_> = early.map(|history| self.event_name(history)).collect();
        Ok(match names.as_slice() {
            [] => None,
            [only] => Some(format!("{only} has started without approval")),
            several => Some(format!("{} have started without approval", several.join(" "))),
        })
    }

    fn event_histories(&mut self, location: &SourceLine) -> Result<Vec<EventHistory>, StoryError> {
        let new = self.backend.audit(self.audit.last());
        self.audit.add(new.map_err(|error| location.error_on_line(error.to_string()))?);
        Ok(self.audit.event_histories())
    }

    fn event_name(&self, history: &EventHistory) -> String {
        EventId::parse(&history.id)
            .and_then(|id| self.transcript.name_of(id))
            .unwrap_or_else(|| history.id.clone())
    }
}
