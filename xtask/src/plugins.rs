//! `cargo xtask plugins`: the plugins for test runners, with the real runners, against the program.
//!
//! The tests are the ignored ones of `crates/forewarn/tests/it/plugins`, which also run the files of the guide *In CI*;
//! here pytest, Jest and the compiler of TypeScript are only installed and named.

use anyhow::Result;

use crate::environments::{JEST, PYTEST};
use crate::packages::{self, NODE, Readiness};
use crate::steps::{Outcome, cargo};
use crate::tools::{PROGRAM_TESTS, run_ignored};

/// The variables by which the tests find the runners.
const PYTHON_RUNNER: &str = "FOREWARN_PYTEST";
const NODE_RUNNER: &str = "FOREWARN_JEST";

pub(crate) fn command() -> Result<Outcome> {
    for readiness in [packages::prepare_python(), packages::prepare_programs(&NODE)] {
        match readiness {
            Readiness::Ready => {}
            Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
        }
    }
    let mut tests = cargo();
    match PYTEST.find_or_install() {
        Ok(place) => tests.env(PYTHON_RUNNER, place),
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let missing = match find_jest() {
        Ok(place) => {
            tests.env(NODE_RUNNER, place);
            Outcome::Passed
        }
        Err(why) => {
            // The variable of the caller may name anything.
            tests.env_remove(NODE_RUNNER);
            Outcome::Skipped(why)
        }
    };
    Ok(run_ignored(&mut tests, &PROGRAM_TESTS, &["plugins::"])?.and(missing))
}

/// The directory of Jest, or the reason why there is none.
fn find_jest() -> Result<std::path::PathBuf, String> {
    if !packages::has_npm() {
        return Err("Jest was not run: npm is not on the path".to_owned());
    }
    JEST.find_or_install().map_err(|problem| format!("Jest was not run: {problem:#}"))
}
