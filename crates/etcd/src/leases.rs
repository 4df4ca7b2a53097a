//! Leases: keys that are deleted unless a client keeps them alive.

use crate::client::{EtcdClient, Header};
use crate::error::{Doubt, EtcdError, Rejection};
use crate::messages::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse,
};
use crate::method::{LEASE_GRANT, LEASE_KEEP_ALIVE, LEASE_REVOKE};

/// A granted lease, or one that was kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseAnswer {
    /// State of the store.
    pub header: Header,
    /// Id of the lease.
    pub lease: i64,
    /// Seconds until the lease expires, unless it is kept alive. May be more than was asked for: etcd has a minimum.
    pub ttl_seconds: i64,
}

impl EtcdClient {
    /// Grants a lease that expires after some seconds. Etcd chooses the id if it is 0.
    ///
    /// # Errors
    /// Fails if there is no answer, or etcd rejects the request.
    pub async fn grant_lease(&self, lease: i64, ttl_seconds: i64) -> Result<LeaseAnswer, EtcdError> {
        let chosen = self.chosen();
        let request = LeaseGrantRequest { ttl: ttl_seconds, id: lease };
        let response: LeaseGrantResponse = self.call_at(&chosen, LEASE_GRANT, &request).await?;
        let header = Header::of(response.header, &chosen)?;
        Ok(LeaseAnswer { header, lease: response.id, ttl_seconds: response.ttl })
    }

    /// Keeps a lease alive, once: it expires after its whole time from now.
    ///
    /// # Errors
    /// Fails if there is no answer, or the lease does not exist ([`Rejection::LeaseNotFound`]).
    pub async fn keep_lease_alive(&self, lease: i64) -> Result<LeaseAnswer, EtcdError> {
        let chosen = self.chosen();
        let request = LeaseKeepAliveRequest { id: lease };
        let answer = self.call_at(&chosen, LEASE_KEEP_ALIVE, &request).await;
        let response: LeaseKeepAliveResponse = answer.map_err(|error| match error {
            // A follower passes the request on to the leader, and may lose it only after that.
            EtcdError::Rejected { endpoint, rejection: Rejection::NoLeader, message } => {
                EtcdError::unknown(endpoint, Doubt::Unavailable, &message)
            }
            EtcdError::NotSent { .. } | EtcdError::Rejected { .. } | EtcdError::Unknown { .. } => error,
        })?;
        if response.ttl <= 0 {
            let message = "requested lease not found";
            return Err(EtcdError::rejected(chosen.name(), Rejection::LeaseNotFound, message));
        }
        let header = Header::of(response.header, &chosen)?;
        Ok(LeaseAnswer { header, lease: response.id, ttl_seconds: response.ttl })
    }

    /// Ends a lease, and deletes its keys.
    ///
    /// # Errors
    /// Fails if there is no answer, or the lease does not exist.
    pub async fn revoke_lease(&self, lease: i64) -> Result<Header, EtcdError> {
        let chosen = self.chosen();
        let request = LeaseRevokeRequest { id: lease };
        let response: LeaseRevokeResponse = self.call_at(&chosen, LEASE_REVOKE, &request).await?;
        Header::of(response.header, &chosen)
    }
}
