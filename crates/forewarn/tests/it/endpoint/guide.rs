//! The guide "My program uses 169.254.169.254", typed as it is written, on a computer that is a network namespace of the test.
//!
//! Whatever follows a `$` is run, and prints what stands below it, where `…` is anything; `forewarn dev …` runs until the next
//! one or a `forewarn test` begins. Namespaces that the guide creates are listed in a directory that only the test sees.
//! `INSTA_UPDATE=always` writes what is printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use forewarn_testkit::{TestServer, clean_command, wait_until};
use tempfile::TempDir;

use crate::guides::keep_ellipses;

const GUIDE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/my-program-uses-169-254-169-254.md");

/// A network and a list of namespaces of its own, for as long as a process in it runs.
struct Computer {
    holder: Child,
    directory: TempDir,
    server: Option<TestServer>,
}

impl Computer {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join(".curlrc"), "silent\nshow-error\nmax-time = 60\n").unwrap();
        let begin = "mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && touch ready && exec cat";
        let mut holder = Command::new("unshare");
        holder.args(["--net", "--mount", "--propagation", "private", "sh", "-c", begin]);
        let holder = holder.current_dir(directory.path()).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let computer = Self { holder: holder.expect("unshare starts"), directory, server: None };
        wait_until("the network is there", || computer.directory.path().join("ready").exists().then_some(()));
        computer
    }

    /// A line for the shell, on this computer.
    fn shell(&self, line: &str) -> Command {
        let program = PathBuf::from(crate::program());
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut command = clean_command("nsenter");
        command.args(["--target", &self.holder.id().to_string(), "--net", "--mount"]);
        let line = format!("cd {:?}\n{line}", self.directory.path());
        command.args(["sh", "-c", &line, "sh"]).env("PATH", path);
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command.env("HOME", self.directory.path()).env("CURL_HOME", self.directory.path());
        command
    }

    /// The output of a line. A server goes on, and ends the one before.
    fn type_in(&mut self, line: &str) -> String {
        if line.contains("forewarn test ") {
            self.server = None;
        }
        if line.contains("forewarn dev ") {
            self.server = None;
            self.server =
                Some(TestServer::spawn(crate::program(), self.shell(&format!("exec {line} \"$@\""))));
            return String::new();
        }
        let output =
            self.shell(&format!("exec 2>&1\n{line}")).stdin(Stdio::null()).output().expect("a shell");
        let shown = String::from_utf8(output.stdout).expect("commands print text");
        if shown.is_empty() || shown.ends_with('\n') { shown } else { shown + "\n" }
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        self.server = None;
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

/// Writes the files that the guide shows under their names.
fn write_files(guide: &str, directory: &Path) {
    for block in guide.split("\n```").skip(1).step_by(2) {
        let (head, text) = block.split_once('\n').expect("a block has lines");
        if let Some((_, name)) = head.split_once(' ') {
            fs::write(directory.join(name), format!("{text}\n")).unwrap();
        }
    }
}

#[test]
#[ignore = "needs root and `ip`; `cargo xtask test` runs it among the real clients"]
fn a_program_with_the_usual_address_reaches_the_server_as_the_guide_says() {
    let written = fs::read_to_string(GUIDE).unwrap();
    let mut computer = Computer::new();
    write_files(&written, computer.directory.path());
    let (mut played, mut in_console, mut commands) = (String::new(), false, 0);
    for line in written.lines() {
        if line.starts_with("```") {
            in_console = line == "```console";
        }
        match line.strip_prefix("$ ").filter(|_| in_console) {
            Some(command) => {
                commands += 1;
                played += &format!("{line}\n{}", computer.type_in(command));
            }
            None if in_console && line != "```console" => {}
            None => played += &format!("{line}\n"),
        }
    }
    assert!(commands > 20, "the guide has commands");
    let played = keep_ellipses(&written, &played);
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        return fs::write(GUIDE, played).unwrap();
    }
    assert_eq!(written, played, "hint: INSTA_UPDATE=always");
}
