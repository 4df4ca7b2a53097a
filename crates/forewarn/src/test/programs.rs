//! Programs under test: each in a process group of its own, with the addresses of its machine in its environment.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use forewarn_processes::{Mark, ProcessTree};
use tokio::sync::mpsc;

use super::program_output::{OutputLabels, ProgramOutput, copy_lines};

/// Environment variable that marks the processes of a test.
const MARK_NAME: &str = "FOREWARN_TEST_RUN";

/// Variables of the user that would lead a `forewarn` inside of a program to another server.
const CLEARED: [&str; 4] = ["FOREWARN_CONTEXT", "FOREWARN_TOKEN", "FOREWARN_CA", "FOREWARN_CLUSTER"];

/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Time for the last lines of programs that have ended.
const COPY_GRACE: Duration = Duration::from_secs(2);

/// Pause between two looks at processes that are to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Programs of one test.
#[derive(Clone)]
pub(super) struct Programs {
    parts: Arc<Parts>,
}

struct Parts {
    output: ProgramOutput,
    labels: OutputLabels,
    exits: mpsc::UnboundedSender<ProgramExit>,
    started: Mutex<Vec<Started>>,
    /// True once the test ends: no program starts after that.
    is_stopped: AtomicBool,
}

struct Started {
    tree: ProcessTree,
    /// Threads that copy its output.
    copies: Vec<JoinHandle<()>>,
    metadata: String,
    is_running: bool,
}

/// A program that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramExit {
    number: usize,
    /// The program as the user wrote it.
    pub(super) program: String,
    /// The machine that it was.
    pub(super) machine: String,
    pub(super) status: ExitStatus,
}

impl ProgramExit {
    /// The exit code that is passed through; as a shell does it, 128 and the number of a signal.
    pub(super) fn code(&self) -> u8 {
        let signal = self.status.signal().map(|signal| signal.saturating_add(128));
        let code = self.status.code().or(signal).unwrap_or(1);
        u8::try_from(code).unwrap_or(1)
    }

    /// The end in words.
    pub(super) fn words(&self) -> String {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => self.status.to_string(),
        }
    }
}

/// A program that is to be started.
pub(super) struct NewProgram<'a> {
    pub(super) words: &'a [OsString],
    /// Name of its machine.
    pub(super) machine: &'a str,
    /// Base URL of the machine.
    pub(super) metadata: &'a str,
    /// Variables besides.
    pub(super) environment: Vec<(String, String)>,
}

impl Programs {
    /// No program yet.
    pub(super) fn new(
        output: ProgramOutput,
        labels: OutputLabels,
        exits: mpsc::UnboundedSender<ProgramExit>,
    ) -> Self {
        Self {
            parts: Arc::new(Parts {
                output,
                labels,
                exits,
                started: Mutex::default(),
                is_stopped: AtomicBool::new(false),
            }),
        }
    }

    /// The base URL of the first program.
    pub(super) fn first_metadata(&self) -> Option<String> {
        self.with_started(|started| started.first().map(|first| first.metadata.clone()))
    }

