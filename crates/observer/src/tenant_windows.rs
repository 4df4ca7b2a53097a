//! Records of the windows of tenants, derived from changes alone; and random windows.

use std::collections::BTreeMap;

use forewarn_lifecycle::*;

use crate::promise::{BrokenPromises, Promise};

#[derive(Default)]
pub(super) struct TenantWindowRecords {
    windows: BTreeMap<WindowOwner, Vec<Window>>,
}

impl TenantWindowRecords {
    /// Called after a change was applied. Returns the promises that it breaks, and the kind of observation.
    pub(super) fn changed(
        &mut self,
        cluster: &Cluster,
        now: Now,
        change: &Change,
        forced: bool,
    ) -> (BrokenPromises, &'static str) {
        let broken = match change {
            Change::WindowsChanged { owner, windows } => {
                self.windows.insert(*owner, windows.clone());
                return (Vec::new(), "windows of a tenant changed");
            }
            Change::Planned(plan) => self.closed(cluster, plan, plan.not_before),
            Change::Started { maintenance, .. } if !forced => {
                let work = cluster.maintenance(*maintenance);
                work.map_or_else(Vec::new, |work| self.closed(cluster, &work.plan, now.wall))
            }
            _ => return (Vec::new(), ""),
        };
        let seen = match (change, self.windows.values().any(|windows| !windows.is_empty())) {
            (Change::Started { .. }, true) => "started while a tenant has windows",
            _ => "",
        };
        (broken, seen)
    }

    /// The tenants of host work none of whose windows is open.
    fn closed(&self, cluster: &Cluster, plan: &Plan, at: Timestamp) -> BrokenPromises {
        if !matches!(plan.cause, Cause::HostWork { .. }) {
            return Vec::new();
        }
        let owner = |tenant: TenantId| match cluster.tenant(tenant)?.shape {
            Shape::PlacementGroup(set) => Some(WindowOwner::ScaleSet(set)),
            Shape::StandaloneMachine | Shape::CloudService | Shape::AvailabilitySet => {
                Some(WindowOwner::Tenant(tenant))
            }
        };
        let windows = |part: &Part| Some((part.tenant, self.windows.get(&owner(part.tenant)?)?));
        let closed = plan.parts.iter().filter_map(windows).filter(|(_, windows)| !open(windows, at));
        closed.map(|(tenant, _)| (Promise::Windows, format!("{tenant} is not open at {at:?}"))).collect()
    }
}

/// Returns true if a window is open, found by counting minutes of the week.
pub(super) fn open(windows: &[Window], at: Timestamp) -> bool {
    const WEEK: i64 = 7 * 1440;
    windows.is_empty()
        || windows.iter().any(|window| {
            let changes = window.zone().map_or(&[][..], TimeZone::changes).iter();
            let last = changes.rev().find(|change| change.at <= at).map(|change| change.offset_minutes);
            let zone = window.zone().map(TimeZone::offset_minutes);
            let offset = last.or(zone).unwrap_or_else(|| window.offset_minutes());
            let minute = at.seconds() / 60 + i64::from(offset) + 3 * 1440;
            let length = match i64::from(window.to_minute()) - i64::from(window.from_minute()) {
                positive @ 1.. => positive,
                other => other + 1440,
            };
            (0..7).filter(|day| window.days().contains(*day)).any(|day| {
                let opens = i64::from(day) * 1440 + i64::from(window.from_minute());
                (minute - opens).rem_euclid(WEEK) < length
            })
        })
}

/// Other windows for a tenant, some of them in a zone whose offset changes every day.
pub(super) fn windows_change(cluster: &Cluster, tenant: TenantId, bits: u8) -> Option<Command> {
    let owner = cluster.window_owner(tenant)?;
    let day = 86_400_000;
    let offsets = (0..).take(20).map(|number: i16| OffsetChange {
        at: Timestamp::from_millis(1_000_000_000_000 + i64::from(number) * day),
        offset_minutes: 60 * (number % 3),
    });
    let zone = TimeZone::new("Test/Place", -60, offsets.collect()).expect("a zone");
    let evenings = Window::new(Weekdays::ALL, 20 * 60, 23 * 60, 60).expect("a window");
    let weekend = Weekdays::from_bits(0b110_0000).expect("days");
    let local = Window::in_zone(weekend, 22 * 60, 60, zone).expect("a window");
    let noon = Window::new(Weekdays::ALL, 12 * 60, 13 * 60, 0).expect("a window");
    let windows = match bits {
        0 | 1 => vec![],
        2 => vec![evenings],
        3 => vec![local],
        4 => vec![noon],
        _ => vec![local, evenings],
    };
    Some(Command::ChangeWindows { owner, windows })
}
