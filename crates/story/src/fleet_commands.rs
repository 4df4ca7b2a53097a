//! Commands that describe the fleet of a story.

use forewarn_control::NamedCommand;

/// Returns true if a command makes or describes the fleet, and nothing happens to it.
#[must_use]
pub fn describes_fleet(command: &NamedCommand) -> bool {
    matches!(
        command,
        NamedCommand::AdmitHost(_)
            | NamedCommand::AdmitVm(_)
            | NamedCommand::AdmitAvailabilitySet(_)
            | NamedCommand::AdmitCloudService(_)
            | NamedCommand::AdmitMachine { .. }
            | NamedCommand::AdmitScaleSet(_)
            | NamedCommand::AdmitInstance { .. }
            | NamedCommand::ChangePolicy { .. }
            | NamedCommand::ChangeWindows { .. }
            | NamedCommand::ChangeModel { .. }
            | NamedCommand::ChangeProfile { .. }
            | NamedCommand::ChangeCapacity { .. }
            | NamedCommand::ChangeSettings(_)
    )
}
