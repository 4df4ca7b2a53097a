//! A server under a supervisor: it says when it is ready and when it stops, and ends cleanly.

use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use forewarn_testkit::clean_command;
use forewarn_testkit::server::dev;

#[test]
fn a_supervisor_is_told_of_the_beginning_and_of_the_end() {
    let files = tempfile::tempdir().expect("a directory");
    let place = files.path().join("notify");
    let supervisor = UnixDatagram::bind(&place).expect("a socket");
    supervisor.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let mut command = clean_command(crate::program());
    dev(&mut command, &[]);
    let mut child = command.env("NOTIFY_SOCKET", &place).stdout(Stdio::null()).spawn().expect("it runs");
    let news = || {
        let mut bytes = [0; 100];
        let length = supervisor.recv(&mut bytes).expect("news in time");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    assert_eq!(news(), "READY=1");
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill runs").success());
    assert_eq!(news(), "STOPPING=1");
    assert_eq!(child.wait().expect("a child").code(), Some(0));
}
