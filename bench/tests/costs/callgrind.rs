//! Instructions of two functions, counted by callgrind.

use std::path::Path;
use std::process::Command;

/// Instructions in `measured_command` and in `measured_apply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) commands: u64,
    pub(crate) apply: u64,
}

/// Runs a test of this program under callgrind.
///
/// The tool writes a file before each call of `measured_apply`, of which there is one, and one at the end: the first
/// has the instructions of the commands, the second those of the fleet file.
pub(crate) fn count(test: &str, environment: &[(&str, String)]) -> Counts {
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--toggle-collect=*measured_command*",
            "--toggle-collect=*measured_apply*",
        ])
        .arg("--dump-before=*::measured_apply")
        .arg(format!("--callgrind-out-file={}", directory.path().join("counts").display()))
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", test])
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .output()
        .expect("valgrind is installed");
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}{}", String::from_utf8_lossy(&output.stdout));
    let [commands, apply] = ["counts.1", "counts"].map(|file| total(&directory.path().join(file)));
    assert!(commands > 0 && apply > 0, "the functions were not found: {log}");
    Counts { commands, apply }
}

/// The instructions in one file.
fn total(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let totals = text.lines().filter_map(|line| line.strip_prefix("totals: "));
    totals.map(|number| number.trim().parse::<u64>().unwrap()).sum()
}
