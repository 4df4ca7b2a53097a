//! The program as a stage: started for one story and ended with it.

use std::io::Write as _;
use std::process::{Output, Stdio};

use forewarn_testkit::server::dev;
use forewarn_testkit::{TestServer, clean_command};

/// What makes a server a stage.
pub(crate) const STAGE: [&str; 6] =
    ["--fleet", "none", "--clock", "frozen", "--clock-start", "2026-01-01T00:00:00Z"];

/// Plays a story on `forewarn dev` with those arguments.
pub(crate) fn play_on(arguments: &[&str], story: &str) -> Output {
    let mut command = clean_command(crate::program());
    dev(&mut command, arguments);
    let server = TestServer::spawn(crate::program(), command);
    play(story, &["--live", "--api", server.api_url()])
}

/// `forewarn story run` with that story on standard input.
pub(crate) fn play(story: &str, arguments: &[&str]) -> Output {
    let mut command = clean_command(crate::program());
    command.args(["story", "run", "-"]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(story.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}
