//! How a tenant comes to be told of events: one of its machines asks for them. This says by which request.

use anyhow::Result;
use forewarn_control::{MachineView, ServerView, TenantView};

use super::session::{Session, escaped};
use super::visible::one_line;

/// The edition that a first request asks for: the newest.
const EDITION: &str = "2020-07-01";

/// Tenants for whom it is said; for the others it is the same.
const SAID_MAX: usize = 3;

/// Says for tenants that are not enrolled how they are: `machine` is the one that a command was about.
pub(super) fn hints(session: &Session, tenants: &[String], machine: Option<&str>) -> Result<()> {
    if tenants.is_empty() {
        return Ok(());
    }
    let server: ServerView = session.get("/v1/server")?;
    let Some(place) = server.metadata.first() else { return Ok(()) };
    for name in tenants.iter().take(SAID_MAX) {
        // What was deleted at once need not be told of anything.
        let Some(tenant) = session.look::<TenantView>(&format!("/v1/tenants/{}", escaped(name)))? else {
            continue;
        };
        let Some(machine) = member(&tenant, machine) else { continue };
        if server.prefix {
            let unique = session.look::<MachineView>(&format!("/v1/machines/{}", escaped(machine)))?;
            let path = match unique {
                Some(_) => machine.to_owned(),
                None => format!("{name}/{machine}"),
            };
            let curl = curl(&format!("{place}/vm/{path}"));
            eprintln!("{}", one_line(&format!("hint: to be told next time, {name} has to ask once: {curl}")));
        } else {
            let curl = curl(place);
            let hint = format!("hint: to be told next time, {name} has to ask once, from {machine}: {curl}");
            eprintln!("{}", one_line(&hint));
        }
    }
    Ok(())
}

/// The machine that can ask for a tenant: the one that is meant, or any.
fn member<'a>(tenant: &'a TenantView, meant: Option<&str>) -> Option<&'a str> {
    let meant = meant.map(|name| name.rsplit('/').next().unwrap_or(name));
    let found = tenant.machines.iter().find(|name| Some(name.as_str()) == meant);
    found.or(tenant.machines.first()).map(String::as_str)
}

fn curl(place: &str) -> String {
    format!("curl -H Metadata:true \"{place}/metadata/scheduledevents?api-version={EDITION}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_that_was_meant_is_the_one_to_ask() {
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

    #[test]
    fn the_request_is_one_that_a_shell_understands() {
        assert_eq!(
            curl("http://127.0.0.1:1338/vm/web_0"),
            "curl -H Metadata:true \"http://127.0.0.1:1338/vm/web_0/metadata/scheduledevents?api-version=2020-07-01\""
        );
    }
}
