//! The first token of a server that admits only clients with a token: issued once, and written to a private file.
//!
//! ```text
//!   text ──▶ file, durable ──▶ hash in the journal ──▶ the program names the file
//! ```
//!
//! The file comes first. A crash in between leaves a file whose token the next start issues, and never a token without
//! its file. The text appears nowhere else, because the output of a service becomes part of the system's log.
//!
//! Every server of a realm may issue it, because the one that created the realm may be lost. The number of the token
//! admits one of them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use forewarn_control::ControlError;
use forewarn_control::shared::Role;
use forewarn_lifecycle::Name;

use crate::api_listener::{ApiListener, issue_text};
use crate::control_handle::ControlHandle;
use crate::operator::{Access, PresentedToken, Secret};
use crate::start_error::StartError;

/// Name of the token that a new server issues for its administrator.
const FIRST_TOKEN: &str = "first";

/// Bytes of a token file.
const FILE_BYTES_MAX: u64 = 4096;

/// Mode bits that give other users access to a file.
const OTHERS: u32 = 0o077;

/// Issues a token for the administrator if every listener needs one and there is none. Returns the file, as long as it
/// has a valid token: also at later starts, because the first one may have been interrupted.
pub(crate) async fn first_token(
    control: &ControlHandle,
    listeners: &[ApiListener],
    file: Option<&Path>,
) -> Result<Option<PathBuf>, StartError> {
    if !listeners.iter().all(|one| one.access() == Access::Tokens) {
        return Ok(None);
    }
    if control.shared().tokens().next().is_some() {
        return Ok(file.filter(|file| has_valid_token(control, file)).map(Path::to_owned));
    }
    let file = file.ok_or(StartError::NoTokenFile)?;
    let number = control.shared().next_token();
    let text = match left_token(file)? {
        Some((left, text)) if left == number => text,
        // Numbers are used once: this token was revoked, or belongs to a state that is gone.
        Some((left, _)) if left < number => new_token(file, number)?,
        Some(_) => return Err(StartError::TokenFileTaken(file.to_owned())),
        None => new_token(file, number)?,
    };
    let name = Name::new(FIRST_TOKEN).map_err(|_| StartError::Refused(ControlError::Unavailable))?;
    let issued = issue_text(control, number, name, Role::Admin, &text).await;
    match issued {
        Ok(()) => Ok(Some(file.to_owned())),
        // The answer was lost, not the token.
        Err(_) if has_valid_token(control, file) => Ok(Some(file.to_owned())),
        // Another server of the realm was first: the token in this file was never valid.
        Err(StartError::Refused(ControlError::Rejected(_))) if control.shared().tokens().next().is_some() => {
            fs::remove_file(file).map_err(|error| StartError::TokenFile(file.to_owned(), error))?;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn has_valid_token(control: &ControlHandle, file: &Path) -> bool {
    let Ok(Some((number, text))) = left_token(file) else { return false };
    let presented = PresentedToken::parse(&text);
    let token = control.shared().find_token(number).map(|token| token.hash);
    presented.is_some_and(|presented| token == Some(presented.hash))
}

/// The token in a file that an earlier start has written, and its number.
fn left_token(file: &Path) -> Result<Option<(u32, String)>, StartError> {
    let failed = |error| StartError::TokenFile(file.to_owned(), error);
    let about = match fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        about => about.map_err(failed)?,
    };
    let taken = || StartError::TokenFileTaken(file.to_owned());
    if !about.is_file() {
        return Err(taken());
    }
    let mut text = String::new();
    let read = File::open(file).and_then(|open| open.take(FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(failed)?;
    let token = PresentedToken::parse(text.trim_end()).ok_or_else(taken)?;
    if about.permissions().mode() & OTHERS != 0 {
        return Err(StartError::TokenFileExposed(file.to_owned()));
    }
    Ok(Some((token.number, text.trim_end().to_owned())))
}

/// Writes a new token to the file, durably and as a whole.
fn new_token(file: &Path, number: u32) -> Result<String, StartError> {
    let text = Secret::new().map_err(StartError::Token)?.text(number);
    write(file, &text).map_err(|error| StartError::TokenFile(file.to_owned(), error))?;
    Ok(text)
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    new.write_all(format!("{text}\n").as_bytes())?;
    new.sync_all()?;
    fs::rename(&unfinished, file)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use forewarn_lifecycle::{Seed, Timestamp};

    use super::*;
    use crate::operator::find_token;
    use crate::{Clock, Speed};

    fn control() -> ControlHandle {
        ControlHandle::simulated(Seed([5; 16]), Clock::virtual_at(Timestamp::from_millis(0), Speed(0)))
    }

    fn listeners() -> [ApiListener; 1] {
        [ApiListener::Tokens("127.0.0.1:0".parse().unwrap())]
    }

    fn is_valid(control: &ControlHandle, file: &Path) -> bool {
        let text = fs::read_to_string(file).unwrap();
        find_token(&control.shared(), text.trim_end(), Timestamp::from_millis(0)).is_ok()
    }

    /// promise: S4
    #[tokio::test]
    async fn a_start_that_was_interrupted_before_the_journal_is_continued() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("data/first.token");
        let text = new_token(&file, 0).unwrap();
        fs::write(place.path().join("data/first.token.new"), "fwt_0_").unwrap();
        let control = control();
        let named = first_token(&control, &listeners(), Some(&file)).await.unwrap();
        assert_eq!(
            (named.as_deref(), fs::read_to_string(&file).unwrap()),
            (Some(file.as_path()), format!("{text}\n"))
        );
        assert!(is_valid(&control, &file));
        // And one that was interrupted before the file was named.
        assert_eq!(first_token(&control, &listeners(), Some(&file)).await.unwrap(), named);
        fs::remove_file(&file).unwrap();
        assert_eq!(first_token(&control, &listeners(), Some(&file)).await.unwrap(), None);
        control.stop().await;
    }

    /// promise: S4
    #[tokio::test]
    async fn no_token_exists_without_its_file_and_no_other_file_is_lost() {
        let place = tempfile::tempdir().unwrap();
        let (file, control) = (place.path().join("first.token"), control());
        let refused = async |file: &Path| {
            let error = first_token(&control, &listeners(), Some(file)).await.unwrap_err();
            assert_eq!(control.shared().tokens().count(), 0);
            error.to_string()
        };
        for other in ["", "notes\n", "fwt_0_12", &format!("fwt_7_{}", "0".repeat(64))] {
            fs::write(&file, other).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            assert!(refused(&file).await.starts_with("the file of the first token has another content: "));
            assert_eq!(fs::read_to_string(&file).unwrap(), other);
        }
        fs::write(&file, format!("fwt_0_{}", "0".repeat(64))).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(refused(&file).await.starts_with("other users can read the first token: "));
        let below = refused(&file.join("below")).await;
        assert!(
            below.starts_with("cannot write the first token: ") && below.contains("\n  hint: "),
            "{below}"
        );
        let none = first_token(&control, &listeners(), None).await.unwrap_err();
        assert!(none.to_string().starts_with("no file for the first token\n  hint: "));
        control.stop().await;
    }
}
