//! Admissions of one request that share an entry of the audit log: machines of one tenant, or hosts.
//!
//! A fleet consists of many alike objects. With an entry of its own and its row in each index, a machine would cost more
//! in the audit log than everywhere else.

use std::collections::BTreeSet;

use forewarn_lifecycle::{Change, Cluster};
use forewarn_types::Moment;

use crate::audit::fact::AuditFact;
use crate::view::describe::join_first;

/// Objects in one entry.
const OBJECTS_PER_ENTRY_MAX: usize = 256;

/// Objects that were added one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Machines { tenant: String, names: Vec<String>, hosts: BTreeSet<String> },
    Hosts(Vec<String>),
}

impl Admission {
    /// The object that a change adds, in a cluster to which it has not been applied yet. None if it adds no machine and
    /// no host.
    pub(crate) fn of(cluster: &Cluster, change: &Change) -> Option<Self> {
        if let Change::HostAdmitted { name, .. } = change {
            return Some(Self::Hosts(vec![name.to_string()]));
        }
        let Change::MachineAdmitted { new, .. } = change else { return None };
        let tenant = cluster.tenant(new.tenant).map(|tenant| tenant.name.to_string()).unwrap_or_default();
        let host = cluster.host(new.host).map(|host| host.name.to_string()).unwrap_or_default();
        Some(Self::Machines { tenant, names: vec![new.name.to_string()], hosts: BTreeSet::from([host]) })
    }

    /// Adds the objects of another admission. Returns it if they need an entry of their own.
    pub(crate) fn join(&mut self, next: Self) -> Result<(), Self> {
        match (self, next) {
            (Self::Hosts(names), Self::Hosts(more)) if names.len() + more.len() <= OBJECTS_PER_ENTRY_MAX => {
                names.extend(more);
            }
            (
                Self::Machines { tenant, names, hosts },
                Self::Machines { tenant: same, names: more, hosts: on },
            ) if *tenant == same && names.len() + more.len() <= OBJECTS_PER_ENTRY_MAX => {
                names.extend(more);
                hosts.extend(on);
            }
            (_, other) => return Err(other),
        }
        Ok(())
    }

    pub(crate) fn into_fact(self, at: Moment) -> AuditFact {
        match self {
            Self::Hosts(hosts) => AuditFact {
                hosts: hosts.clone(),
                ..AuditFact::plain(at, "admitted", sentence("host", &hosts))
            },
            Self::Machines { tenant, names, hosts } => {
                let fact = AuditFact::plain(at, "admitted", sentence("machine", &names));
                let machines = names.iter().map(|name| format!("{tenant}/{name}")).collect();
                AuditFact { tenants: vec![tenant], machines, hosts: hosts.into_iter().collect(), ..fact }
            }
        }
    }
}

fn sentence(kind: &str, names: &[String]) -> String {
    let all = join_first(names.iter().cloned(), names.len());
    match names.len() {
        1 => format!("{kind} {all} was added"),
        _ => format!("{kind}s {all} were added"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(tenant: &str, name: &str, host: &str) -> Admission {
        let (tenant, names, hosts) =
            (tenant.to_owned(), vec![name.to_owned()], BTreeSet::from([host.to_owned()]));
        Admission::Machines { tenant, names, hosts }
    }

    #[test]
    fn machines_of_one_tenant_share_an_entry() {
        let mut web = machine("web", "web_0", "h2");
        assert_eq!(web.join(machine("web", "web_1", "h1")), Ok(()));
        let other = machine("db", "db_0", "h1");
        assert_eq!(web.join(other.clone()), Err(other));
        let host = Admission::Hosts(vec!["h3".to_owned()]);
        assert_eq!(web.join(host.clone()), Err(host));
        let fact = web.into_fact(Moment(forewarn_lifecycle::Timestamp::from_millis(0)));
        assert_eq!(fact.text, "machines web_0, web_1 were added");
        assert_eq!(
            (fact.tenants, fact.hosts),
            (vec!["web".to_owned()], vec!["h1".to_owned(), "h2".to_owned()])
        );
        assert_eq!(fact.machines, ["web/web_0", "web/web_1"]);
    }

    #[test]
    fn an_entry_has_a_limit() {
        let mut hosts = Admission::Hosts(vec!["h".to_owned(); OBJECTS_PER_ENTRY_MAX - 1]);
        let one = Admission::Hosts(vec!["h".to_owned()]);
        assert_eq!(hosts.join(one.clone()), Ok(()));
        assert_eq!(hosts.join(one.clone()), Err(one.clone()));
        let mut web = machine("web", "web_0", "h");
        for _ in 1..OBJECTS_PER_ENTRY_MAX {
            assert_eq!(web.join(machine("web", "web_1", "h")), Ok(()));
        }
        assert!(web.join(machine("web", "web_1", "h")).is_err());
        assert_eq!(
            one.into_fact(Moment(forewarn_lifecycle::Timestamp::from_millis(0))).text,
            "host h was added"
        );
    }
}
