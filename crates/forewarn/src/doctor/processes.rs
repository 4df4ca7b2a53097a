//! The process that holds a port or a lock, from `/proc`.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENS: &str = "0A";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) id: u32,
    pub(super) name: String,
}

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (process {})", self.name, self.id)
    }
}

impl Process {
    fn new(id: u32) -> Option<Self> {
        let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
        Some(Self { id, name: name.trim().to_owned() })
    }

    /// True for a Forewarn server.
    pub(super) fn is_ours(&self) -> bool {
        self.name == "forewarn"
    }
}

/// The process that listens on the port of an address.
pub(super) fn listener(address: SocketAddr) -> Option<Process> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let inodes: Vec<_> = tables
        .iter()
        .flat_map(|table| table.lines())
        .filter_map(|line| inode(line, address.port()))
        .collect();
    holder(&inodes)
}

/// The inode of the socket in a line of the table. None if it does not listen on that port.
fn inode(line: &str, port: u16) -> Option<&str> {
    let fields: Vec<_> = line.split_whitespace().collect();
    let (_, listened) = fields.get(1)?.rsplit_once(':')?;
    let is_match = u16::from_str_radix(listened, 16) == Ok(port) && fields.get(3) == Some(&LISTENS);
    fields.get(9).copied().filter(|_| is_match)
}

fn holder(inodes: &[&str]) -> Option<Process> {
    let wanted: Vec<_> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let files = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| wanted.iter().any(|wanted| target.as_os_str() == wanted.as_str()))
    })
    .and_then(Process::new)
}

/// The process that holds a lock on a file.
pub(super) fn locker(file: &Path) -> Option<Process> {
    let inode = fs::metadata(file).ok()?.ino().to_string();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let mut lines = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let line = lines.find(|fields| fields.get(5).is_some_and(|id| id.rsplit(':').next() == Some(&inode)))?;
    Process::new(line.get(4)?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_holder_of_a_port_or_lock_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let found = listener(socket.local_addr().unwrap()).expect("this process");
        assert_eq!(found.id, std::process::id());
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(locker(file.path()), None);
        file.as_file().lock().unwrap();
        assert_eq!(locker(file.path()).map(|process| process.id), Some(std::process::id()));
    }

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let line =
            "   0: 0100007F:053B 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0        0 4711 1";
        assert_eq!(inode(line, 1339), Some("4711"));
        assert_eq!(inode(line, 80), None);
        assert_eq!(inode(&line.replace(" 0A ", " 01 "), 1339), None);
        assert_eq!(inode("  sl  local_address rem_address   st", 1339), None);
    }
}
