//! Work on hosts and its steps. The stored form of work without a step is that of versions that knew none.

use forewarn_lifecycle::{
    Aside, Fence, Health, HostAttention, HostOperation, HostPhase, HostRow, HostStep, HostTask, HostWork,
    Leaving, MaintenanceMode, ModeStep, Readiness, ReturnWay, Stage, Steps, Target, WorkText,
};

use super::plain::{read_text, write_text};
use super::{Malformed, Reader, Stored, Writer, stored_enum, stored_struct};

stored_enum!(Aside { 0 => Paused, 1 => Stopped });
stored_enum!(HostOperation { 0 => Update, 1 => Reboot, 2 => Fence });
stored_enum!(Fence { 0 => Unneeded, 1 => Awaited { order }, 2 => Confirmed });
stored_enum!(HostPhase { 0 => Aside { left, ready }, 1 => Step { since } });
stored_enum!(HostAttention { 0 => Unneeded, 1 => Needed });
stored_enum!(ReturnWay { 0 => Live, 1 => Redeploy });
stored_enum!(Leaving { 0 => Live, 1 => Redeploy, 2 => Stop });
stored_enum!(ModeStep { 0 => Untaken, 1 => Done, 2 => Failed });
stored_enum!(Readiness { 0 => Ready, 1 => Obstructed });

stored_struct! {
    HostStep { text }
    MaintenanceMode { since, task, rollout, step, left }
}

/// The number of a target: that of a machine in versions without steps.
impl Stored for Target {
    fn write(&self, out: &mut Writer) {
        out.number(self.to_number());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::from_number(input.number()?).ok_or(Malformed::Impossible("target of an action"))
    }
}

