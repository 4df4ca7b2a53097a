//! The hostile machine: five hundred requests a second, a hundred times what it may; a thousand connections with half a
//! request; a hundred that send one byte a second. Whatever is closed is opened again.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::{POLL, connect};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// One request in each: 500 a second.
const TICK: Duration = Duration::from_millis(2);

const FLOODING: usize = 8;
const HALF_OPEN: usize = 1_000;
const DRIBBLING: usize = 100;

/// Ticks between two bytes of whichever dribbling connection: each has its turn once a second.
const TICKS_PER_BYTE: usize = 5;

/// Connections that are looked after in one tick, at most one of them opened again.
const LOOKED_AFTER: usize = 8;

/// Some connections of one kind, looked after in turn.
pub(crate) struct Lines {
    streams: Vec<Option<TcpStream>>,
    next: usize,
    pub(crate) opened: u64,
}

impl Lines {
    pub(crate) fn new(count: usize) -> Self {
        Self { streams: (0..count).map(|_| None).collect(), next: 0, opened: 0 }
    }

    /// Opens the next one with these bytes, if it is not open; says whether it had to.
    pub(crate) fn open_next(&mut self, at: SocketAddr, first: &[u8]) -> bool {
        self.next = (self.next + 1) % self.streams.len();
        let line = &mut self.streams[self.next];
        if line.as_mut().is_some_and(is_open) {
            return false;
        }
        // A connection that is refused is tried again in its next turn.
        *line = connect(ADDRESS, at).ok().filter(|stream| {
            stream.set_nonblocking(true).is_ok() && (&mut &*stream).write_all(first).is_ok()
        });
        self.opened += 1;
        true
    }

    /// Number of connections that are open.
    pub(crate) fn count_open(&mut self) -> usize {
        self.streams.iter_mut().flatten().filter_map(|stream| is_open(stream).then_some(())).count()
    }

    /// Writes to the one whose turn it was.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let line = self.streams[self.next].as_mut();
        line.is_some_and(|stream| stream.write(bytes).is_ok_and(|count| count == bytes.len()))
    }
}

/// Reads and forgets whatever came.
fn is_open(stream: &mut TcpStream) -> bool {
    let mut buffer = [0; 4_096];
    match stream.read(&mut buffer) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

pub(crate) fn run(at: SocketAddr, time: Duration) -> Result<String, Box<dyn Error>> {
    let (mut flooding, mut half_open, mut dribbling) =
        (Lines::new(FLOODING), Lines::new(HALF_OPEN), Lines::new(DRIBBLING));
    let (half, begin, mut requests) = (&POLL.as_bytes()[..POLL.len() / 2], Instant::now(), 0_u64);
    for tick in 0_u32.. {
        let due = begin + TICK * tick;
        if due - begin > time {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        flooding.open_next(at, b"");
        requests += u64::from(flooding.write(POLL.as_bytes()));
        for _ in 0..LOOKED_AFTER {
            if half_open.open_next(at, half) {
                break;
            }
        }
        if (tick as usize).is_multiple_of(TICKS_PER_BYTE) {
            dribbling.open_next(at, b"G");
            dribbling.write(b"E");
        }
    }
    let opened = flooding.opened + half_open.opened + dribbling.opened;
    let held = half_open.count_open();
    Ok(format!("{{\"requests\":{requests},\"connections\":{opened},\"half_open\":{held}}}"))
}
