//! The guides, typed as they are written: whatever follows a `$` in one is run, and prints what stands below it.
//!
//! A guide names its server, `forewarn dev …`; its ```` ```toml ```` is the file `fleet.toml` beside it. Everything is compared as it is,
//! but for where the server listens, which has ports of its own here. `INSTA_UPDATE=always` writes into the guides what is printed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stumble")]

#[path = "harness/mod.rs"]
mod harness;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use harness::{Server, programs};
use tempfile::TempDir;

/// Where a server listens that is not told where.
const METADATA: &str = "127.0.0.1:1338";
const API: &str = "127.0.0.1:1339";

#[test]
fn a_host_update_goes_as_the_guide_says() {
    check("plan-a-host-update.md");
}

#[test]
fn who_rebooted_a_machine_is_found_as_the_guide_says() {
    check("who-rebooted-my-vm.md");
}

#[test]
fn pictures_show_what_the_guide_says() {
    let guide = fs::read_to_string(guides().join("plan-a-host-update.md")).unwrap();
    for picture in ["plan-a-host-update.svg", "plan-a-host-update-stopped.svg"] {
        assert!(guide.contains(&format!("]({picture})")), "{picture} is not shown");
        let drawn = fs::read_to_string(guides().join(picture)).unwrap();
        for text in drawn.lines().filter(|line| line.starts_with("<text ")) {
            let text = text.trim_end_matches("</text>").split_once('>').unwrap().1;
            assert!(guide.contains(text), "{picture} shows what the guide does not: {text}");
        }
    }
}

fn guides() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides")
}

fn check(name: &str) {
    if programs::find_or_skip("curl").is_none() {
        return;
    }
    let file = guides().join(name);
    let written = fs::read_to_string(&file).unwrap();
    let played = play(&written);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        return fs::write(&file, played).unwrap();
    }
    let differs =
        written.lines().zip(played.lines()).zip(1..).find(|((written, played), _)| written != played);
    if let Some(((written, played), line)) = differs {
        panic!("{name}:{line}: the guide has\n  {written}\nand it is\n  {played}\nhint: INSTA_UPDATE=always");
    }
    assert_eq!(written, played, "{name} is longer or shorter than what happens");
}

/// The guide, with what its commands print now.
fn play(guide: &str) -> String {
    let place = Place::new(guide);
    let mut played = String::new();
    let mut in_console = false;
    for line in guide.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        }
        match line.strip_prefix("$ ").filter(|_| in_console) {
            Some(command) => {
                played += &format!("{line}\n");
                // This one is running.
                if !command.starts_with("forewarn dev ") {
                    played += &place.type_in(command);
                }
            }
            None if in_console && line != "```console" => {}
            None => played += &format!("{line}\n"),
        }
    }
    played
}

/// A directory and a server, for one guide.
struct Place {
    directory: TempDir,
    server: Server,
}

impl Place {
    fn new(guide: &str) -> Self {
        let directory = TempDir::new().unwrap();
        if let Some((_, rest)) = guide.split_once("\n```toml\n") {
            fs::write(directory.path().join("fleet.toml"), rest.split("```").next().unwrap()).unwrap();
        }
        // On a terminal curl shows no progress; here it is asked not to.
        fs::write(directory.path().join(".curlrc"), "silent\nshow-error\n").unwrap();
        let (_, words) = guide.split_once("forewarn dev ").expect("a guide names its server");
        let words = words.split(['`', '\n']).next().unwrap();
        let mut command = Command::new(harness::server::program());
        command.arg("dev").args(words.split_whitespace()).current_dir(directory.path());
        command.args(["--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "off"]);
        Self { server: Server::spawn(command), directory }
    }

    /// What a line of a shell shows on a terminal.
    fn type_in(&self, line: &str) -> String {
        let (metadata, api) = (self.server.metadata().to_string(), self.server.api().to_string());
        let line = line.replace(METADATA, &metadata).replace(API, &api);
        let program = PathBuf::from(harness::server::program());
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("exec 2>&1\n{line}")).current_dir(self.directory.path());
        command.env("PATH", format!("{}:{path}", program.parent().unwrap().display()));
        command.env("CURL_HOME", self.directory.path()).env("FOREWARN_API", format!("http://{api}"));
        command.env("NO_COLOR", "1").env_remove("FOREWARN_TOKEN").env_remove("FOREWARN_CLUSTER");
        let output = command.stdin(Stdio::null()).output().expect("there is a shell");
        let shown = String::from_utf8(output.stdout).expect("commands print text");
        let shown = shown.replace(&metadata, METADATA).replace(&api, API);
        // What does not end its last line is followed by a prompt; a guide begins a new line there.
        if shown.is_empty() || shown.ends_with('\n') { shown } else { shown + "\n" }
    }
}
