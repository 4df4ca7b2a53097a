//! Opens the address in the browser of the user.
//!
//! Every user of a computer can read the arguments of a program, so the browser gets the name of a private file that
//! leads to the address, and not the address with its code.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::server_lookup::variable;

/// The file that a browser was told to open. It is removed when this is dropped.
pub(super) struct OpenedFile(PathBuf);

/// The environment of the command, as far as it matters for a browser.
struct Desktop {
    /// `BROWSER`: programs, separated by colons.
    browser: Option<String>,
    /// True if there is a display: X11 or Wayland.
    has_display: bool,
    is_root: bool,
}

impl Desktop {
    fn of_environment() -> Self {
        Self {
            browser: variable("BROWSER"),
            has_display: variable("DISPLAY").or_else(|| variable("WAYLAND_DISPLAY")).is_some(),
            is_root: rustix::process::geteuid().is_root(),
        }
    }

    /// Programs that may open a browser, the first one that exists.
    fn programs(&self) -> Vec<&str> {
        if self.is_root && !self.has_display {
            return Vec::new();
        }
        let named =
            self.browser.iter().flat_map(|list| list.split(':')).filter(|program| !program.is_empty());
        named.chain(self.has_display.then_some("xdg-open")).collect()
    }
}

impl OpenedFile {
    /// Opens a browser. None if there is none: the user sees the address.
    pub(super) fn open(url: &str) -> Option<Self> {
        let desktop = Desktop::of_environment();
        let programs = desktop.programs();
        if programs.is_empty() {
            return None;
        }
        let directory = variable("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let file = Self::write(&directory, url).ok()?;
        programs.into_iter().any(|program| start(program, &file.0)).then_some(file)
    }

    /// Writes the file, for its owner alone.
    fn write(directory: &Path, url: &str) -> io::Result<Self> {
        let mut name = OsString::from("forewarn-dashboard-");
        name.push(std::process::id().to_string());
        name.push(".html");
        let path = directory.join(name);
        // A file of an earlier process with the same number.
        fs::remove_file(&path).ok();
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let opened = Self(path);
        write!(
            file,
            "<!doctype html>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"refresh\" content=\"0; url={url}\">\n\
             <title>Forewarn</title>\n<a href=\"{url}\">Dashboard</a>\n"
        )?;
        Ok(opened)
    }
}

impl Drop for OpenedFile {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

/// Starts a program with the file. Returns false if there is no such program.
fn start(program: &str, file: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            // The program may run as long as the browser; nobody else collects its exit code.
            std::thread::spawn(move || child.wait());
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_browser_needs_a_display_or_a_name_and_root_needs_a_display() {
        let programs = |browser: Option<&str>, has_display, is_root| {
            let desktop = Desktop { browser: browser.map(str::to_owned), has_display, is_root };
            desktop.programs().join(" ")
        };
        assert_eq!(programs(None, false, false), "");
        assert_eq!(programs(None, true, false), "xdg-open");
        assert_eq!(programs(Some("firefox::w3m"), true, false), "firefox w3m xdg-open");
        assert_eq!(programs(Some("w3m"), false, false), "w3m");
        assert_eq!(programs(Some("w3m"), false, true), "");
        assert_eq!(programs(Some("w3m"), true, true), "w3m xdg-open");
    }

    #[test]
    fn the_file_is_private_and_goes_with_the_command() {
        let directory = tempfile::tempdir().unwrap();
        let opened = OpenedFile::write(directory.path(), "http://127.0.0.1:5/#code=c").unwrap();
        let path = opened.0.clone();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
        assert!(fs::read_to_string(&path).unwrap().contains("url=http://127.0.0.1:5/#code=c\""));
        drop(OpenedFile::write(directory.path(), "http://127.0.0.1:5/#code=d").unwrap());
        assert!(!path.exists());
    }
}
