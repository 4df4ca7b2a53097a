//! Types of resources that the control plane knows.

pub const VIRTUAL_MACHINES: &str = "Microsoft.Compute/virtualMachines";
pub const SCALE_SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
/// An instance of a scale set.
pub const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
pub const AVAILABILITY_SETS: &str = "Microsoft.Compute/availabilitySets";
