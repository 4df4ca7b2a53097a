//! The hypervisor that a server is set up with.

use forewarn_control::HypervisorKind;
use forewarn_hypervisor::Program;

/// The hypervisor that carries out actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hypervisor {
    /// Machines are simulated.
    Simulated,
    /// A program of the operator acts on real machines.
    Program(Program),
}

impl Hypervisor {
    pub(crate) fn kind(&self) -> HypervisorKind {
        match self {
            Self::Simulated => HypervisorKind::Simulated,
            Self::Program(_) => HypervisorKind::Program,
        }
    }
}
