//! What a journal costs: how fast commits are, and how long it takes to open one.
//!
//! `cargo run --release -p forewarn-store --example cost -- DIRECTORY [MACHINES]`

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use forewarn_control::ClusterId;
use forewarn_control::{Chain, NewAuditEntry, Subject};
use forewarn_control::{Record, Stream};
use forewarn_lifecycle::{
    Change, FaultDomain, HostId, Machine, MachineId, Name, Now, Policy, Power, Priority, Profile, Seed,
    Shape, Steady, TenantId, Timestamp, UpdateDomain,
};
use forewarn_store::{AuditQuery, Direction, Journal, Options, StreamState};
use forewarn_types::Moment;

const CLUSTER: Stream = Stream::Cluster(ClusterId::DEFAULT);

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let mut words = std::env::args().skip(1);
    let directory = words.next().ok_or("usage: cost DIRECTORY [MACHINES]")?;
    let machines: u32 = words.next().map_or(Ok(100_000), |word| word.parse())?;
    let directory = Path::new(&directory);
    let mut out = std::io::stdout().lock();
    let options = Options::new(Seed([7; 16]), Now::at_millis(0));
    fill(directory, &options, machines, &mut out)?;
    let begin = Instant::now();
    let (journal, found) = Journal::open(directory, &options)?;
    let took = begin.elapsed();
    let bytes = std::fs::metadata(directory.join("journal.db"))?.len();
    writeln!(out, "opened in {took:?}: {} records replayed, {} MB", found.replayed, bytes / 1_000_000)?;
    commit(&journal, machines, &mut out)?;
    commit_streams(&journal, &mut out)?;
    let chain = found.audit_ends.get(&CLUSTER).copied().unwrap_or_default();
    tell(&journal, chain, machines, &mut out)?;
    journal.close()?;
    Ok(())
}

/// Admits machines, a hundred with each commit.
fn fill(directory: &Path, options: &Options, machines: u32, out: &mut impl Write) -> Outcome {
    let begin = Instant::now();
    let (journal, found) = Journal::open(directory, options)?;
    writeln!(out, "made in {:?}", begin.elapsed())?;
    let mut state = found.state;
    let begin = Instant::now();
    for first in (0..machines).step_by(100) {
        let records: Vec<_> = (first..first + 100).flat_map(machine).collect();
        journal.append(CLUSTER, &records, &[])?;
        records.iter().for_each(|record| drop(state.apply(record)));
        if journal.wants_fold(CLUSTER)
            && let Some(cluster) = state.cluster_arc(ClusterId::DEFAULT)
        {
            let begin = Instant::now();
            journal.fold(CLUSTER, StreamState::Cluster(cluster));
            writeln!(out, "the state of {} machines given away in {:?}", first + 100, begin.elapsed())?;
        }
    }
    writeln!(out, "{machines} machines admitted in {:?}", begin.elapsed())?;
    Ok(journal.close()?)
}

