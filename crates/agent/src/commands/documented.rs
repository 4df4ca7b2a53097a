//! That the reference speaks of every command and option.
