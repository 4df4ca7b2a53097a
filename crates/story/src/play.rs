//! Playing a story on a stage.

use std::time::Duration;

use forewarn_control::{
    ApproveWord, EventSelection, MachineView, NamedCommand, TenantView, Unknown, pick_machine, pick_tenant,
};
use forewarn_imds::{ReadEvent, Reading, read_document};
use forewarn_lifecycle::{EventId, Refusal};
use forewarn_types::show_duration;

use crate::error::Mistake;
use crate::rules::Rules;
use crate::stage::{Stage, Undone};
use crate::statement::{By, Deed, Named, Place, PolicyRule, RolloutDeed, Says, Story, Told};
use crate::transcript::Transcript;

/// Plays a story against the pure rules, on a virtual clock, with machines that pretend.
///
/// # Errors
/// When something is refused that should not be, or the other way round, or an expectation does not hold.
pub fn run(story: &Story) -> Result<Transcript, Mistake> {
    play(story, &mut Rules::default())
}

/// Plays a story on a stage on which nothing has happened yet.
///
/// # Errors
/// When something is refused that should not be, or the other way round, an expectation does not hold, or the stage fails.
pub fn play(story: &Story, stage: &mut dyn Stage) -> Result<Transcript, Mistake> {
    let mut player = Player { stage, transcript: Transcript::default() };
    for told in &story.lines {
        player.tell(told)?;
    }
    let machines = player.stage.machines();
    let last = story.lines.last().map(|told| &told.place);
    match (machines, last) {
        (Ok(machines), _) => player.transcript.machines(&machines),
        (Err(undone), Some(place)) => return Err(place.mistake_here(undone.to_string())),
        (Err(_), None) => {}
    }
    Ok(player.transcript)
}

pub(crate) struct Player<'a> {
    pub(crate) stage: &'a mut dyn Stage,
    transcript: Transcript,
}

/// Why a line did not come about.
enum Stopped {
    /// The rules refuse it, in these words.
    Refused(String),
    Mistaken(Mistake),
}

impl From<Mistake> for Stopped {
    fn from(mistake: Mistake) -> Self {
        Self::Mistaken(mistake)
    }
}

