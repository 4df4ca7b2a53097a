//! A place where nothing is wrong yet, and the doctor.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::patience::until;

const FLEET: &str = "host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]\n";

/// Whoever this is, nothing belongs to them.
const NOBODY: &str = "65534";

pub(crate) struct Place(TempDir);

/// Somebody without any privilege.
pub(crate) struct Nobody<'a>(&'a Place, &'static [&'static str]);

/// What the doctor said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    report: Value,
}

impl Said {
    fn of(output: &Output) -> Self {
        let report = serde_json::from_slice(&output.stdout);
        let report = report.unwrap_or_else(|_| String::from_utf8_lossy(&output.stderr).into());
        Self { code: output.status.code(), report }
    }

    fn all(&self) -> &[Value] {
        self.report["checks"].as_array().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn checks(&self) -> Vec<String> {
        self.all().iter().filter_map(|check| check["check"].as_str().map(str::to_owned)).collect()
    }

    pub(crate) fn findings(&self) -> Vec<&Value> {
        self.all().iter().filter(|check| check["result"] == "finding").collect()
    }

    /// There is that finding, and no other; it has that remedy, and says why it matters.
    pub(crate) fn expect(&self, check: &str, what: &str, remedy: &str) {
        let findings = self.findings();
        assert_eq!((self.code, findings.len()), (Some(1), 1), "{check}: {self:?}");
        assert_eq!(findings[0]["check"], check, "{self:?}");
        let text = |member: &str| findings[0][member].as_str().unwrap().to_owned();
        assert!(text("what").contains(what), "{self:?}");
        assert!(text("remedy").contains(remedy) && !text("remedy").is_empty(), "{self:?}");
        assert!(!text("why").is_empty(), "{self:?}");
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        // Not /tmp: it may be in memory, which is a finding.
        let place = Self(TempDir::new_in("/var/tmp").unwrap());
        fs::set_permissions(place.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.path("fleet.toml"), FLEET).unwrap();
        fs::create_dir(place.path("data")).unwrap();
        fs::set_permissions(place.path("data"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir(place.path("bin")).unwrap();
        place.program("hands", "exit 1");
        fs::rename(place.path("bin/hands"), place.path("hands")).unwrap();
        // What this computer says of its clock is not what is tested.
        place.program("timedatectl", "exit 1");
        place
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// A program that is found before all others of its name.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let path = self.path(&format!("bin/{name}"));
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Settings with which nothing is wrong.
    pub(crate) fn settings(&self) -> String {
        format!(
            "data_dir = {:?}\nfleet = {:?}\napi.listen = '127.0.0.1:0'\n[hands]\nkind = 'program'\nprogram = {:?}\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n[metadata.limits]\nburst = 20\n\
             [metadata.connection]\nmax = 100\n",
            self.path("data"),
            self.path("fleet.toml"),
            self.path("hands"),
        )
    }

    /// The same, with certificates from files.
    pub(crate) fn with_tls(&self) -> String {
        let (certificate, key) = (self.path("certificate.pem"), self.path("key.pem"));
        let tls = format!(
            "api.listen = '127.0.0.1:0'\napi.tls = {{ certificate = {certificate:?}, key = {key:?} }}"
        );
        self.settings().replace("api.listen = '127.0.0.1:0'", &tls)
    }

    pub(crate) fn command(&self, before: &[&str]) -> Command {
        let words: Vec<_> = before.iter().copied().chain([env!("CARGO_BIN_EXE_forewarn")]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).env("NO_COLOR", "1");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("bin")));
        for name in ["FOREWARN_API", "FOREWARN_TOKEN", "FOREWARN_CA"] {
            command.env_remove(name);
        }
        command
    }

    fn config(&self, settings: &str) -> String {
        fs::write(self.path("config.toml"), settings).unwrap();
        self.path("config.toml")
    }

    pub(crate) fn doctor(&self, settings: &str) -> Said {
        let config = self.config(settings);
        let words = ["doctor", "--output", "json", "--config", &config];
        Said::of(&self.command(&[]).args(words).output().unwrap())
    }

    pub(crate) fn doctor_table(&self, settings: &str) -> String {
        let config = self.config(settings);
        let output = self.command(&[]).args(["doctor", "--config", &config]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// After that line of a shell.
    pub(crate) fn doctor_after(&self, line: &str, settings: &str) -> Said {
        let config = self.config(settings);
        let script = format!("{line} && exec \"$@\"");
        let mut command = self.command(&["sh", "-c", &script, "sh"]);
        Said::of(&command.args(["doctor", "--output", "json", "--config", &config]).output().unwrap())
    }

    /// Asks about a running server.
    pub(crate) fn doctor_of(&self, words: &[&str]) -> Said {
        Said::of(&self.command(&[]).args(["doctor", "--output", "json"]).args(words).output().unwrap())
    }

    /// Somebody to whom nothing belongs: root without its privileges. Who is not root cannot be anybody else.
    pub(crate) fn nobody(&self) -> Option<Nobody<'_>> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let drop: &[_] =
            &["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all"];
        let runs = Command::new("setpriv").arg("--version").output().is_ok();
        if is_root && runs {
            // Cargo may keep the program where only its owner looks.
            let copied = fs::copy(env!("CARGO_BIN_EXE_forewarn"), self.path("forewarn"));
            copied.unwrap();
            fs::create_dir(self.path("of-nobody")).unwrap();
            fs::set_permissions(self.path("of-nobody"), fs::Permissions::from_mode(0o777)).unwrap();
            return Some(Nobody(self, drop));
        }
        eprintln!("skipped: only root can be somebody else, with setpriv");
        None
    }

    /// Nobody but its owner can say whether the data directory is there.
    pub(crate) fn hide_data(&self) {
        fs::create_dir(self.path("hidden")).unwrap();
        fs::rename(self.path("data"), self.path("hidden/data")).unwrap();
        fs::set_permissions(self.path("hidden"), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(self.path("hidden/data"), self.path("data")).unwrap();
    }

    /// Has a server run until it is ready, so that there is a journal.
    pub(crate) fn serve_once(&self) {
        let config = self.config(&self.settings());
        let addresses = self.path("addresses.json");
        let mut command = self.command(&[]);
        command.args(["serve", "--config", &config, "--addresses-file", &addresses]);
        let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the server starts", || fs::exists(&addresses).unwrap().then_some(()));
        let number = server.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &number]).status().unwrap().success());
        assert!(server.wait().unwrap().success());
    }
}

impl Nobody<'_> {
    pub(crate) fn doctor(&self, settings: &str) -> Said {
        let Self(place, _) = self;
        self.doctor_of(&["--config", &place.config(settings)])
    }

    pub(crate) fn doctor_of(&self, more: &[&str]) -> Said {
        let Self(place, words) = self;
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(place.path("forewarn")).stdin(Stdio::null());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", place.path("bin")));
        Said::of(&command.args(["doctor", "--output", "json"]).args(more).output().unwrap())
    }
}
