//! Ends of a test: exit codes, programs that end, signals.

use std::time::Duration;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{RunningCommand, clean_command, wait_until};

use super::{SHORT, command, conclusion, run};

#[test]
fn the_exit_code_of_a_failing_command_is_passed_through() {
    let Some(failed) = run("", "--exit 7") else { return };
    assert_eq!(failed.code, Some(7), "{failed:?}");
    assert!(
        conclusion(&failed).starts_with("FAILED: the command failed with exit code 7: "),
        "{}",
        failed.out
    );
    let mut killed = clean_command(crate::program());
    killed.args(["test", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(run_with_input(&mut killed, "").code, Some(137));
}

#[test]
fn a_command_that_cannot_be_started_has_the_exit_code_of_a_shell() {
    for (program, code) in [("/nowhere/service", 127), ("/etc/passwd", 126)] {
        let mut command = clean_command(crate::program());
        let failed = run_with_input(command.args(["test", "--", program]), "");
        assert_eq!(failed.code, Some(code), "{failed:?}");
        assert!(failed.err.contains(&format!("cannot start the command: {program}")), "{}", failed.err);
    }
}

#[test]
fn a_command_that_ends_by_itself_is_judged_by_what_it_has_approved() {
    let Some(passed) = run("", "--once") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
    let Some(failed) = run("--event Reboot --event Freeze", "--once") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let sentence = "svc did not poll while E2 (Freeze) was scheduled; it was frozen at NotBefore";
    assert_eq!(conclusion(&failed), format!("FAILED: {sentence}"));
    assert!(failed.out.contains("the command ended by itself, with exit code 0"), "{}", failed.out);
    let begin = std::time::Instant::now();
    let Some(failed) = run("--startup 1m", "--exit 0") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(begin.elapsed() < Duration::from_secs(30), "nobody is left to wait for");
}

#[test]
fn a_test_that_takes_too_long_has_an_exit_code_of_its_own() {
    let Some(late) = run("--timeout 1s", "--silent") else { return };
    assert_eq!(late.code, Some(3), "{late:?}");
    assert!(
        conclusion(&late).starts_with("FAILED: the test was not over after 1s (--timeout)"),
        "{}",
        late.out
    );
}

#[test]
fn contradictions_on_the_command_line_are_usage_errors() {
    for (options, words) in [
        ("--event Preempt --event Terminate", "hint: name two machines"),
        ("--event Terminate --event Reboot", "hint: give --event Terminate last"),
        ("--event Thaw", "not an event type"),
        ("--patience 0s", "not a duration"),
        ("--report verdict.txt", "the name must end with"),
        ("--story no-such-story", "no such file"),
        ("--fleet /nowhere.toml", "cannot read the fleet file"),
        ("--story freeze --event Reboot", "cannot be used with"),
    ] {
        let Some(wrong) = run(options, "") else { return };
        assert_eq!(wrong.code, Some(2), "{options}: {wrong:?}");
        assert!(wrong.err.contains(words), "{options}: {}", wrong.err);
    }
    let mut none = clean_command(crate::program());
    assert_eq!(run_with_input(none.arg("test"), "").code, Some(2));
}

#[test]
fn ctrl_c_ends_the_test_and_its_programs() {
    let directory = tempfile::tempdir().unwrap();
    let note = directory.path().join("process");
    let Some(mut command) = command(SHORT, &format!("--note {} --drain 60", note.display())) else { return };
    let running = RunningCommand::start(&mut command);
    let process = wait_until("the program runs", || {
        std::fs::read_to_string(&note).ok().filter(|text| !text.is_empty())
    });
    assert_eq!(running.interrupt(), Some(130));
    let is_left = std::fs::read_to_string(format!("/proc/{process}/cmdline"))
        .is_ok_and(|line| line.contains("service.py"));
    assert!(!is_left, "process {process} is left");
}

#[test]
fn processes_that_a_program_has_started_end_with_the_test() {
    let directory = tempfile::tempdir().unwrap();
    let note = directory.path().join("process");
    let mut command = clean_command(crate::program());
    let script = format!("setsid sleep 1000 & echo $! > {}; exit 3", note.display());
    let failed = run_with_input(command.args(["test", "--", "sh", "-c", &script]), "");
    assert_eq!(failed.code, Some(3), "{failed:?}");
    let process = std::fs::read_to_string(&note).unwrap();
    let line = std::fs::read_to_string(format!("/proc/{}/cmdline", process.trim()));
    assert!(!line.is_ok_and(|line| line.contains("sleep")), "process {process} is left");
}

#[test]
fn a_report_that_cannot_be_written_is_found_before_the_test() {
    let Some(refused) = run("--report /nowhere/verdict.xml", "") else { return };
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("no such directory for the report: /nowhere/verdict.xml"), "{refused:?}");
}

#[test]
fn requests_that_the_endpoint_refuses_are_a_hint() {
    let Some(failed) = run(SHORT, "--plain") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.out.contains("hint: the endpoint answered requests with 400 ("), "{failed:?}");
}
