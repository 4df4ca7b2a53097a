//! Interruption by Ctrl-C: a command that has several steps ends between two of them; one that waits for the server says
//! that the operation continues.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Exit code of a program that SIGINT has ended, as shells report it.
const INTERRUPTED: i32 = 130;

/// Explains SIGINT to the user, until it is dropped.
pub(super) struct ExplainedInterruption(Arc<AtomicBool>);

impl Drop for ExplainedInterruption {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Becomes set with the first SIGINT. A second one ends the program at once.
pub(super) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// From here on the program handles SIGINT.
    pub(super) fn watch() -> Result<Self> {
        let (runtime, mut signals) = Self::signals()?;
        let is_set = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&is_set);
        std::thread::spawn(move || {
            runtime.block_on(async {
                signals.recv().await;
                shared.store(true, Ordering::Relaxed);
                signals.recv().await;
                std::process::exit(INTERRUPTED);
            });
        });
        Ok(Self(is_set))
    }

    /// From here on SIGINT ends the program with this message.
    pub(super) fn explain(message: String) -> Result<ExplainedInterruption> {
        let (runtime, mut signals) = Self::signals()?;
        let is_explained = Arc::new(AtomicBool::new(true));
        let shared = Arc::clone(&is_explained);
        std::thread::spawn(move || {
            runtime.block_on(signals.recv());
            if shared.load(Ordering::Relaxed) {
                // On a terminal the progress, or ^C, is in the current line.
                let line = if std::io::stderr().is_terminal() { "\n" } else { "" };
                eprintln!("{line}forewarn: {message}");
            }
            std::process::exit(INTERRUPTED);
        });
        Ok(ExplainedInterruption(is_explained))
    }

    fn signals() -> Result<(Runtime, Signal)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = runtime.block_on(async { signal(SignalKind::interrupt()) });
        Ok((runtime, signals.context("cannot handle Ctrl-C")?))
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
