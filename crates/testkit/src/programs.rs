//! Programs of others that a test runs. A machine may not have them; then the test says so loudly, and fails where nobody
//! would read that.

use std::env;
use std::path::PathBuf;

/// The program of that name on the path.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// The program, or a loud word that this test has not looked at anything.
pub fn find_or_skip(name: &str) -> Option<PathBuf> {
    find(name).or_else(|| skip(name))
}

/// Reports a missing program: the test is skipped, or fails with `CI=true`.
pub fn skip(name: &str) -> Option<PathBuf> {
    let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "not installed: {name}; with CI=true a test that cannot run has failed");
    eprintln!("SKIPPED: not installed: {name}");
    None
}
