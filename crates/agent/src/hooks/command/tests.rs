//! Misbehaving programs: each must lead to a result.

use std::path::Path;
use std::time::Duration;

use forewarn_agent_core::{HookOutcome, Phase};
use tokio::sync::watch;

use super::output::{BYTES_MAX, LINE_BYTES_MAX, LINES_MAX, OutputLog};
use super::*;
use crate::hooks::fixtures::{self, job, never_stop, runtime, script, until};
use crate::hooks::process::{OutputSink, Pipe};
use crate::hooks::{HookRuntime, Job, Work};

fn work(program: &str) -> Work {
    Work::Command(CommandWork { command: vec![program.to_owned()], undo: None })
}

async fn perform(text: &str) -> HookOutcome {
    let (runtime, folder) = runtime();
    let program = script(folder.path(), "hook", text);
    work(&program).perform(&job("drain", Phase::Scheduled), &runtime, never_stop()).await
}

fn error(hook_outcome: HookOutcome) -> String {
    assert_eq!(hook_outcome.memory, None);
    hook_outcome.result.unwrap_err()
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))
}

/// True if the process exists and has not exited.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !(stat.is_empty() || stat.contains(") Z "))
}

/// promise: A4
#[tokio::test(flavor = "current_thread")]
async fn a_program_gets_the_event_and_nothing_else() {
    let (runtime, folder) = runtime();
    let out = folder.path().join("out");
    let text = format!(
        "echo \"$#:$1\" > {0}.new; cat >> {0}.new; env | sort >> {0}.new; pwd >> {0}.new; mv {0}.new {0}",
        out.display()
    );
    let program = script(folder.path(), "hook", &text);
    let mut job = job("drain", Phase::Scheduled);
    job.run.observed.kind = "Reboot; touch /tmp/x $(id)".to_owned();
    job.run.attempt = 2;
    let work = Work::Command(CommandWork { command: vec![program, "a $HOME".to_owned()], undo: None });
    assert_eq!(work.perform(&job, &runtime, never_stop()).await.result, Ok(()));
    let expected = std::fs::read_to_string(out).unwrap();
    let lines: Vec<_> = expected.lines().collect();
    assert_eq!(lines[0], "1:a $HOME", "the command line is that of the settings");
    let event: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(event["EventType"], "Reboot; touch /tmp/x $(id)");
    for line in [
        "EVENT_TYPE=Reboot; touch /tmp/x $(id)",
        "FOREWARN_ATTEMPT=2",
        "FOREWARN_PHASE=scheduled",
        "EVENT_SOURCE=",
    ] {
        assert!(lines.contains(&line), "{expected}");
    }
    assert_eq!(lines.last(), Some(&"/"));
    let allowed = ["PATH", "HOME", "LANG", "USER", "PWD", "OLDPWD", "SHLVL", "_"];
    for line in &lines[2..lines.len() - 1] {
        let name = line.split('=').next().unwrap();
        let known = name.starts_with("EVENT_") || name.starts_with("FOREWARN_") || allowed.contains(&name);
        assert!(known, "{line}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn the_exit_status_of_a_program_is_described() {
    assert_eq!(perform("exit 0").await.result, Ok(()));
    assert_eq!(error(perform("exit 3").await), "exited with status 3");
    assert_eq!(error(perform("kill -9 $$").await), "killed by signal 9 (SIGKILL)");
    assert_eq!(error(perform("kill -SEGV $$").await), "killed by signal 11");
}

/// promise: A4
#[tokio::test(flavor = "current_thread")]
async fn a_program_that_cannot_be_started_is_an_ending() {
    let (runtime, folder) = runtime();
    let of = async |program: &str| {
        error(work(program).perform(&job("a", Phase::Scheduled), &runtime, never_stop()).await)
    };
    assert!(of("/nonexistent/hook").await.contains("does not exist"));
    assert!(of(folder.path().to_str().unwrap()).await.contains("hint: chmod +x"));
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "exit 0\n").unwrap();
    assert!(of(plain.to_str().unwrap()).await.contains("hint: chmod +x"));
    let program = script(folder.path(), "hook", "");
    std::fs::write(&program, "no first line\n").unwrap();
    assert!(of(&program).await.contains("hint: a script begins with"), "{}", of(&program).await);
    std::fs::write(&program, "#!/nonexistent/sh\n").unwrap();
    assert!(of(&program).await.contains("the interpreter"));
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_need_not_read_its_input() {
    let (runtime, folder) = runtime();
    let mut job = job("drain", Phase::Scheduled);
    // More than the capacity of a pipe.
    job.run.observed.resources = (0..50_000).map(|number| format!("web_{number}")).collect();
    for text in ["exec 0<&-; exit 0", "exit 0", "cat > /dev/null"] {
        let program = script(folder.path(), "hook", text);
        assert_eq!(work(&program).perform(&job, &runtime, never_stop()).await.result, Ok(()), "{text}");
    }
}

/// promise: A4
#[tokio::test(flavor = "current_thread")]
async fn a_flood_of_output_is_read_and_counted() {
    let flood = "i=0; while [ $i -lt 3000 ]; do echo 'a line of some length that is said again and again'; i=$((i+1)); done";
    assert_eq!(perform(flood).await.result, Ok(()));
    assert_eq!(perform("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2").await.result, Ok(()));
}

#[test]
fn only_so_many_lines_and_bytes_are_written() {
    let task = job("drain", Phase::Scheduled).run.task;
    let mut output = OutputLog::new(&task);
    output.write_output(Pipe::Output, "x\n".repeat(300).as_bytes());
    output.write_output(Pipe::Errors, b"one more");
    output.finish();
    assert_eq!((output.logged.lines, output.dropped.lines, output.dropped.bytes), (LINES_MAX, 101, 108));
    let mut output = OutputLog::new(&task);
    output.write_output(Pipe::Output, &vec![0xff; 1_000_000]);
    output.finish();
    assert_eq!(output.logged.bytes, BYTES_MAX);
    assert_eq!(output.logged.lines, BYTES_MAX / u64::try_from(LINE_BYTES_MAX).unwrap());
    assert_eq!(output.logged.bytes + output.dropped.bytes, 1_000_000);
}

/// Runs a script that writes a process id to a file, stops it then, and returns that process id.
async fn stopped(text: &str) -> (HookOutcome, String) {
    let (runtime, folder) = runtime();
    let path = folder.path().join("note");
    let program = script(folder.path(), "hook", &text.replace("NOTE", path.to_str().unwrap()));
    let mut job = job("drain", Phase::Scheduled);
    job.limit = Duration::from_secs(600);
    let (sender, stop) = watch::channel(false);
    let work = work(&program);
    let performing = work.perform(&job, &runtime, stop);
    let watching = async {
        let pid = until("the script has begun", || read(&path)).await;
        sender.send(true).unwrap();
        pid
    };
    tokio::join!(performing, watching)
}

#[tokio::test(flavor = "current_thread")]
async fn a_stopped_program_may_clean_up() {
    let text =
        "trap 'rm -f NOTE.tidy; exit 0' TERM; touch NOTE.tidy; echo $$ > NOTE; while :; do sleep 0.05; done";
    let (hook_outcome, pid) = stopped(text).await;
    assert_eq!(error(hook_outcome), "stopped on request: terminated");
    assert!(!runs(&pid));
}

/// promise: A4
#[tokio::test(flavor = "current_thread")]
async fn a_program_that_does_not_listen_is_killed_with_all_it_has_started() {
    let text = "trap '' TERM; sleep 600 & echo $! > NOTE; wait; wait; while :; do sleep 600; done";
    let (hook_outcome, pid) = stopped(text).await;
    assert_eq!(error(hook_outcome), "stopped on request: killed");
    until("all of it has ended", || (!runs(&pid)).then_some(())).await;
}

/// promise: A4
#[tokio::test(flavor = "current_thread")]
async fn a_program_is_killed_with_a_child_that_has_a_session_of_its_own() {
    // The first is a child of the hook; the second lost its parent before the hook was stopped.
    let child = "sh -c 'trap \"\" TERM; echo $$ > NOTE.new; mv NOTE.new NOTE; while :; do sleep 0.05; done'";
    for text in
        [format!("setsid {child} & wait"), format!("(setsid {child} &); while :; do sleep 0.05; done")]
    {
        let (hook_outcome, pid) = stopped(&text).await;
        let reason = error(hook_outcome);
        assert!(reason.starts_with("stopped on request: "), "{reason}");
        assert!(!runs(&pid), "{reason}: a child with a session of its own still runs: {text}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_program_has_started_is_ended_when_it_ends_first() {
    // The stop is sent after both have set their traps.
    let text = "(trap '' TERM; touch NOTE.set; while :; do sleep 0.05; done) & other=$!; trap 'exit 0' TERM; \
                until [ -e NOTE.set ]; do sleep 0.01; done; echo $other > NOTE; while :; do sleep 0.05; done";
    let (hook_outcome, pid) = stopped(text).await;
    // The process that adopts orphans may take a while to reap the killed one.
    let expected = ["killed", "still running after SIGKILL"];
    let reason = error(hook_outcome);
    assert!(expected.iter().any(|how| reason == format!("stopped on request: {how}")), "{reason}");
    until("all of it has ended", || (!runs(&pid)).then_some(())).await;
}

/// promise: A4
#[tokio::test(flavor = "current_thread")]
async fn a_program_that_takes_too_long_is_ended() {
    let (runtime, folder) = runtime();
    let program = script(folder.path(), "hook", "exec sleep 600");
    let mut job = job("drain", Phase::Scheduled);
    job.limit = Duration::from_millis(100);
    let hook_outcome = work(&program).perform(&job, &runtime, never_stop()).await;
    assert_eq!(error(hook_outcome), "timed out after 100 ms: terminated");
}

#[tokio::test(flavor = "current_thread")]
async fn a_dropped_future_leaves_nothing_running() {
    let (runtime, folder) = runtime();
    let path = folder.path().join("note");
    let text = format!("sleep 600 & echo $! > {0}; wait", path.display());
    let program = work(&script(folder.path(), "hook", &text));
    let job = job("drain", Phase::Scheduled);
    let pid = tokio::select! {
        hook_outcome = program.perform(&job, &runtime, never_stop()) => panic!("it waits: {hook_outcome:?}"),
        pid = until("the script has begun", || read(&path)) => pid,
    };
    until("all of it has ended", || (!runs(&pid)).then_some(())).await;
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_program_leaves_running_is_left_alone_and_not_waited_for() {
    let (runtime, folder) = runtime();
    let path = folder.path().join("note");
    // Runs as long as its script exists, and holds its output open.
    let text = format!("(while [ -e \"$0\" ]; do sleep 0.05; done) & echo $! > {0}", path.display());
    let program = work(&script(folder.path(), "hook", &text));
    assert_eq!(program.perform(&job("drain", Phase::Scheduled), &runtime, never_stop()).await.result, Ok(()));
    let pid = read(&path).unwrap();
    assert!(runs(&pid));
    drop(folder);
    until("it has ended by itself", || (!runs(&pid)).then_some(())).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_has_another_that_undoes_it() {
    let (runtime, folder) = runtime();
    let out = folder.path().join("out");
    let text = format!("echo \"$1 $FOREWARN_PHASE\" >> {}", out.display());
    let program = script(folder.path(), "hook", &text);
    let work = Work::Command(CommandWork {
        command: vec![program.clone(), "do".to_owned()],
        undo: Some(vec![program, "undo".to_owned()]),
    });
    assert!(work.undoes());
    both(&work, &runtime).await;
    assert_eq!(std::fs::read_to_string(out).unwrap(), "do scheduled\nundo undo\n");
}

async fn both(work: &Work, runtime: &HookRuntime) {
    let (scheduled, undo): (Job, Job) = (job("drain", Phase::Scheduled), job("drain", Phase::Undo));
    assert_eq!(work.perform(&scheduled, runtime, never_stop()).await.result, Ok(()));
    assert_eq!(work.undo(&undo, runtime, never_stop()).await.result, Ok(()));
}

#[test]
fn a_program_is_named_by_its_whole_path() {
    let check = |text: &str| fixtures::all_or_none(&toml::from_str::<CommandWork>(text).unwrap().errors());
    assert_eq!(check("command = ['/bin/true']\nundo = ['/bin/false', 'x']"), Ok(()));
    assert!(check("command = []").unwrap_err().contains("hint: command = ["));
    assert!(check("command = ['drain']").unwrap_err().contains("not an absolute path"));
    assert!(check("command = ['/bin/true']\nundo = ['./x']").unwrap_err().starts_with("`undo`"));
    assert!(check("command = ['/bin/true', \"a\\u0000b\"]").unwrap_err().contains("NUL"));
    assert!(toml::from_str::<CommandWork>("command = ['/bin/true']\nshell = true").is_err());
}
