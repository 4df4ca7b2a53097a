//! The part of this server in a cluster.

/// The part of the driver of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It decides: the only server, or the owner in a realm.
    Owner,
    /// Another server of the realm decides.
    Follower,
}

/// Servers that VMs of a cluster may poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RealmScope {
    /// This one.
    Alone,
    /// This one, and others of its realm.
    Realm,
}
