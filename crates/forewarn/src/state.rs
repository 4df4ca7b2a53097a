//! Where this program keeps what belongs to its user: an authority for servers that keep nothing else, and what `az` needs.
//!
//! ```text
//!   $XDG_STATE_HOME/forewarn, or ~/.local/state/forewarn
//!     tls/      the authority of `forewarn dev`
//!     az/       for each server that `forewarn az env` was asked about
//! ```

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::Read as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What is below the directories of a user.
const OWN: &str = "forewarn";

/// Random bytes in the name of a directory that is forgotten.
const NAME_BYTES: usize = 8;

/// A directory that is there: that of the user, or one that goes with this.
#[derive(Debug)]
pub(crate) struct Place {
    path: PathBuf,
    is_temporary: bool,
}

impl Place {
    /// The directory of the user, which is made; without one, one that goes with this.
    pub(crate) fn open() -> Result<Self> {
        let own = directory().filter(|path| make(path).is_ok());
        match own {
            Some(path) => Ok(Self { path, is_temporary: false }),
            None => Self::temporary(),
        }
    }

    fn temporary() -> Result<Self> {
        let mut bytes = [0; NAME_BYTES];
        let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
        read.context("no random numbers to be had: /dev/urandom")?;
        let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = env::temp_dir().join(format!("{OWN}-{name}"));
        // Whoever has made one of that name before may have put something in it.
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot make a directory: {}", path.display()))?;
        Ok(Self { path, is_temporary: true })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it goes with this.
    pub(crate) fn is_temporary(&self) -> bool {
        self.is_temporary
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_temporary {
            // Whoever cleans up temporary files finds what is left.
            drop(fs::remove_dir_all(&self.path));
        }
    }
}

/// The directory of the user, whether it is there or not.
pub(crate) fn directory() -> Option<PathBuf> {
    let told = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".local/state"));
    Some(told.or_else(home)?.join(OWN))
}

/// A directory below that of the user, for the user alone.
pub(crate) fn below(name: &str) -> Result<PathBuf> {
    let Some(own) = directory() else {
        bail!("there is no home directory to keep anything in\n  hint: XDG_STATE_HOME names a directory")
    };
    let path = own.join(name);
    make(&path).with_context(|| format!("cannot make a directory: {}", path.display()))?;
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
    fn a_directory_that_is_forgotten_is_for_its_owner_and_goes() {
        let place = Place::temporary().unwrap();
        let path = place.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(place.is_temporary() && Place::temporary().unwrap().path() != path);
        fs::write(path.join("file"), "").unwrap();
        drop(place);
        assert!(!path.exists());
    }
}
