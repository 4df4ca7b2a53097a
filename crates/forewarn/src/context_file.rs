//! The file of contexts: servers with a name, in the configuration directory of the user.
//!
//! ```text
//!   $XDG_CONFIG_HOME/forewarn/contexts.toml, or ~/.config/forewarn/contexts.toml
//! ```
//!
//! The file contains the names of token files, never a token. Writers take turns: each locks the directory, reads the
//! file, and replaces it as a whole.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// Bytes of the file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

const CONTEXTS_MAX: usize = 200;

/// Characters of the name of a context.
const NAME_CHARS_MAX: usize = 64;

/// The name that stands for no context.
pub(crate) const NO_CONTEXT: &str = "none";

const HEADING: &str =
    "# Servers of the command line. `forewarn context` writes this file and keeps no comments.\n";

/// All contexts of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The context that commands use by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default, rename = "context")]
    pub(crate) all: BTreeMap<String, ServerContext>,
}

/// A server: its address, and what a client needs there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerContext {
    pub(crate) api: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
}

/// The path of the file, which may not exist. None without a home directory.
pub(crate) fn path() -> Option<PathBuf> {
    let configured = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || env::home_dir().filter(|home| home.is_absolute()).map(|home| home.join(".config"));
    Some(configured.or_else(home)?.join("forewarn/contexts.toml"))
}

/// Checks the name of a new context.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-' | '_');
    let is_valid = name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
        && name.len() <= NAME_CHARS_MAX;
    ensure!(
        is_valid,
        "invalid name of a context: {name:?}\n  hint: letters, digits, '.', '-' and '_', at most {NAME_CHARS_MAX}"
    );
    ensure!(
        name != NO_CONTEXT,
        "reserved name: {name}\n  hint: `forewarn context use {name}` selects no context"
    );
    Ok(())
}

impl Contexts {
    /// Reads the file. There are no contexts if it does not exist.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let mut text = String::new();
        match File::open(file).and_then(|open| open.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Self::default());
            }
            read => read.with_context(|| format!("cannot read the contexts: {}", file.display()))?,
        };
        Self::parse(&text).with_context(|| format!("invalid file of contexts: {}", file.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        ensure!(text.len() as u64 <= FILE_BYTES_MAX, "more than {FILE_BYTES_MAX} bytes");
        let contexts: Self = toml::from_str(text)?;
        contexts.check()?;
        Ok(contexts)
    }

    fn check(&self) -> Result<()> {
        ensure!(self.all.len() <= CONTEXTS_MAX, "too many contexts: at most {CONTEXTS_MAX}");
        for (name, context) in &self.all {
            check_name(name)?;
            for path in [&context.ca, &context.token_file].into_iter().flatten() {
                ensure!(path.is_absolute(), "path of context {name} is not absolute: {}", path.display());
            }
        }
        Ok(())
    }

    /// The context with this name.
    pub(crate) fn find(&self, name: &str) -> Result<&ServerContext> {
        let Some(found) = self.all.get(name) else {
            let known: Vec<_> = self.all.keys().map(String::as_str).collect();
            let hint = match known.as_slice() {
                [] => "there are none; `forewarn context set NAME --api URL` makes one".to_owned(),
                names => format!("there is {}", forewarn_cli_support::table::some(names)),
            };
            bail!("no such context: {name}\n  hint: {hint}");
        };
        Ok(found)
    }

    /// Reads the file, changes it, and replaces it. Nothing is written if the change fails.
    pub(crate) fn change<T>(file: &Path, change: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // A link stays a link.
        let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        let failed = || format!("cannot write the contexts: {}", file.display());
        let directory = file.parent().with_context(failed)?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory).with_context(failed)?;
        let lock = File::open(directory).with_context(failed)?;
        lock.lock().with_context(failed)?;
        let mut contexts = Self::read(&file)?;
        let result = change(&mut contexts)?;
        contexts.check()?;
        let text = format!("{HEADING}\n{}", toml::to_string(&contexts)?);
        replace(&file, &text).and_then(|()| lock.sync_all()).with_context(failed)?;
        Ok(result)
    }
}

