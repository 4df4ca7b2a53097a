//! Hints for tenants that are not enrolled: the request that enables events for them.

use anyhow::Result;
use forewarn_control::{MachineView, ServerView, TenantView};
use forewarn_types::ClusterId;

use super::session::{Session, escaped};
use super::visible::one_line;
use crate::client::ApiError;
use crate::machine_url::{MachineUrl, curl};

/// Tenants with a hint.
const HINTS_MAX: usize = 3;

/// Separator before the hint in a message of the server.
const HINT: &str = "\n  hint: ";

/// The other remedy, which needs no poll.
const ENROL_ALL: &str = "enrol every tenant: `forewarn settings set --enrolment always`";

/// The problem of a request that requires notice, where no machine would be notified.
const NO_NOTICE: &str = "/problems/no-notice";

/// Prints a hint for each tenant that is not enrolled; `machine` is the machine of the command.
pub(super) fn hints(session: &Session, tenants: &[String], machine: Option<&str>) -> Result<()> {
    for hint in texts(session, tenants, machine)? {
        eprintln!("{}", one_line(&format!("hint: {hint}")));
    }
    Ok(())
}

/// The error of a command about one machine, with the request that enrols its tenant where that would help.
pub(super) fn with_poll(session: &Session, error: anyhow::Error, machine: Option<&str>) -> anyhow::Error {
    let is_refused = error.downcast_ref::<ApiError>().is_some_and(|refused| refused.kind == NO_NOTICE);
    let Some(machine) = machine.filter(|_| is_refused) else { return error };
    let found = session.find::<MachineView>(&format!("/v1/machines/{}", escaped(machine)));
    let Ok(Some(MachineView { tenant, .. })) = found else { return error };
    let is_enrolled = session.find::<TenantView>(&format!("/v1/tenants/{}", escaped(&tenant)));
    if !matches!(is_enrolled, Ok(Some(TenantView { enrolled: false, .. }))) {
        return error;
    }
    match (texts(session, &[tenant], Some(machine)), error.downcast::<ApiError>()) {
        (Ok(hints), Ok(refused)) if !hints.is_empty() => {
            // The request that would help replaces the hint of the server, which does not know where machines poll.
            let problem = refused.detail.split(HINT).next().unwrap_or_default();
            let detail = format!("{problem}{HINT}{}\n  or {ENROL_ALL}", one_line(&hints.join("; ")));
            ApiError { detail, ..refused }.into()
        }
        (Ok(_) | Err(_), Ok(refused)) => refused.into(),
        (_, Err(error)) => error,
    }
}

/// The hint for each tenant that is not enrolled; `machine` is the machine that should poll, if it is one of theirs.
pub(super) fn texts(session: &Session, tenants: &[String], machine: Option<&str>) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    if tenants.is_empty() {
        return Ok(texts);
    }
    let server: ServerView = session.get("/v1/server")?;
    let Some(url) = server.metadata.first() else { return Ok(texts) };
    // Machines outside of the default cluster are named with their cluster.
    let cluster = session.cluster().filter(|name| *name != ClusterId::DEFAULT_NAME);
    for name in tenants.iter().take(HINTS_MAX) {
        // A tenant that was just deleted needs no hint.
        let Some(tenant) = session.find::<TenantView>(&format!("/v1/tenants/{}", escaped(name)))? else {
            continue;
        };
        let Some(machine) = member(&tenant, machine) else { continue };
        if server.prefix {
            // Only addresses of the default cluster identify callers of such a server.
            let (path, addresses) = match cluster {
                Some(cluster) => (format!("{cluster}/{name}/{machine}"), Vec::new()),
                None => match session.find::<MachineView>(&format!("/v1/machines/{}", escaped(machine)))? {
                    Some(view) => (machine.to_owned(), view.addresses),
                    None => (format!("{name}/{machine}"), Vec::new()),
                },
            };
            let own = MachineUrl::at(url, &path, &addresses);
            let place = match own.from {
                Some(address) => format!("{machine} ({address})"),
                None => "one of its machines".to_owned(),
            };
            texts.push(format!("to enable events for {name}, poll once from {place}: {}", own.curl()));
        } else {
            let curl = curl(url);
            texts.push(format!("to enable events for {name}, poll once from {machine}: {curl}"));
        }
    }
    Ok(texts)
}

/// The machine of the tenant that should poll: `preferred`, or any.
fn member<'a>(tenant: &'a TenantView, preferred: Option<&str>) -> Option<&'a str> {
    let preferred = preferred.map(|name| name.rsplit('/').next().unwrap_or(name));
    let found = tenant.machines.iter().find(|name| Some(name.as_str()) == preferred);
    found.or(tenant.machines.first()).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_of_the_command_should_poll() {
        let tenant: TenantView = serde_json::from_value(serde_json::json!({
            "name": "web", "kind": "scale set", "enrolled": false, "incarnation": 1, "policy": {},
            "machines": ["web_0", "web_1"], "events": []
        }))
        .unwrap();
        assert_eq!(member(&tenant, Some("web/web_1")), Some("web_1"));
        assert_eq!(member(&tenant, Some("db-0")), Some("web_0"));
        assert_eq!(member(&tenant, None), Some("web_0"));
        assert_eq!(member(&TenantView { machines: Vec::new(), ..tenant }, None), None);
    }
}
