//! A signal to a process: one that knows by itself how to drain, such as a web server that finishes its requests on SIGQUIT.
//!
//! Numbers of processes are given away again. A file with a number that is older than the process of that number was written for
//! another one, and a process that is to be told later has to be the same that was told before, by number and start.

#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::systemd::{check_unit, main_pid, usual_systemctl};
use super::{Setting, aside};
use crate::os::{Identity, Process, boot, signal_named};

/// `signal = { pid_file = "/run/nginx.pid", send = "QUIT", wait = true }`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalWork {
    /// The file with the number of the process. This or `unit`.
    #[serde(default)]
    pub(crate) pid_file: Option<PathBuf>,
    /// The unit of systemd whose main process it is. This or `pid_file`.
    #[serde(default)]
    pub(crate) unit: Option<String>,
    /// The program that the process has to run, by its whole path; otherwise nothing is sent. Without it, the file has to be as
    /// young as the process.
    #[serde(default)]
    pub(crate) program: Option<PathBuf>,
    /// The signal: `TERM`, `QUIT`, `USR1`, …
    pub(crate) send: String,
    /// Whether it is waited for until the process has gone.
    #[serde(default)]
    pub(crate) wait: bool,
    /// The signal that undoes it, to the same process if it is still there. Without one there is nothing to undo.
    #[serde(default)]
    pub(crate) undo: Option<String>,
    /// The program `systemctl`.
    #[serde(default = "usual_systemctl")]
    pub(crate) systemctl: PathBuf,
}

/// Bytes of a file with a number.
const PID_FILE_BYTES_MAX: u64 = 64;

/// A file is written after its process has begun; clocks and disks count that in seconds.
const SLACK: Duration = Duration::from_secs(5);

const LOOK_EVERY: Duration = Duration::from_millis(50);

impl SignalWork {
    pub(super) fn check(&self) -> Result<(), String> {
        match (&self.pid_file, &self.unit) {
            (Some(file), None) if !file.is_absolute() => {
                return Err(format!("`pid_file` is not a whole path: {}", file.display()));
            }
            (Some(_), None) => {}
            (None, Some(unit)) => check_unit(unit)?,
            (None, None) | (Some(_), Some(_)) => {
                return Err("`signal` needs one of `pid_file` and `unit`\n  hint: signal = { pid_file = \"/run/nginx.pid\", \
                            send = \"QUIT\" }"
                    .to_owned());
            }
        }
        if let Some(program) = self.program.as_ref().filter(|program| !program.is_absolute()) {
            return Err(format!("`program` is not a whole path: {}", program.display()));
        }
        if !self.systemctl.is_absolute() {
            return Err(format!("`systemctl` is not a whole path: {}", self.systemctl.display()));
        }
        signal_named(&self.send)?;
        self.undo.as_ref().map_or(Ok(()), |undo| signal_named(undo).map(drop))
    }

    pub(super) async fn perform(
        &self,
        setting: &Setting<'_>,
        memory: &mut Option<Value>,
    ) -> Result<(), String> {
        let signal = signal_named(&self.send)?;
        let Some(process) = self.find().await? else {
            // It has gone already, which is what a wait would have waited for.
            return if self.wait { Ok(()) } else { Err("the process does not run".to_owned()) };
        };
        let pid = process.identity.pid;
        setting.remember(json!({ "told": { name(process.identity): true } }), memory).await?;
        let reached = process.signal(signal).map_err(|problem| unsent(pid, &problem))?;
        if !reached && !self.wait {
            return Err("the process has gone".to_owned());
        }
        while self.wait && !process.has_gone() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    pub(super) async fn undo(&self, setting: &Setting<'_>) -> Result<(), String> {
        let Some(undo) = &self.undo else { return Ok(()) };
        let signal = signal_named(undo)?;
        for told in remembered(setting.earlier.as_ref()) {
            let unsent = |problem: std::io::Error| unsent(told.pid, &problem);
            let found = Process::find(told.pid).map_err(unsent)?;
            // If the one that was told has gone, whoever has come since was never told.
            if let Some(process) = found.filter(|process| process.identity == told) {
                process.signal(signal).map_err(unsent)?;
            }
        }
        Ok(())
    }

    /// The process that is meant, if it runs.
    async fn find(&self) -> Result<Option<Process>, String> {
        let (pid, written) = match (&self.pid_file, &self.unit) {
            (Some(file), _) => {
                let file = file.clone();
                let Some((pid, written)) = aside(move || read(&file)).await? else { return Ok(None) };
                (pid, written)
            }
            (None, Some(unit)) => match main_pid(&self.systemctl, unit).await? {
                Some(pid) => (pid, None),
                None => return Ok(None),
            },
            (None, None) => return Err("neither a file nor a unit says which process".to_owned()),
        };
        let Some(process) = Process::find(pid).map_err(|problem| unsent(pid, &problem))? else {
            return Ok(None);
        };
        self.verify(&process, written)?;
        Ok(Some(process))
    }

    /// Whether the number is still that of whom it was written for.
    fn verify(&self, process: &Process, written: Option<std::time::SystemTime>) -> Result<(), String> {
        let pid = process.identity.pid;
        if let Some(program) = &self.program {
            let runs = process
                .program()
                .map_err(|problem| format!("what process {pid} runs is not known: {problem}"))?;
            if runs != *program {
                let (runs, program) = (runs.display(), program.display());
                return Err(format!("process {pid} runs {runs}, not {program}: nothing was sent"));
            }
            return Ok(());
        }
        let (Some(written), Some(began)) = (written, process.began()) else { return Ok(()) };
        if began.duration_since(written).is_ok_and(|later| later > SLACK) {
            return Err(format!(
                "process {pid} began after its file was written, so it is another one: nothing was sent\n  hint: if the clock \
                 was set meanwhile, name the program: program = \"/usr/sbin/nginx\""
            ));
        }
        Ok(())
    }
}

/// What tells a process from all others, also from those after the next boot.
fn name(Identity { pid, start }: Identity) -> String {
    format!("{}/{pid}/{start}", boot().unwrap_or_default())
}

/// Those of this boot that were told.
fn remembered(memory: Option<&Value>) -> Vec<Identity> {
    let told = memory.and_then(|memory| memory.get("told")?.as_object());
    let names = told.into_iter().flat_map(|told| told.keys());
    let read = |text: &str| {
        let mut parts = text.rsplitn(3, '/');
        let (start, pid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Identity { pid, start })
    };
    names.filter_map(|text| read(text).filter(|identity| name(*identity) == *text)).collect()
}

/// The number in a file, and when it was written. Nothing, if there is no file.
fn read(path: &Path) -> Result<Option<(i32, Option<std::time::SystemTime>)>, String> {
    let told = |problem: &std::io::Error| format!("{}: {problem}", path.display());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(problem) => return Err(told(&problem)),
    };
    let written = file.metadata().and_then(|metadata| metadata.modified()).ok();
    let mut text = String::new();
    file.take(PID_FILE_BYTES_MAX).read_to_string(&mut text).map_err(|problem| told(&problem))?;
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    match first.parse() {
        Ok(pid) if pid > 1 => Ok(Some((pid, written))),
        Ok(_) | Err(_) => Err(format!("{}: not the number of a process: {first:?}", path.display())),
    }
}

fn unsent(pid: i32, problem: &std::io::Error) -> String {
    format!("process {pid} could not be told: {problem}")
}
