//! The engine of a realm: the members of etcd, their versions, space and alarms, the time of reads and writes, and the
//! realm in it. Writes no key: the time of a write is that of a lease, which etcd commits in the same way.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use forewarn_etcd::{AlarmKind, EtcdClient, EtcdError, KeyRange, MemberStatus, RangeQuery};
use forewarn_lifecycle::Timestamp;
use forewarn_server::tls::Source;
use forewarn_server::{CallTimes, Engine, Realm, RealmCompleteness, RealmPlan, VersionVerdict};

use super::encryption::{self, NO_ENGINE};
use super::report::DoctorReport;

/// The time limit of each call.
const LIMIT: Duration = Duration::from_secs(3);

/// Reads and writes whose time is measured.
const READS: usize = 20;
const WRITES: usize = 10;

/// Seconds of the leases that are granted for the measurement, and ended at once.
const LEASE_SECONDS: i64 = 5;

/// A median above this makes every command slow; a call above the other one is repeated by servers.
const SLOW: Duration = Duration::from_millis(50);
const LATE: Duration = Duration::from_millis(300);

/// The quota of etcd unless its settings name another one.
const DEFAULT_QUOTA: i64 = 2 << 30;

/// The part of the quota from which on it is a problem, in percent.
const SPACE_PERCENT: i64 = 60;

/// Greatest difference between clocks of servers.
const SKEW_MAX: Duration = Duration::from_secs(2);

/// Effects of findings.
const NO_START: &str = "the server does not start";
const NO_WRITES: &str = "no server can write without a majority of etcd's members";
const SPACE: &str = "etcd rejects all writes when its quota is used up";

pub(super) fn check(report: &mut DoctorReport, plan: &RealmPlan, certificate: Option<&Source>) {
    let Engine::Etcd(etcd) = &plan.engine else { return };
    if let Some(source) = certificate {
        encryption::check(report, source, NO_ENGINE);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return report.unknown("etcd", "cannot start a runtime") };
    runtime.block_on(async {
        let client = etcd.client().within(LIMIT);
        let statuses = statuses(report, &client).await;
        if statuses.is_empty() {
            return;
        }
        check_versions(report, &statuses);
        check_members(report, &client, statuses.len()).await;
        check_space(report, &statuses);
        check_alarms(report, &client).await;
        check_times(report, &client).await;
        check_realm(report, plan).await;
    });
}

/// The status of each member that answers.
async fn statuses(report: &mut DoctorReport, client: &EtcdClient) -> Vec<(String, MemberStatus)> {
    let mut statuses = Vec::new();
    let names: Vec<_> = client.endpoints().map(forewarn_etcd::Url::redacted_to_host).collect();
    for (number, name) in names.into_iter().enumerate() {
        match client.status(number).await {
            Ok(status) if status.leader.is_none() => {
                let remedy = format!("etcdctl --endpoints={name} endpoint status --cluster");
                report.finding("etcd", format!("the member knows no leader: {name}"), NO_WRITES, remedy);
                statuses.push((name, status));
            }
            Ok(status) => statuses.push((name, status)),
            Err(error) => {
                let remedy = format!("etcdctl --endpoints={name} endpoint health");
                report.error("etcd", &error.into(), NO_WRITES, &remedy);
            }
        }
    }
    statuses
}

fn check_versions(report: &mut DoctorReport, statuses: &[(String, MemberStatus)]) {
    let remedy = "upgrade every member to 3.5.6 or later, one after the other";
    for (name, MemberStatus { version, .. }) in statuses {
        match VersionVerdict::of(version) {
            VersionVerdict::Good => report.ok("etcd version", format!("{version}: {name}")),
            VersionVerdict::Outdated => {
                let what = format!("{version} is outdated: {name}; 3.5.6 or later is recommended");
                report.warning("etcd version", what);
            }
            VersionVerdict::LosesData => {
                let what = format!("{version} is known to lose acknowledged writes: {name}");
                report.finding("etcd version", what, NO_START, remedy);
            }
            VersionVerdict::Unknown => {
                report.unknown("etcd version", format!("not a version: {version}: {name}"));
            }
        }
    }
}

async fn check_members(report: &mut DoctorReport, client: &EtcdClient, answering: usize) {
    let members = match client.members().await {
        Ok(found) => found.members,
        Err(error) => return report.unknown("etcd members", format!("no list of members: {error}")),
    };
    let (count, endpoints) = (members.len(), client.endpoints().len());
    if count > endpoints {
        let what = format!(
            "engine.endpoints has {endpoints} of {count} members: the server does not use the others"
        );
        return report.warning("etcd members", what);
    }
    match count {
        0..=2 => report.warning(
            "etcd members",
            format!("{count} of 3 or 5 members: the loss of one of them stops all servers"),
        ),
        _ => report.ok("etcd members", format!("{answering} of {count} respond")),
    }
}

