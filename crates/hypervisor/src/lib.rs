//! The hypervisor carries out the actions that the rules have decided.
//!
//! An action is identified by its maintenance and its machine. It may be requested many times, after a crash for
//! example, and must happen once. [`Program`] is an executable of the operator: JSON in, JSON out. Simulated machines
//! are [`forewarn_lifecycle::SimulatedMachines`].

mod host_command;
mod output;
mod program;
mod request;
mod text;

pub use host_command::{FAILED_EXIT_CODE, HostCommand};
pub use output::{OUTPUT_BYTES_MAX, OUTPUT_LINE_BYTES_MAX, OUTPUT_LINES_MAX, OutputAllowance};
pub use program::{Program, REASON_BYTES_MAX, RESPONSE_BYTES_MAX};
pub use request::{DriverRequest, DriverResponse, HostCause, Verb};
pub use text::sanitized;
