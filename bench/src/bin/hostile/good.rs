//! The neighbours: a hundred machines that poll four times a second each, and how long their answers take.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::{POLL, connect};
use forewarn_bench::histogram::Histogram;

const MACHINES: u8 = 100;

/// Between two polls, of whichever machine. Each keeps well below what it may ask.
const INTERVAL: Duration = Duration::from_micros(2_500);

/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(at: SocketAddr, time: Duration) -> Result<String, Box<dyn Error>> {
    let mut machines = Vec::new();
    for number in 1..=MACHINES {
        let stream = connect(Ipv4Addr::new(127, 0, 1, number), at)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        machines.push(stream);
    }
    let mut buffer = vec![0; 64 * 1024];
    for machine in &mut machines {
        poll(machine, &mut buffer)?;
    }
    let (begin, mut latency, mut answers) = (Instant::now(), Histogram::new(), 0_u64);
    for (number, machine) in (0_u32..).zip((0..machines.len()).cycle()) {
        let due = begin + INTERVAL * number;
        if due - begin > time {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // Whoever is kept from asking in time by the answer before waits for both.
        let now = Instant::now();
        let asked = if now - due > INTERVAL { due } else { now };
        poll(&mut machines[machine], &mut buffer)?;
        latency.add(u64::try_from(asked.elapsed().as_nanos())?);
        answers += 1;
    }
    let (p50, p99) = (latency.percentile(50), latency.percentile(99));
    Ok(format!("{{\"answers\":{answers},\"p50_nanoseconds\":{p50},\"p99_nanoseconds\":{p99}}}"))
}

/// An answer is small and comes at once; a piece of one is waited for.
fn poll(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<(), Box<dyn Error>> {
    stream.write_all(POLL.as_bytes())?;
    let mut count = 0;
    loop {
        let read = stream.read(&mut buffer[count..])?;
        count += read;
        let answer = &buffer[..count];
        if read == 0 || !answer.starts_with(b"HTTP/1.1 200 ") {
            return Err(format!("not a success: {}", String::from_utf8_lossy(answer)).into());
        }
        if answer.ends_with(b"}") {
            return Ok(());
        }
    }
}