impl Player<'_> {
    fn tell(&mut self, told: &Told) -> Result<(), Mistake> {
        let place = &told.place;
        if let Some(at) = told.at {
            if at < self.stage.elapsed() {
                let elapsed = show_duration(self.stage.elapsed());
                return Err(place.mistake_here(format!("the story is at {elapsed} already")));
            }
            self.run_to(place, at)?;
        }
        match &told.says {
            Says::Does(deed) => {
                self.say(place);
                self.act(place, deed).map_err(|stopped| match stopped {
                    Stopped::Refused(why) => place.mistake_here(format!("refused: {why}")),
                    Stopped::Mistaken(mistake) => mistake,
                })?;
            }
            Says::Refused(deed) => self.refuse(place, deed)?,
            Says::Poll(who) => {
                self.say(place);
                self.poll(place, who.as_ref())?;
            }
            Says::Advance(span) => {
                self.say(place);
                self.run_to(place, self.stage.elapsed().saturating_add(*span))?;
            }
            Says::StepClock(step) => {
                self.say(place);
                self.stage.step_clock(*step).map_err(|undone| place.mistake_here(undone.to_string()))?;
            }
            Says::Crash => {
                self.say(place);
                self.stage.crash().map_err(|undone| place.mistake_here(undone.to_string()))?;
            }
            Says::Expect(all) => {
                for expectation in all {
                    self.check(place, expectation)?;
                }
                return Ok(());
            }
        }
        self.look(place)
    }

    fn say(&mut self, place: &Place) {
        let plain = match place.plain.split_once(' ') {
            Some(("at", rest)) => rest.split_once(' ').map_or(rest, |(_, rest)| rest),
            Some(_) | None => &place.plain,
        };
        self.transcript.line(self.stage.elapsed(), plain);
    }

    /// Writes down what has changed for anybody.
    fn look(&mut self, place: &Place) -> Result<(), Mistake> {
        let looked = self.transcript.documents(&*self.stage);
        looked.map_err(|undone| place.mistake_here(undone.to_string()))
    }

    fn run_to(&mut self, place: &Place, end: Duration) -> Result<(), Mistake> {
        loop {
            self.stage.run_on(end).map_err(|undone| place.mistake_here(undone.to_string()))?;
            self.look(place)?;
            if self.stage.elapsed() >= end {
                return Ok(());
            }
        }
    }

    fn refuse(&mut self, place: &Place, deed: &Deed) -> Result<(), Mistake> {
        self.say(place);
        match self.act(place, deed) {
            Ok(()) => Err(place.mistake_here("this was not refused")),
            Err(Stopped::Refused(why)) => {
                self.transcript.remark(&why);
                Ok(())
            }
            Err(Stopped::Mistaken(mistake)) => Err(mistake),
        }
    }

    fn act(&mut self, place: &Place, deed: &Deed) -> Result<(), Stopped> {
        match deed {
            Deed::Perform(commands) => commands.iter().try_for_each(|command| self.perform(place, command)),
            Deed::Approve { what, by } => self.approve(place, what, by),
            Deed::Cancel(event) => {
                let event = self.event_called(place, event)?.to_string();
                self.perform(place, &NamedCommand::Cancel { event })
            }
            Deed::Force(event) => {
                let event = self.event_called(place, event)?.to_string();
                self.perform(place, &NamedCommand::ForceStart { event })
            }
            Deed::Rollout(deed) => {
                let command = command_for(self.oldest_rollout(place)?, deed);
                self.perform(place, &command)
            }
            Deed::Policy { tenant, rule, approve } => self.change_policy(place, tenant, *rule, *approve),
        }
    }

    /// The number of the oldest rollout that is not over.
    fn oldest_rollout(&self, place: &Place) -> Result<u64, Mistake> {
        let rollouts = self.stage.rollouts().map_err(|undone| place.mistake_here(undone.to_string()))?;
        let oldest = rollouts.iter().find(|rollout| rollout.ended_at.is_none());
        oldest.map(|rollout| rollout.id).ok_or_else(|| place.mistake_here("no rollout is under way"))
    }

    fn perform(&mut self, place: &Place, command: &NamedCommand) -> Result<(), Stopped> {
        let done = self.stage.perform(command);
        done.map_err(|undone| self.stopped(place, undone))
    }

    /// Events have the names of the transcript, also where the stage speaks of them.
    fn stopped(&self, place: &Place, undone: Undone) -> Stopped {
        match undone {
            Undone::Refused(why) => Stopped::Refused(self.transcript.in_its_words(&why)),
            Undone::Mistaken(why) => {
                Stopped::Mistaken(place.mistake_about(&self.transcript.in_its_words(&why)))
            }
            Undone::Broken(why) => Stopped::Mistaken(place.mistake_here(why)),
        }
    }

    fn approve(&mut self, place: &Place, what: &[Named], by: &By) -> Result<(), Stopped> {
        let mut events = Vec::new();
        for name in what {
            match self.transcript.event_called(name.as_str()) {
                Some(event) => events.push(event),
                None => events.extend(self.events_of(place, name)?.iter().map(|event| event.id)),
            }
        }
        match by {
            By::Machine(machine) => {
                let machine = self.machine(place, machine)?;
                let approved = self.stage.approve(&machine, &events);
                approved.map_err(|undone| self.stopped(place, undone))
            }
            By::OwnerOf(tenant) => {
                let tenant = self.tenant(place, tenant)?.name;
                if events.is_empty() {
                    return Err(Stopped::Refused(Refusal::NoEvents.to_string()));
                }
                let events = EventSelection::Ids(events.iter().map(ToString::to_string).collect());
                self.perform(place, &NamedCommand::Approve { tenant, events })
            }
        }
    }

    fn change_policy(
        &mut self,
        place: &Place,
        tenant: &Named,
        rule: PolicyRule,
        approve: ApproveWord,
    ) -> Result<(), Stopped> {
        let TenantView { name: tenant, mut policy, .. } = self.tenant(place, tenant)?;
        match rule {
            PolicyRule::Restart => policy.restart = approve,
            PolicyRule::Redeploy => policy.redeploy = approve,
            PolicyRule::AllDown => policy.all_down = approve,
        }
        self.perform(place, &NamedCommand::ChangePolicy { tenant, policy })
    }

    fn poll(&mut self, place: &Place, who: Option<&Named>) -> Result<(), Mistake> {
        let machines = match who {
            Some(machine) => vec![self.machine(place, machine)?],
            None => self.one_of_each_tenant(place)?,
        };
        for machine in machines {
            self.stage.poll(&machine).map_err(|undone| place.mistake_here(undone.to_string()))?;
        }
        Ok(())
    }

    /// The first machine of every tenant that has one.
    fn one_of_each_tenant(&self, place: &Place) -> Result<Vec<MachineView>, Mistake> {
        let broken = |undone: Undone| place.mistake_here(undone.to_string());
        let machines = self.stage.machines().map_err(broken)?;
        let tenants = self.stage.tenants().map_err(broken)?;
        let first = |tenant: &TenantView| machines.iter().find(|machine| machine.tenant == tenant.name);
        Ok(tenants.iter().filter_map(first).cloned().collect())
    }

    fn event_called(&self, place: &Place, name: &Named) -> Result<EventId, Mistake> {
        let event = self.transcript.event_called(name.as_str());
        event.ok_or_else(|| place.mistake(name, "no such event has appeared"))
    }

    /// What a tenant sees, as one of its machines would read it.
    pub(crate) fn events_of(&self, place: &Place, name: &Named) -> Result<Vec<ReadEvent>, Mistake> {
        let tenant = self.tenant(place, name)?;
        let document = self.stage.document(&tenant.name);
        let document = document.map_err(|undone| place.mistake_here(undone.to_string()))?;
        match read_document(&document) {
            Ok(Reading::Document(document)) => Ok(document.events),
            Ok(Reading::NoNews) => Ok(Vec::new()),
            Err(unreadable) => Err(place.mistake(name, unreadable.to_string())),
        }
    }

    pub(crate) fn tenant(&self, place: &Place, name: &Named) -> Result<TenantView, Mistake> {
        let tenants = self.stage.tenants().map_err(|undone| place.mistake_here(undone.to_string()))?;
        let found = pick_tenant(&tenants, name.as_str()).cloned();
        found.map_err(|unknown| place.mistake(name, unknown.to_string()))
    }

    pub(crate) fn machine(&self, place: &Place, name: &Named) -> Result<MachineView, Mistake> {
        self.find_machine(place, name)?.map_err(|unknown| place.mistake(name, unknown.to_string()))
    }

    /// The machine, or why there is none of that name.
    pub(crate) fn find_machine(
        &self,
        place: &Place,
        name: &Named,
    ) -> Result<Result<MachineView, Unknown>, Mistake> {
        let machines = self.stage.machines().map_err(|undone| place.mistake_here(undone.to_string()))?;
        Ok(pick_machine(&machines, name.as_str()).cloned())
    }
}

/// What is done to that rollout.
fn command_for(rollout: u64, deed: &RolloutDeed) -> NamedCommand {
    match deed {
        RolloutDeed::Cancel => NamedCommand::CancelRollout { rollout },
        RolloutDeed::Pause { take_back } => NamedCommand::PauseRollout { rollout, take_back: *take_back },
        RolloutDeed::Resume => NamedCommand::ResumeRollout { rollout },
        RolloutDeed::Change { terms, add, remove } => NamedCommand::ChangeRollout {
            rollout,
            terms: terms.clone(),
            add: add.clone(),
            remove: remove.clone(),
        },
    }
}
