//! New files for copies of a server's data, which contain secrets.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Result, anyhow};

/// Creates a file that only its owner may read. `what` names its content: "the backup".
///
/// # Errors
/// Returns an error if the file exists, or cannot be created.
pub(crate) fn create_private(file: &Path, what: &str) -> Result<File> {
    let failed = |why: &str| anyhow!("cannot write {what}: {}\n  {why}", file.display());
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            Err(failed("the file exists\n  hint: choose another name, such as one with the date"))
        }
        Err(error) => Err(failed(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_owner_may_read_a_new_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("copy");
        let made = create_private(&file, "the backup").unwrap();
        assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let again = create_private(&file, "the backup").unwrap_err().to_string();
        assert!(
            again.starts_with("cannot write the backup: ") && again.contains("the file exists\n  hint: ")
        );
        let nowhere = create_private(&directory.path().join("no/copy"), "the export").unwrap_err();
        assert!(nowhere.to_string().contains("No such file"), "{nowhere}");
    }
}
