//! Removes directories that `forewarn az env` made for servers that no longer run.
//!
//! Each server has a directory, named after its address. `forewarn dev` on a free port leaves one behind at every
//! start, with a copy of everything that `az` keeps. A directory is stale if it is for an address of this computer at
//! which no program listens.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// Directories that one run looks at.
const LOOKED_AT_MAX: usize = 1_000;

/// A program on this computer accepts or refuses a connection at once.
const CONNECT_TIME_MAX: Duration = Duration::from_millis(500);

/// Bytes of `endpoints.json`; ours has some two thousand.
const ENDPOINTS_BYTES_MAX: u64 = 64 * 1024;

/// Removes the stale directories beside `own`. A directory that cannot be read or removed stays; the next run tries
/// again.
pub(super) fn remove_stale(own: &Path) {
    let Some(entries) = own.parent().and_then(|all| fs::read_dir(all).ok()) else { return };
    for entry in entries.filter_map(Result::ok).take(LOOKED_AT_MAX) {
        let path = entry.path();
        // A link is not followed: this program makes none.
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && path != own && address(&path).is_some_and(is_unused) {
            drop(fs::remove_dir_all(&path));
        }
    }
}

/// The address of the server that a directory is for, if it is one of this computer's.
fn address(directory: &Path) -> Option<SocketAddr> {
    let file = directory.join("endpoints.json");
    if fs::metadata(&file).ok()?.len() > ENDPOINTS_BYTES_MAX {
        return None;
    }
    let endpoints: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let place = endpoints.pointer("/0/resourceManager")?.as_str()?.strip_prefix("https://")?;
    let address: SocketAddr = place.trim_end_matches('/').replace("localhost", "127.0.0.1").parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

fn is_unused(address: SocketAddr) -> bool {
    let connected = TcpStream::connect_timeout(&address, CONNECT_TIME_MAX);
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn make(all: &Path, name: &str, place: &str) {
        fs::create_dir_all(all.join(name).join("config")).unwrap();
        let endpoints = serde_json::json!([{ "resourceManager": place }]);
        fs::write(all.join(name).join("endpoints.json"), endpoints.to_string()).unwrap();
    }

    /// promise: Z6
    #[test]
    fn directories_of_servers_that_are_gone_are_removed_and_nothing_else() {
        let all = tempfile::tempdir().unwrap();
        let all = all.path();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // No program can listen on port 0.
        make(all, "own", "https://127.0.0.1:0");
        make(all, "gone", "https://127.0.0.1:0");
        make(all, "gone-by-name", "https://localhost:0");
        make(all, "runs", &format!("https://{}", listener.local_addr().unwrap()));
        make(all, "elsewhere", "https://192.0.2.1:0");
        fs::create_dir(all.join("not-ours")).unwrap();
        fs::write(all.join("file"), "").unwrap();
        remove_stale(&all.join("own"));
        let mut left: Vec<_> = fs::read_dir(all)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["elsewhere", "file", "not-ours", "own", "runs"]);
    }
}