fn check_space(report: &mut DoctorReport, statuses: &[(String, MemberStatus)]) {
    for (name, status) in statuses {
        let (quota, assumed) = match status.database_bytes_max {
            Some(quota) => (quota, ""),
            None => (DEFAULT_QUOTA, " (etcd does not name its quota; the default is assumed)"),
        };
        let percent = status.database_bytes.saturating_mul(100) / quota.max(1);
        let what = format!("{percent} % of {} MiB are used: {name}{assumed}", quota >> 20);
        if percent < SPACE_PERCENT {
            report.ok("etcd space", what);
        } else {
            let remedy = format!(
                "etcdctl --endpoints={name} defrag, or a larger --quota-backend-bytes; see that compaction works"
            );
            report.finding("etcd space", what, SPACE, remedy);
        }
    }
}

async fn check_alarms(report: &mut DoctorReport, client: &EtcdClient) {
    let alarms = match client.alarms().await {
        Ok(alarms) => alarms,
        Err(error) => return report.unknown("etcd alarms", format!("no list of alarms: {error}")),
    };
    if alarms.is_empty() {
        return report.ok("etcd alarms", "none");
    }
    for alarm in alarms {
        let member = format!("member {:x}", alarm.member_id);
        match alarm.kind {
            AlarmKind::NoSpace => report.finding(
                "etcd alarms",
                format!("no space left in the quota: {member}"),
                SPACE,
                "etcdctl compaction and defrag, then: etcdctl alarm disarm",
            ),
            AlarmKind::Corrupt => report.finding(
                "etcd alarms",
                format!("damaged data: {member}"),
                "the member may give wrong answers",
                "etcdctl member remove and add, with an empty data directory",
            ),
            AlarmKind::Other(kind) => report.finding(
                "etcd alarms",
                format!("alarm of kind {kind}: {member}"),
                "etcd has a problem",
                "etcdctl alarm list",
            ),
        }
    }
}

async fn check_times(report: &mut DoctorReport, client: &EtcdClient) {
    let query = RangeQuery::new(KeyRange::key(&b"\0"[..])).count_only();
    let endpoints = client.endpoints().len();
    let reads = measure(READS, endpoints, || client.range(&query)).await;
    present_times(report, "etcd reads", "confirmed reads", reads);
    let writes = measure(WRITES, endpoints, || async {
        let lease = client.grant_lease(0, LEASE_SECONDS).await?.lease;
        // It ends by itself.
        drop(client.revoke_lease(lease).await);
        Ok::<_, EtcdError>(())
    });
    // A grant and its revocation are two commits.
    let writes = writes.await.map(|times| times.into_iter().map(|time| time / 2).collect());
    present_times(report, "etcd writes", "leases granted and ended", writes);
}

/// The times of several calls, sorted. A call that fails is repeated: the client goes on to the next endpoint.
async fn measure<T, E, F>(count: usize, endpoints: usize, call: impl Fn() -> F) -> Result<Vec<Duration>, E>
where
    F: Future<Output = Result<T, E>>,
{
    let (mut times, mut failures) = (Vec::new(), 0);
    while times.len() < count {
        let begin = Instant::now();
        match call().await {
            Ok(_) => times.push(begin.elapsed()),
            Err(_) if failures < endpoints => failures += 1,
            Err(error) => return Err(error),
        }
    }
    times.sort_unstable();
    Ok(times)
}

fn present_times(
    report: &mut DoctorReport,
    check: &'static str,
    calls: &str,
    times: Result<Vec<Duration>, EtcdError>,
) {
    let times = match times {
        Ok(times) => times,
        Err(error) => {
            return report.error(check, &error.into(), NO_WRITES, "etcdctl endpoint health --cluster");
        }
    };
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let worst = times.last().copied().unwrap_or_default();
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1_000.0);
    let what = format!("{} {calls}: median {}, worst {}", times.len(), millis(median), millis(worst));
    if median > SLOW || worst > LATE {
        report.warning(
            check,
            format!("{what}: slow; commands wait for a write, servers repeat it after 300 ms"),
        );
    } else {
        report.ok(check, what);
    }
}