impl Stored for WorkText {
    fn write(&self, out: &mut Writer) {
        write_text(self.as_str(), out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::new(read_text(input)?).ok_or(Malformed::Impossible("text about work on a host"))
    }
}

/// Added to the number of a kind of work if details follow.
const WITH_DETAILS: u8 = 8;

/// The kind, and the details if there are any.
impl Stored for HostTask {
    fn write(&self, out: &mut Writer) {
        let kind = match self.kind {
            HostWork::Update => 0,
            HostWork::NetworkUpdate => 1,
            HostWork::Migration => 2,
            HostWork::Restart => 3,
            HostWork::Maintenance { .. } => 4,
        };
        let Self { kind: _, seconds, step } = self;
        let has_details = seconds.is_some() || step.is_some();
        out.byte(if has_details { kind + WITH_DETAILS } else { kind });
        if let HostWork::Maintenance { leaving, operation } = self.kind {
            leaving.write(out);
            operation.write(out);
        }
        if !has_details {
            return;
        }
        seconds.write(out);
        step.as_deref().cloned().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = input.byte()?;
        let kind = match number % WITH_DETAILS {
            0 => HostWork::Update,
            1 => HostWork::NetworkUpdate,
            2 => HostWork::Migration,
            3 => HostWork::Restart,
            4 => HostWork::Maintenance { leaving: Stored::read(input)?, operation: Stored::read(input)? },
            _ => return Err(Malformed::Impossible("HostWork")),
        };
        match number / WITH_DETAILS {
            0 => Ok(kind.into()),
            1 => {
                let (seconds, step) = (Stored::read(input)?, Option::<HostStep>::read(input)?);
                Ok(Self { kind, seconds, step: step.map(Box::new) })
            }
            _ => Err(Malformed::Impossible("HostWork")),
        }
    }
}

/// Added to the number of the health of a host that needs attention.
const NEEDS_ATTENTION: u8 = 8;

/// Added to the same number if the host is in maintenance mode. The details follow its machines.
const IN_MAINTENANCE: u8 = 16;

/// Added to it if the fence of the host follows.
const HAS_FENCE: u8 = 64;

/// A host that needs no attention and no fence, and is in normal use, is stored as by versions that knew none of these.
impl Stored for HostRow {
    fn write(&self, out: &mut Writer) {
        let Self { id, name, zone, health, rollout, work, attention, fence, mode, machines } = self;
        id.write(out);
        name.write(out);
        zone.write(out);
        let health = match health {
            Health::Healthy => 0,
            Health::Degraded => 1,
            Health::Failed => 2,
        };
        let attention = match attention {
            HostAttention::Unneeded => 0,
            HostAttention::Needed => NEEDS_ATTENTION,
        };
        let is_fenced = *fence != Fence::Unneeded;
        let in_maintenance = if mode.is_some() { IN_MAINTENANCE } else { 0 };
        out.byte(health + attention + in_maintenance + if is_fenced { HAS_FENCE } else { 0 });
        if is_fenced {
            fence.write(out);
        }
        rollout.write(out);
        work.write(out);
        machines.write(out);
        if let Some(mode) = mode {
            mode.write(out);
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (id, name, zone) = (Stored::read(input)?, Stored::read(input)?, Stored::read(input)?);
        let number = input.byte()?;
        let health = match number % NEEDS_ATTENTION {
            0 => Health::Healthy,
            1 => Health::Degraded,
            2 => Health::Failed,
            _ => return Err(Malformed::Impossible("Health")),
        };
        let attention = match number % IN_MAINTENANCE / NEEDS_ATTENTION {
            0 => HostAttention::Unneeded,
            1 => HostAttention::Needed,
            _ => return Err(Malformed::Impossible("HostAttention")),
        };
        let fence = match number / HAS_FENCE {
            0 => Fence::Unneeded,
            1 => Fence::read(input)?,
            _ => return Err(Malformed::Impossible("Fence")),
        };
        let (rollout, work, machines) = (Stored::read(input)?, Stored::read(input)?, Stored::read(input)?);
        let mode = match number % HAS_FENCE / IN_MAINTENANCE {
            0 => None,
            1 => Some(Box::new(MaintenanceMode::read(input)?)),
            _ => return Err(Malformed::Impossible("mode of a host")),
        };
        Ok(Self { id, name, zone, health, rollout, work, attention, fence, mode, machines })
    }
}

/// Started work without steps has the number that it had in versions without steps.
impl Stored for Stage {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::Waiting(wait) => {
                out.byte(0);
                wait.write(out);
            }
            Self::Running { cause, actions, steps } => {
                let Steps { hosts, leaving, aside, idle, suspended } = steps;
                let has_steps = *steps != Steps::default();
                out.byte(match (has_steps, idle.is_empty()) {
                    (false, _) => 1,
                    (true, true) => 2,
                    (true, false) => 3,
                });
                cause.write(out);
                actions.write(out);
                if has_steps {
                    hosts.write(out);
                    leaving.write(out);
                    aside.write(out);
                    suspended.write(out);
                }
                if !idle.is_empty() {
                    idle.write(out);
                }
            }
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = input.byte()?;
        match number {
            0 => Ok(Self::Waiting(Stored::read(input)?)),
            1..=3 => {
                let (cause, actions) = (Stored::read(input)?, Stored::read(input)?);
                let mut steps = Steps::default();
                if number >= 2 {
                    steps.hosts = Stored::read(input)?;
                    steps.leaving = Stored::read(input)?;
                    steps.aside = Stored::read(input)?;
                    steps.suspended = Stored::read(input)?;
                }
                if number == 3 {
                    steps.idle = Stored::read(input)?;
                }
                Ok(Self::Running { cause, actions, steps })
            }
            _ => Err(Malformed::Impossible("Stage")),
        }
    }
}

#[cfg(test)]
mod tests {
    use forewarn_lifecycle::{Action, HostId, Impact, MachineId, MaintenanceId, Name, StartCause, Timestamp};

    use super::super::{from_bytes, to_bytes};
    use super::*;

    #[test]
    fn work_without_a_step_is_stored_as_before() {
        assert_eq!(to_bytes(&HostTask::from(HostWork::Restart)), [3]);
        assert_eq!(to_bytes(&Target::Machine(MachineId(300))), to_bytes(&MachineId(300)));
        let running = Stage::Running {
            cause: StartCause::Forced,
            actions: [].into_iter().collect(),
            steps: Steps::default(),
        };
        assert_eq!(to_bytes(&running), [1, 4, 0]);
    }

    #[test]
    fn a_host_that_needs_no_fence_is_stored_as_before() {
        let host = |attention, fence| HostRow {
            id: HostId(1),
            name: Name::new("h").unwrap(),
            zone: None,
            health: Health::Failed,
            rollout: None,
            work: None,
            attention,
            fence,
            mode: None,
            machines: vec![MachineId(2)],
        };
        let stored = to_bytes(&host(HostAttention::Unneeded, Fence::Unneeded));
        assert_eq!(stored, [1, 1, b'h', 0, 2, 0, 0, 1, 2]);
        let order = Some(MaintenanceId(300));
        for fence in
            [Fence::Unneeded, Fence::Awaited { order: None }, Fence::Awaited { order }, Fence::Confirmed]
        {
            for attention in [HostAttention::Unneeded, HostAttention::Needed] {
                let row = host(attention, fence);
                assert_eq!(from_bytes::<HostRow>(&to_bytes(&row)), Ok(row));
            }
        }
        assert!(from_bytes::<HostRow>(&[1, 1, b'h', 0, 2 + 2 * HAS_FENCE, 0, 0, 0]).is_err());
    }

