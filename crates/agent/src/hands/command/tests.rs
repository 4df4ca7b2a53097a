//! Programs of every kind of bad behaviour: each is an ending.

use std::path::Path;
use std::time::Duration;

use forewarn_agent_core::{Ending, Phase};
use tokio::sync::watch;

use super::output::{BYTES_MAX, LINE_BYTES_MAX, LINES_MAX, Output};
use super::*;
use crate::hands::process::{Listener, Pipe};
use crate::hands::samples::{go_on, hands, job, script, until};
use crate::hands::{Hands, Job, Work};

fn work(program: &str) -> Work {
    Work::Command(CommandWork { command: vec![program.to_owned()], undo: None })
}

async fn perform(text: &str) -> Ending {
    let (hands, folder) = hands();
    let program = script(folder.path(), "hook", text);
    work(&program).perform(&job("drain", Phase::Scheduled), &hands, go_on()).await
}

fn problem(ending: Ending) -> String {
    assert_eq!(ending.memory, None);
    ending.result.unwrap_err()
}

fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))
}

/// A process that is there and has not ended.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !(stat.is_empty() || stat.contains(") Z "))
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_is_told_of_the_event_and_of_nothing_else() {
    let (hands, folder) = hands();
    let out = folder.path().join("out");
    let text = format!(
        "echo \"$#:$1\" > {0}.new; cat >> {0}.new; env | sort >> {0}.new; pwd >> {0}.new; mv {0}.new {0}",
        out.display()
    );
    let program = script(folder.path(), "hook", &text);
    let mut job = job("drain", Phase::Scheduled);
    job.run.seen.kind = "Reboot; touch /tmp/x $(id)".to_owned();
    job.run.attempt = 2;
    let work = Work::Command(CommandWork { command: vec![program, "a $HOME".to_owned()], undo: None });
    assert_eq!(work.perform(&job, &hands, go_on()).await.result, Ok(()));
    let told = std::fs::read_to_string(out).unwrap();
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines[0], "1:a $HOME", "the command line is that of the settings");
    let event: serde_json::Value = serde_json::from_str(lines[1]).unwrap();
    assert_eq!(event["EventType"], "Reboot; touch /tmp/x $(id)");
    for line in [
        "EVENT_TYPE=Reboot; touch /tmp/x $(id)",
        "FOREWARN_ATTEMPT=2",
        "FOREWARN_PHASE=scheduled",
        "EVENT_SOURCE=",
    ] {
        assert!(lines.contains(&line), "{told}");
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
async fn the_status_of_a_program_is_told_in_words() {
    assert_eq!(perform("exit 0").await.result, Ok(()));
    assert_eq!(problem(perform("exit 3").await), "it ended with status 3");
    assert_eq!(problem(perform("kill -9 $$").await), "it was ended by signal 9 (SIGKILL)");
    assert_eq!(problem(perform("kill -SEGV $$").await), "it was ended by signal 11");
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_that_cannot_be_started_is_an_ending() {
    let (hands, folder) = hands();
    let of = async |program: &str| {
        problem(work(program).perform(&job("a", Phase::Scheduled), &hands, go_on()).await)
    };
    assert!(of("/nonexistent/hook").await.contains("is not there"));
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
    let (hands, folder) = hands();
    let mut job = job("drain", Phase::Scheduled);
    // More than a pipe holds.
    job.run.seen.resources = (0..50_000).map(|number| format!("web_{number}")).collect();
    for text in ["exec 0<&-; exit 0", "exit 0", "cat > /dev/null"] {
        let program = script(folder.path(), "hook", text);
        assert_eq!(work(&program).perform(&job, &hands, go_on()).await.result, Ok(()), "{text}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_flood_of_output_is_read_and_counted() {
    let flood = "i=0; while [ $i -lt 3000 ]; do echo 'a line of some length that is said again and again'; i=$((i+1)); done";
    assert_eq!(perform(flood).await.result, Ok(()));
    assert_eq!(perform("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2").await.result, Ok(()));
}

#[test]
fn only_so_many_lines_and_bytes_are_written() {
    let task = job("drain", Phase::Scheduled).run.task;
    let mut output = Output::new(&task);
    output.hear(Pipe::Output, "x\n".repeat(300).as_bytes());
    output.hear(Pipe::Errors, b"one more");
    output.finish();
    assert_eq!((output.written.lines, output.left_out.lines, output.left_out.bytes), (LINES_MAX, 101, 108));
    let mut output = Output::new(&task);
    output.hear(Pipe::Output, &vec![0xff; 1_000_000]);
    output.finish();
    assert_eq!(output.written.bytes, BYTES_MAX);
    assert_eq!(output.written.lines, BYTES_MAX / u64::try_from(LINE_BYTES_MAX).unwrap());
    assert_eq!(output.written.bytes + output.left_out.bytes, 1_000_000);
}

/// Runs a script that says in a file which process of it to look at; tells it to stop then, and gives that process.
async fn stopped(text: &str) -> (Ending, String) {
    let (hands, folder) = hands();
    let note = folder.path().join("note");
    let program = script(folder.path(), "hook", &text.replace("NOTE", note.to_str().unwrap()));
    let mut job = job("drain", Phase::Scheduled);
    job.limit = Duration::from_secs(600);
    let (tell, stop) = watch::channel(false);
    let work = work(&program);
    let performing = work.perform(&job, &hands, stop);
    let watching = async {
        let pid = until("the script has begun", || read(&note)).await;
        tell.send(true).unwrap();
        pid
    };
    tokio::join!(performing, watching)
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_that_is_told_to_stop_may_tidy_up() {
    let text =
        "trap 'rm -f NOTE.tidy; exit 0' TERM; touch NOTE.tidy; echo $$ > NOTE; while :; do sleep 0.05; done";
    let (ending, pid) = stopped(text).await;
    assert_eq!(problem(ending), "it was told to stop: it was ended");
    assert!(!runs(&pid));
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_that_does_not_listen_is_killed_with_all_it_has_started() {
    let text = "trap '' TERM; sleep 600 & echo $! > NOTE; wait; wait; while :; do sleep 600; done";
    let (ending, pid) = stopped(text).await;
    assert_eq!(problem(ending), "it was told to stop: it had to be killed");
    until("all of it has ended", || (!runs(&pid)).then_some(())).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_is_killed_with_a_child_that_has_a_session_of_its_own() {
    // The first is a child of the hook; the second lost its parent before the hook was told to stop.
    let child = "sh -c 'trap \"\" TERM; echo $$ > NOTE.new; mv NOTE.new NOTE; while :; do sleep 0.05; done'";
    for text in
        [format!("setsid {child} & wait"), format!("(setsid {child} &); while :; do sleep 0.05; done")]
    {
        let (ending, pid) = stopped(&text).await;
        let why = problem(ending);
        assert!(why.starts_with("it was told to stop: "), "{why}");
        assert!(!runs(&pid), "{why}: a child with a session of its own still runs: {text}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_program_has_started_is_ended_when_it_ends_first() {
    // Nothing is told to stop before both know what to do about it.
    let text = "(trap '' TERM; touch NOTE.set; while :; do sleep 0.05; done) & other=$!; trap 'exit 0' TERM; \
                until [ -e NOTE.set ]; do sleep 0.01; done; echo $other > NOTE; while :; do sleep 0.05; done";
    let (ending, pid) = stopped(text).await;
    // Whoever takes care of orphans may take a while until it says that the one that was killed is gone.
    let told = ["it had to be killed", "not even killing it has ended it yet"];
    let why = problem(ending);
    assert!(told.iter().any(|how| why == format!("it was told to stop: {how}")), "{why}");
    until("all of it has ended", || (!runs(&pid)).then_some(())).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_that_takes_too_long_is_ended() {
    let (hands, folder) = hands();
    let program = script(folder.path(), "hook", "exec sleep 600");
    let mut job = job("drain", Phase::Scheduled);
    job.limit = Duration::from_millis(100);
    let ending = work(&program).perform(&job, &hands, go_on()).await;
    assert_eq!(problem(ending), "it has not ended within 100 ms: it was ended");
}

#[tokio::test(flavor = "current_thread")]
async fn nobody_who_waits_leaves_nothing_running() {
    let (hands, folder) = hands();
    let note = folder.path().join("note");
    let text = format!("sleep 600 & echo $! > {0}; wait", note.display());
    let program = work(&script(folder.path(), "hook", &text));
    let job = job("drain", Phase::Scheduled);
    let pid = tokio::select! {
        ending = program.perform(&job, &hands, go_on()) => panic!("it waits: {ending:?}"),
        pid = until("the script has begun", || read(&note)) => pid,
    };
    until("all of it has ended", || (!runs(&pid)).then_some(())).await;
}

#[tokio::test(flavor = "current_thread")]
async fn what_a_program_leaves_running_is_left_alone_and_not_waited_for() {
    let (hands, folder) = hands();
    let note = folder.path().join("note");
    // It runs for as long as its script is there, and holds on to its output.
    let text = format!("(while [ -e \"$0\" ]; do sleep 0.05; done) & echo $! > {0}", note.display());
    let program = work(&script(folder.path(), "hook", &text));
    assert_eq!(program.perform(&job("drain", Phase::Scheduled), &hands, go_on()).await.result, Ok(()));
    let pid = read(&note).unwrap();
    assert!(runs(&pid));
    drop(folder);
    until("it has ended by itself", || (!runs(&pid)).then_some(())).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_program_has_another_that_undoes_it() {
    let (hands, folder) = hands();
    let out = folder.path().join("out");
    let text = format!("echo \"$1 $FOREWARN_PHASE\" >> {}", out.display());
    let program = script(folder.path(), "hook", &text);
    let work = Work::Command(CommandWork {
        command: vec![program.clone(), "do".to_owned()],
        undo: Some(vec![program, "undo".to_owned()]),
    });
    assert!(work.undoes());
    both(&work, &hands).await;
    assert_eq!(std::fs::read_to_string(out).unwrap(), "do scheduled\nundo undo\n");
}

async fn both(work: &Work, hands: &Hands) {
    let (scheduled, undo): (Job, Job) = (job("drain", Phase::Scheduled), job("drain", Phase::Undo));
    assert_eq!(work.perform(&scheduled, hands, go_on()).await.result, Ok(()));
    assert_eq!(work.undo(&undo, hands, go_on()).await.result, Ok(()));
}

#[test]
fn a_program_is_named_by_its_whole_path() {
    let check = |text: &str| toml::from_str::<CommandWork>(text).unwrap().check();
    assert_eq!(check("command = ['/bin/true']\nundo = ['/bin/false', 'x']"), Ok(()));
    assert!(check("command = []").unwrap_err().contains("hint: command = ["));
    assert!(check("command = ['drain']").unwrap_err().contains("not a whole path"));
    assert!(check("command = ['/bin/true']\nundo = ['./x']").unwrap_err().starts_with("`undo`"));
    assert!(check("command = ['/bin/true', \"a\\u0000b\"]").unwrap_err().contains("NUL"));
    assert!(toml::from_str::<CommandWork>("command = ['/bin/true']\nshell = true").is_err());
}
