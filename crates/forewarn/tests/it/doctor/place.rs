//! A directory in which nothing is wrong yet, and the doctor.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Output};

use forewarn_testkit::command::{clean, stdout_of};
use forewarn_testkit::{SOLO_FLEET, ServeDir, TestDir, serve_dir};
use rustix::process::Signal;
use serde_json::Value;

/// A user to whom nothing belongs.
const NOBODY: &str = "65534";

serve_dir!(Place);

/// Somebody without any privilege.
pub(crate) struct Nobody<'a>(&'a Place);

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

    /// The results of a check.
    pub(crate) fn results(&self, check: &str) -> Vec<&str> {
        let of_check = self.all().iter().filter(|one| one["check"] == check);
        of_check.filter_map(|one| one["result"].as_str()).collect()
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
        let place = Self(ServeDir::with_dir(TestDir::new_in("/var/tmp"), crate::program(), SOLO_FLEET));
        place.set_mode("", 0o755);
        fs::create_dir(place.path("data")).unwrap();
        place.set_mode("data", 0o700);
        place.script("hands", "exit 1");
        // What this computer says of its clock is not what is tested.
        place.program("timedatectl", "exit 1");
        place
    }

    /// A program that is found before all others of its name.
    pub(crate) fn program(&self, name: &str, script: &str) {
        self.script(&format!("bin/{name}"), script);
    }

    /// Settings with which nothing is wrong.
    pub(crate) fn settings(&self) -> String {
        format!(
            "data_dir = {:?}\nfleet = {:?}\napi.listen = '127.0.0.1:0'\n[driver]\nkind = 'program'\nprogram = {:?}\n\
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

    /// The program after those words, with the programs of this directory on the path.
    fn after(&self, before: &[&str]) -> Command {
        let program = crate::program();
        let mut command = match before {
            [] => Command::new(program),
            [first, rest @ ..] => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        };
        self.prepare(&mut command);
        command
    }

    fn prepare(&self, command: &mut Command) {
        clean(command);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("bin")));
    }

    fn config(&self, settings: &str) -> String {
        self.write("config.toml", settings)
    }

    pub(crate) fn doctor(&self, settings: &str) -> Said {
        let config = self.config(settings);
        let words = ["doctor", "--output", "json", "--config", &config];
        Said::of(&self.after(&[]).args(words).output().unwrap())
    }

    pub(crate) fn doctor_table(&self, settings: &str) -> String {
        let config = self.config(settings);
        stdout_of(self.after(&[]).args(["doctor", "--config", &config]))
    }

    /// After that line of a shell.
    pub(crate) fn doctor_after(&self, line: &str, settings: &str) -> Said {
        let config = self.config(settings);
        let script = format!("{line} && exec \"$@\"");
        let mut command = self.after(&["sh", "-c", &script, "sh"]);
        Said::of(&command.args(["doctor", "--output", "json", "--config", &config]).output().unwrap())
    }

    /// Asks about a running server.
    pub(crate) fn doctor_of(&self, words: &[&str]) -> Said {
        Said::of(&self.after(&[]).args(["doctor", "--output", "json"]).args(words).output().unwrap())
    }

    /// Somebody to whom nothing belongs: root without its privileges. Who is not root cannot be anybody else.
    pub(crate) fn nobody(&self) -> Option<Nobody<'_>> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let runs = Command::new("setpriv").arg("--version").output().is_ok();
        if is_root && runs {
            // Cargo may keep the program where only its owner looks. Another process copies it: see `TestDir::script`.
            stdout_of(Command::new("cp").arg(crate::program()).arg(self.file("forewarn")));
            fs::create_dir(self.path("of-nobody")).unwrap();
            self.set_mode("of-nobody", 0o777);
            return Some(Nobody(self));
        }
        eprintln!("skipped: only root can be somebody else, with setpriv");
        None
    }

    /// Nobody but its owner can say whether the data directory is there.
    pub(crate) fn hide_data(&self) {
        fs::create_dir(self.path("hidden")).unwrap();
        fs::rename(self.path("data"), self.path("hidden/data")).unwrap();
        self.set_mode("hidden", 0o700);
        std::os::unix::fs::symlink(self.path("hidden/data"), self.path("data")).unwrap();
    }

    /// Has a server run until it is ready, so that there is a journal.
    pub(crate) fn serve_once(&self) {
        let server = self.start(&self.settings());
        server.signal(Signal::TERM);
        assert!(server.end().success());
    }
}

impl Nobody<'_> {
    pub(crate) fn doctor(&self, settings: &str) -> Said {
        self.doctor_of(&["--config", &self.0.config(settings)])
    }

    pub(crate) fn doctor_of(&self, more: &[&str]) -> Said {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--inh-caps=-all"]);
        command.arg(self.0.path("forewarn"));
        self.0.prepare(&mut command);
        Said::of(&command.args(["doctor", "--output", "json"]).args(more).output().unwrap())
    }
}
