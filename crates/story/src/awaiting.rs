//! `await`: the clock advances until a condition holds.

use std::time::Duration;

use forewarn_types::show_duration;

use crate::error::StoryError;
use crate::runner::Runner;
use crate::statement::{Expectation, SourceLine};

impl Runner<'_> {
    /// Advances the clock until all expectations hold at the same time. Each instant at which anything is due is one at
    /// which they may hold.
    pub(crate) fn wait_until(
        &mut self,
        location: &SourceLine,
        all: &[Expectation],
        within: Duration,
    ) -> Result<(), StoryError> {
        let end = self.backend.elapsed().saturating_add(within);
        self.check_end_of_programs(location, end)?;
        loop {
            self.record_documents(location)?;
            let Some((expectation, found)) = self.first_unmet(location, all)? else {
                for expectation in all {
                    self.transcript.expectation(self.backend.elapsed(), &expectation.text, None);
                }
                return Ok(());
            };
            if self.backend.elapsed() >= end {
                self.transcript.expectation(end, &expectation.text, Some(&found));
                let message = format!("still unmet after {}, found: {found}", show_duration(within));
                let error = location.error_at(&expectation.subject, message);
                return Err(error.expecting(&expectation.text, &found));
            }
            let step = self.next_poll_of_programs().map_or(end, |poll| poll.min(end));
            let advanced = self.backend.advance_to_due(step);
            advanced.map_err(|error| location.error_on_line(error.to_string()))?;
        }
    }

    fn first_unmet<'e>(
        &mut self,
        location: &SourceLine,
        all: &'e [Expectation],
    ) -> Result<Option<(&'e Expectation, String)>, StoryError> {
        for expectation in all {
            if let Some(found) = self.examine(location, expectation)? {
                return Ok(Some((expectation, found)));
            }
        }
        Ok(None)
    }
}
