//! Limits of the details of one machine.

/// Addresses of one machine.
pub const ADDRESSES_MAX: usize = 16;

/// Tags of one machine.
pub const TAGS_MAX: usize = 50;

/// Characters in the name or the value of a tag.
pub const TAG_CHARS_MAX: usize = 512;
