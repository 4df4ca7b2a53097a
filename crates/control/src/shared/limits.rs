//! How much of everything there may be.
//!
//! A command that would pass a limit is refused. Receipts are the exception: the oldest of the caller that has the most go,
//! and all they cost is that a request which that caller repeats very late counts as a new one.

use std::time::Duration;

/// Clusters of one server.
pub const CLUSTERS_MAX: usize = 1_000;

/// Tokens, those that have expired included.
pub const TOKENS_MAX: usize = 1_000;

/// Clusters to which one token is limited.
pub const CLUSTERS_PER_SCOPE_MAX: usize = 100;

/// Tenants to which one token is limited.
pub const TENANTS_PER_SCOPE_MAX: usize = 100;

/// Bytes in what says who has asked: `token NAME`, `socket`, `machine TENANT/NAME`.
pub const BY_BYTES_MAX: usize = 255;

/// Characters in an idempotency key.
pub const KEY_BYTES_MAX: usize = 255;

/// Bytes in an answer of which a receipt is kept.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Entries of the register: resource groups, and what is in them.
pub const ENTRIES_MAX: usize = 100_000;

/// Bytes in the body of one entry.
pub const BODY_BYTES_MAX: usize = 256 * 1024;

/// Bytes of all entries together.
pub const ENTRIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Bytes in an id.
pub const ID_BYTES_MAX: usize = 2_048;

/// Operations that are under way.
pub const OPERATIONS_OPEN_MAX: usize = 10_000;

/// Operations that have ended and can still be asked for; then the oldest go.
pub const OPERATIONS_ENDED_MAX: usize = 10_000;

/// Pieces of work that one operation waits for: all that a scale set, or a resource group, has.
pub const OPERATION_WAITS_MAX: usize = 10_000;
/// Webhooks.
pub const WEBHOOKS_MAX: usize = 100;

/// Characters of what is sent as `Authorization`.
pub const AUTHORIZATION_BYTES_MAX: usize = 4_096;

/// Receipts of all callers: tokens, the socket, and everybody together where no token is needed. Each has a share.
pub const RECEIPTS_MAX: usize = 10_000;

/// Bytes of all receipts together.
pub const RECEIPTS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a receipt is good for, on the steady clock.
pub const RECEIPT_KEPT_FOR: Duration = Duration::from_hours(24);
