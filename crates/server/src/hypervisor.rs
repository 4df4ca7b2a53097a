//! Hypervisor of a server.

use std::time::Duration;

use forewarn_control::{Fencing, HypervisorKind};
use forewarn_hypervisor::{HostCommand, Program};
use forewarn_lifecycle::{Action, HostOperation, Impact, Target};

/// The hypervisor that carries out actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hypervisor {
    pub machines: MachineDriver,
    pub hosts: HostWorker,
    /// The need to fence failed hosts, where a program acts on real machines.
    pub fencing: Fencing,
}

/// The part that acts on machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineDriver {
    Simulated,
    /// A program of the operator acts on real machines.
    Program(Program),
}

/// The part that carries out steps on hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostWorker {
    /// The part that acts on machines.
    Driver,
    /// A command for each host.
    Command(HostCommand),
    /// A person, who reports the end of each step.
    Person {
        /// Time until the first reminder of a host that is ready; the time between two grows.
        reminder: Duration,
    },
}

/// Time until the first reminder of a host that is ready for work, unless the settings say another.
pub const REMINDER: Duration = Duration::from_hours(1);

/// The part that carries out one action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Performer {
    Simulated,
    Program(Program),
    Command(HostCommand),
    Person { reminder: Duration },
}

/// The longest time that driver programs have to end when the server stops.
const STOP_MAX: Duration = Duration::from_secs(30);

impl Hypervisor {
    /// Simulated machines and hosts.
    #[must_use]
    pub fn simulated() -> Self {
        let fencing = Fencing::default();
        Self { machines: MachineDriver::Simulated, hosts: HostWorker::Driver, fencing }
    }

    /// A program for machines and hosts.
    #[must_use]
    pub fn program(program: Program) -> Self {
        let fencing = Fencing::default();
        Self { machines: MachineDriver::Program(program), hosts: HostWorker::Driver, fencing }
    }

    /// The time that actions have to end when the server stops.
    pub(crate) fn time_to_stop(&self) -> Duration {
        let machines = match &self.machines {
            MachineDriver::Simulated => Duration::ZERO,
            MachineDriver::Program(program) => program.time_limit,
        };
        let hosts = match &self.hosts {
            HostWorker::Driver | HostWorker::Person { .. } => Duration::ZERO,
            HostWorker::Command(command) => command.time_limit,
        };
        machines.max(hosts).min(STOP_MAX)
    }

    pub(crate) fn kind(&self) -> HypervisorKind {
        match self.machines {
            MachineDriver::Simulated => HypervisorKind::Simulated,
            MachineDriver::Program(_) => HypervisorKind::Program(self.fencing),
        }
    }

    /// The part that carries out an action. The driver of machines fences hosts, whoever works on them.
    pub(crate) fn performer(&self, action: &Action) -> Performer {
        let of_machines = || match &self.machines {
            MachineDriver::Simulated => Performer::Simulated,
            MachineDriver::Program(program) => Performer::Program(program.clone()),
        };
        if action.impact == Impact::OnHost(HostOperation::Fence) {
            return of_machines();
        }
        match (action.target, &self.hosts) {
            (Target::Machine(_) | Target::Returning(_), _) | (Target::Host(_), HostWorker::Driver) => {
                of_machines()
            }
            (Target::Host(_), HostWorker::Command(command)) => Performer::Command(command.clone()),
            (Target::Host(_), HostWorker::Person { reminder }) => Performer::Person { reminder: *reminder },
        }
    }
}
