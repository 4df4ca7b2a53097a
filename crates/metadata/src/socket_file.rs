//! Socket files: created atomically, and removed with the listener.
//!
//! A file that a dead server left behind is replaced. A socket with a listener, or a file that is no socket, is left
//! alone. The socket gets its mode under a temporary name and is then renamed, so that it never has a wrong mode and is
//! never absent.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::listen_address::ListenError;

/// Suffix of the name until the socket is ready.
const UNFINISHED: &str = ".new";

/// The file of a listener. Dropping it removes the file, unless another file has taken the path.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    /// Listens on a path. `failed` converts an error of the operating system.
    ///
    /// # Errors
    /// Fails if the operating system refuses, another server listens there, or the file is not a socket.
    pub fn create(
        path: &Path,
        mode: u32,
        failed: impl Fn(io::Error) -> ListenError,
    ) -> Result<(UnixListener, Self), ListenError> {
        check_vacant(path, &failed)?;
        let (listener, inode) = replace(path, mode).map_err(failed)?;
        Ok((listener, Self { path: path.to_owned(), inode }))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if is_own && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove socket file");
        }
    }
}

/// Checks that the path is free, or has the socket of a dead server.
fn check_vacant(path: &Path, failed: &impl Fn(io::Error) -> ListenError) -> Result<(), ListenError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => Err(ListenError::NotASocket { path: path.to_owned() }),
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(failed(error)),
            Ok(_) => Err(ListenError::InUse { path: path.to_owned() }),
        },
    }
}

fn replace(path: &Path, mode: u32) -> io::Result<(UnixListener, u64)> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = Path::new(&unfinished);
    match fs::remove_file(unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(unfinished)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(unfinished, fs::Permissions::from_mode(mode))?;
    let inode = fs::symlink_metadata(unfinished)?.ino();
    fs::rename(unfinished, path)?;
    Ok((listener, inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(path: &Path) -> Result<(UnixListener, SocketFile), ListenError> {
        SocketFile::create(path, 0o640, |error| panic!("{error}"))
    }

    #[test]
    fn a_socket_has_its_mode_and_goes_with_its_listener() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        let socket = create(&path).expect("nothing was there");
        let mode = fs::symlink_metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        drop(socket);
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }

    /// promise: X2
    #[test]
    fn only_the_socket_of_a_dead_server_is_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        drop(UnixListener::bind(&path).expect("nothing was there"));
        let socket = create(&path).expect("no listener");
        assert!(matches!(create(&path), Err(ListenError::InUse { .. })));
        // Another server has taken the path: its file stays.
        fs::remove_file(&path).expect("a file");
        fs::write(&path, "").expect("a file");
        drop(socket);
        assert!(matches!(create(&path), Err(ListenError::NotASocket { .. })));
        assert!(path.exists());
    }
}
