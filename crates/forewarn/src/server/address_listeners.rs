//! Listeners that identify machines by their addresses, each for one cluster.

use anyhow::Result;
use forewarn_control::ControlState;
use forewarn_metadata::{Identity, ListenAddress};
use forewarn_server::{ControlHandle, Plan, State};
use forewarn_types::{ClusterId, Name};

/// The listeners that identify machines by their addresses.
pub(super) struct AddressListeners(Vec<(ListenAddress, Name)>);

impl AddressListeners {
    pub(super) fn of(plan: &Plan) -> Self {
        let listeners = plan.metadata_listeners.iter().filter_map(|(listener, identity)| match identity {
            Identity::Address { cluster } => Some((listener.clone(), cluster.clone())),
            Identity::Machine(_) | Identity::Prefix { .. } | Identity::AddressOrPrefix { .. } => None,
        });
        Self(listeners.collect())
    }

    /// Logs the cluster of each listener, and warns about clusters without a listener that have machines with addresses.
    pub(super) fn log(&self, control: &ControlHandle) -> Result<()> {
        for (listener, cluster) in &self.0 {
            tracing::info!(%listener, %cluster, "listener identifies machines of this cluster by address");
            if control.named(cluster.as_str()).is_err() {
                tracing::warn!(%listener, %cluster, "listener of an unknown cluster");
            }
        }
        for (cluster, machines) in control.look(|state: &State<'_>| self.unserved(state.all))? {
            tracing::warn!(%cluster, machines, "no listener identifies machines of this cluster by address");
        }
        Ok(())
    }

    /// Clusters without a listener, with the number of their machines that have addresses. None if no listener at all
    /// identifies machines by address: then the machines have listeners of their own.
    fn unserved(&self, state: &ControlState) -> Vec<(Name, usize)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let clusters = state.shared().clusters();
        let unserved = clusters.filter(|(_, name)| self.0.iter().all(|(_, served)| served != *name));
        let counted = unserved.map(|(id, name)| (name.clone(), with_addresses(state, id)));
        counted.filter(|(_, machines)| *machines > 0).collect()
    }
}

fn with_addresses(state: &ControlState, cluster: ClusterId) -> usize {
    let details = state.cluster(cluster).into_iter().flat_map(|one| one.details().iter());
    details.filter(|(_, details)| !details.addresses.is_empty()).count()
}
