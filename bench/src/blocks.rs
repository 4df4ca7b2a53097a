//! Fleets as request bodies, made of equal blocks.
//!
//! ```text
//!   one block: 50 hosts, 1,000 machines: 100 single ones with an address each, three uniform scale sets of 100,
//!              and a flexible one of 600
//! ```

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::Instant;

use forewarn_control::Fleet;

use crate::LoadResult;
use crate::http::Connection;

pub const MACHINES_PER_BLOCK: u32 = SINGLE + UNIFORM_SETS * UNIFORM_INSTANCES + FLEXIBLE_INSTANCES;
const HOSTS: u32 = 50;
/// Single machines of a block: each one is a tenant, and has an address.
pub const SINGLE: u32 = 100;
const UNIFORM_SETS: u32 = 3;
const UNIFORM_INSTANCES: u32 = 100;
const FLEXIBLE_INSTANCES: u32 = 600;
/// Update and fault domains, by host.
const DOMAINS: u32 = 5;
/// Blocks of one fleet file.
const BLOCKS_PER_FILE: u32 = 10;
/// Blocks after which an apply prints its progress.
const BLOCKS_PER_LINE: u32 = 100;
/// The first address of single machines, `127.16.0.0`: a client on the same computer can have any of them.
const NETWORK: u32 = (127 << 24) | (16 << 16);

/// Applies a fleet of these blocks to a cluster, in the requests that the command line makes of such files.
pub fn apply<S: Read + Write>(
    connection: &mut Connection<S>,
    cluster: &str,
    blocks: Range<u32>,
) -> LoadResult<()> {
    let (begin, end, target) = (Instant::now(), blocks.end, format!("/v1/fleet?cluster={cluster}"));
    for first in blocks.step_by(BLOCKS_PER_FILE as usize) {
        let next = end.min(first + BLOCKS_PER_FILE);
        let file: Fleet = serde_json::from_str(&fleet_of(first..next))?;
        for piece in file.pieces() {
            connection.post(&target, &serde_json::to_string(&file.piece(&piece))?)?;
        }
        if next.is_multiple_of(BLOCKS_PER_LINE) {
            eprintln!("{next} of {end} blocks after {} s", begin.elapsed().as_secs());
        }
    }
    Ok(())
}

/// A fleet of these blocks.
pub fn fleet_of(blocks: Range<u32>) -> String {
    let hosts = blocks.clone().flat_map(|block| (0..HOSTS).map(move |host| format!("host-{block}-{host}")));
    let hosts = hosts.map(|name| format!("{{\"name\":\"{name}\"}}"));
    let single = blocks.clone().flat_map(|block| (0..SINGLE).map(move |index| single(block, index)));
    let sets = blocks.flat_map(scale_sets);
    format!("{{\"host\":[{}],\"vm\":[{}],\"scale_set\":[{}]}}", list(hosts), list(single), list(sets))
}

/// A host and the machines of these clients.
pub fn machines_of_clients(clients: impl Iterator<Item = u32>) -> String {
    let machines = clients.map(|client| format!("{{\"name\":\"{}\",\"host\":\"h\"}}", machine(client)));
    format!("{{\"host\":[{{\"name\":\"h\"}}],\"vm\":[{}]}}", list(machines))
}

/// The name of the machine that a client of the clusters with load describes.
pub fn machine(client: u32) -> String {
    format!("machine-{client}")
}

/// The name of a single machine, which is also that of its tenant; counted over all blocks.
pub fn single_name(number: u32) -> String {
    format!("vm-{}-{}", number / SINGLE, number % SINGLE)
}

/// The address of a single machine, counted over all blocks.
pub fn single_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(NETWORK + number)
}

fn single(block: u32, index: u32) -> String {
    let (host, number) = (index % HOSTS, block * SINGLE + index);
    let (name, address) = (single_name(number), single_address(number));
    format!("{{\"name\":\"{name}\",\"host\":\"host-{block}-{host}\",\"addresses\":[\"{address}\"]}}")
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
        let text = fleet_of(7..9);
        assert_eq!(MACHINES_PER_BLOCK, 1_000);
        assert_eq!(text.matches("\"host\":\"").count(), 2_000);
        assert_eq!(text.matches("\"name\":\"host-").count(), 100);
        assert!(
            text.contains("\"name\":\"vm-8-99\",\"host\":\"host-8-49\",\"addresses\":[\"127.16.3.131\"]")
        );
        assert!(machines_of_clients([3, 5].into_iter()).contains("\"machine-3\",\"host\":\"h\"},{"));
    }
}
