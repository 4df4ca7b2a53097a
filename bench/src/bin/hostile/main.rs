//! One hostile machine, or its good neighbours, against a metadata endpoint on loopback.
//!
//! Machines are known by their address: the hostile one is 127.0.0.2, its neighbours are 127.0.1.1 and so on. Everything is
//! bounded in count and in time.
//!
//! ```text
//! hostile good --at 127.0.0.1:8080 --milliseconds 3000
//! hostile bad --at 127.0.0.1:8080 --milliseconds 3000
//! hostile ask --at 127.0.0.1:1339 --milliseconds 3000
//! hostile hold --at 127.0.0.1:1339 --milliseconds 3000
//! ```
//!
//! The last two are operators, and clients that hold connections of the operator API.

mod bad;
mod good;
mod operators;

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use forewarn_bench::program;
use socket2::{Domain, Protocol, Socket, Type};

const HINT: &str = "hostile good|bad|ask|hold --at ADDRESS --milliseconds T";
const MILLISECONDS_MAX: u64 = 60_000;

/// What every machine asks.
const POLL: &str = "GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: 169.254.169.254\r\n\
                    Metadata: true\r\n\r\n";

fn main() -> ExitCode {
    program::run(Ok(std::env::args().skip(1).collect::<Vec<_>>()), |words| run(&words))
}

fn run(words: &[String]) -> Result<String, Box<dyn Error>> {
    let [role, at_word, at, time_word, time] = words else { return Err(HINT.into()) };
    if at_word != "--at" || time_word != "--milliseconds" {
        return Err(HINT.into());
    }
    let at: SocketAddr = at.parse()?;
    let milliseconds: u64 = time.parse()?;
    if !at.ip().is_loopback() || milliseconds > MILLISECONDS_MAX {
        return Err("only on loopback, and for a minute at most".into());
    }
    let time = Duration::from_millis(milliseconds);
    match role.as_str() {
        "good" => good::run(at, time),
        "bad" => bad::run(at, time),
        "ask" => operators::ask(at, time),
        "hold" => operators::hold(at, time),
        _ => Err(HINT.into()),
    }
}

/// A connection that comes from that address.
fn connect(from: Ipv4Addr, at: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.set_tcp_nodelay(true)?;
    socket.connect(&at.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_attacked_but_this_machine_and_not_for_long() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for wrong in [
            "bad --at 192.0.2.1:80 --milliseconds 10",
            "bad --at 127.0.0.1:80 --milliseconds 60001",
            "worse --at 127.0.0.1:80 --milliseconds 10",
            "bad",
        ] {
            assert!(run(&words(wrong)).is_err(), "{wrong}");
        }
    }
}
