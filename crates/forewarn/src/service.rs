//! The installed service of this computer: its settings and its socket.

use std::io::ErrorKind;
use std::path::Path;

/// The socket of the operator API, unless the settings name another one.
pub(crate) const SOCKET: &str = "/run/forewarn/api.sock";

/// The settings of the systemd unit. The service counts as installed if they exist.
const SETTINGS: &str = "/etc/forewarn/serve.toml";

/// The presence of the service on this computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installation {
    Installed,
    Absent,
}

pub(crate) fn installation() -> Installation {
    if exists(Path::new(SETTINGS)) { Installation::Installed } else { Installation::Absent }
}

/// Returns true for a path that exists, and for one that this user may not look at: an attempt to use it gives a better
/// error than an attempt to use something else.
pub(crate) fn exists(path: &Path) -> bool {
    let missing = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    std::fs::symlink_metadata(path).err().is_none_or(|error| !missing.contains(&error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_that_is_surely_missing_does_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        assert!(!exists(&file));
        std::fs::write(&file, "").unwrap();
        assert!(exists(&file) && !exists(&file.join("below")));
        let dangling = directory.path().join("link");
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert!(exists(&dangling), "the attempt to use it names the problem");
        assert!(exists(&directory.path().join("x".repeat(300))), "not known to be missing");
    }
}
