//! A fleet file in pieces, each of which is applied by one request: a file of any size needs requests of limited size,
//! and other requests run between them.
//!
//! A file within the limits of a request is one piece, and is applied completely or not at all. The pieces of a larger
//! one are smaller than a request may be: a request of another caller waits for one of them. Hosts come first, then
//! standalone machines, then sets. A set is never divided, so every machine comes with its tenant, and every move with
//! the other moves of its tenant; a set with more machines than a piece has is a piece of its own.

use std::io;
use std::ops::Range;

use serde::Serialize;

use crate::command::entry::{ScaleSetEntry, SetEntry};
use crate::command::named::SiteChange;
use crate::fleet_file::fleet::{FLEET_BYTES_MAX, Fleet};
use crate::fleet_file::position::FleetPosition;

/// Hosts, sets and machines of a file that one request applies: at most that many of each.
pub const REQUEST_ENTRIES_MAX: usize = 1_000;

/// Hosts, sets and machines of one piece of a larger file: at most that many of each, or one set.
pub const PIECE_ENTRIES_MAX: usize = 250;

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
        let sets = self.availability_sets.len() + self.cloud_services.len() + self.scale_sets.len();
        let counts = [self.hosts.len(), sets, self.machine_count()];
        let is_small = counts.into_iter().all(|count| count <= REQUEST_ENTRIES_MAX);
        let whole = is_small.then(|| self.pieces_of(REQUEST_ENTRIES_MAX)).filter(|pieces| pieces.len() == 1);
        whole.unwrap_or_else(|| self.pieces_of(PIECE_ENTRIES_MAX))
    }

    /// Pieces with at most that many hosts, sets and machines each.
    fn pieces_of(&self, entries_max: usize) -> Vec<FleetPiece> {
        let mut pieces = PieceBuilder::new(entries_max);
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

    /// The entries of a piece. The first piece has the rule of enrolment and the site.
    #[must_use]
    pub fn piece(&self, piece: &FleetPiece) -> Self {
        let is_first =
            [&piece.hosts, &piece.vms, &piece.availability_sets, &piece.cloud_services, &piece.scale_sets]
                .into_iter()
                .all(|range| range.start == 0);
        Self {
            enrolment: self.enrolment.filter(|_| is_first),
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

    fn fits(self, entries_max: usize) -> bool {
        let entries = [self.hosts, self.sets, self.machines];
        entries.into_iter().all(|count| count <= entries_max) && self.bytes <= FLEET_BYTES_MAX - REST_BYTES
    }
}

/// Pieces so far; the last one is open.
struct PieceBuilder {
    entries_max: usize,
    done: Vec<FleetPiece>,
    open: FleetPiece,
    size: PieceSize,
}

impl PieceBuilder {
    fn new(entries_max: usize) -> Self {
        Self { entries_max, done: Vec::new(), open: FleetPiece::default(), size: PieceSize::default() }
    }

    /// The piece that takes an entry of that size.
    fn add(&mut self, entry: PieceSize) -> &mut FleetPiece {
        let size = self.size.plus(entry);
        // An entry that is too large by itself is a piece of its own. If it is too large for a request, the server says so.
        if size.fits(self.entries_max) || self.size.is_empty() {
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