async fn check_realm(report: &mut DoctorReport, plan: &RealmPlan) {
    let realm = Realm::new(plan.engine.clone(), plan.keys.clone(), CallTimes::default());
    let prefix = plan.keys.prefix();
    let remedy = format!("etcdctl get --prefix {prefix}");
    let record = match realm.record().await {
        Ok(Some(record)) => record,
        Ok(None) => {
            return report.ok("realm", format!("{prefix} does not exist yet; the first server creates it"));
        }
        Err(error) => return report.error("realm", &error.into(), NO_START, &remedy),
    };
    match record.completeness {
        RealmCompleteness::Complete => report.ok("realm", format!("{prefix}, of format {}", record.format)),
        RealmCompleteness::Importing => {
            let what = format!("the move of a journal into the realm is not complete: {prefix}");
            report.finding("realm", what, NO_START, "forewarn store migrate DIRECTORY --config FILE");
        }
        RealmCompleteness::Accepting => {
            let what = format!("the acceptance of a restored etcd is not complete: {prefix}");
            report.finding("realm", what, NO_START, "forewarn realm accept-restore --config FILE");
        }
    }
    if record.clock.is_some() {
        return report
            .unknown("realm clock", "the clock of the realm is accelerated, which is for tests only");
    }
    match realm.heads().await {
        Ok(heads) => check_clock(report, heads.heads.values().map(|known| known.head.details.wall).max()),
        Err(error) => report.error("realm clock", &error.into(), NO_START, &remedy),
    }
}

/// Compares the clock of this computer with the time at which servers have last written.
fn check_clock(report: &mut DoctorReport, written: Option<Timestamp>) {
    let written = written.and_then(|at| u64::try_from(at.millis()).ok()).map(Duration::from_millis);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ahead = written.unwrap_or_default().saturating_sub(now);
    if ahead <= SKEW_MAX {
        return report.ok("realm clock", "no server has written ahead of the clock of this computer");
    }
    let seconds = ahead.as_secs_f64();
    let what = format!("a server has written {seconds:.1} s ahead of the clock of this computer");
    let why = "a server whose clock differs by more than 2 s starts no event";
    report.finding("realm clock", what, why, "timedatectl set-ntp true, on every server");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(version: &str, used: i64, quota: Option<i64>) -> (String, MemberStatus) {
        let header = forewarn_etcd::Header { cluster_id: 1, member_id: 2, revision: 3, raft_term: 4 };
        let status = MemberStatus {
            header,
            version: version.to_owned(),
            database_bytes: used,
            database_bytes_in_use: used,
            database_bytes_max: quota,
            leader: Some(2),
            raft_index: 1,
            raft_applied_index: 1,
            is_learner: false,
            problems: Vec::new(),
        };
        ("http://a:2379/".to_owned(), status)
    }

    fn results(check: impl FnOnce(&mut DoctorReport)) -> Vec<String> {
        let mut report = DoctorReport::default();
        check(&mut report);
        let checks = report.json()["checks"].as_array().cloned().unwrap_or_default();
        checks.iter().map(|one| one["result"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// promise: X2
    #[test]
    fn versions_that_lose_data_are_found() {
        let statuses = ["3.5.16", "3.4.23", "3.5.2", "3.4.21", "x"].map(|version| status(version, 0, None));
        let found = results(|report| check_versions(report, &statuses));
        assert_eq!(found, ["ok", "warning", "finding", "finding", "unknown"]);
    }

    /// promise: X2
    #[test]
    fn a_quota_that_is_nearly_used_up_is_found() {
        let gib = 1 << 30;
        let statuses = [
            status("3.6.0", gib, Some(8 * gib)),
            status("3.6.0", 5 * gib, Some(8 * gib)),
            status("3.5.16", gib, None),
            status("3.5.16", gib + gib / 2, None),
            status("3.6.0", gib, Some(0)),
        ];
        let found = results(|report| check_space(report, &statuses));
        assert_eq!(found, ["ok", "finding", "ok", "finding", "finding"]);
    }

    /// promise: X2
    #[test]
    fn slow_calls_and_clocks_that_differ_are_found() {
        let times = |median: u64, worst: u64| Ok([median, median, worst].map(Duration::from_millis).to_vec());
        let shown = |times| results(|report| present_times(report, "etcd reads", "reads", times));
        assert_eq!(
            (shown(times(2, 20)), shown(times(60, 70))),
            (vec!["ok".to_owned()], vec!["warning".to_owned()])
        );
        assert_eq!(shown(times(2, 400)), ["warning"]);
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let clock =
            |ahead: i64| results(|report| check_clock(report, Some(Timestamp::from_millis(now + ahead))));
        assert_eq!((clock(-60_000), clock(60_000)), (vec!["ok".to_owned()], vec!["finding".to_owned()]));
        assert_eq!(results(|report| check_clock(report, None)), ["ok"]);
    }
}
