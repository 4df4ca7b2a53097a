//! Options of sockets.

use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// TCP keepalive: idle time, interval, and number of probes.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);

/// Time after which a connection is broken if the other computer confirms nothing that was sent.
const UNCONFIRMED_MAX: Duration = Duration::from_secs(20);

/// Sends at once, and notices that the other computer is gone.
pub(crate) fn tune(stream: &TcpStream) {
    // Best effort: without them a connection is slower to send, and to notice.
    stream.set_nodelay(true).ok();
    let (idle, every, times) = KEEPALIVE;
    let keepalive = TcpKeepalive::new().with_time(idle).with_interval(every).with_retries(times);
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive).ok();
    socket.set_tcp_user_timeout(Some(UNCONFIRMED_MAX)).ok();
}
