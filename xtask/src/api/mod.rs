//! `cargo xtask api`: requests to the operator API, generated from its OpenAPI document.
//!
//! schemathesis reads `/v1/openapi.json` of a server started for it, sends valid, invalid and nearly valid requests,
//! follows the links between them, and checks every response against the document: no server error, no undocumented
//! response, no invalid request accepted, no valid request rejected.

mod links;
mod server;

use std::io::Seek;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use self::links::Links;
use self::server::ApiServer;
use crate::environments::SCHEMATHESIS;
use crate::steps::{Outcome, built_program, cargo};
use crate::tree;

/// The directory with the settings of schemathesis.
const SETTINGS: &str = "xtask/api";

/// Cases of each operation; fewer with a token, where the rules are the same.
const CASES: &str = "30";
const CASES_WITH_TOKEN: &str = "5";

/// The maximum number of paths along the links.
const WAYS: &str = "100";

/// Each seed takes other paths.
const SEED: &str = "7";
const SEEDS_OF_WAYS: [&str; 12] = ["7", "8", "9", "10", "11", "12", "14", "15", "16", "17", "18", "19"];

/// Time limits of one run, which usually takes twenty seconds, and of all runs.
const RUN_TIME_MAX: Duration = Duration::from_secs(120);
const TIME_MAX: Duration = Duration::from_secs(480);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) fn command() -> Result<Outcome> {
    let schemathesis = match SCHEMATHESIS.find_or_install() {
        Ok(place) => place.join("bin/schemathesis"),
        Err(problem) => return Ok(Outcome::Skipped(format!("{problem:#}"))),
    };
    let mut build = cargo();
    build.current_dir(tree::root()?).args([
        "build",
        "--package",
        "forewarn",
        "--bin",
        "forewarn",
        "--locked",
    ]);
    let program = built_program(&mut build)?;
    let end = Instant::now() + TIME_MAX;
    let attempt = Attempt { schemathesis, settings: tree::root()?.join(SETTINGS), end };
    let mut links = Links::default();
    for part in [Part::Open, Part::Ways, Part::WithToken] {
        eprintln!("{}", part.name());
        let outcome = match part {
            Part::Open => attempt.cases(&ApiServer::dev(&program)?, CASES)?,
            Part::Ways => attempt.all_ways(&program, &mut links)?,
            Part::WithToken => attempt.with_token(&program)?,
        };
        if outcome != Outcome::Passed {
            return Ok(outcome);
        }
    }
    Ok(Outcome::Passed)
}

/// The runs, in this order.
#[derive(Clone, Copy)]
enum Part {
    /// Requests to a server without authentication.
    Open,
    /// Paths along the links.
    Ways,
    /// Both, with a token.
    WithToken,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Open => "requests",
            Self::Ways => "paths along the links",
            Self::WithToken => "both, with a token",
        }
    }
}

/// The settings of all runs.
struct Attempt {
    schemathesis: PathBuf,
    settings: PathBuf,
    end: Instant,
}

impl Attempt {
    fn cases(&self, server: &ApiServer, cases: &str) -> Result<Outcome> {
        let mut run = self.run(server, "every");
        run.args(["--phases", "coverage,fuzzing", "--max-examples", cases, "--seed", SEED]);
        self.status(&mut run)
    }

    /// Adds the followed links to `links`.
    fn ways(&self, server: &ApiServer, seed: &str, links: &mut Links) -> Result<Outcome> {
        let file = server.directory.path().join("links.json");
        let mut run = self.run(server, "ways");
        run.args(["--phases", "stateful", "--max-examples", WAYS, "--seed", seed]);
        let outcome = self.status(run.env("FOREWARN_LINKS", &file))?;
        if outcome == Outcome::Passed {
            links.add(&file)?;
        }
        Ok(outcome)
    }

    fn all_ways(&self, program: &Path, links: &mut Links) -> Result<Outcome> {
        for seed in SEEDS_OF_WAYS {
            // Its own server: an earlier run may have removed the whole fleet.
            let server = ApiServer::dev(program)?;
            let outcome = self.ways(&server, seed, links)?;
            if outcome != Outcome::Passed {
                return Ok(outcome);
            }
        }
        Ok(links.judge())
    }

    fn with_token(&self, program: &Path) -> Result<Outcome> {
        let server = ApiServer::serve(program)?;
        let mut outcome = self.cases(&server, CASES_WITH_TOKEN)?;
        if outcome == Outcome::Passed {
            outcome = self.ways(&server, SEED, &mut Links::default())?;
        }
        // With a revoked token, all responses would have been rejections.
        server.operate(&["token", "ls"]).context("the token is no longer valid")?;
        Ok(outcome)
    }

    fn run(&self, server: &ApiServer, hooks: &str) -> Command {
        let mut run = Command::new(&self.schemathesis);
        run.arg("--config-file").arg(self.settings.join("schemathesis.toml"));
        run.args(["run", &format!("{}/v1/openapi.json", server.api), "--checks", "all", "--no-color"]);
        run.args(["--generation-database", "none", "--warnings", "off"]);
        if let Some(token) = &server.token {
            run.args(["--header", &format!("Authorization: Bearer {token}")]);
        }
        run.env("PYTHONPATH", &self.settings).env("PYTHONDONTWRITEBYTECODE", "1");
        run.env("SCHEMATHESIS_HOOKS", hooks).current_dir(server.directory.path()).stdin(Stdio::null());
        run
    }

    /// Runs it to its end or its time limit. Its output is shown if it fails.
    fn status(&self, run: &mut Command) -> Result<Outcome> {
        let mut said = tempfile::tempfile().context("no temporary file")?;
        let mut child = run.stdout(said.try_clone()?).spawn().context("cannot run schemathesis")?;
        let begin = Instant::now();
        let status = loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(Outcome::Passed),
                Some(status) => break status.to_string(),
                None if begin.elapsed() < RUN_TIME_MAX && Instant::now() < self.end => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                None => {
                    child.kill().and_then(|()| child.wait()).context("cannot end schemathesis")?;
                    break format!("timed out after {} seconds", begin.elapsed().as_secs());
                }
            }
        };
        said.rewind()?;
        std::io::copy(&mut said, &mut std::io::stderr())?;
        Ok(Outcome::Failed(status))
    }
}
