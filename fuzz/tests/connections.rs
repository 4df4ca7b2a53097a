//! Memory of an idle connection, of a stream of audit entries, and of a long poll.
//!
//! A test program of its own, with one test: whatever else ran beside it would be counted, too.

#![cfg(test)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::time::Duration;

use forewarn_control::Fleet;
use forewarn_lifecycle::Seed;
use forewarn_metadata::{Identity, ListenAddress};
use forewarn_server::{
    ApiListener, ClientLimits, ClockPlan, Descriptors, Hypervisor, Plan, Service, Speed, WebhookSettings,
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Connections of each kind.
const COUNT: usize = 200;

const IDLE_BYTES_MAX: usize = 16 << 10;
const STREAM_BYTES_MAX: usize = 8 << 10;
const LONG_POLL_BYTES_MAX: usize = 4 << 10;

/// Readings of the same usage, one after the other, after which it counts as settled.
const SAME_READINGS: usize = 10;

const LONG_POLL: &str = "GET /metadata/scheduledevents?api-version=2020-07-01&wait=60s&incarnation=1 HTTP/1.1\r\n\
                         Host: localhost\r\nMetadata: true\r\n\r\n";

fn plan() -> Plan {
    Plan {
        mode: "serve",
        data_dir: None,
        realm: None,
        seed: Seed([7; 16]),
        clock: ClockPlan::Virtual { start: None, speed: Speed(0) },
        hypervisor: Hypervisor::simulated(),
        fleet: Fleet::parse("host = [{ name = 'h' }]\nvm = [{ name = 'solo', host = 'h' }]").unwrap(),
        settings: forewarn_metadata::Settings::default(),
        metadata_listeners: vec![(
            ListenAddress::Tcp("127.0.0.1:0".parse().unwrap()),
            Identity::Machine("solo".to_owned()),
        )],
        threads: NonZeroUsize::MIN,
        api: vec![ApiListener::Open("127.0.0.1:0".parse().unwrap())],
        api_hosts: Default::default(),
        first_token_file: None,
        api_limits: ClientLimits::default(),
        extension_limits: ClientLimits::default(),
        descriptors: Descriptors::default(),
        extensions: Vec::new(),
        audit_keep: Duration::from_hours(24),
        webhooks: WebhookSettings::default(),
    }
}

/// Sends a request, and reads its response up to a text.
fn open(address: &str, target: &str, end: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    let mut seen = Vec::with_capacity(4_096);
    while !String::from_utf8_lossy(&seen).contains(end) {
        let mut bytes = [0; 512];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..count]);
    }
    stream
}

/// Bytes that each of many connections takes.
fn bytes_each(address: &str, target: &str, end: &str) -> usize {
    // The first ones allocate what all of them share.
    let mut held: Vec<_> = (0..20).map(|_| open(address, target, end)).collect();
    held.reserve(COUNT);
    let before = ALLOCATOR.current_usage();
    held.extend((0..COUNT).map(|_| open(address, target, end)));
    // A further request is answered after the last connection has become idle.
    drop(open(address, "/healthz", "ok"));
    ALLOCATOR.current_usage().saturating_sub(before) / COUNT
}

/// Bytes that each of many long polls of one machine takes.
fn bytes_of_long_poll(metadata: &str, api: &str) -> usize {
    let wait = || {
        let mut stream = TcpStream::connect(metadata).unwrap();
        stream.write_all(LONG_POLL.as_bytes()).unwrap();
        stream
    };
    let until = |count: usize| {
        let line = format!("forewarn_metadata_waiting_requests {count}\n");
        forewarn_testkit::wait_until(&line, || read(api, "/metrics").contains(&line).then_some(()));
    };
    let mut held: Vec<_> = (0..20).map(|_| wait()).collect();
    held.reserve(COUNT);
    until(held.len());
    let before = settled_usage();
    held.extend((0..COUNT).map(|_| wait()));
    until(held.len());
    settled_usage().saturating_sub(before) / COUNT
}

/// Allocated bytes, once they no longer change: connections that were closed take memory for a while.
fn settled_usage() -> usize {
    let mut seen = (0, 0);
    forewarn_testkit::wait_until("memory settles", || {
        let usage = ALLOCATOR.current_usage();
        seen = if seen.0 == usage { (usage, seen.1 + 1) } else { (usage, 0) };
        (seen.1 >= SAME_READINGS).then_some(usage)
    })
}

/// The response to a request, after which the connection is closed.
fn read(address: &str, target: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// promise: S5
#[test]
fn an_idle_connection_a_stream_and_a_long_poll_take_little_memory() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let service = runtime.block_on(Service::start(plan())).unwrap();
    let address = service.api_url().strip_prefix("http://").unwrap().to_owned();
    let metadata = service.metadata_url().and_then(|url| url.strip_prefix("http://")).unwrap().to_owned();
    let long_poll = bytes_of_long_poll(&metadata, &address);
    let idle = bytes_each(&address, "/v1/hosts", "]");
    let stream = bytes_each(&address, "/v1/watch", "listening");
    println!("an idle connection: {idle} bytes, a stream: {stream}, a long poll: {long_poll}");
    assert!(idle <= IDLE_BYTES_MAX, "an idle connection: {idle} bytes");
    assert!(stream <= STREAM_BYTES_MAX, "a stream: {stream} bytes");
    assert!(long_poll <= LONG_POLL_BYTES_MAX, "a long poll: {long_poll} bytes");
    runtime.block_on(service.stop());
}
