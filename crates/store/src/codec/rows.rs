//! The state as rows.

use forewarn_lifecycle::{
    Attention, Counters, Enrolment, FormerSeed, Head, MachineRow, Maintenance, Phase, Row, TenantRow,
};

use super::{stored_enum, stored_struct};

stored_enum!(Row {
    0 => Head(head),
    1 => Host(host),
    2 => ScaleSet(id, set),
    3 => Rollout(id, rollout),
    4 => Maintenance(maintenance),
    5 => Tenant(tenant),
    6 => Machine(machine),
    7 => EndedRollout(id, ended),
    30 => FormerSeed(former),
    40 => Windows(owner, windows),
    41 => Capacity(host, capacity),
    42 => MachineSize(machine, size),
    43 => InstanceSize(set, size),
    50 => Presence(machine, rollout, presence),
});

stored_struct! {
    Head { seed, settings, brake, next }
    FormerSeed { seed, until }
    Counters { host, tenant, machine, scale_set, maintenance, rollout, event }
    MachineRow { id, machine, attention }
    Maintenance { plan, stage }
    TenantRow { id, name, shape, policy, enrolment, incarnation, machines, events, ended }
}

stored_enum!(Attention { 0 => Waits, 1 => Due });
stored_enum!(Enrolment { 0 => Disabled, 1 => Enabled { silent_at }, 2 => BySetting });
stored_enum!(Phase { 0 => Scheduled { not_before, approval }, 1 => Started { at, cause } });
