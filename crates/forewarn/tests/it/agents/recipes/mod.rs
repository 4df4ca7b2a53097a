//! The recipes of `deploy/recipes`: the files that are given away are the ones that run here. Only the places that they name are
//! others: `/etc/forewarn-agent` and the like become the directory of an agent.

mod balancer;
mod checkpoint;
mod draining;
mod failover;
mod log;
mod notes;
mod shutdown;

use std::fs;
use std::path::Path;

use forewarn_testkit::agents::{Agent, AgentSettings, Units};

/// Where everything lies, and where it lies here.
const PLACES: [(&str, &str); 5] = [
    ("/usr/local/lib/forewarn-agent", "DIR/lib"),
    ("/var/lib/forewarn-agent", "DIR"),
    ("/var/log/forewarn-agent", "DIR"),
    ("/etc/forewarn-agent", "DIR"),
    ("/var/lib/worker", "DIR/worker"),
];

/// The file of a recipe, with its places here.
fn file(recipe: &str, name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/recipes").join(recipe).join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
    PLACES.iter().fold(text, |text, (there, here)| text.replace(there, here))
}

/// The settings of a recipe.
fn settings(recipe: &str) -> AgentSettings {
    let systemctl = "systemd = { systemctl = \"DIR/bin/systemctl\", ";
    AgentSettings::whole(file(recipe, "agent.toml").replace("systemd = { ", systemctl))
}

/// A program that belongs to these tests.
fn script(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agents/recipes").join(name);
    path.to_str().expect("a path that is text").to_owned()
}

/// The units of the machine of an agent.
fn units<'a>(agent: &'a Agent<'a>) -> Units<'a> {
    Units::new(agent, &fs::read_to_string(script("systemctl")).unwrap())
}
