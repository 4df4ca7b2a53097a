//! Limits of both the rules and the published formats.

/// Bytes in the name of a host, tenant, scale set or machine.
pub const NAME_BYTES_MAX: usize = 80;

/// Events that one tenant sees at once. A failed host may exceed it, because its events cannot be refused.
pub const EVENTS_PER_TENANT_MAX: usize = 1_000;

/// Event ids in one approval: never fewer than a tenant can see.
pub const IDS_PER_APPROVAL_MAX: usize = 2 * EVENTS_PER_TENANT_MAX;
