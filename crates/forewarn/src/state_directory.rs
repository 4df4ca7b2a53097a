//! The state directory of the user: the CA of servers without a data directory, and files for `az`.
//!
//! ```text
//!   $XDG_STATE_HOME/forewarn, or ~/.local/state/forewarn
//!     tls/      the CA of `forewarn dev`
//!     az/       files of `forewarn az env`, a directory for each server
//! ```

use data_encoding::HEXLOWER;
use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The name of the directory below the state directories of all programs.
const NAME: &str = "forewarn";

/// Random bytes in the name of a temporary directory.
const RANDOM_BYTES: usize = 8;

/// The state directory of the user, or a temporary directory that is removed on drop.
#[derive(Debug)]
pub(crate) struct StateDirectory {
    path: PathBuf,
    is_temporary: bool,
}

impl StateDirectory {
    /// Creates the directory of the user; without a home directory, a temporary one.
    pub(crate) fn open() -> Result<Self> {
        let user = directory().filter(|path| make(path).is_ok());
        match user {
            Some(path) => Ok(Self { path, is_temporary: false }),
            None => Self::temporary(),
        }
    }

    fn temporary() -> Result<Self> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).context("cannot get random bytes from the operating system")?;
        let name = HEXLOWER.encode(&bytes);
        let path = env::temp_dir().join(format!("{NAME}-{name}"));
        // An existing directory could contain files of an attacker: `create` fails for it.
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot create the directory: {}", path.display()))?;
        Ok(Self { path, is_temporary: true })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if the directory is removed on drop.
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}

impl Drop for StateDirectory {
    fn drop(&mut self) {
        if self.is_temporary {
            // If the removal fails, the cleanup of temporary files finds it.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

/// The directory of the user, which may not exist. None without a home directory.
pub(crate) fn directory() -> Option<PathBuf> {
    let configured = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
    Some(configured.or_else(home)?.join(NAME))
}

/// Creates a private directory below that of the user.
pub(crate) fn below(name: &str) -> Result<PathBuf> {
    let Some(user) = directory() else {
        bail!("no home directory for the files of az\n  hint: set XDG_STATE_HOME to a directory")
    };
    let path = user.join(name);
    make(&path).with_context(|| format!("cannot create the directory: {}", path.display()))?;
    Ok(path)
}

fn make(path: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_temporary_directory_is_private_and_removed() {
        let directory = StateDirectory::temporary().unwrap();
        let path = directory.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(directory.is_temporary() && StateDirectory::temporary().unwrap().path() != path);
        fs::write(path.join("file"), "").unwrap();
        drop(directory);
        assert!(!path.exists());
    }
}
