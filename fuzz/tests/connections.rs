//! Memory of an idle connection and of a stream of audit entries.
//!
//! A test program of its own, with one test: whatever else ran beside it would be counted, too.

#![cfg(test)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::time::Duration;

use forewarn_control::Fleet;
use forewarn_lifecycle::Seed;
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

fn plan() -> Plan {
    Plan {
        mode: "serve",
        data_dir: None,
        seed: Seed([7; 16]),
        clock: ClockPlan::Virtual { start: None, speed: Speed(0) },
        hypervisor: Hypervisor::Simulated,
        fleet: Fleet::default(),
        settings: forewarn_metadata::Settings::default(),
        metadata_listeners: Vec::new(),
        threads: NonZeroUsize::MIN,
        api: vec![ApiListener::Open("127.0.0.1:0".parse().unwrap())],
        api_host_names: Vec::new(),
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

/// promise: S5
#[test]
fn an_idle_connection_and_a_stream_take_little_memory() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let service = runtime.block_on(Service::start(plan())).unwrap();
    let address = service.api_url().strip_prefix("http://").unwrap().to_owned();
    let idle = bytes_each(&address, "/v1/hosts", "[]");
    let stream = bytes_each(&address, "/v1/watch", "listening");
    println!("an idle connection: {idle} bytes, a stream: {stream} bytes");
    assert!(idle <= IDLE_BYTES_MAX, "an idle connection: {idle} bytes");
    assert!(stream <= STREAM_BYTES_MAX, "a stream: {stream} bytes");
    runtime.block_on(service.stop());
}
