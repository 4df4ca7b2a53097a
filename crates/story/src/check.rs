//! Whether what a story expects has come.

use forewarn_control::Unknown;
use forewarn_imds::{Status, Word};

use crate::error::Mistake;
use crate::play::Player;
use crate::statement::{Expectation, Expected, Named, Place, Seen};

impl Player<'_> {
    pub(crate) fn check(&self, place: &Place, expectation: &Expectation) -> Result<(), Mistake> {
        let subject = &expectation.subject;
        let found = match &expectation.is {
            Expected::Events(wanted) => {
                let found = self.events_seen(place, subject)?;
                (found != *wanted).then(|| show(&found))
            }
            Expected::Enrolled | Expected::NotEnrolled => {
                let enrolled = self.tenant(place, subject)?.enrolled;
                let wanted = expectation.is == Expected::Enrolled;
                (enrolled != wanted).then(|| if enrolled { "enrolled" } else { "not enrolled" }.to_owned())
            }
            Expected::Incarnation(wanted) => {
                let found = self.tenant(place, subject)?.incarnation;
                (found != *wanted).then(|| format!("incarnation {found}"))
            }
            Expected::Gone => match self.find_machine(place, subject)? {
                Ok(_) => Some("still there".to_owned()),
                Err(Unknown::Nothing { .. }) => None,
                Err(several @ Unknown::Several { .. }) => {
                    return Err(place.mistake(subject, several.to_string()));
                }
            },
            Expected::On(wanted) => {
                let found = self.machine(place, subject)?.host;
                (found != wanted.as_str()).then(|| format!("on {found}"))
            }
            Expected::Boots(wanted) => {
                let found = self.machine(place, subject)?.boots;
                (found != *wanted).then(|| format!("boot {found}"))
            }
            Expected::Disk(wanted) => {
                let found = self.machine(place, subject)?.disk;
                (found != *wanted).then(|| format!("disk {found}"))
            }
            Expected::Model(wanted) => {
                let found = self.machine(place, subject)?.model;
                (found != *wanted).then(|| format!("model {found}"))
            }
            Expected::Rollout(wanted) => {
                let rollouts =
                    self.stage.rollouts().map_err(|undone| place.mistake_here(undone.to_string()))?;
                let found = rollouts.last().map_or("none", |rollout| &rollout.state).to_owned();
                (found != *wanted).then_some(found)
            }
            Expected::Power(wanted) => {
                let found = self.machine(place, subject)?.power;
                (found != *wanted).then_some(found)
            }
        };
        found.map_or(Ok(()), |found| Err(place.mistake(subject, format!("not as expected, but: {found}"))))
    }

    fn events_seen(&self, place: &Place, tenant: &Named) -> Result<Vec<Seen>, Mistake> {
        let events = self.events_of(place, tenant)?;
        let seen = events.iter().map(|event| match &event.status {
            Word::Known(Status::Scheduled) => Ok(Seen::Scheduled),
            Word::Known(Status::Started) => Ok(Seen::Started),
            Word::Other(status) => Err(place.mistake(tenant, format!("not as expected, but: {status}"))),
        });
        seen.collect()
    }
}

fn show(seen: &[Seen]) -> String {
    let words: Vec<_> = seen.iter().map(|seen| format!("{seen:?}")).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
}
