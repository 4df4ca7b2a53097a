//! The hands: they carry out what the rules decided.
//!
//! An action is known by its maintenance and its machine. It may be commanded many times, after a crash for example, and
//! must happen once; each pair of hands has its own way to see to that.
//!
//! - [`Pretend`] is a machine that exists only on a clock: it is busy for a while, and then done.
//! - [`Program`] is an executable of the operator's: JSON in, JSON out.

mod order;
mod output;
mod program;
mod text;

pub use forewarn_lifecycle::PretendMachines as Pretend;
pub use order::{Answer, Order, Verb};
pub use output::{OUTPUT_BYTES_MAX, OUTPUT_LINE_BYTES_MAX, OUTPUT_LINES_MAX, OutputAllowance};
pub use program::{ANSWER_BYTES_MAX, Program, REASON_BYTES_MAX};
pub use text::harmless;
