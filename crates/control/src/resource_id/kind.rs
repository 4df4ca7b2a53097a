//! Types of resources that the control plane knows.

/// A virtual machine.
pub const VIRTUAL_MACHINES: &str = "Microsoft.Compute/virtualMachines";
/// A scale set.
pub const SCALE_SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
/// An instance of a scale set.
pub const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
/// An availability set.
pub const AVAILABILITY_SETS: &str = "Microsoft.Compute/availabilitySets";
