//! Fleets as request bodies, made of equal blocks.
//!
//! ```text
//!   one block: 50 hosts, 1,000 machines: 100 single ones with an address each, three uniform scale sets of 100,
//!              and a flexible one of 600
//! ```

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::ops::Range;

pub(crate) const MACHINES_PER_BLOCK: u32 = SINGLE + UNIFORM_SETS * UNIFORM_INSTANCES + FLEXIBLE_INSTANCES;
const HOSTS: u32 = 50;
const SINGLE: u32 = 100;
const UNIFORM_SETS: u32 = 3;
const UNIFORM_INSTANCES: u32 = 100;
const FLEXIBLE_INSTANCES: u32 = 600;
/// Update and fault domains, by host.
const DOMAINS: u32 = 5;
/// Blocks of one request; its body stays far below the limit of the server.
const BLOCKS_PER_REQUEST: u32 = 10;
/// The first address of single machines, `10.0.0.0`.
const NETWORK: u32 = 10 << 24;

/// The blocks of that many machines, one range for each request.
pub(crate) fn pieces(machines: u32) -> impl Iterator<Item = Range<u32>> {
    let blocks = machines / MACHINES_PER_BLOCK;
    (0..blocks)
        .step_by(BLOCKS_PER_REQUEST as usize)
        .map(move |first| first..(first + BLOCKS_PER_REQUEST).min(blocks))
}

/// A fleet of these blocks.
pub(crate) fn blocks(blocks: Range<u32>) -> String {
    let hosts = blocks.clone().flat_map(|block| (0..HOSTS).map(move |host| format!("host-{block}-{host}")));
    let hosts = hosts.map(|name| format!("{{\"name\":\"{name}\"}}"));
    let single = blocks.clone().flat_map(|block| (0..SINGLE).map(move |index| single(block, index)));
    let sets = blocks.flat_map(scale_sets);
    format!("{{\"host\":[{}],\"vm\":[{}],\"scale_set\":[{}]}}", list(hosts), list(single), list(sets))
}

/// A host and the machines of these clients.
pub(crate) fn machines_of_clients(clients: impl Iterator<Item = u32>) -> String {
    let machines = clients.map(|client| format!("{{\"name\":\"{}\",\"host\":\"h\"}}", machine(client)));
    format!("{{\"host\":[{{\"name\":\"h\"}}],\"vm\":[{}]}}", list(machines))
}

/// The name of the machine that a client describes.
pub(crate) fn machine(client: u32) -> String {
    format!("machine-{client}")
}

fn single(block: u32, index: u32) -> String {
    let (host, address) = (index % HOSTS, Ipv4Addr::from_bits(NETWORK + block * SINGLE + index));
    format!(
        "{{\"name\":\"vm-{block}-{index}\",\"host\":\"host-{block}-{host}\",\"addresses\":[\"{address}\"]}}"
    )
}

fn scale_sets(block: u32) -> Vec<String> {
    let mut sets: Vec<_> = (0..UNIFORM_SETS)
        .map(|set| scale_set(&format!("uniform-{block}-{set}"), "uniform", block, UNIFORM_INSTANCES))
        .collect();
    sets.push(scale_set(&format!("flexible-{block}"), "flexible", block, FLEXIBLE_INSTANCES));
    sets
}

fn scale_set(name: &str, orchestration: &str, block: u32, instances: u32) -> String {
    let instances = (0..instances).map(|index| {
        let (host, domain) = (index % HOSTS, index % DOMAINS);
        format!("{{\"host\":\"host-{block}-{host}\",\"update_domain\":{domain},\"fault_domain\":{domain}}}")
    });
    let instances = list(instances);
    format!("{{\"name\":\"{name}\",\"orchestration\":\"{orchestration}\",\"instance\":[{instances}]}}")
}

fn list(items: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for item in items {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{item}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_a_thousand_machines() {
        let text = blocks(7..9);
        assert_eq!(MACHINES_PER_BLOCK, 1_000);
        assert_eq!(text.matches("\"host\":\"").count(), 2_000);
        assert_eq!(text.matches("\"name\":\"host-").count(), 100);
        assert!(text.contains("\"name\":\"vm-8-99\",\"host\":\"host-8-49\",\"addresses\":[\"10.0.3.131\"]"));
        assert!(machines_of_clients([3, 5].into_iter()).contains("\"machine-3\",\"host\":\"h\"},{"));
    }

    #[test]
    fn pieces_are_not_larger_than_a_request() {
        assert_eq!(pieces(23_000).collect::<Vec<_>>(), [0..10, 10..20, 20..23]);
        assert!(blocks(0..BLOCKS_PER_REQUEST).len() < 2 * 1_024 * 1_024);
    }
}
