//! Ports that nobody uses, below those that the kernel gives to outgoing connections.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::SystemTime;

use super::on_loopback;
use crate::Random;

/// The range from which ports are chosen.
const RANGE: std::ops::Range<u16> = 12_000..32_000;

/// So many different free ports.
pub(super) fn free_ports(number: usize) -> Vec<u16> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let seed = u64::from(now.subsec_nanos()) ^ (u64::from(std::process::id()) << 32);
    let thread = format!("{:?}", std::thread::current().id()).bytes().map(u64::from).sum::<u64>();
    let mut random = Random::new(seed ^ (thread << 24));
    let mut found = BTreeSet::new();
    while found.len() < number {
        let port = RANGE.start + u16::try_from(random.below(RANGE.len() as u64)).expect("a port");
        if TcpListener::bind(on_loopback(port)).is_ok() {
            found.insert(port);
        }
    }
    found.into_iter().collect()
}
