//! Telling a damaged log from one that was cut short.
//!
//! The log ends for `SQLite` at the first frame whose checksum is wrong: that is how a commit that was being written when the
//! power went is left out. But a byte that has gone bad in the middle looks the same, and everything after it would be
//! silently gone. The difference: each commit is synced before the next begins, so only the last can be cut short. Where two
//! commits follow the place at which the log breaks, one of them was written after a sync of what is broken now.
//!
//! ```text
//!   header │ frame frame COMMIT │ frame COMMIT │ frame COMMIT
//!    32 B      24 B + a page         ▲ breaks here: the last commit is behind it, so this one was synced
//! ```
//!
//! What stays unnoticed is damage to the last commit, or to the mark of the last but one: then those are gone, as if they had
//! never been answered. A clean stop leaves no log.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const SECTOR_BYTES: u64 = 512;
const PAGE_BYTES_MAX: usize = 65_536;

/// What a log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogLook {
    /// Whatever is in it, or not, a power cut may have left it so.
    Sound,
    /// Commits that were durable are behind a frame that is not what was written.
    Damaged,
}

/// The sums that `SQLite` carries from frame to frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    order: Order,
    first: u32,
    second: u32,
}

/// In which order the bytes of a number are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    LowFirst,
    HighFirst,
}

impl Sums {
    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(8) {
            let (one, other) = (self.number(&pair[..4]), self.number(&pair[4..]));
            self.first = self.first.wrapping_add(one).wrapping_add(self.second);
            self.second = self.second.wrapping_add(other).wrapping_add(self.first);
        }
    }

    fn number(&self, bytes: &[u8]) -> u32 {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        match self.order {
            Order::LowFirst => u32::from_le_bytes(bytes),
            Order::HighFirst => u32::from_be_bytes(bytes),
        }
    }

    fn are(&self, bytes: &[u8]) -> bool {
        (self.first, self.second) == (number(bytes, 0), number(bytes, 4))
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Looks through a log. The caller has not opened the journal with `SQLite` yet.
pub(crate) fn look_at_log(path: &Path) -> io::Result<LogLook> {
    match File::open(path) {
        Ok(file) => look(&mut BufReader::new(file)),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(LogLook::Sound),
        Err(problem) => Err(problem),
    }
}

fn look(input: &mut impl Read) -> io::Result<LogLook> {
    let mut header = [0; HEADER_BYTES];
    if !fill(input, &mut header)? {
        return Ok(LogLook::Sound);
    }
    let order = match number(&header, 0) {
        0x377f_0682 => Order::LowFirst,
        0x377f_0683 => Order::HighFirst,
        _ => return look_without_header(input),
    };
    let mut sums = Sums { order, first: 0, second: 0 };
    sums.add(&header[..24]);
    let page = number(&header, 8) as usize;
    if !sums.are(&header[24..]) || page > PAGE_BYTES_MAX {
        return look_without_header(input);
    }
    let salts = &header[16..24];
    let mut frame = vec![0; FRAME_HEADER_BYTES + page];
    let mut offset = HEADER_BYTES as u64;
    let (mut whole, mut commits_behind) = (true, 0);
    while fill(input, &mut frame)? {
        let ours = &frame[8..16] == salts;
        sums.add(&frame[..8]);
        sums.add(&frame[FRAME_HEADER_BYTES..]);
        whole &= ours && sums.are(&frame[16..24]);
        let is_commit = number(&frame, 4) != 0;
        if !whole && ours && is_commit && !is_split(offset) {
            commits_behind += 1;
        }
        offset += frame.len() as u64;
    }
    Ok(if commits_behind >= 2 { LogLook::Damaged } else { LogLook::Sound })
}

/// Whether the header of a frame lies in two sectors: then one half of it may be older than the other.
fn is_split(offset: u64) -> bool {
    offset % SECTOR_BYTES > SECTOR_BYTES - FRAME_HEADER_BYTES as u64
}

/// A header lies in one sector and is synced before the first frame is written: where there is a frame, there is a header.
fn look_without_header(input: &mut impl Read) -> io::Result<LogLook> {
    let follows = fill(input, &mut [0; FRAME_HEADER_BYTES])?;
    Ok(if follows { LogLook::Damaged } else { LogLook::Sound })
}

/// Reads until there is no room left. Says whether there was enough to read.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(problem) if problem.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(problem) => Err(problem),
    }
}
