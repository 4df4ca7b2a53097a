//! Lookup of a view by name.

use forewarn_types::{FLEXIBLE_INSTANCES, Name, instance_digits};

use crate::command::lookup::{LookupError, SHOWN_MAX, nothing};
use crate::view::fleet::{MachineView, TenantView};

/// The view of the tenant with a name.
///
/// # Errors
/// Fails if there is none.
pub fn pick_tenant<'a>(shown: &'a [TenantView], name: &str) -> Result<&'a TenantView, LookupError> {
    let all = || shown.iter().map(|tenant| tenant.name.as_str());
    shown.iter().find(|tenant| tenant.name == name).ok_or_else(|| nothing("tenant", name, all()))
}

/// The view of the machine with a name: `tenant/name`, or a name that only one machine has.
///
/// # Errors
/// Fails if there is none, or several.
pub fn pick_machine<'a>(shown: &'a [MachineView], name: &str) -> Result<&'a MachineView, LookupError> {
    let all = || shown.iter().map(|machine| machine.name.as_str());
    let is_meant = |machine: &&MachineView| match name.split_once('/') {
        // Only placement groups have a colon in their names: `web:2` is the second one of `web`.
        Some((tenant, bare)) => {
            let group = machine.tenant.split(':').next().unwrap_or_default();
            (machine.tenant == tenant || group == tenant) && machine.name == bare
        }
        None => machine.name == name,
    };
    let mut found = shown.iter().filter(is_meant);
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => numbered(shown, name).ok_or_else(|| nothing("machine", name, all())),
        (Some(first), Some(second)) => {
            let listed = [first, second].into_iter().chain(found).take(SHOWN_MAX);
            let full = listed.map(|machine| format!("{}/{}", machine.tenant, machine.name)).collect();
            Err(LookupError::Several { name: name.to_owned(), tenants: full })
        }
    }
}

/// The instance of a flexible scale set that `web_5` stands for.
fn numbered<'a>(shown: &'a [MachineView], name: &str) -> Option<&'a MachineView> {
    let (tenant, bare) = name.split_once('/').map_or((None, name), |(tenant, bare)| (Some(tenant), bare));
    let (set, digits) = bare.rsplit_once('_')?;
    let number = instance_digits(digits).filter(|number| *number < FLEXIBLE_INSTANCES)?;
    let wanted = Name::new(set).ok()?.of_flexible_instance(number);
    let is_meant = |machine: &&MachineView| machine.tenant == set && machine.name == wanted.as_str();
    shown.iter().filter(|_| tenant.is_none_or(|tenant| tenant == set)).find(is_meant)
}
