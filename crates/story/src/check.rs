//! Whether what a story expects has come.

use forewarn_lifecycle::Machine;

use crate::error::Mistake;
use crate::play::Player;
use crate::statement::{Expectation, Expected, Place, Seen};
use crate::transcript::power;

impl Player {
    pub(crate) fn check(&self, place: &Place, expectation: &Expectation) -> Result<(), Mistake> {
        let subject = &expectation.subject;
        let found = match &expectation.is {
            Expected::Events(wanted) => {
                let found = self.events_seen(place, expectation)?;
                (found != *wanted).then(|| show(&found))
            }
            Expected::Enrolled | Expected::NotEnrolled => {
                let id = self.tenant(place, subject)?;
                let enrolled =
                    self.world.cluster.tenant(id).is_some_and(forewarn_lifecycle::Tenant::is_enrolled);
                let wanted = expectation.is == Expected::Enrolled;
                (enrolled != wanted).then(|| if enrolled { "enrolled" } else { "not enrolled" }.to_owned())
            }
            Expected::Incarnation(wanted) => {
                let id = self.tenant(place, subject)?;
                let found = self.world.cluster.tenant(id).map_or(0, |tenant| tenant.incarnation);
                (found != *wanted).then(|| format!("incarnation {found}"))
            }
            Expected::Gone => self.machine(place, subject).is_ok().then(|| "still there".to_owned()),
            Expected::On(wanted) => {
                let found = self.machine_seen(place, expectation)?.host;
                let host = self.world.cluster.host(found).map_or("nowhere", |host| host.name.as_str());
                (host != wanted.as_str()).then(|| format!("on {host}"))
            }
            Expected::Boots(wanted) => {
                let found = self.machine_seen(place, expectation)?.boots;
                (found != *wanted).then(|| format!("boot {found}"))
            }
            Expected::Disk(wanted) => {
                let found = self.machine_seen(place, expectation)?.ephemeral_generation;
                (found != *wanted).then(|| format!("disk {found}"))
            }
            Expected::Power(wanted) => {
                let found = power(self.machine_seen(place, expectation)?.power);
                (found != *wanted).then(|| found.to_owned())
            }
        };
        found.map_or(Ok(()), |found| Err(place.mistake(subject, format!("not as expected, but: {found}"))))
    }

    fn events_seen(&self, place: &Place, expectation: &Expectation) -> Result<Vec<Seen>, Mistake> {
        let id = self.tenant(place, &expectation.subject)?;
        let events = self.world.cluster.tenant(id).map_or(&[][..], forewarn_lifecycle::Tenant::events);
        let seen = |scheduled| if scheduled { Seen::Scheduled } else { Seen::Started };
        Ok(events.iter().map(|event| seen(event.is_scheduled())).collect())
    }

    fn machine_seen(&self, place: &Place, expectation: &Expectation) -> Result<&Machine, Mistake> {
        let subject = &expectation.subject;
        let id = self.machine(place, subject)?;
        self.world.cluster.machine(id).ok_or_else(|| place.mistake(subject, "no such machine"))
    }
}

fn show(seen: &[Seen]) -> String {
    let words: Vec<_> = seen.iter().map(|seen| format!("{seen:?}")).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(" ") }
}
