//! Commits per second, takeovers, and latencies.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use forewarn_bench::histogram::Histogram;
use forewarn_bench::http::Connection;
use forewarn_bench::{LoadResult, blocks};
use serde_json::{Value, json};

use crate::site::{COUNT, Part, Site, wait};

/// Time of a measurement of commits.
const COMMITTING: Duration = Duration::from_secs(10);

/// Commands of a measurement of latencies.
const COMMANDS: usize = 200;

/// Events of a measurement of their publication.
const EVENTS: usize = 100;

/// Writes of one client in each of so many clusters, through their owners: each is a commit of its own.
pub(crate) fn commits(site: &Site, streams: u32) -> LoadResult<Value> {
    let mut first = site.connect(0)?;
    for stream in 1..streams {
        let name = cluster(stream);
        first.post("/v1/clusters", &format!("{{\"name\":\"{name}\"}}"))?;
    }
    let owners = (0..streams).map(|stream| site.owner(stream).map(|(owner, _)| owner));
    let owners = owners.collect::<LoadResult<Vec<_>>>()?;
    let ready = Barrier::new(owners.len());
    let results: Vec<LoadResult<Vec<u64>>> = std::thread::scope(|scope| {
        let writers = (0..streams).zip(&owners).map(|(stream, owner)| {
            let ready = &ready;
            scope.spawn(move || {
                let mut connection = site.connect(*owner)?;
                ready.wait();
                let (begin, mut times) = (Instant::now(), Vec::new());
                while begin.elapsed() < COMMITTING {
                    times.push(create_host(&mut connection, stream, &format!("c{}", times.len()))?);
                }
                Ok(times)
            })
        });
        let writers: Vec<_> = writers.collect();
        writers.into_iter().map(|writer| writer.join().map_err(|_| "a client panicked")?).collect()
    });
    let mut latency = Histogram::new();
    let mut count = 0_u32;
    for times in results {
        for time in times? {
            latency.add(time);
            count += 1;
        }
    }
    let [p50, p99] = [50, 99].map(|percent| milliseconds(latency.percentile(percent)));
    Ok(json!({ "per_second": f64::from(count) / COMMITTING.as_secs_f64(), "p50": p50, "p99": p99 }))
}

/// The duration of the takeover of a cluster with so many machines, in seconds.
pub(crate) fn takeover(site: &Site, machines: u32) -> LoadResult<Value> {
    let (owner, _) = site.owner(0)?;
    let mut connection = site.connect(owner)?;
    blocks::apply(&mut connection, "default", 0..machines / blocks::MACHINES_PER_BLOCK)?;
    // A read on each server is answered once its copy is complete.
    site.wait_for_all()?;
    site.servers[owner].kill();
    let (_, took) = wait("another server owns the cluster", || {
        site.owner(0).ok().filter(|(number, _)| *number != owner)
    })?;
    site.servers[owner].start()?;
    Ok(json!({ "seconds": took.as_secs_f64() }))
}

/// Latencies of writes through the owner, and through another server.
pub(crate) fn forwarding(site: &Site) -> LoadResult<Value> {
    let (owner, _) = site.owner(0)?;
    let (mut direct, mut forwarded) = (Histogram::new(), Histogram::new());
    let mut connections = [site.connect(owner)?, site.connect((owner + 1) % COUNT)?];
    // In turn, so that other load affects both.
    for number in 0..COMMANDS {
        for (which, histogram) in [&mut direct, &mut forwarded].into_iter().enumerate() {
            let name = format!("forwarded-{which}-{number}");
            histogram.add(create_host(&mut connections[which], 0, &name)?);
        }
    }
    let [direct, forwarded] = [direct, forwarded].map(|histogram| milliseconds(histogram.percentile(50)));
    Ok(json!({ "direct": direct, "forwarded": forwarded, "added": forwarded - direct }))
}

/// The time from a command of an operator until another server shows the event to the machine.
pub(crate) fn publication(site: &Site) -> LoadResult<Value> {
    let (owner, _) = site.owner(0)?;
    let (mut operator, other, mut latency) = (site.connect(owner)?, (owner + 1) % COUNT, Histogram::new());
    for _ in 0..EVENTS {
        let begin = Instant::now();
        operator.post("/v1/commands", r#"{"command":"restart","machine":"solo"}"#)?;
        let event = loop {
            if let Some(event) = shown_event(site, other)? {
                break event;
            }
        };
        latency.add(nanoseconds(begin.elapsed()));
        let id = event["EventId"].as_str().ok_or("an event without an id")?;
        operator.post("/v1/commands", &format!("{{\"command\":\"cancel\",\"event\":\"{id}\"}}"))?;
        wait("the event is gone", || shown_event(site, other).ok()?.is_none().then_some(()))?;
    }
    let [p50, p99] = [50, 99].map(|percent| milliseconds(latency.percentile(percent)));
    Ok(json!({ "p50": p50, "p99": p99 }))
}

/// Polls all servers while every member of etcd is down, with an event that is due meanwhile.
pub(crate) fn outage(site: &Site, seconds: u32) -> LoadResult<Value> {
    site.connect(0)?.post("/v1/commands", r#"{"command":"restart","machine":"solo"}"#)?;
    for server in 0..COUNT {
        wait("the event is shown", || shown_event(site, server).ok()?.map(drop))?;
    }
    site.members.iter().for_each(Part::kill);
    let (begin, mut polls, mut failed, mut started) = (Instant::now(), 0_u64, 0_u64, 0_u64);
    while begin.elapsed() < Duration::from_secs(seconds.into()) {
        for server in 0..COUNT {
            polls += 1;
            match shown_event(site, server) {
                Ok(Some(event)) if event["EventStatus"] == "Scheduled" => {}
                Ok(_) => started += 1,
                Err(_) => failed += 1,
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    site.members.iter().try_for_each(Part::start)?;
    for server in 0..COUNT {
        wait("the event starts and ends afterwards", || {
            shown_event(site, server).ok()?.is_none().then_some(())
        })?;
    }
    Ok(json!({ "polls": polls, "failed": failed, "started": started }))
}

/// The event that a server shows to the machine.
fn shown_event(site: &Site, server: usize) -> LoadResult<Option<Value>> {
    let (status, body) = site.poll(server)?;
    if status != 200 {
        return Err(format!("a poll failed with {status}").into());
    }
    let document: Value = serde_json::from_str(&body)?;
    Ok(document["Events"].get(0).cloned())
}

/// Creates a host. Returns the nanoseconds until the response.
fn create_host<S: std::io::Read + std::io::Write>(
    connection: &mut Connection<S>,
    stream: u32,
    name: &str,
) -> LoadResult<u64> {
    let body = format!("{{\"command\":\"admit_host\",\"name\":\"{name}\"}}");
    let begin = Instant::now();
    connection.post(&format!("/v1/commands?cluster={}", cluster(stream)), &body)?;
    Ok(nanoseconds(begin.elapsed()))
}

/// The name of a cluster, by its number.
fn cluster(stream: u32) -> String {
    if stream == 0 { "default".to_owned() } else { format!("stream-{stream}") }
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a time of some seconds")]
fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}
