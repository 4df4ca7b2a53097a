//! Operators, and clients that hold more connections of the operator API than it has, each with a header that never ends.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::bad::Lines;
use crate::connect;
use forewarn_bench::histogram::Histogram;

/// The address of operators.
const OPERATOR: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);

/// Connections of the attack: more than a listener has by default.
const SLOW: usize = 1_100;

/// Time between two requests of operators, and between two connections of the attack.
const INTERVAL: Duration = Duration::from_millis(10);
const TICK: Duration = Duration::from_millis(2);

/// Connections that the attack looks after in one tick; those that are closed are opened again.
const LOOKED_AFTER: usize = 8;

/// Time after which an operator gives up.
const PATIENCE: Duration = Duration::from_secs(5);

const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const INCOMPLETE: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";

/// Asks again and again, on a new connection each time.
pub(crate) fn ask(at: SocketAddr, time: Duration) -> Result<String, Box<dyn Error>> {
    let (begin, mut latency, mut answers) = (Instant::now(), Histogram::new(), 0_u64);
    for number in 0_u32.. {
        let due = begin + INTERVAL * number;
        if begin.elapsed() > time {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let asked = Instant::now();
        let mut stream = connect(OPERATOR, at)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(REQUEST)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            return Err(format!("not a success: {}", String::from_utf8_lossy(&answer)).into());
        }
        latency.add(u64::try_from(asked.elapsed().as_nanos())?);
        answers += 1;
    }
    let (p50, p99) = (latency.percentile(50), latency.percentile(99));
    Ok(format!("{{\"answers\":{answers},\"p50_nanoseconds\":{p50},\"p99_nanoseconds\":{p99}}}"))
}

/// Holds connections with an incomplete header.
pub(crate) fn hold(at: SocketAddr, time: Duration) -> Result<String, Box<dyn Error>> {
    let (mut slow, begin) = (Lines::new(SLOW), Instant::now());
    for tick in 0_u32.. {
        let due = begin + TICK * tick;
        // Opening connections may take longer than a tick: the time counts, not the ticks.
        if begin.elapsed() > time {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        for _ in 0..LOOKED_AFTER {
            slow.open_next(at, INCOMPLETE);
        }
    }
    let (opened, held) = (slow.opened, slow.count_open());
    Ok(format!("{{\"requests\":0,\"connections\":{opened},\"half_open\":{held}}}"))
}
