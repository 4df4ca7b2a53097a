//! The guides, typed as they are written: whatever follows a `$` in one is run, and prints what stands below it.
//!
//! A guide names its server, `forewarn dev …`, which has a frozen clock and a seed unless the guide says otherwise; its ```` ```toml ```` is the file `fleet.toml` beside it, and ```` ```sh NAME ```` is the file
//! `NAME`, which may be run. Everything is compared as it is, but for where servers listen, which have ports of their own here, and for `…` in a
//! guide, which is anything. `INSTA_UPDATE=always` writes into the guides what is printed, and draws the picture of the README.
//!
//! Guides for `az` are ignored unless they are asked for: `cargo xtask azure` installs it, and says in `FOREWARN_AZ` where it is.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stumble")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use forewarn_testkit::{TestServer, programs};
use tempfile::TempDir;

use crate::terminal_picture::draw;

/// Where a server listens that is not told where.
const METADATA: &str = "127.0.0.1:1338";
const API: &str = "127.0.0.1:1339";
const ARM: &str = "127.0.0.1:1340";
const AGENT: &str = "127.0.0.1:9911";

/// Whether a guide needs `az`, and a listener for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Az {
    Needed,
    Spared,
}

/// The README, from the directory of the guides.
const README: &str = "../../README.md";

#[test]
fn a_restart_goes_as_the_readme_says() {
    if programs::find_or_skip("python3").is_some() && has_agent() {
        check(README, Az::Spared);
        check_picture();
    }
}

/// The commands of the README that are not run here: they install something, or need a program of the reader.
#[test]
fn commands_of_the_readme_exist() {
    let readme = fs::read_to_string(guides().join(README)).unwrap();
    let blocks = readme.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines: Vec<_> = blocks.flat_map(str::lines).collect();
    let mut tried = Vec::new();
    for line in &lines {
        let command = line.split(" # ").next().unwrap().trim_start_matches("sudo ");
        let mut words = command.split_whitespace().take_while(|word| *word != "--");
        let Some(program) = words.next().filter(|program| program.starts_with("forewarn")) else { continue };
        let program = PathBuf::from(crate::program()).with_file_name(program);
        if !program.ends_with("forewarn-agent") || has_agent() {
            let output = Command::new(program).args(words).arg("--help").output().unwrap();
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        }
        tried.push(command);
    }
    assert!(tried.len() >= 5, "{tried:?}");
    let alias = lines.iter().find_map(|line| line.split_once("alias forewarn=")).expect("an alias").1;
    assert!(alias.starts_with("\"$PWD/"), "it works in every directory: {alias}");
}

#[test]
fn the_picture_of_the_readme_shows_a_restart_as_it_goes() {
    // The test above writes the README, and then the picture.
    if !is_update() {
        check_picture();
    }
}

/// The picture is drawn from the text of the README, which is what commands print.
fn check_picture() {
    let readme = fs::read_to_string(guides().join(README)).unwrap();
    let (_, section) = readme.split_once("\n## A restart in two minutes\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines: Vec<_> = blocks.flat_map(str::lines).collect();
    let place = |command: &str| lines.iter().position(|line| line.starts_with(command)).unwrap();
    let shown = &lines[place("$ export URL")..place("$ forewarn clock next")];
    let drawn = draw("A restart is announced, read by the VM, and approved", shown);
    let file = guides().join("../restart.svg");
    if is_update() {
        return fs::write(file, drawn).unwrap();
    }
    let hint = "hint: INSTA_UPDATE=always cargo test -p forewarn --test it guides::";
    assert_eq!(fs::read_to_string(file).unwrap_or_default(), drawn, "{hint}");
}

#[test]
fn a_host_update_goes_as_the_guide_says() {
    check("plan-a-host-update.md", Az::Spared);
}

#[test]
fn a_kernel_is_updated_as_the_guide_says() {
    check("update-a-kernel.md", Az::Spared);
}

#[test]
fn a_host_enters_maintenance_mode_as_the_guide_says() {
    check("maintenance-mode.md", Az::Spared);
}

#[test]
fn who_rebooted_a_machine_is_found_as_the_guide_says() {
    check("who-rebooted-my-vm.md", Az::Spared);
}

#[test]
fn a_driver_is_written_as_the_guide_says() {
    if programs::find_or_skip("python3").is_some() {
        check("write-a-driver.md", Az::Spared);
    }
}

/// promise: A7
#[test]
fn a_service_is_drained_as_the_guide_says() {
    if has_agent() {
        check("drain-a-service.md", Az::Spared);
    }
}

/// Whether the agent is built; without it the test is skipped, and fails in CI.
fn has_agent() -> bool {
    let agent = PathBuf::from(crate::program()).with_file_name("forewarn-agent");
    if agent.is_file() {
        return true;
    }
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "no agent; with CI=true a test that cannot run has failed");
    eprintln!("SKIPPED: no agent: {}\n  hint: cargo build --package forewarn-agent", agent.display());
    false
}