/// One small commit after the other, and then as many as fit together.
fn commit(journal: &Journal, machines: u32, out: &mut impl Write) -> Outcome {
    let mut times = Vec::new();
    for number in 0..2_000 {
        let begin = Instant::now();
        journal.append(CLUSTER, &[heard(number % machines)], &[])?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    let total: Duration = times.iter().sum();
    let rate = 2_000.0 / total.as_secs_f64();
    writeln!(out, "one by one: {rate:.0} commits/s, p50 {:?}, p99 {:?}", times[1_000], times[1_980])?;
    let begin = Instant::now();
    let (tell, told) = mpsc::channel();
    for number in 0..20_000 {
        let tell = tell.clone();
        let heard = heard(number % machines);
        journal.append_then(CLUSTER, &[heard], &[], move |result| drop(tell.send(result)));
    }
    drop(tell);
    let answered = u32::try_from(told.iter().filter(Result::is_ok).count())?;
    let rate = f64::from(answered) / begin.elapsed().as_secs_f64();
    writeln!(out, "together: {rate:.0} batches/s")?;
    Ok(())
}

/// Rounds in which each of a thousand streams has one commit in flight. No cluster has these streams, so that the next
/// opening removes them.
fn commit_streams(journal: &Journal, out: &mut impl Write) -> Outcome {
    let begin = Instant::now();
    for _ in 0..20 {
        let (tell, told) = mpsc::channel();
        for id in (1..=1_000).map(ClusterId) {
            let tell = tell.clone();
            let change = Change::Heard { tenant: TenantId(0), at: Steady::from_millis(5) };
            let record = Record::rules(Now::at_millis(5), id, change);
            journal.append_then(Stream::Cluster(id), &[record], &[], move |result| drop(tell.send(result)));
        }
        drop(tell);
        told.iter().collect::<Result<Vec<_>, _>>()?;
    }
    let rate = 20_000.0 / begin.elapsed().as_secs_f64();
    writeln!(out, "1,000 streams: {rate:.0} batches/s")?;
    Ok(())
}

/// Commits that are told of, one by one; then many, and reading them.
fn tell(journal: &Journal, mut chain: Chain, machines: u32, out: &mut impl Write) -> Outcome {
    let mut times = Vec::new();
    for number in 0..2_000 {
        let begin = Instant::now();
        journal.append(CLUSTER, &[heard(number)], &[Arc::new(chain.seal(told(number, machines)))])?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    let total: Duration = times.iter().sum();
    let rate = 2_000.0 / total.as_secs_f64();
    writeln!(out, "told of: {rate:.0} commits/s, p50 {:?}, p99 {:?}", times[1_000], times[1_980])?;
    let begin = Instant::now();
    let mut number = 0;
    while number < ENTRIES {
        let entries: Vec<_> =
            (0..100).map(|more| Arc::new(chain.seal(told(number + more, machines)))).collect();
        journal.append(CLUSTER, &[], &entries)?;
        number += 100;
    }
    writeln!(out, "{ENTRIES} entries, 100 with each commit, in {:?}", begin.elapsed())?;
    let tenant = Subject::Tenant { cluster: "default".to_owned(), name: "vm7".to_owned() };
    let command = Subject::Kind("started".to_owned());
    for (what, groups) in
        [("a page", vec![]), ("the history of one machine", vec![vec![tenant], vec![command]])]
    {
        let query =
            AuditQuery { groups, limit: 100, direction: Direction::NewestFirst, ..AuditQuery::default() };
        let begin = Instant::now();
        let page = journal.audit_log_reader().read(query)?;
        writeln!(out, "{what}: {} entries in {:?}", page.entries.len(), begin.elapsed())?;
    }
    Ok(())
}

/// Entries of the trail in the second part.
const ENTRIES: u32 = 500_000;

fn told(number: u32, machines: u32) -> NewAuditEntry {
    let machine = number % machines;
    NewAuditEntry {
        at: Moment(Timestamp::from_millis(i64::from(number) * 1_000)),
        cluster: "default".to_owned(),
        by: "forewarn".to_owned(),
        kind: if number.is_multiple_of(2) { "announced" } else { "started" }.to_owned(),
        text: format!(
            "Freeze of vm{machine} (update of h{}) has started, by the end of its notice",
            machine / 10
        ),
        tenants: vec![format!("vm{machine}")],
        machines: vec![format!("vm{machine}/vm{machine}")],
        hosts: vec![format!("h{}", machine / 10)],
        events: vec![format!("7B41CD6F-3A5D-4B3A-9C1D-{number:012}")],
        work: Some(u64::from(number)),
        ..NewAuditEntry::default()
    }
}

fn heard(tenant: u32) -> Record {
    let change = Change::Heard { tenant: TenantId(tenant), at: Steady::from_millis(5) };
    Record::rules(Now::at_millis(5), ClusterId::DEFAULT, change)
}

fn machine(number: u32) -> Vec<Record> {
    let name = |letter: &str, number: u32| Name::new(&format!("{letter}{number}")).ok();
    let host = HostId(number / 10);
    let tenant = TenantId(number);
    let (shape, policy) = (Shape::StandaloneMachine, Policy::default());
    let of_host = name("h", host.0).filter(|_| number.is_multiple_of(10));
    let admitted = of_host.map(|name| Change::HostAdmitted { host, name, zone: None });
    let joined = name("vm", number).map(|name| Change::TenantAdmitted { tenant, name, shape, policy });
    let placed = name("vm", number).map(|name| {
        let new = Machine {
            name,
            tenant,
            host,
            update_domain: UpdateDomain(0),
            fault_domain: FaultDomain(0),
            priority: Priority::Regular,
            power: Power::Running,
            boots: 1,
            ephemeral_generation: 1,
            model_version: 0,
            profile: Profile::default(),
        };
        Change::MachineAdmitted { machine: MachineId(number), new }
    });
    let changes = [admitted, joined, placed, Some(Change::Enrolled(tenant))].into_iter().flatten();
    let now = Now::at_millis(i64::from(number));
    changes.map(|change| Record::rules(now, ClusterId::DEFAULT, change)).collect()
}
