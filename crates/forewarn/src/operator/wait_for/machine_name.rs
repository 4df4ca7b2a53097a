//! The machine that a caller names, also a deleted one.

use anyhow::Result;
use forewarn_control::MachineView;

use super::super::session::{Session, escaped};
use super::log;

/// The tenant and the name of a machine; also of a deleted one, as far as the audit log has it.
pub(super) fn machine(session: &Session, name: &str) -> Result<(String, String)> {
    let found = session.get::<MachineView>(&format!("/v1/machines/{}", escaped(name)));
    let unknown = match found {
        Ok(machine) => return Ok((machine.tenant, machine.name)),
        Err(error) => error,
    };
    // A standalone machine has the name of its tenant.
    let (tenant, name) = name.split_once('/').unwrap_or((name, name));
    match log::newest(session, "admitted", ("machine", &format!("{tenant}/{name}")))? {
        Some(_) => Ok((tenant.to_owned(), name.to_owned())),
        None => Err(unknown),
    }
}