/// Replaces a file by a private one, as a whole.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = file.with_extension("toml.new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    fs::rename(&unfinished, file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn context(api: &str) -> ServerContext {
        ServerContext { api: api.to_owned(), ca: None, token_file: Some("/t".into()), cluster: None }
    }

    fn add(file: &Path, name: &str) -> Result<()> {
        Contexts::change(file, |contexts| {
            contexts.all.insert(name.to_owned(), context("http://h:1"));
            Ok(())
        })
    }

    #[test]
    fn contexts_are_written_to_a_private_file_and_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("new/forewarn/contexts.toml");
        assert_eq!(Contexts::read(&file).unwrap(), Contexts::default());
        add(&file, "prod").unwrap();
        add(&file, "west-2").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        // The rest of an interrupted writer.
        fs::write(file.with_extension("toml.new"), "half").unwrap();
        Contexts::change(&file, |contexts| {
            contexts.current = Some("prod".to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let read = Contexts::read(&file).unwrap();
        assert_eq!((read.current.as_deref(), read.all.len()), (Some("prod"), 2));
        assert_eq!(read.find("west-2").unwrap(), &context("http://h:1"));
        let before = fs::read(&file).unwrap();
        assert!(Contexts::change(&file, |_| -> Result<()> { bail!("no") }).is_err());
        assert_eq!(fs::read(&file).unwrap(), before);
    }

    #[test]
    fn writers_take_turns() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("contexts.toml");
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let file = &file;
                scope.spawn(move || (0..8).for_each(|n| add(file, &format!("c{writer}-{n}")).unwrap()));
            }
        });
        assert_eq!(Contexts::read(&file).unwrap().all.len(), 64, "no context is lost");
    }

    #[test]
    fn a_damaged_file_is_named_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("contexts.toml");
        for wrong in [
            "current = ",
            "colour = 'red'",
            "[context.a]\napi = 'http://h:1'\ntoken = 'fwt_0_00'",
            "[context.a]",
            "[context.'a b']\napi = 'http://h:1'",
            "[context.none]\napi = 'http://h:1'",
            "[context.a]\napi = 'http://h:1'\nca = 'ca.pem'",
            "\u{0}",
        ] {
            fs::write(&file, wrong).unwrap();
            let problem = format!("{:#}", Contexts::read(&file).unwrap_err());
            assert!(
                problem.starts_with(&format!("invalid file of contexts: {}: ", file.display())),
                "{problem}"
            );
            assert!(add(&file, "b").is_err());
            assert_eq!(fs::read_to_string(&file).unwrap(), wrong, "it is not replaced");
        }
        fs::write(&file, vec![0xff; 3]).unwrap();
        assert!(
            format!("{:#}", Contexts::read(&file).unwrap_err()).starts_with("cannot read the contexts: ")
        );
        fs::write(&file, "#".repeat(1024 * 1024 + 1)).unwrap();
        assert!(format!("{:#}", Contexts::read(&file).unwrap_err()).ends_with("more than 1048576 bytes"));
    }

    #[test]
    fn the_number_of_contexts_and_their_names_have_limits() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("contexts.toml");
        let fill = |contexts: &mut Contexts| {
            contexts.all = (0..CONTEXTS_MAX).map(|n| (format!("c{n}"), context("http://h:1"))).collect();
            Ok(())
        };
        Contexts::change(&file, fill).unwrap();
        assert!(add(&file, "one-more").unwrap_err().to_string().starts_with("too many contexts"));
        for wrong in ["", "none", "a/b", ".", "-", "a b", "ü", &"x".repeat(65)] {
            assert!(check_name(wrong).is_err(), "{wrong:?}");
        }
        check_name("prod-2.west_1").unwrap();
    }
}
