//! `cargo xtask azure`: unmodified clients of Azure Resource Manager against the program.
//!
//! The command line `az`, the compute client for Python and, where npm is, the one for JavaScript. What they do and what has to
//! come of it is in the ignored tests of `crates/forewarn/tests/it/arm`, and in the guides for `az`; here they are only installed and
//! named.

use anyhow::Result;

use crate::environments::{AZURE_CLI, AZURE_CLI_2_50, AZURE_CLI_2_72, AZURE_NODE, AZURE_PYTHON, Environment};
use crate::packages::{self, Readiness};
use crate::steps::{Outcome, cargo};
use crate::tools::{PROGRAM_TESTS, run_ignored};

/// Where each client is, by the name under which the tests look for it.
const PYTHON_CLIENTS: [(&str, &Environment, &str); 4] = [
    ("FOREWARN_AZ", &AZURE_CLI, "bin/az"),
    ("FOREWARN_AZ_2_50", &AZURE_CLI_2_50, "bin/az"),
    ("FOREWARN_AZ_2_72", &AZURE_CLI_2_72, "bin/az"),
    ("FOREWARN_AZURE_PYTHON", &AZURE_PYTHON, "bin/python3"),
];
const NODE_CLIENT: &str = "FOREWARN_AZURE_NODE";

pub(crate) fn command() -> Result<Outcome> {
    match packages::prepare_python() {
        Readiness::Ready => {}
        Readiness::Lacking(why) => return Ok(Outcome::Skipped(why)),
    }
    let mut tests = cargo();
    for (name, environment, program) in PYTHON_CLIENTS {
        match environment.find_or_install() {
            Ok(place) => tests.env(name, place.join(program)),
            Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
        };
    }
    let missing = match find_node_client() {
        Ok(place) => {
            tests.env(NODE_CLIENT, place);
            None
        }
        Err(why) => Some(why),
    };
    let outcome = run_ignored(&mut tests, &PROGRAM_TESTS, &["arm::", "guides::"])?;
    Ok(match (outcome, missing) {
        (Outcome::Passed, Some(why)) => Outcome::Skipped(why),
        (outcome, _) => outcome,
    })
}

/// Where the client for JavaScript is, or why there is none.
fn find_node_client() -> Result<std::path::PathBuf, String> {
    if !packages::has_npm() {
        return Err("the client for JavaScript was not run: npm is not on the path".to_owned());
    }
    let found = AZURE_NODE.find_or_install();
    found.map_err(|problem| format!("the client for JavaScript was not run: {problem:#}"))
}
