//! Reads Scheduled Events from inside a virtual machine.
