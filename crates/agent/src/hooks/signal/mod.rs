//! Hooks that send a signal to a process that can drain itself, such as a web server that finishes its requests on
//! SIGQUIT.
//!
//! Process ids are reused. A pid file that is older than the process of that id belongs to another process, and an undo
//! signal is only sent to the same process as before, identified by id and start time.

#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::systemd::{check_unit, main_pid, usual_systemctl};
use super::{HookCall, check_path, run_blocking};
use crate::os::{Identity, Process, boot, signal_named};

/// `signal = { pid_file = "/run/nginx.pid", send = "QUIT", wait = true }`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalWork {
    /// The file with the process id. Exclusive with `unit`.
    #[serde(default)]
    pub(crate) pid_file: Option<PathBuf>,
    /// The systemd unit whose main process is meant. Exclusive with `pid_file`.
    #[serde(default)]
    pub(crate) unit: Option<String>,
    /// The absolute path of the program that the process must run; otherwise nothing is sent. Without it, the pid file
    /// must not be older than the process.
    #[serde(default)]
    pub(crate) program: Option<PathBuf>,
    /// The signal: `TERM`, `QUIT`, `USR1`, …
    pub(crate) send: String,
    /// True to wait until the process has exited.
    #[serde(default)]
    pub(crate) wait: bool,
    /// The signal that undoes the work, sent to the same process. `None` if there is nothing to undo.
    #[serde(default)]
    pub(crate) undo: Option<String>,
    /// The path of `systemctl`.
    #[serde(default = "usual_systemctl")]
    pub(crate) systemctl: PathBuf,
}

/// Size limit of a pid file.
const PID_FILE_BYTES_MAX: u64 = 64;

/// Tolerance for the order of the process start and the pid file, whose clocks have a resolution of seconds.
const SLACK: Duration = Duration::from_secs(5);

const CHECK_EVERY: Duration = Duration::from_millis(50);

impl SignalWork {
    pub(super) fn errors(&self) -> Vec<String> {
        let process = match (&self.pid_file, &self.unit) {
            (Some(file), None) => check_path("pid_file", file),
            (None, Some(unit)) => check_unit(unit),
            (None, None) | (Some(_), Some(_)) => {
                Err("`signal` needs one of `pid_file` and `unit`\n  hint: signal = { pid_file = \"/run/nginx.pid\", \
                     send = \"QUIT\" }"
                    .to_owned())
            }
        };
        let program = self.program.as_ref().map_or(Ok(()), |program| check_path("program", program));
        let undo = self.undo.as_ref().map_or(Ok(()), |undo| signal_named(undo).map(drop));
        let checks = [
            process,
            program,
            check_path("systemctl", &self.systemctl),
            signal_named(&self.send).map(drop),
            undo,
        ];
        checks.into_iter().filter_map(Result::err).collect()
    }

    pub(super) async fn perform(
        &self,
        call: &HookCall<'_>,
        memory: &mut Option<Value>,
    ) -> Result<(), String> {
        let signal = signal_named(&self.send)?;
        let Some(process) = self.find().await? else {
            // The process has exited already, which is the goal of `wait`.
            return if self.wait { Ok(()) } else { Err("the process is not running".to_owned()) };
        };
        let pid = process.identity.pid;
        call.store_undo_state(json!({ "signalled": { name(process.identity): true } }), memory).await?;
        let reached = process.signal(signal).map_err(|error| signal_error(pid, &error))?;
        if !reached && !self.wait {
            return Err("the process has exited".to_owned());
        }
        while self.wait && !process.has_exited() {
            tokio::time::sleep(CHECK_EVERY).await;
        }
        Ok(())
    }

    pub(super) async fn undo(&self, call: &HookCall<'_>) -> Result<(), String> {
        let Some(undo) = &self.undo else { return Ok(()) };
        let signal = signal_named(undo)?;
        for identity in signalled_processes(call.earlier.as_ref()) {
            let signal_error = |error: std::io::Error| signal_error(identity.pid, &error);
            let found = Process::find(identity.pid).map_err(signal_error)?;
            // If the signalled process has exited, its successor was never signalled.
            if let Some(process) = found.filter(|process| process.identity == identity) {
                process.signal(signal).map_err(signal_error)?;
            }
        }
        Ok(())
    }

    /// The process, if it is running.
    async fn find(&self) -> Result<Option<Process>, String> {
        let (pid, written) = match (&self.pid_file, &self.unit) {
            (Some(file), _) => {
                let file = file.clone();
                let Some((pid, written)) = run_blocking(move || read(&file)).await? else { return Ok(None) };
                (pid, written)
            }
            (None, Some(unit)) => match main_pid(&self.systemctl, unit).await? {
                Some(pid) => (pid, None),
                None => return Ok(None),
            },
            (None, None) => return Err("neither `pid_file` nor `unit` is set".to_owned()),
        };
        let Some(process) = Process::find(pid).map_err(|error| signal_error(pid, &error))? else {
            return Ok(None);
        };
        self.verify(&process, written)?;
        Ok(Some(process))
    }

    /// Checks that the process id still belongs to the intended process.
    fn verify(&self, process: &Process, written: Option<std::time::SystemTime>) -> Result<(), String> {
        let pid = process.identity.pid;
        if let Some(program) = &self.program {
            let runs = process
                .program()
                .map_err(|error| format!("cannot read the program of process {pid}: {error}"))?;
            if runs != *program {
                let (runs, program) = (runs.display(), program.display());
                return Err(format!("process {pid} runs {runs}, not {program}: nothing was sent"));
            }
            return Ok(());
        }
        let (Some(written), Some(began)) = (written, process.started_at()) else { return Ok(()) };
        if began.duration_since(written).is_ok_and(|later| later > SLACK) {
            return Err(format!(
                "process {pid} is newer than its pid file, so it is another one: nothing was sent\n  hint: if the clock \
                 was changed, set the program: program = \"/usr/sbin/nginx\""
            ));
        }
        Ok(())
    }
}

/// An identifier of a process that is unique across reboots.
fn name(Identity { pid, start }: Identity) -> String {
    format!("{}/{pid}/{start}", boot().unwrap_or_default())
}

/// The signalled processes of this boot. An earlier agent stored them as `told`.
fn signalled_processes(memory: Option<&Value>) -> Vec<Identity> {
    let signalled =
        memory.and_then(|memory| memory.get("signalled").or_else(|| memory.get("told"))?.as_object());
    let names = signalled.into_iter().flat_map(|signalled| signalled.keys());
    let read = |text: &str| {
        let mut parts = text.rsplitn(3, '/');
        let (start, pid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Identity { pid, start })
    };
    names.filter_map(|text| read(text).filter(|identity| name(*identity) == *text)).collect()
}

/// The process id in a file, and the time of its last change. `None` if the file does not exist.
fn read(path: &Path) -> Result<Option<(i32, Option<std::time::SystemTime>)>, String> {
    let describe = |error: &std::io::Error| format!("{}: {error}", path.display());
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(describe(&error)),
    };
    let written = file.metadata().and_then(|metadata| metadata.modified()).ok();
    let mut text = String::new();
    file.take(PID_FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| describe(&error))?;
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    match first.parse() {
        Ok(pid) if pid > 1 => Ok(Some((pid, written))),
        Ok(_) | Err(_) => Err(format!("{}: invalid process id: {first:?}", path.display())),
    }
}

fn signal_error(pid: i32, error: &std::io::Error) -> String {
    format!("cannot signal process {pid}: {error}")
}
