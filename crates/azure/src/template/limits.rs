//! Limits of templates. Those that Azure has as well have its values.

pub(super) const NAMES_MAX: usize = 256;
/// Resources, with all iterations of loops.
pub(super) const RESOURCES_MAX: usize = 800;
/// Iterations of a loop.
pub(super) const COPIES_MAX: usize = 800;
pub(super) const OUTPUTS_MAX: usize = 64;
/// Dependencies of one resource, as written.
pub(super) const DEPENDENCIES_MAX: usize = 800;
/// Bytes of an expression.
pub(super) const EXPRESSION_BYTES_MAX: usize = 24_576;
/// Nested calls, and nested properties, in one expression.
pub(super) const NESTING_MAX: usize = 32;
/// Arguments of a function.
pub(super) const ARGUMENTS_MAX: usize = 800;
/// Nested objects and lists, in a template and in any value that is made.
pub(super) const DEPTH_MAX: usize = 64;
/// Nested evaluations: limits the stack.
pub(super) const UNDERWAY_MAX: usize = 128;
/// Bytes of a text that a function makes.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 18;
/// Elements of a list that a function makes from something other than a list.
pub(super) const ELEMENTS_MAX: usize = 10_000;
/// Weight of a template: its bytes, and a constant for each value.
pub(super) const TEMPLATE_WEIGHT_MAX: u64 = 8 << 20;
/// Weight of all values that are read or made, from a template to its resources; and again for the outputs as a whole
/// and for everything that is evaluated later.
pub(super) const EFFORT_MAX: u64 = 32 << 20;
/// Weight of a value besides its bytes.
pub(super) const VALUE_WEIGHT: u64 = 32;
/// Weight of parsing an expression, per byte.
pub(super) const EXPRESSION_WEIGHT: u64 = 8;
/// Weight of reading a resource.
pub(super) const REFERENCE_WEIGHT: u64 = 4_096;
