//! The settings that are given away: those of the package, of the recipes and of the `DaemonSet` are understood, and nothing is wrong with
//! them.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may stumble")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").canonicalize().unwrap()
}

/// Has the agent look at settings, with the directories that they name in a corner of their own.
fn check(text: &str, programs: &Path) {
    let place = TempDir::new().unwrap();
    let corner = place.path().to_str().unwrap();
    let text = text
        .replace("/usr/local/lib/forewarn-agent", programs.to_str().unwrap())
        .replace("/var/lib/forewarn-agent", corner)
        .replace("/var/log/forewarn-agent", corner)
        .replace("/etc/forewarn-agent", corner);
    let file = place.path().join("agent.toml");
    fs::write(&file, &text).unwrap();
    fs::write(place.path().join("chat.url"), "https://chat.example/hooks/1\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_forewarn-agent"))
        .args(["check-config", "--config"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{text}");
}

/// promise: A7
#[test]
fn the_settings_of_the_package_are_right() {
    check(&fs::read_to_string(deploy().join("deb-agent/agent.toml")).unwrap(), &deploy());
}

#[test]
fn what_is_written_beside_the_settings_of_the_package_is_right_as_well() {
    let text = fs::read_to_string(deploy().join("deb-agent/agent.toml")).unwrap();
    // What can be uncommented is a line that begins with a key or a table.
    let is_setting = |line: &str| line.starts_with('[') || line.contains(" = ");
    let open = |line: &str| match line.strip_prefix("# ").filter(|rest| is_setting(rest)) {
        Some(setting) if !setting.contains('`') && !setting.starts_with("endpoint") => setting.to_owned(),
        Some(_) | None => line.to_owned(),
    };
    let text: Vec<_> = text
        .lines()
        .map(open)
        .filter(|line| !line.starts_with("key_file") && !line.starts_with("list"))
        .collect();
    let text = text.join("\n").replace("[peers]", "");
    assert!(text.contains("\nsystemd = { stop"), "{text}");
    check(&text, &deploy());
}

/// promise: A7
#[test]
fn the_settings_of_the_recipes_are_right() {
    let recipes: Vec<_> =
        deploy().join("recipes").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(recipes.len(), 7);
    for recipe in recipes {
        check(&fs::read_to_string(recipe.join("agent.toml")).unwrap(), &recipe);
    }
}

/// promise: A7
#[test]
fn the_settings_of_the_daemon_set_are_right() {
    let manifest = fs::read_to_string(deploy().join("kubernetes/daemonset.yaml")).unwrap();
    let (_, rest) = manifest.split_once("  agent.toml: |\n").unwrap();
    let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let text: Vec<_> = lines.map(|line| line.strip_prefix("    ").unwrap_or_default()).collect();
    check(&text.join("\n"), &deploy());
}
