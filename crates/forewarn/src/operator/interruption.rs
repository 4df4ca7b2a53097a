//! Interruption by Ctrl-C of a command that has several steps: it ends between two of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

/// Exit code of a program that SIGINT has ended, as shells report it.
const INTERRUPTED: i32 = 130;

/// Becomes set with the first SIGINT. A second one ends the program at once.
pub(super) struct Interruption(Arc<AtomicBool>);

impl Interruption {
    /// From here on the program handles SIGINT.
    pub(super) fn watch() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let signals = runtime.block_on(async { signal(SignalKind::interrupt()) });
        let mut signals = signals.context("cannot handle Ctrl-C")?;
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

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
