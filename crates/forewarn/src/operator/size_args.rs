//! CPUs and memory of hosts and machines as options.

use std::num::NonZeroU16;

use clap::Args;
use forewarn_control::Memory;

/// The size of a machine.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct SizeArgs {
    /// CPUs that the machine takes on its host [default: none]
    #[arg(long, value_name = "N")]
    pub(super) cpus: Option<NonZeroU16>,
    /// Memory that the machine takes on its host, such as 8GiB [default: none]
    #[arg(long, value_name = "MEMORY")]
    pub(super) memory: Option<Memory>,
}

/// The capacity of a host.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CapacityArgs {
    /// CPUs for its machines [default: no limit]
    #[arg(long, value_name = "N")]
    pub(super) cpus: Option<NonZeroU16>,
    /// Memory for its machines, such as 256GiB [default: no limit]
    #[arg(long, value_name = "MEMORY")]
    pub(super) memory: Option<Memory>,
}
