//! Signals to processes that the tests start.

use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use forewarn_agent_core::{HookOutcome, Phase};

use super::*;
use crate::hooks::fixtures::{self, job, never_stop, runtime, script, until};
use crate::hooks::{HookRuntime, Work};

/// A process that records the signals it gets, and exits on the last of them.
struct TestServer {
    runtime: HookRuntime,
    folder: tempfile::TempDir,
    child: Child,
}

const SERVER: &str = r#"
cd "$(dirname "$0")" || exit 9
trap 'echo USR1 >> heard' USR1
trap 'echo USR2 >> heard' USR2
trap 'echo QUIT >> heard; exit 0' QUIT
echo $$ > pid.new; mv pid.new pid
while :; do sleep 0.02; done
"#;

impl TestServer {
    async fn new() -> Self {
        let (runtime, folder) = runtime();
        let program = script(folder.path(), "server", SERVER);
        let child = Command::new(program).stdin(Stdio::null()).spawn().unwrap();
        let server = Self { runtime, folder, child };
        until("the server runs", || server.pid_file().exists().then_some(())).await;
        server
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pid")
    }

    fn work(&self, settings: &str) -> Work {
        let work: SignalWork =
            toml::from_str(&format!("pid_file = '{}'\n{settings}", self.pid_file().display())).unwrap();
        assert_eq!(work.errors(), [""; 0]);
        Work::Signal(work)
    }

    async fn perform(&self, work: &Work) -> HookOutcome {
        work.perform(&job("tell", Phase::Scheduled), &self.runtime, never_stop()).await
    }

    async fn undo(&self, work: &Work, memory: Option<Value>) -> HookOutcome {
        let mut job = job("tell", Phase::Undo);
        job.run.memory = memory;
        work.undo(&job, &self.runtime, never_stop()).await
    }

