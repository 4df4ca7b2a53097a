//! Distinguishes a damaged write-ahead log from a truncated one.
//!
//! For `SQLite` the log ends at the first frame with a wrong checksum: this drops a commit that a power cut
//! interrupted. But a bad byte in the middle looks the same, and would silently drop everything after it. The
//! difference: each commit is synced before the next begins, so only the last one can be incomplete. Where two commits
//! follow the broken frame, one of them was written after a sync of that frame.
//!
//! ```text
//!   header │ frame frame COMMIT │ frame COMMIT │ frame COMMIT
//!    32 B      24 B + a page         ▲ broken here: the last commit is behind it, so this one was synced
//! ```
//!
//! Damage to the last commit, or to the mark of the last but one, goes unnoticed: then those are lost, as if they had
//! never been acknowledged. A clean stop leaves no log.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const SECTOR_BYTES: u64 = 512;
const PAGE_BYTES_MAX: usize = 65_536;

/// State of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    /// Intact, or as a power cut may leave it.
    Sound,
    /// Durable commits are behind a broken frame.
    Damaged,
}

/// The running checksum of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    order: ByteOrder,
    first: u32,
    second: u32,
}

/// Byte order of the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
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
            ByteOrder::LowFirst => u32::from_le_bytes(bytes),
            ByteOrder::HighFirst => u32::from_be_bytes(bytes),
        }
    }

    fn are(&self, bytes: &[u8]) -> bool {
        (self.first, self.second) == (number(bytes, 0), number(bytes, 4))
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Checks a log. The caller has not opened the journal with `SQLite` yet.
pub(crate) fn check_log(path: &Path) -> io::Result<LogState> {
    match File::open(path) {
        Ok(file) => look(&mut BufReader::new(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LogState::Sound),
        Err(error) => Err(error),
    }
}

fn look(input: &mut impl Read) -> io::Result<LogState> {
    let mut header = [0; HEADER_BYTES];
    if !fill(input, &mut header)? {
        return Ok(LogState::Sound);
    }
    let order = match number(&header, 0) {
        0x377f_0682 => ByteOrder::LowFirst,
        0x377f_0683 => ByteOrder::HighFirst,
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
    Ok(if commits_behind >= 2 { LogState::Damaged } else { LogState::Sound })
}

/// Returns true if the header of a frame spans two sectors: then one half of it may be older than the other.
fn is_split(offset: u64) -> bool {
    offset % SECTOR_BYTES > SECTOR_BYTES - FRAME_HEADER_BYTES as u64
}

/// A header lies in one sector and is synced before the first frame is written: a frame without a header is damage.
fn look_without_header(input: &mut impl Read) -> io::Result<LogState> {
    let follows = fill(input, &mut [0; FRAME_HEADER_BYTES])?;
    Ok(if follows { LogState::Damaged } else { LogState::Sound })
}

/// Fills the buffer. Returns false if the input is too short.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
