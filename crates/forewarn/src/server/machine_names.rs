//! Names of machines in listeners: `NAME` and `TENANT/NAME` in the default cluster, `CLUSTER/TENANT/NAME` in others.

use forewarn_control::{ControlState, LookupError, find_machine};
use forewarn_lifecycle::MachineId;
use forewarn_types::ClusterId;

/// Cluster and rest of a name. None if the name has no cluster, which means the default one.
pub(super) fn split_cluster(name: &str) -> Option<(&str, &str)> {
    name.split_once('/').filter(|(_, rest)| rest.contains('/'))
}

/// Finds a machine, in any cluster.
pub(super) fn find_in_clusters(state: &ControlState, name: &str) -> Result<MachineId, LookupError> {
    let nothing = |what: &'static str, similar| LookupError::Nothing {
        what: what.into(),
        name: name.to_owned(),
        similar,
    };
    let (cluster, rest) = match split_cluster(name) {
        Some((cluster, rest)) => match state.shared().cluster_named(cluster) {
            // The listener would not find it.
            Some(ClusterId::DEFAULT) => return Err(nothing("machine", Some(rest.to_owned()))),
            Some(cluster) => (cluster, rest),
            None => return Err(nothing("machine", None)),
        },
        None => (ClusterId::DEFAULT, name),
    };
    let cluster = state.cluster(cluster).ok_or_else(|| nothing("machine", None))?;
    find_machine(cluster.rules(), rest)
}

#[cfg(test)]
mod tests {
    use forewarn_control::Fleet;

    use super::*;

    #[tokio::test]
    async fn a_name_with_two_slashes_has_a_cluster() {
        assert_eq!(split_cluster("west/web/web_0"), Some(("west", "web/web_0")));
        assert_eq!((split_cluster("web/web_0"), split_cluster("web_0")), (None, None));
        let fleet = "host = [{ name = 'h1' }]\nvm = [{ name = 'v', host = 'h1' }]";
        let control = forewarn_server::control_with_fleet(&Fleet::parse(fleet).unwrap()).await.unwrap();
        let find = |name: &str| control.look(|state| find_in_clusters(state.all, name).is_ok()).unwrap();
        assert!(find("v") && find("v/v"));
        assert!(!find("default/v/v") && !find("west/v/v") && !find("w"));
        let of_default = control.look(|state| find_in_clusters(state.all, "default/v/v").unwrap_err());
        assert!(of_default.unwrap().to_string().ends_with("hint: did you mean v/v?"));
    }
}
