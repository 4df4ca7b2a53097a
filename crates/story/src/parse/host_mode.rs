//! Parsing of operations on the maintenance mode of hosts.

use forewarn_control::{HostStepWord, LeavingWord, MaintenanceEntry, NamedCommand};

use super::{choice, known};
use crate::error::StoryError;
use crate::line_reader::LineReader;

/// Reads `enter h1`, `enter h1 redeploy then reboot`, `exit h1` or `exit h1 return`.
pub(super) fn operation(line: &mut LineReader<'_>) -> Result<NamedCommand, StoryError> {
    if choice(line, &["enter", "exit"])? == "exit" {
        let host = known(line, "a host")?;
        let return_guests = line.take_if("return").is_some();
        return Ok(NamedCommand::ExitMaintenance { host, return_guests });
    }
    let mut entry = MaintenanceEntry::of(known(line, "a host")?);
    for (word, leaving) in
        [("live", LeavingWord::Live), ("redeploy", LeavingWord::Redeploy), ("stop", LeavingWord::Stop)]
    {
        if line.take_if(word).is_some() {
            entry.leaving = leaving;
            break;
        }
    }
    if line.take_if("then").is_some() {
        match choice(line, &["update", "reboot", "nothing"])? {
            "update" => entry.kind = Some(HostStepWord::Update),
            "reboot" => entry.kind = Some(HostStepWord::Reboot),
            _ => entry.no_work = true,
        }
    }
    Ok(NamedCommand::EnterMaintenance(entry))
}
