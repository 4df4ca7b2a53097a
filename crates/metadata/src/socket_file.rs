//! The file of a Unix socket: made whole, and removed with its listener.
//!
//! A file that is left over from a server that died is replaced; one that somebody listens on, or that is no socket, is
//! left alone. The socket gets its mode under another name and is then renamed, so that nobody finds it too open, and
//! nobody who looks finds nothing.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::door::OpenError;

/// What the name ends in until the socket is ready.
const UNFINISHED: &str = ".new";

/// The file of a listener. It is removed with this, unless another one lies there by then.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl SocketFile {
    /// Listens there. `failed` makes an error of a refusal of the operating system.
    ///
    /// # Errors
    /// Fails if the operating system refuses, another server listens there, or the file is not a socket.
    pub fn create(
        path: &Path,
        mode: u32,
        failed: impl Fn(io::Error) -> OpenError,
    ) -> Result<(UnixListener, Self), OpenError> {
        check_vacant(path, &failed)?;
        let (listener, inode) = replace(path, mode).map_err(failed)?;
        Ok((listener, Self { path: path.to_owned(), inode }))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_own = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if is_own && let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a socket could not be removed");
        }
    }
}

/// Nothing lies there, or the socket of a server that is gone.
fn check_vacant(path: &Path, failed: &impl Fn(io::Error) -> OpenError) -> Result<(), OpenError> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => Err(OpenError::NotASocket { path: path.to_owned() }),
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
            Err(error) => Err(failed(error)),
            Ok(_) => Err(OpenError::InUse { path: path.to_owned() }),
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

    fn create(path: &Path) -> Result<(UnixListener, SocketFile), OpenError> {
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

    #[test]
    fn what_a_dead_server_left_is_replaced_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("s");
        drop(UnixListener::bind(&path).expect("nothing was there"));
        let socket = create(&path).expect("nobody listens there");
        assert!(matches!(create(&path), Err(OpenError::InUse { .. })));
        // Another server has taken the name over: its file stays.
        fs::remove_file(&path).expect("a file");
        fs::write(&path, "").expect("a file");
        drop(socket);
        assert!(matches!(create(&path), Err(OpenError::NotASocket { .. })));
        assert!(path.exists());
    }
}
