//! The alerts and the dashboard use metrics that a server has, and the runbooks use commands of the program.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use forewarn_testkit::TestServer;
use serde_json::Value;

use super::scrape;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/monitoring");

const RULES: &str = "forewarn.rules.yml";
const DASHBOARD: &str = "grafana-dashboard.json";

fn read(file: &str) -> String {
    fs::read_to_string(format!("{DIRECTORY}/{file}")).unwrap()
}

/// Every name of a metric of the server in a text.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("forewarn_")).collect()
}

/// The names that a scrape has: of samples, and of metrics without samples.
fn scraped(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in text.lines() {
        if let Some(sample) = line.split(['{', ' ']).next().filter(|name| name.starts_with("forewarn_")) {
            names.insert(sample.to_owned());
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
        {
            names.insert(if kind == "counter" { format!("{name}_total") } else { name.to_owned() });
        }
    }
    names
}

#[test]
fn every_metric_of_the_alerts_and_of_the_dashboard_is_one_of_a_server() {
    let server = TestServer::start(crate::program());
    // Without an event, the events have no series.
    server.enrol(&["solo"]);
    server.restart("solo");
    let names = scraped(&scrape(&server));
    for file in [RULES, DASHBOARD] {
        let text = read(file);
        let used = metrics_in(&text);
        assert!(used.len() >= 10, "{file}: {used:?}");
        let unknown: Vec<_> = used.iter().filter(|name| !names.contains(**name)).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}\nnot in {names:?}");
    }
}

#[test]
fn the_dashboard_is_one_that_grafana_can_import() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36);
    assert!(dashboard["id"].is_null(), "a number would replace a dashboard of the importer");
    let inputs = dashboard["__inputs"].as_array().unwrap();
    assert!(inputs.iter().any(|input| input["name"] == "DS_PROMETHEUS" && input["type"] == "datasource"));
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut occupied = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        let place = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{title}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(occupied.insert((x, y)), "{title} covers another panel");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${DS_PROMETHEUS}", "{title}");
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{title}");
        let letters: BTreeSet<_> = targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        assert_eq!(letters.len(), targets.len(), "{title}");
        assert!(targets.iter().all(|target| target["expr"].is_string()), "{title}");
    }
}

/// Commands of the program in a page: lines of a console, and code in the text.
fn commands_in(page: &str) -> BTreeSet<String> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("$ ").or(line.strip_prefix("# ")));
    let spans =
        page.split('`').skip(1).step_by(2).map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    let all = lines.map(str::to_owned).chain(spans);
    all.filter(|command| command.starts_with("forewarn ")).collect()
}

#[test]
fn every_command_of_the_runbooks_is_one_of_the_program() {
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/runbooks");
    let mut commands = BTreeSet::new();
    for page in fs::read_dir(pages).unwrap() {
        commands.extend(commands_in(&fs::read_to_string(page.unwrap().path()).unwrap()));
    }
    assert!(commands.len() >= 20, "{commands:?}");
    for command in &commands {
        let words = command.split(' ').skip(1).map(|word| if word == "ID" { "1234" } else { word });
        let output = Command::new(crate::program()).args(words).arg("--help").output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