/// promise: A7
#[test]
fn recipes_are_shown_as_they_are() {
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/recipes");
    let list = fs::read_to_string(guides().join("recipes/README.md")).unwrap();
    let mut names: Vec<_> = recipes.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names.len(), 7);
    for name in names.iter().map(|name| name.to_str().unwrap()) {
        assert!(list.contains(&format!("]({name}.md)")), "not in the list of recipes: {name}");
        let page = fs::read_to_string(guides().join(format!("recipes/{name}.md"))).unwrap();
        for file in recipes.join(name).read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(
                page.contains(&format!("\n{text}```\n")),
                "{name}.md does not show {} as it is",
                file.display()
            );
        }
    }
}

/// The guide shows the files of `deploy/realm` as they are, a server accepts its settings, and its commands exist.
/// promise: X2
#[test]
fn a_realm_is_set_up_as_the_guide_says() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/realm");
    let guide = fs::read_to_string(guides().join("from-one-server-to-three.md")).unwrap();
    for file in deploy.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(guide.contains(&format!("](../../deploy/realm/{name})")), "not in the guide: {name}");
    }
    let text = |name: &str| fs::read_to_string(deploy.join(name)).unwrap();
    let settings = text("serve.toml");
    for (language, shown) in [("toml", &settings), ("haproxy", &text("haproxy.cfg"))] {
        assert!(
            guide.contains(&format!("```{language}\n{shown}```\n")),
            "the guide shows another file: {language}"
        );
    }
    let compose = text("compose.yaml");
    let inline = compose.split("    content: |\n").skip(1).map(|block| {
        let lines = block.lines().take_while(|line| line.starts_with("      "));
        lines.map(|line| format!("{}\n", line.trim_start())).collect::<String>()
    });
    let all: Vec<_> = inline.chain([settings]).collect();
    assert_eq!(all.len(), 4);
    all.iter().for_each(|settings| check_realm_settings(settings));
    check_commands(&guide);
}

