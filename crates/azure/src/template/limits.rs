//! How much of everything there may be in a template. Those that Azure has too are as large as there.

/// Parameters, and variables.
pub(super) const NAMES_MAX: usize = 256;
/// Resources, with all turns of loops.
pub(super) const RESOURCES_MAX: usize = 800;
/// Turns of a loop.
pub(super) const COPIES_MAX: usize = 800;
/// Outputs.
pub(super) const OUTPUTS_MAX: usize = 64;
/// What one resource waits for, as written.
pub(super) const DEPENDENCIES_MAX: usize = 800;
/// Bytes of an expression.
pub(super) const EXPRESSION_BYTES_MAX: usize = 24_576;
/// Calls inside each other, and properties of properties, in one expression.
pub(super) const NESTING_MAX: usize = 32;
/// Arguments of a function.
pub(super) const ARGUMENTS_MAX: usize = 800;
/// Objects and lists inside each other, in a template and in any value that is made.
pub(super) const DEPTH_MAX: usize = 64;
/// Values that are being evaluated at the same time, because each needs the next: what the stack must hold.
pub(super) const UNDERWAY_MAX: usize = 128;
/// Bytes of a text that a function makes.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 18;
/// Elements of a list that a function makes out of something else than a list.
pub(super) const ELEMENTS_MAX: usize = 10_000;
/// What a template may weigh: its bytes, and a little for each value.
pub(super) const TEMPLATE_WEIGHT_MAX: u64 = 8 << 20;
/// What all values that are looked at or made may weigh, from a template to its resources; and once more for each of
/// the outputs as a whole and what is only known later.
pub(super) const EFFORT_MAX: u64 = 32 << 20;
/// What a value weighs besides its bytes.
pub(super) const VALUE_WEIGHT: u64 = 32;
/// What reading an expression weighs, for each of its bytes.
pub(super) const EXPRESSION_WEIGHT: u64 = 8;
/// What looking at a resource weighs.
pub(super) const REFERENCE_WEIGHT: u64 = 4_096;
