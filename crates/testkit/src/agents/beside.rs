//! Programs beside agents: units of a stand-in for systemd, and others that end with the test.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::Agent;
use crate::command::stdout_of;
use crate::network::Namespace;

/// What runs beside agents; it ends with the test.
pub struct Beside(RefCell<Vec<Child>>);

impl Beside {
    pub fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    /// Runs a program of the tests in a machine.
    pub fn run(&self, namespace: &Namespace, program: &str, words: &[&str]) {
        let mut command = namespace.command(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null());
        self.0.borrow_mut().push(command.spawn().unwrap_or_else(|problem| panic!("{program}: {problem}")));
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        for child in self.0.borrow_mut().iter_mut() {
            // It may have ended by itself.
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// The units of a machine, by a program that stands in for systemctl.
pub struct Units<'a>(&'a Agent<'a>);

impl<'a> Units<'a> {
    /// `systemctl` is the program that stands in for it.
    pub fn new(agent: &'a Agent<'a>, systemctl: &str) -> Self {
        agent.script("bin/systemctl", systemctl);
        fs::create_dir_all(agent.file("units")).unwrap();
        Self(agent)
    }

    /// Has a unit that runs that program.
    pub fn add(&self, unit: &str, program: &str) {
        self.0.script(&format!("units/{unit}"), program);
    }

    /// Has a unit be one of the owner's, in `/etc/systemd/system`.
    pub fn is_in_etc(&self, unit: &str) {
        fs::write(self.0.file(&format!("units/{unit}.etc")), "").unwrap();
    }

    /// The signal that stops a unit, if it is not SIGTERM.
    pub fn stops_by(&self, unit: &str, signal: &str) {
        fs::write(self.0.file(&format!("units/{unit}.signal")), signal).unwrap();
    }

    /// A command of the operator's.
    pub fn systemctl(&self, words: &[&str]) {
        let program = self.0.file("bin/systemctl");
        stdout_of(self.0.namespace().command(program).args(words));
    }

    pub fn pid_file(&self, unit: &str) -> PathBuf {
        self.0.file(&format!("units/{unit}.pid"))
    }

    pub fn runs(&self, unit: &str) -> bool {
        let pid = fs::read_to_string(self.pid_file(unit)).unwrap_or_default();
        let status = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("stat")).unwrap_or_default();
        // One that has ended stays until somebody has looked.
        !pid.trim().is_empty() && !status.is_empty() && !status.contains(") Z ")
    }

    /// What systemctl was told since, questions apart.
    pub fn told(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.file("systemctl.log")).unwrap_or_default();
        let is_order = |line: &&str| !line.starts_with("show") && !line.starts_with("is-active");
        text.lines().filter(is_order).map(str::to_owned).collect()
    }
}

impl Drop for Units<'_> {
    fn drop(&mut self) {
        let Ok(entries) = fs::read_dir(self.0.file("units")) else { return };
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let unit = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some(unit) = unit.strip_suffix(".pid") {
                let mut stop = self.0.namespace().command(self.0.file("bin/systemctl"));
                // What has ended already needs no end.
                stop.args(["stop", unit]).output().ok();
            }
        }
    }
}
