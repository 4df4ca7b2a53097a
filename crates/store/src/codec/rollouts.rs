//! Rollouts and their terms.

use std::num::NonZeroU16;

use forewarn_lifecycle::{
    Confirm, EndedRollout, FaultDomains, HealthGate, HostResult, Obstacle, Pause, Percent, Presence, Rollout,
    RolloutEnd, RolloutTerms, Standing, WaitingHosts,
};

use super::{Malformed, Reader, Stored, Writer, stored_enum, stored_struct};

stored_struct! {
    Rollout {
        work, terms, planned_at, waiting, past, standing, pause, failures, groups, confirmed, group_over,
        last_machines, excused,
    }
    RolloutTerms {
        hosts_at_once, tenant_share, fault_domains, windows, pause_between, confirm, health, stop_after,
    }
    EndedRollout { rollout, at, how }
}

stored_enum!(Standing {
    0 => Next,
    1 => Works(group),
    2 => Room(obstacle),
    3 => Rests { until },
    4 => Window { announces },
    5 => Unwell,
    6 => Unconfirmed,
    7 => Brake,
    8 => Paused,
    12 => TenantWindow { tenant, announces },
});
stored_enum!(Obstacle {
    0 => Failed,
    1 => Arrivals,
    2 => UpdateDomain,
    3 => TenantShare,
    4 => FaultDomain,
    5 => Events,
    6 => NoHost,
    7 => Full,
    8 => NeedsAttention,
    12 => TenantWindow,
});
stored_enum!(HostResult { 0 => Done, 1 => Failed, 2 => Skipped });
stored_enum!(Pause { 0 => Operator, 1 => Failures });
stored_enum!(RolloutEnd { 0 => Finished, 1 => Cancelled });
stored_enum!(FaultDomains { 0 => Any, 1 => OneAtATime });
stored_enum!(Confirm { 0 => Never, 1 => First, 2 => Each });
stored_enum!(HealthGate { 0 => Awaited, 1 => Ignored, 2 => Machines });
stored_enum!(Presence { 0 => Unseen, 1 => Polling, 2 => Away { since } });

/// A length, then every host in its order.
impl Stored for WaitingHosts {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        self.iter().for_each(|host| host.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Vec::read(input)?.into_iter().collect())
    }
}

impl Stored for NonZeroU16 {
    fn write(&self, out: &mut Writer) {
        self.get().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::new(u16::read(input)?).ok_or(Malformed::Impossible("limit of zero"))
    }
}

impl Stored for Percent {
    fn write(&self, out: &mut Writer) {
        self.percent().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::new(u8::read(input)?).ok_or(Malformed::Impossible("a share"))
    }
}

#[cfg(test)]
mod tests {
    use forewarn_lifecycle::limits::{HOSTS_PER_ROLLOUT_MAX, MACHINES_PER_GROUP_MAX};
    use forewarn_lifecycle::paged::PagedMap;
    use forewarn_lifecycle::{
        Change, HostId, HostTask, HostWork, MachineId, RolloutId, Row, Steady, Timestamp, WorkText,
    };

    use super::super::{RECORD_BYTES_MAX, from_bytes, to_bytes};
    use super::*;

    /// Hosts with the largest numbers that a cluster gets in practice: it has had fifty million.
    fn hosts(count: usize) -> impl Iterator<Item = HostId> {
        (50_000_000..).take(count).map(HostId)
    }

    #[test]
    fn a_rollout_over_every_host_of_a_cluster_fits_into_a_record_and_into_a_row() {
        let (rollout, terms) = (RolloutId(u64::MAX), RolloutTerms::default());
        let work =
            HostTask::from(HostWork::Update).with_step(WorkText::new(&"x".repeat(WorkText::BYTES_MAX)));
        let all: Vec<_> = hosts(HOSTS_PER_ROLLOUT_MAX).collect();
        let planned =
            Change::RolloutPlanned { rollout, work: work.clone(), terms: terms.clone(), hosts: all.clone() };
        let half = HOSTS_PER_ROLLOUT_MAX / 2;
        let (added, removed) = (all[..half].to_vec(), all[half..].to_vec());
        let changed = Change::RolloutChanged { rollout, terms: terms.clone(), added, removed };
        for change in [planned, changed] {
            let bytes = to_bytes(&change);
            assert!(bytes.len() < RECORD_BYTES_MAX / 2, "{}", bytes.len());
            assert_eq!(from_bytes::<Change>(&bytes), Ok(change));
        }
        let row = Row::Rollout(
            rollout,
            Rollout {
                work,
                terms,
                planned_at: Timestamp::from_millis(i64::MAX),
                waiting: all[half..].iter().copied().collect(),
                past: all[..half].iter().map(|host| (*host, HostResult::Failed)).collect::<PagedMap<_, _>>(),
                standing: Standing::Next,
                pause: Some(Pause::Failures),
                failures: u32::MAX,
                groups: u32::MAX,
                confirmed: u32::MAX,
                group_over: Some(Steady::from_millis(u64::MAX)),
                last_machines: vec![MachineId(u32::MAX); MACHINES_PER_GROUP_MAX],
                excused: all.iter().copied().collect(),
            },
        );
        let bytes = to_bytes(&row);
        assert!(bytes.len() < RECORD_BYTES_MAX, "{}", bytes.len());
        assert_eq!(from_bytes::<Row>(&bytes), Ok(row));
    }

    #[test]
    fn invalid_limits_are_rejected() {
        assert!(from_bytes::<Percent>(&[0]).is_err());
        assert!(from_bytes::<Percent>(&[101]).is_err());
        assert!(from_bytes::<NonZeroU16>(&[0]).is_err());
    }
}
