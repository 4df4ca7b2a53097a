//! A fleet file in pieces, each of which is applied by one request: a file of any size needs requests of limited size,
//! and other requests run between them.
//!
//! Hosts come first, then standalone machines, then sets. A set is never divided, so every machine comes with its
//! tenant, and every move with the other moves of its tenant. A file within the limits is one piece.

use std::io;
use std::ops::Range;

use serde::Serialize;

use crate::command::entry::{ScaleSetEntry, SetEntry};
use crate::command::named::SiteChange;
use crate::fleet_file::fleet::{FLEET_BYTES_MAX, Fleet};
use crate::fleet_file::position::FleetPosition;

/// Hosts, sets and machines of one piece: at most that many of each.
pub const PIECE_ENTRIES_MAX: usize = 1_000;

/// Bytes of a piece besides its entries: the names of its lists, and its site.
const REST_BYTES: usize = 64 * 1024;

/// Entries of a fleet file that one request applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetPiece {
    hosts: Range<usize>,
    vms: Range<usize>,
    availability_sets: Range<usize>,
    cloud_services: Range<usize>,
    scale_sets: Range<usize>,
    /// Number of its hosts and machines.
    pub entries: usize,
}

impl FleetPiece {
    /// The position in the whole file of a position in the piece.
    #[must_use]
    pub fn in_file(&self, place: &FleetPosition) -> FleetPosition {
        let mut steps: Vec<_> = place.pointer().split('/').map(str::to_owned).collect();
        let first = match steps.get(1).map(String::as_str) {
            Some("host") => self.hosts.start,
            Some("vm") => self.vms.start,
            Some("availability_set") => self.availability_sets.start,
            Some("cloud_service") => self.cloud_services.start,
            Some("scale_set") => self.scale_sets.start,
            Some(_) | None => 0,
        };
        if let Some(index) = steps.get_mut(2)
            && let Ok(number) = index.parse::<usize>()
        {
            *index = (first + number).to_string();
        }
        FleetPosition::from_pointer(&steps.join("/"))
    }
}

impl Fleet {
    /// The pieces of the fleet, in the order in which they must be applied: at least one.
    #[must_use]
    pub fn pieces(&self) -> Vec<FleetPiece> {
        let mut pieces = PieceBuilder::default();
        for (index, host) in self.hosts.iter().enumerate() {
            pieces.add(PieceSize { hosts: 1, bytes: bytes(host), ..PieceSize::default() }).hosts.end =
                index + 1;
        }
        for (index, vm) in self.vms.iter().enumerate() {
            pieces.add(PieceSize { machines: 1, bytes: bytes(vm), ..PieceSize::default() }).vms.end =
                index + 1;
        }
        for (index, set) in self.availability_sets.iter().enumerate() {
            pieces.add(PieceSize::of_set(set)).availability_sets.end = index + 1;
        }
        for (index, set) in self.cloud_services.iter().enumerate() {
            pieces.add(PieceSize::of_set(set)).cloud_services.end = index + 1;
        }
        for (index, set) in self.scale_sets.iter().enumerate() {
            pieces.add(PieceSize::of_scale_set(set)).scale_sets.end = index + 1;
        }
        pieces.finish()
    }

    /// The entries of a piece. The first piece has the site.
    #[must_use]
    pub fn piece(&self, piece: &FleetPiece) -> Self {
        let is_first =
            [&piece.hosts, &piece.vms, &piece.availability_sets, &piece.cloud_services, &piece.scale_sets]
                .into_iter()
                .all(|range| range.start == 0);
        Self {
            site: if is_first { self.site.clone() } else { SiteChange::default() },
            hosts: self.hosts[piece.hosts.clone()].to_vec(),
            vms: self.vms[piece.vms.clone()].to_vec(),
            availability_sets: self.availability_sets[piece.availability_sets.clone()].to_vec(),
            cloud_services: self.cloud_services[piece.cloud_services.clone()].to_vec(),
            scale_sets: self.scale_sets[piece.scale_sets.clone()].to_vec(),
        }
    }

    /// Number of machines in the file.
    #[must_use]
    pub fn machine_count(&self) -> usize {
        let sets = self.availability_sets.iter().chain(&self.cloud_services).map(|set| set.machines.len());
        self.vms.len() + sets.sum::<usize>() + self.scale_sets.iter().map(instance_count).sum::<usize>()
    }
}

fn instance_count(set: &ScaleSetEntry) -> usize {
    set.count.map_or(set.instances.len(), usize::from)
}

/// Size of an entry or of a piece.
#[derive(Clone, Copy, Debug, Default)]
struct PieceSize {
    hosts: usize,
    sets: usize,
    machines: usize,
    bytes: usize,
}

impl PieceSize {
    fn of_set(set: &SetEntry) -> Self {
        Self { sets: 1, machines: set.machines.len(), bytes: bytes(set), ..Self::default() }
    }

    fn of_scale_set(set: &ScaleSetEntry) -> Self {
        Self { sets: 1, machines: instance_count(set), bytes: bytes(set), ..Self::default() }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            hosts: self.hosts + other.hosts,
            sets: self.sets + other.sets,
            machines: self.machines + other.machines,
            bytes: self.bytes + other.bytes,
        }
    }

    fn is_empty(self) -> bool {
        self.hosts + self.sets + self.machines == 0
    }

    fn fits(self) -> bool {
        let entries = [self.hosts, self.sets, self.machines];
        entries.into_iter().all(|count| count <= PIECE_ENTRIES_MAX)
            && self.bytes <= FLEET_BYTES_MAX - REST_BYTES
    }
}

/// Pieces so far; the last one is open.
#[derive(Default)]
struct PieceBuilder {
    done: Vec<FleetPiece>,
    open: FleetPiece,
    size: PieceSize,
}

impl PieceBuilder {
    /// The piece that takes an entry of that size.
    fn add(&mut self, entry: PieceSize) -> &mut FleetPiece {
        let size = self.size.plus(entry);
        // An entry that is too large by itself is a piece of its own: the server says what is wrong with it.
        if size.fits() || self.size.is_empty() {
            self.size = size;
        } else {
            let after = |range: &Range<usize>| range.end..range.end;
            let next = FleetPiece {
                hosts: after(&self.open.hosts),
                vms: after(&self.open.vms),
                availability_sets: after(&self.open.availability_sets),
                cloud_services: after(&self.open.cloud_services),
                scale_sets: after(&self.open.scale_sets),
                entries: 0,
            };
            self.done.push(std::mem::replace(&mut self.open, next));
            self.size = entry;
        }
        self.open.entries += entry.hosts + entry.machines;
        &mut self.open
    }

    fn finish(mut self) -> Vec<FleetPiece> {
        self.done.push(self.open);
        self.done
    }
}

/// Bytes of an entry in JSON, with a comma.
fn bytes(entry: &impl Serialize) -> usize {
    struct ByteCounter(usize);

    impl io::Write for ByteCounter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counter = ByteCounter(1);
    // Entries have only texts, numbers and lists, and the counter cannot fail.
    drop(serde_json::to_writer(&mut counter, entry));
    counter.0
}
