//! The hypervisor carries out the actions that the rules have decided.
//!
//! An action is known by its maintenance and its machine. It may be ordered many times, after a crash for example, and must
//! happen once. [`Program`] is an executable of the operator: JSON in, JSON out. Machines that are simulated are
//! [`forewarn_lifecycle::PretendMachines`].

mod order;
mod output;
mod program;
mod text;

pub use order::{Answer, Order, Verb};
pub use output::{OUTPUT_BYTES_MAX, OUTPUT_LINE_BYTES_MAX, OUTPUT_LINES_MAX, OutputAllowance};
pub use program::{ANSWER_BYTES_MAX, Program, REASON_BYTES_MAX};
pub use text::harmless;
