//! Default ports of the programs, occupied while the tests run.
//!
//! A test that listens on a default port, or asks one, fails then: on the computer of a developer a `forewarn dev` may
//! have these ports, and the test would fail there or, worse, talk to that server.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result};

/// Metadata endpoint, operator API and Azure Resource Manager of `forewarn dev`, and status page of the agent.
const DEFAULT_PORTS: [u16; 4] = [1338, 1339, 1340, 9911];

/// Listeners on the default ports of loopback. They close every connection at once, so that a client fails instead of
/// waiting.
pub(crate) struct OccupiedPorts {
    closers: Vec<Closer>,
}

struct Closer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl OccupiedPorts {
    /// Occupies the default ports. A port that another program has is occupied already.
    pub(crate) fn occupy() -> Result<Self> {
        Self::occupy_these(&DEFAULT_PORTS)
    }

    fn occupy_these(ports: &[u16]) -> Result<Self> {
        let mut closers = Vec::new();
        for port in ports {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, *port)) {
                Ok(listener) => closers.push(Closer::start(listener)?),
                Err(error) if error.kind() == ErrorKind::AddrInUse => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot occupy a default port: {port}"));
                }
            }
        }
        Ok(Self { closers })
    }
}

impl Closer {
    fn start(listener: TcpListener) -> Result<Self> {
        let (address, stop) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                drop(listener.accept());
            }
        });
        Ok(Self { address, stop, thread })
    }
}

impl Drop for OccupiedPorts {
    fn drop(&mut self) {
        for closer in self.closers.drain(..) {
            closer.stop.store(true, Ordering::Release);
            // The connection wakes the thread; it ends, and its listener with it.
            drop(TcpStream::connect(closer.address));
            drop(closer.thread.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::tree;

    /// Occupies a port that was free a moment ago; tries again if another program was faster.
    fn occupy_one() -> (u16, OccupiedPorts) {
        loop {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let occupied = OccupiedPorts::occupy_these(&[port]).unwrap();
            if !occupied.closers.is_empty() {
                return (port, occupied);
            }
        }
    }

    /// promise: X1
    #[test]
    fn an_occupied_port_cannot_be_used_until_the_tests_end() {
        let (port, occupied) = occupy_one();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse);
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "a connection is closed");
        let again = OccupiedPorts::occupy_these(&[port]).unwrap();
        assert_eq!(again.closers.len(), 0, "another program has it");
        drop(again);
        let stops: Vec<_> = occupied.closers.iter().map(|closer| Arc::downgrade(&closer.stop)).collect();
        drop(occupied);
        assert!(
            stops.iter().all(|stop| stop.upgrade().is_none()),
            "a thread that closes connections has ended"
        );
    }

    /// promise: X1
    #[test]
    fn the_default_ports_are_those_of_the_programs() {
        let root = tree::root().unwrap();
        let mut found = Vec::new();
        for file in ["crates/forewarn/src/server/dev.rs", "crates/agent/src/config/mod.rs"] {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            for before in ["default_value = \"127.0.0.1:", "const LISTEN: &str = \"127.0.0.1:"] {
                let ports =
                    text.split(before).skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok());
                found.extend(ports.filter(|port: &u16| *port != 0));
            }
        }
        assert_eq!(found, DEFAULT_PORTS);
    }
}
