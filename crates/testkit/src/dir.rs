//! A directory of one test, removed with it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::command::run_with_input;

/// What is in it outlives the servers that use it.
#[derive(Debug)]
pub struct TestDir(TempDir);

impl TestDir {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// A directory in another place than `/tmp`.
    pub fn new_in(parent: &str) -> Self {
        Self(TempDir::new_in(parent).unwrap())
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// The same as text.
    pub fn path(&self, name: &str) -> String {
        self.file(name).display().to_string()
    }

    /// Writes a file; gives its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let file = self.file(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        self.path(name)
    }

    /// Writes settings, in which `DIR` becomes this directory; gives their path.
    pub fn configure(&self, name: &str, settings: &str) -> String {
        self.write(name, &self.expand(settings))
    }

    /// The text of a file, or nothing if there is none.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// Writes a shell script without its first line, in which `DIR` becomes this directory; gives its path.
    ///
    /// Another process writes it: a child that another thread starts meanwhile would inherit the open file, and the kernel runs no
    /// program that is open for writing.
    pub fn script(&self, name: &str, body: &str) -> String {
        let (path, text) = (self.path(name), self.expand(&format!("#!/bin/sh\n{body}\n")));
        fs::create_dir_all(self.file(name).parent().unwrap()).unwrap();
        let mut writer = Command::new("sh");
        writer.args(["-c", "cat >\"$0.new\" && chmod 755 \"$0.new\" && mv \"$0.new\" \"$0\"", &path]);
        let written = run_with_input(&mut writer, &text);
        assert_eq!(written.code, Some(0), "{written:?}");
        path
    }

    fn expand(&self, text: &str) -> String {
        text.replace("DIR", &self.root().display().to_string())
    }

    pub fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.file(name), fs::Permissions::from_mode(mode)).unwrap();
    }
}
