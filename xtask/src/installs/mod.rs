//! The permission to install: refused by `--no-install`, or by a person on a terminal.

pub(crate) mod services;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};

/// The option that refuses installations.
pub(crate) const OPTION: &str = "--no-install";

/// True if the command line or a person has refused every installation of this run.
static ARE_REFUSED: AtomicBool = AtomicBool::new(false);

/// Refuses every installation of this run.
pub(crate) fn refuse() {
    ARE_REFUSED.store(true, Ordering::Relaxed);
}

pub(crate) fn are_refused() -> bool {
    ARE_REFUSED.load(Ordering::Relaxed)
}

/// Fails if installations are refused; the error names what is missing.
pub(crate) fn permit(missing: &str) -> Result<()> {
    ensure!(!are_refused(), "not installed, because of {OPTION}: {missing}");
    Ok(())
}