    fn with_started<T>(&self, with: impl FnOnce(&mut Vec<Started>) -> T) -> T {
        with(&mut self.parts.started.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn start(&self, new: &NewProgram<'_>) -> io::Result<()> {
        let [name, arguments @ ..] = new.words else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null()).process_group(0);
        match (self.parts.labels, self.parts.output) {
            (OutputLabels::Machines, _) => drop(command.stdout(Stdio::piped()).stderr(Stdio::piped())),
            (OutputLabels::Absent, ProgramOutput::Error) => drop(command.stdout(io::stderr())),
            (OutputLabels::Absent, ProgramOutput::Out) => {}
        }
        for cleared in CLEARED {
            command.env_remove(cleared);
        }
        let mark =
            Mark { name: MARK_NAME, value: format!("{}-{:p}", std::process::id(), &raw const *self.parts) };
        command.env(mark.name, &mark.value).envs(new.environment.iter().cloned());
        command.env("FOREWARN_METADATA", new.metadata);
        // Under the lock: a test that ends meanwhile finds the program, or the program does not start.
        let (mut child, number) = self.with_started(|started| {
            if self.parts.is_stopped.load(Ordering::Acquire) {
                return Err(io::Error::other("the test has ended"));
            }
            let mut child = command.spawn()?;
            let tree = ProcessTree::of(Some(child.id()), Some(mark));
            let (out, err) = (child.stdout.take(), child.stderr.take());
            let metadata = new.metadata.to_owned();
            started.push(Started { tree, copies: Vec::new(), metadata, is_running: true });
            if let (Some(program), Some(out), Some(err)) = (started.last_mut(), out, err) {
                let to = self.parts.output;
                program.copies.push(copy_lines(new.machine, out, to)?);
                program.copies.push(copy_lines(new.machine, err, ProgramOutput::Error)?);
            }
            Ok((child, started.len() - 1))
        })?;
        let words: Vec<_> = new.words.iter().map(|word| word.to_string_lossy()).collect();
        let (program, machine, exits) = (words.join(" "), new.machine.to_owned(), self.parts.exits.clone());
        std::thread::Builder::new().name("program".to_owned()).spawn(move || {
            // The test may be over.
            if let Ok(status) = child.wait() {
                exits.send(ProgramExit { number, program, machine, status }).ok();
            }
        })?;
        Ok(())
    }

    /// Notes that a program has ended.
    pub(super) fn note_exit(&self, exit: &ProgramExit) {
        self.with_started(|started| {
            if let Some(ended) = started.get_mut(exit.number) {
                ended.is_running = false;
            }
        });
    }

    /// Returns true if programs were started, and none of their processes is left. It lists processes only if the
    /// programs themselves have ended.
    pub(super) fn are_gone(&self) -> bool {
        self.with_started(|started| {
            !started.is_empty()
                && started.iter().all(|one| !one.is_running)
                && started.iter().all(|one| one.tree.is_empty())
        })
    }

    /// Ends all processes: SIGTERM, and SIGKILL after a grace.
    pub(super) async fn stop(&self) {
        self.with_started(|started| {
            self.parts.is_stopped.store(true, Ordering::Release);
            started.iter().for_each(|one| one.tree.terminate());
        });
        let end = tokio::time::Instant::now() + GRACE;
        while !self.with_started(|started| started.iter().all(|one| one.tree.is_empty()))
            && tokio::time::Instant::now() < end
        {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        self.with_started(|started| started.iter().for_each(|one| one.tree.kill()));
        // Nothing that a program has printed comes after the verdict.
        let end = tokio::time::Instant::now() + COPY_GRACE;
        while self
            .with_started(|started| started.iter().flat_map(|one| &one.copies).any(|one| !one.is_finished()))
            && tokio::time::Instant::now() < end
        {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }
}

/// The variable with the base URL of a machine: `FOREWARN_VM_` and its name.
pub(super) fn machine_variable(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter.to_ascii_uppercase() {
        letter @ ('A'..='Z' | '0'..='9') => letter,
        _ => '_',
    });
    format!("FOREWARN_VM_{}", letters.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_letters_digits_and_underscores() {
        assert_eq!(machine_variable("web_0"), "FOREWARN_VM_WEB_0");
        assert_eq!(machine_variable("db-0.é"), "FOREWARN_VM_DB_0__");
    }

    #[test]
    fn a_signal_is_a_code_above_128() {
        let exit = |raw| ProgramExit {
            number: 0,
            program: String::new(),
            machine: String::new(),
            status: ExitStatus::from_raw(raw),
        };
        assert_eq!((exit(3 << 8).code(), exit(3 << 8).words()), (3, "exit code 3".to_owned()));
        assert_eq!((exit(9).code(), exit(9).words()), (137, "signal 9".to_owned()));
    }
}
