//! Playing a story against the pure rules.

use std::time::Duration;

use forewarn_lifecycle::{Refusal, Timestamp};
use forewarn_wire::show_duration;

use crate::error::Mistake;
use crate::statement::{ClockStep, Deed, Named, Place, Says, Story, Told};
use crate::transcript::Transcript;
use crate::world::World;

/// Plays a story against the pure rules, on a virtual clock, with machines that pretend.
///
/// # Errors
/// When something is refused that should not be, or the other way round, or an expectation does not hold.
pub fn run(story: &Story) -> Result<Transcript, Mistake> {
    let mut player = Player { world: World::new(), transcript: Transcript::default() };
    for told in &story.lines {
        player.tell(told)?;
    }
    player.transcript.machines(&player.world.cluster);
    Ok(player.transcript)
}

pub(crate) struct Player {
    pub(crate) world: World,
    pub(crate) transcript: Transcript,
}

/// Why a deed was not done.
enum Undone {
    Refused(Refusal),
    Mistaken(Mistake),
}

impl From<Refusal> for Undone {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Mistake> for Undone {
    fn from(mistake: Mistake) -> Self {
        Self::Mistaken(mistake)
    }
}

impl Player {
    fn tell(&mut self, told: &Told) -> Result<(), Mistake> {
        let place = &told.place;
        if let Some(at) = told.at {
            if at < self.world.elapsed() {
                let elapsed = show_duration(self.world.elapsed());
                return Err(place.mistake_here(format!("the story is at {elapsed} already")));
            }
            self.run_to(place, at)?;
        }
        match &told.says {
            Says::Does(deed) => {
                self.say(place);
                self.act(place, deed).map_err(|undone| match undone {
                    Undone::Refused(refusal) => place.mistake_here(format!("refused: {refusal}")),
                    Undone::Mistaken(mistake) => mistake,
                })?;
            }
            Says::Refused(deed) => self.refuse(place, deed)?,
            Says::Poll(who) => {
                self.say(place);
                self.poll(place, who.as_ref())?;
            }
            Says::Jam(machine) => {
                self.say(place);
                let machine = self.machine(place, machine)?;
                self.world.jam(machine);
            }
            Says::Advance(span) => {
                self.say(place);
                self.run_to(place, self.world.elapsed().saturating_add(*span))?;
            }
            Says::StepClock(step) => {
                self.say(place);
                self.step_clock(*step);
            }
            Says::Crash => {
                self.say(place);
                if !self.world.crash() {
                    return Err(place.mistake_here("the journal does not give the state that was lost"));
                }
            }
            Says::Expect(all) => {
                for expectation in all {
                    self.check(place, expectation)?;
                }
            }
        }
        self.come_to_rest(place)
    }

    fn say(&mut self, place: &Place) {
        let plain = match place.plain.split_once(' ') {
            Some(("at", rest)) => rest.split_once(' ').map_or(rest, |(_, rest)| rest),
            Some(_) | None => &place.plain,
        };
        self.transcript.line(&self.world, plain);
    }

    fn come_to_rest(&mut self, place: &Place) -> Result<(), Mistake> {
        let settled = self.world.settle();
        settled.map_err(|refusal| place.mistake_here(format!("the clock was refused: {refusal}")))?;
        self.transcript.documents(&self.world);
        Ok(())
    }

    fn run_to(&mut self, place: &Place, end: Duration) -> Result<(), Mistake> {
        loop {
            let reached = self.world.run_to_next(end);
            self.come_to_rest(place)?;
            if reached {
                return Ok(());
            }
        }
    }

    fn step_clock(&mut self, step: ClockStep) {
        let wall = self.world.now.wall;
        self.world.set_wall(match step {
            ClockStep::Forward(span) => wall.plus(span),
            ClockStep::Back(span) => {
                let span = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
                Timestamp::from_millis(wall.millis().saturating_sub(span))
            }
        });
    }

    fn refuse(&mut self, place: &Place, deed: &Deed) -> Result<(), Mistake> {
        self.say(place);
        match self.act(place, deed) {
            Ok(()) => Err(place.mistake_here("this was not refused")),
            Err(Undone::Refused(refusal)) => {
                self.transcript.remark(&refusal.to_string());
                Ok(())
            }
            Err(Undone::Mistaken(mistake)) => Err(mistake),
        }
    }

    fn act(&mut self, place: &Place, deed: &Deed) -> Result<(), Undone> {
        for command in self.commands(place, deed)? {
            self.world.submit(&command)?;
        }
        Ok(())
    }

    fn poll(&mut self, place: &Place, who: Option<&Named>) -> Result<(), Mistake> {
        let tenants = match who {
            Some(machine) => vec![self.tenant_of(place, machine)?],
            None => self.world.cluster.tenants().map(|(id, _)| id).collect(),
        };
        for tenant in tenants {
            self.world.poll(tenant).map_err(|refusal| place.mistake_here(refusal.to_string()))?;
        }
        Ok(())
    }
}