    fn received(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("heard")).unwrap_or_default().replace('\n', " ")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_process_is_signalled_and_resumed() {
    let server = TestServer::new().await;
    let work = server.work("send = 'USR1'\nundo = 'SIGUSR2'");
    assert!(work.undoes());
    let hook_outcome = server.perform(&work).await;
    assert_eq!(hook_outcome.result, Ok(()));
    until("it has heard", || (server.received() == "USR1 ").then_some(())).await;
    assert_eq!(server.undo(&work, hook_outcome.memory).await.result, Ok(()));
    until("it has heard", || (server.received() == "USR1 USR2 ").then_some(())).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_process_is_waited_for_until_it_has_gone() {
    let server = TestServer::new().await;
    let work = server.work("send = 'QUIT'\nwait = true");
    assert_eq!(server.perform(&work).await.result, Ok(()));
    assert_eq!(server.received(), "QUIT ", "the process is a zombie");
    assert_eq!(server.perform(&work).await.result, Ok(()), "gone is gone");
    let work = server.work("send = 'QUIT'");
    assert_eq!(server.perform(&work).await.result, Err("the process is not running".to_owned()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_process_that_does_not_go_takes_until_the_limit() {
    let server = TestServer::new().await;
    let mut job = job("tell", Phase::Scheduled);
    job.limit = Duration::from_millis(300);
    let hook_outcome =
        server.work("send = 'USR1'\nwait = true").perform(&job, &server.runtime, never_stop()).await;
    assert_eq!(hook_outcome.result, Err("timed out after 300 ms".to_owned()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_reused_process_id_is_not_signalled() {
    let server = TestServer::new().await;
    // The file is older than the process with its id.
    let file = std::fs::File::options().write(true).open(server.pid_file()).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3_600)).unwrap();
    let error = server.perform(&server.work("send = 'QUIT'")).await.result.unwrap_err();
    assert!(error.contains("it is another one: nothing was sent"), "{error}");
    let error =
        server.perform(&server.work("send = 'QUIT'\nprogram = '/usr/sbin/nginx'")).await.result.unwrap_err();
    assert!(error.contains("not /usr/sbin/nginx: nothing was sent"), "{error}");
    assert_eq!(server.received(), "");
    // With a known program, the age of the file does not matter.
    let shell = std::fs::read_link(format!("/proc/{}/exe", server.child.id())).unwrap();
    let work = server.work(&format!("send = 'QUIT'\nwait = true\nprogram = '{}'", shell.display()));
    assert_eq!(server.perform(&work).await.result, Ok(()));
}

#[tokio::test(flavor = "current_thread")]
async fn only_the_signalled_process_is_resumed() {
    let server = TestServer::new().await;
    let work = server.work("send = 'USR1'\nundo = 'QUIT'");
    let pid = server.child.id();
    let start = Process::find(i32::try_from(pid).unwrap()).unwrap().unwrap().identity.start;
    let boot = boot().unwrap();
    for other in [
        format!("{boot}/{pid}/1"),
        format!("another/{pid}/{start}"),
        format!("{boot}/x/{start}"),
        "/".to_owned(),
    ] {
        let memory = json!({ "signalled": { other.clone(): true } });
        assert_eq!(server.undo(&work, Some(memory)).await.result, Ok(()), "{other}");
    }
    for nothing in [json!(1), json!({}), json!({ "signalled": [] })] {
        assert_eq!(server.undo(&work, Some(nothing)).await.result, Ok(()));
    }
    // A marker after all earlier signals.
    server.perform(&work).await.result.unwrap();
    until("it has heard", || server.received().contains("USR1").then_some(())).await;
    assert!(!server.received().contains("QUIT"));
    assert!(Process::find(i32::try_from(server.child.id()).unwrap()).unwrap().is_some());
}

#[tokio::test(flavor = "current_thread")]
async fn the_undo_state_of_an_earlier_agent_is_read() {
    let server = TestServer::new().await;
    let work = server.work("send = 'QUIT'\nundo = 'USR1'");
    let pid = server.child.id();
    let start = Process::find(i32::try_from(pid).unwrap()).unwrap().unwrap().identity.start;
    let signalled = format!("{}/{pid}/{start}", boot().unwrap());
    assert_eq!(server.undo(&work, Some(json!({ "told": { signalled: true } }))).await.result, Ok(()));
    until("the process is resumed", || server.received().contains("USR1").then_some(())).await;
}

#[tokio::test(flavor = "current_thread")]
async fn files_that_say_nothing_useful_are_reasons() {
    let server = TestServer::new().await;
    let (pid, work) = (server.pid_file(), server.work("send = 'QUIT'"));
    for text in ["", "x", "0", "1", "-1", "99999999999999"] {
        std::fs::write(&pid, text).unwrap();
        let error = server.perform(&work).await.result.unwrap_err();
        assert!(error.contains("invalid process id"), "{text}: {error}");
    }
    std::fs::remove_file(&pid).unwrap();
    assert_eq!(server.perform(&work).await.result, Err("the process is not running".to_owned()));
    std::fs::create_dir(&pid).unwrap();
    assert!(server.perform(&work).await.result.unwrap_err().contains("directory"));
}

#[tokio::test(flavor = "current_thread")]
async fn the_main_process_of_a_unit_is_asked_for() {
    let server = TestServer::new().await;
    let systemctl = script(
        server.folder.path(),
        "systemctl",
        "[ \"$6\" = web.service ] && echo \"MainPID=$(cat \"$(dirname \"$0\")/main\")\"",
    );
    let main = server.folder.path().join("main");
    let work: SignalWork =
        toml::from_str(&format!("unit = 'web'\nsend = 'QUIT'\nwait = true\nsystemctl = '{systemctl}'"))
            .unwrap();
    assert_eq!(work.errors(), [""; 0]);
    let work = Work::Signal(work);
    std::fs::write(&main, "0").unwrap();
    assert_eq!(server.perform(&work).await.result, Ok(()), "it does not run");
    assert_eq!(server.received(), "");
    std::fs::copy(server.pid_file(), &main).unwrap();
    assert_eq!(server.perform(&work).await.result, Ok(()));
    assert_eq!(server.received(), "QUIT ");
}

#[test]
fn settings_are_checked() {
    let check = |text: &str| fixtures::all_or_none(&toml::from_str::<SignalWork>(text).unwrap().errors());
    assert_eq!(check("unit = 'nginx'\nsend = 'QUIT'"), Ok(()));
    for (text, message) in [
        ("send = 'QUIT'", "one of `pid_file` and `unit`"),
        ("send = 'QUIT'\nunit = 'a'\npid_file = '/a'", "one of"),
        ("send = 'QUIT'\npid_file = 'a'", "not an absolute path"),
        ("send = 'QUIT'\nunit = '-a'", "invalid unit name"),
        ("send = '9'\nunit = 'a'", "unknown signal"),
        ("send = 'QUIT'\nunit = 'a'\nundo = 'x'", "unknown signal"),
        ("send = 'QUIT'\nunit = 'a'\nprogram = 'x'", "`program`"),
    ] {
        let error = check(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
    assert!(toml::from_str::<SignalWork>("unit = 'a'\nsend = 'HUP'\npid = 1").is_err());
}
