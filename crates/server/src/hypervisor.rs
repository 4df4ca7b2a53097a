//! Hypervisor of a server.

use std::time::Duration;

use forewarn_control::HypervisorKind;
use forewarn_hypervisor::Program;

/// The hypervisor that carries out actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hypervisor {
    Simulated,
    /// A program of the operator acts on real machines.
    Program(Program),
}

/// The longest time that driver programs have to end when the server stops.
const STOP_MAX: Duration = Duration::from_secs(30);

impl Hypervisor {
    /// The time that actions have to end when the server stops.
    pub(crate) fn time_to_stop(&self) -> Duration {
        match self {
            Self::Simulated => Duration::ZERO,
            Self::Program(program) => program.time_limit.min(STOP_MAX),
        }
    }

    pub(crate) fn kind(&self) -> HypervisorKind {
        match self {
            Self::Simulated => HypervisorKind::Simulated,
            Self::Program(_) => HypervisorKind::Program,
        }
    }
}