    #[test]
    fn work_with_a_step_round_trips() {
        for text in [None, WorkText::new("kernel 6.12.9")] {
            for seconds in [None, std::num::NonZeroU16::new(45)] {
                let task =
                    HostTask { seconds, ..HostTask::from(HostWork::Migration) }.with_step(text.clone());
                assert_eq!(from_bytes::<HostTask>(&to_bytes(&task)), Ok(task));
            }
        }
        let (host, target) = (HostId(2), Target::Returning(MachineId(7)));
        let action = Action {
            maintenance: MaintenanceId(1),
            target,
            impact: Impact::Return(Aside::Stopped),
            boots: 3,
        };
        let phase = HostPhase::Aside { left: 3, ready: Readiness::Obstructed };
        let steps = Steps {
            hosts: [(host, phase), (HostId(3), HostPhase::Step { since: Timestamp::from_millis(9) })]
                .into_iter()
                .collect(),
            leaving: [(MachineId(8), host)].into_iter().collect(),
            aside: [(host, MachineId(9))].into_iter().collect(),
            idle: [].into_iter().collect(),
            suspended: [target].into_iter().collect(),
        };
        let with_idle = Steps { idle: [MachineId(9)].into_iter().collect(), ..steps.clone() };
        for (number, steps) in [(2, steps), (3, with_idle)] {
            let actions = [(target, action)].into_iter().collect();
            let running = Stage::Running { cause: StartCause::Forced, actions, steps };
            let bytes = to_bytes(&running);
            assert_eq!((bytes[0], from_bytes::<Stage>(&bytes)), (number, Ok(running)));
        }
    }

    #[test]
    fn a_host_in_maintenance_mode_round_trips_and_others_are_stored_as_before() {
        let kind = HostWork::Maintenance { leaving: Leaving::Stop, operation: HostOperation::Reboot };
        let task = HostTask::from(kind);
        assert_eq!(to_bytes(&task), [4, 2, 1]);
        let with_step = task.clone().with_step(WorkText::new("kernel 6.12.9"));
        for task in [task, with_step.clone()] {
            assert_eq!(from_bytes::<HostTask>(&to_bytes(&task)), Ok(task));
        }
        let row = HostRow {
            id: HostId(3),
            name: forewarn_lifecycle::Name::new("h3").unwrap(),
            zone: None,
            health: Health::Degraded,
            rollout: None,
            work: None,
            attention: HostAttention::Unneeded,
            fence: Fence::Unneeded,
            mode: None,
            machines: vec![MachineId(5)],
        };
        let bytes = to_bytes(&row);
        assert_eq!(bytes, [3, 2, b'h', b'3', 0, 1, 0, 0, 1, 5]);
        assert_eq!(from_bytes::<HostRow>(&bytes), Ok(row.clone()));
        for attention in [HostAttention::Unneeded, HostAttention::Needed] {
            let mode = MaintenanceMode {
                since: Timestamp::from_millis(9),
                task: with_step.clone(),
                rollout: Some(forewarn_lifecycle::RolloutId(2)),
                step: ModeStep::Failed,
                left: vec![(MachineId(7), Leaving::Live), (MachineId(8), Leaving::Redeploy)],
            };
            let row = HostRow { attention, mode: Some(Box::new(mode)), ..row.clone() };
            assert_eq!(from_bytes::<HostRow>(&to_bytes(&row)), Ok(row));
        }
        assert!(from_bytes::<HostRow>(&[3, 2, b'h', b'3', 0, 33, 0, 0, 0]).is_err());
    }

    #[test]
    fn invalid_targets_and_kinds_are_rejected() {
        assert!(from_bytes::<Target>(&to_bytes(&(3u64 << 32))).is_err());
        assert!(from_bytes::<HostTask>(&[4]).is_err());
        assert!(from_bytes::<HostTask>(&[16]).is_err());
        assert!(from_bytes::<Stage>(&[4]).is_err());
    }
}
