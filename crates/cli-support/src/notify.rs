//! Notifications to the service manager (`sd_notify`), if there is one.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::visible::one_line;

/// A notification to the service manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notification<'a> {
    /// The program is ready.
    Ready,
    /// The program reloads its settings.
    Reloading,
    /// The program is stopping.
    Stopping,
    /// The program is healthy.
    Watchdog,
    /// A status of one line.
    Status(&'a str),
}

/// Sends a notification. Failures are logged only.
pub fn notify(notification: Notification<'_>) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let text = match notification {
        Notification::Ready => "READY=1".to_owned(),
        Notification::Reloading => {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            let microseconds = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
            format!("RELOADING=1\nMONOTONIC_USEC={microseconds}")
        }
        Notification::Stopping => "STOPPING=1".to_owned(),
        Notification::Watchdog => "WATCHDOG=1".to_owned(),
        Notification::Status(text) => format!("STATUS={}", one_line(text)),
    };
    let send = |to| UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &to);
    if let Err(error) = address(&socket).and_then(send) {
        tracing::warn!(%error, notification = text, "cannot notify the service manager");
    }
}

/// The interval of watchdog notifications: half of the configured one, so that one may be late. `None` if the service
/// manager expects none.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    let read = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let wanted = read("WATCHDOG_USEC").filter(|microseconds| *microseconds > 0)?;
    let is_ours = read("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    is_ours.then(|| Duration::from_micros(wanted) / 2)
}

/// A name that begins with @ is an abstract address.
#[cfg(target_os = "linux")]
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(socket),
    }
}

#[cfg(not(target_os = "linux"))]
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(socket)
}