/// `forewarn serve --check` accepts settings, with directories and files that exist here.
fn check_realm_settings(settings: &str) {
    let place = TempDir::new().unwrap();
    let root = place.path().display().to_string();
    let settings =
        settings.replace("\"/var/lib", &format!("\"{root}")).replace("\"/run", &format!("\"{root}"));
    let settings = settings.replace("\"/etc/forewarn", &format!("\"{root}"));
    fs::create_dir_all(place.path().join("tls")).unwrap();
    fs::write(place.path().join("fleet.toml"), forewarn_testkit::SOLO_FLEET).unwrap();
    let pair = forewarn_testkit::tls::Authority::new("authority of a test").leaf(&["forewarn.internal"]);
    for (file, text) in [("api.pem", &pair.certificate), ("api-key.pem", &pair.key)] {
        fs::write(place.path().join("tls").join(file), text).unwrap();
    }
    let file = place.path().join("serve.toml");
    fs::write(&file, &settings).unwrap();
    let output =
        Command::new(crate::program()).args(["serve", "--check", "--config"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{settings}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Every command of the program in a guide has a help text.
fn check_commands(guide: &str) {
    let blocks = guide.split("```console\n").skip(1).map(|block| block.split("```").next().unwrap());
    let lines =
        blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("# ").or(line.strip_prefix("$ ")));
    let commands: Vec<_> = lines.filter_map(|line| line.strip_prefix("forewarn ")).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        let output = Command::new(crate::program()).args(command.split(' ')).arg("--help").output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn terminate_notification_goes_as_the_guide_says() {
    check("terminate-notification.md", Az::Needed);
}

#[test]
#[ignore = "needs az; `cargo xtask azure` installs it"]
fn az_is_pointed_at_a_server_as_the_guide_says() {
    check("point-az-at-forewarn.md", Az::Needed);
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

fn check(name: &str, az: Az) {
    if programs::find_or_skip("curl").is_none() {
        return;
    }
    let file = guides().join(name);
    let written = fs::read_to_string(&file).unwrap();
    let played = keep_ellipses(&written, &play(&written, az));
    if is_update() {
        return fs::write(&file, played).unwrap();
    }
    let differs =
        written.lines().zip(played.lines()).zip(1..).find(|((written, played), _)| written != played);
    if let Some(((written, played), line)) = differs {
        panic!("{name}:{line}: the guide has\n  {written}\nand it is\n  {played}\nhint: INSTA_UPDATE=always");
    }
    assert_eq!(written, played, "{name} is longer or shorter than what happens");
}

fn is_update() -> bool {
    std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always")
}

/// What was played, with the lines of the guide where `…` stands for what differs from run to run.
pub(crate) fn keep_ellipses(written: &str, played: &str) -> String {
    let patterns: Vec<_> = written.lines().filter(|line| line.contains('…')).collect();
    let line = |played: &str| {
        let pattern = patterns.iter().find(|pattern| is_like(pattern, played));
        let is_written = written.lines().any(|line| line == played);
        let line = if is_written { played } else { pattern.copied().unwrap_or(played) };
        format!("{line}\n")
    };
    played.lines().map(line).collect()
}

/// Whether a line has the parts around each `…`, in this order.
fn is_like(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn an_ellipsis_is_anything() {
    for (pattern, line) in [("a", "a"), ("a … c", "a b c"), ("… b …", "a b c"), ("…", "")] {
        assert!(is_like(pattern, line), "{pattern} {line}");
    }
    for (pattern, line) in [("a", "ab"), ("a … c", "a b d"), ("… x …", "a b c"), ("b…", "ab")] {
        assert!(!is_like(pattern, line), "{pattern} {line}");
    }
    assert_eq!(keep_ellipses("a\ntook … s\n", "new\na\ntook 3 s\n"), "new\na\ntook … s\n");
    assert_eq!(keep_ellipses("a\ntook 2 s\n", "a\ntook 3 s\n"), "a\ntook 3 s\n");
}

/// The guide, with what its commands print now.
fn play(guide: &str, az: Az) -> String {
    let mut place = Place::new(guide, az);
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
                if command != "forewarn dev" && !command.starts_with("forewarn dev ") {
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
    server: TestServer,
    az: Az,
    /// Where the agent of the guide listens, if it has one.
    agent: String,
    /// Lines that set something in the shell: it is another one for each command.
    set: String,
}

impl Place {
    fn new(guide: &str, az: Az) -> Self {
        let directory = TempDir::new().unwrap();
        if let Some((_, rest)) = guide.split_once("\n```toml\n") {
            fs::write(directory.path().join("fleet.toml"), rest.split("```").next().unwrap()).unwrap();
        }
        // On a terminal curl shows no progress; here it is asked not to.
        fs::write(directory.path().join(".curlrc"), "silent\nshow-error\n").unwrap();
        let words = guide.split_once("forewarn dev ").map_or("", |(_, words)| words);
        let words = words.split(['`', '\n']).next().unwrap();
        assert!(guide.contains("forewarn dev"), "a guide names its server");
        let mut command = Command::new(crate::program());
        command.arg("dev").args(words.split_whitespace()).current_dir(directory.path());
        // The guide may say something else.
        command.env("FOREWARN_DEV_CLOCK", "frozen").env("FOREWARN_DEV_SEED", "7");
        command.env("FOREWARN_DEV_CLOCK_START", "2026-01-01T00:00:00Z");
        command.args(["--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        match az {
            Az::Spared => command.args(["--arm-listen", "off"]),
            Az::Needed => {
                let client = std::env::var("FOREWARN_AZ").expect("`cargo xtask azure` says where az is");
                let bin = directory.path().join("bin");
                fs::create_dir(&bin).unwrap();
                std::os::unix::fs::symlink(client, bin.join("az")).unwrap();
                command.args(["--arm-listen", "127.0.0.1:0"])
            }
        };
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let server = TestServer::spawn(crate::program(), command);
        let place = Self { server, directory, az, agent: free.to_string(), set: String::new() };
        place.write_files(guide);
        place.write_service();
        place
    }

    /// The files that a guide shows under their names.
    fn write_files(&self, guide: &str) {
        let ports = self.ports();
        for block in guide.split("\n```").skip(1).step_by(2) {
            let Some((head, text)) = block.split_once('\n') else { continue };
            let Some((_, name)) = head.split_once(' ') else { continue };
            let text = ports.iter().fold(format!("{text}\n"), |text, (usual, own)| text.replace(usual, own));
            let file = self.directory.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// The program of the reader: `./service`, which prints nothing.
    fn write_service(&self) {
        let service = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/test/service.py");
        let file = self.directory.path().join("service");
        fs::write(&file, format!("#!/bin/sh\nexec python3 '{service}' > service.log\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// What a line of a shell shows on a terminal.
    fn type_in(&mut self, line: &str) -> String {
        let ports = self.ports();
        let here =
            |text: &str| ports.iter().fold(text.to_owned(), |text, (usual, own)| text.replace(usual, own));
        let usual =
            |text: &str| ports.iter().fold(text.to_owned(), |text, (usual, own)| text.replace(own, usual));
        // Nothing in a guide takes long, and what never comes is not waited for.
        let mut command = Command::new("timeout");
        command.args(["300", "sh", "-c"]).arg(format!("exec 2>&1\n{}{}", self.set, here(line)));
        self.at_home(&mut command);
        let output = command.stdin(Stdio::null()).output().expect("there is a shell");
        if line.starts_with("eval ") || line.starts_with("export ") {
            self.set += &format!("{}\n", here(line));
        }
        let shown = usual(&String::from_utf8(output.stdout).expect("commands print text"));
        // What does not end its last line is followed by a prompt; a guide begins a new line there.
        if shown.is_empty() || shown.ends_with('\n') { shown } else { shown + "\n" }
    }

    /// Where servers usually listen, and where this one does.
    fn ports(&self) -> Vec<(&'static str, String)> {
        let mut ports =
            vec![(METADATA, self.server.metadata().to_string()), (API, self.server.api().to_string())];
        ports.push((AGENT, self.agent.clone()));
        if self.az == Az::Needed {
            ports.push((ARM, self.server.arm().to_string()));
        }
        ports
    }

    /// In the directory of this place, with nothing that whoever runs the tests has set.
    fn at_home(&self, command: &mut Command) {
        let (program, home) = (PathBuf::from(crate::program()), self.directory.path());
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", home.join("bin").display(), program.parent().unwrap().display());
        command.current_dir(home).env("PATH", path).env("CURL_HOME", home).env("NO_COLOR", "1");
        command.env("FOREWARN_API", format!("http://{}", self.server.api()));
        command.env_remove("FOREWARN_TOKEN").env_remove("FOREWARN_CLUSTER");
        if self.az == Az::Needed {
            command.env("HOME", home).env_remove("XDG_STATE_HOME").env_remove("XDG_CACHE_HOME");
            command.env("AZURE_CORE_NO_COLOR", "true").env("PYTHONDONTWRITEBYTECODE", "1");
        }
    }
}

impl Drop for Place {
    /// An agent that the guide has started ends with it.
    fn drop(&mut self) {
        let Ok(pid) = fs::read_to_string(self.directory.path().join("agent.pid")) else { return };
        // It may have ended by itself.
        Command::new("kill").arg(pid.trim()).stderr(Stdio::null()).status().ok();
    }
}
