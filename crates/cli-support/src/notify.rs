//! Telling a supervisor how it goes (`sd_notify`), if there is one that wants to know.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::visible::one_line;

/// What a supervisor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// It does its work from now on.
    Ready,
    /// It reads its settings again.
    Reloading,
    /// It is about to end.
    Stopping,
    /// It is still well.
    Watchdog,
    /// How it goes, in one line.
    Status(&'a str),
}

/// Tells it. Whether it arrives is the supervisor's business.
pub fn notify(news: News<'_>) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let text = match news {
        News::Ready => "READY=1".to_owned(),
        News::Reloading => {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            let microseconds = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
            format!("RELOADING=1\nMONOTONIC_USEC={microseconds}")
        }
        News::Stopping => "STOPPING=1".to_owned(),
        News::Watchdog => "WATCHDOG=1".to_owned(),
        News::Status(text) => format!("STATUS={}", one_line(text)),
    };
    let send = |to| UnixDatagram::unbound()?.send_to_addr(text.as_bytes(), &to);
    if let Err(error) = address(&place).and_then(send) {
        tracing::warn!(%error, "the supervisor could not be told: {text}");
    }
}

/// How often a supervisor wants to hear that the program is well: twice as often as it asks for, so that one word may be late.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    let read = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let wanted = read("WATCHDOG_USEC").filter(|microseconds| *microseconds > 0)?;
    let is_ours = read("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    is_ours.then(|| Duration::from_micros(wanted) / 2)
}

/// A name that begins with @ is none in the file system.
#[cfg(target_os = "linux")]
fn address(place: &OsStr) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(place),
    }
}

#[cfg(not(target_os = "linux"))]
fn address(place: &OsStr) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(place)
}
