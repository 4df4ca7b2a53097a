//! Limits.
//!
//! A command that would exceed a limit is refused. Receipts are the exception: the oldest receipt of the caller that
//! has the most is removed, so that a very late repetition of its request counts as a new request.

use std::time::Duration;

/// Clusters of one server.
pub const CLUSTERS_MAX: usize = 1_000;

/// Tokens, those that have expired included.
pub const TOKENS_MAX: usize = 1_000;

/// Clusters to which one token is limited.
pub const CLUSTERS_PER_SCOPE_MAX: usize = 100;

/// Claims in one change: far fewer bytes than a record may have.
pub(crate) const CLAIMS_PER_CHANGE_MAX: usize = 100;

/// Bytes in the location of a resource group.
pub const LOCATION_BYTES_MAX: usize = 1_024;

/// Tenants to which one token is limited.
pub const TENANTS_PER_SCOPE_MAX: usize = 100;

/// Bytes in the name of a caller: `token NAME`, `socket`, `machine TENANT/NAME`.
pub const BY_BYTES_MAX: usize = 255;

/// Characters in an idempotency key.
pub const KEY_BYTES_MAX: usize = 255;

/// Bytes of the response in a receipt.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Resources of one cluster: resource groups, and the resources in them.
pub const ENTRIES_MAX: usize = 100_000;

/// Bytes in the body of one resource.
pub const BODY_BYTES_MAX: usize = 256 * 1024;

/// Bytes of all resources of one cluster.
pub const ENTRIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes in an id.
pub const ID_BYTES_MAX: usize = 2_048;

/// Open operations of one cluster.
pub const OPERATIONS_OPEN_MAX: usize = 10_000;

/// Operations of one cluster that have ended and are still stored; then the oldest are removed.
pub const OPERATIONS_ENDED_MAX: usize = 10_000;

/// Pieces of work that one operation waits for: as many as a scale set or a resource group has.
pub const OPERATION_WAITS_MAX: usize = 10_000;

pub const WEBHOOKS_MAX: usize = 100;

/// Removed clusters whose messages may be undelivered: those of further ones are lost.
pub const CLUSTERS_UNDELIVERED_MAX: usize = 1_000;

/// Characters of the value of `Authorization`.
pub const AUTHORIZATION_BYTES_MAX: usize = 4_096;

/// Receipts of one cluster, or of the shared state, of all callers: tokens, the socket, and all callers without a
/// token together. Each caller has a share.
pub const RECEIPTS_MAX: usize = 10_000;

/// Bytes of these receipts.
pub const RECEIPTS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Receipts of one cluster.
pub const CLUSTER_RECEIPTS_MAX: usize = 1_000;

/// Bytes of the receipts of one cluster.
pub const CLUSTER_RECEIPTS_BYTES_MAX: usize = 1024 * 1024;

/// Time for which a receipt is stored, on the steady clock.
pub const RECEIPT_KEPT_FOR: Duration = Duration::from_hours(24);

/// Time for which the receipt of a request that another server has forwarded without a key is stored.
pub(crate) const FORWARDED_RECEIPT_KEPT_FOR: Duration = Duration::from_hours(1);
