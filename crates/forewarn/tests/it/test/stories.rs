//! Stories whose machines are real programs.

use std::process::Command;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, clean_command, programs};

use super::{SERVICE, SHORT, conclusion, run};

pub(super) fn run_story(text: &str, options: &str, service: &str) -> Option<CommandResult> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("one.story");
    std::fs::write(&file, text).unwrap();
    run(&format!("--story {} {options}", file.display()), service)
}

#[test]
fn a_story_of_the_library_runs_with_a_real_service() {
    for name in ["spot-eviction", "freeze"] {
        let Some(passed) = run(&format!("--story {name} {SHORT}"), "") else { return };
        assert_eq!(passed.code, Some(0), "{name}: {passed:?}");
        assert!(conclusion(&passed).starts_with("PASSED: "), "{}", passed.out);
    }
    let Some(failed) = run("--story spot-eviction --patience 1s", "--ignore") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(conclusion(&failed).starts_with("FAILED: the story failed in line "), "{}", failed.out);
    assert!(failed.out.contains("svc did not approve E1 (Preempt)"), "{}", failed.out);
}

const RESTARTED: &str = "host h1 h2\nvm a on h1\nvm b on h2\n";

#[test]
fn the_command_is_the_first_machine_unless_the_story_says_another() {
    let story =
        format!("{RESTARTED}at 10s restart a\nawait a approved within 1m\nexpect a approved by itself\n");
    let Some(passed) = run_story(&story, SHORT, "") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(passed.out.contains("a approved E1 (Reboot) "), "{}", passed.out);
    let other = format!("{RESTARTED}run command as b\nat 10s restart b\n");
    let Some(passed) = run_story(&other, SHORT, "") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(passed.out.contains("b approved E1 (Reboot) "), "{}", passed.out);
}

#[test]
fn polls_and_approvals_of_the_story_are_not_those_of_the_program() {
    let story = format!("{RESTARTED}poll b\nat 10s restart b\nat 20s approve b by b\nat 1m restart a\n");
    let Some(passed) = run_story(&story, SHORT, "") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(passed.out.contains("E1 (Reboot) concerns b, for which no program had polled"), "{}", passed.out);
    let story = format!("{RESTARTED}at 10s restart a\napprove a by a\n");
    let Some(failed) = run_story(&story, "--patience 2s", "--ignore") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    // The story approves before the program can: it may not even have read the event.
    assert!(failed.out.contains("FAILED: "), "{}", failed.out);
}

#[test]
fn a_story_may_have_all_of_its_programs_itself() {
    let Some(python) = programs::find_or_skip("python3") else { return };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("own.story");
    let program = format!("{} {SERVICE}", python.display());
    let story = format!(
        "{RESTARTED}run \"{program}\" as a\nrun \"{program}\" as b\nat 10s restart a\nat 10s restart b\n\
         await a approved within 1m\nawait b approved within 1m\n"
    );
    std::fs::write(&file, story).unwrap();
    let test = |more: &[&str]| {
        let mut command: Command = clean_command(crate::program());
        run_with_input(command.arg("test").arg("--story").arg(&file).args(more), "")
    };
    let passed = test(&["--patience", "5s"]);
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert_eq!(conclusion(&passed), "PASSED: 2 events announced, 2 approved before the start");
    let said = |line: &str| passed.out.lines().filter(|found| *found == line).count();
    assert_eq!(
        (said("a | drained and approved"), said("b | drained and approved")),
        (1, 1),
        "{}",
        passed.out
    );
    let printed = passed.out.find("b | drained").max(passed.out.find("a | drained"));
    assert!(printed < passed.out.find("a approved E1"), "the verdict comes last: {}", passed.out);
    std::fs::write(&file, RESTARTED).unwrap();
    let wrong = test(&[]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("the story needs a COMMAND"), "{}", wrong.err);
}

#[test]
fn an_event_that_is_hidden_until_shortly_before_its_start_leaves_the_program_that_time() {
    let story = "\
host h1 h2
vm svc on h1
run command as svc
next 1000000 polls of svc answer hide=5s
at 10s  restart svc
await   svc approved within 20m
expect  svc approved by itself
";
    let Some(result) = run_story(story, SHORT, "") else { return };
    assert_eq!(result.code, Some(0), "{result:?}");
    let words = "svc approved E1 (Reboot) 14m55s after the announcement, ";
    assert!(result.out.contains(words), "{result:?}");
}

#[test]
fn a_mistake_in_a_story_is_found_before_its_program_starts() {
    for (line, words) in [
        ("at 10s restart scv\n", "no such machine: scv\n"),
        ("at 10s poll b\nat 5s poll b\n", "the time of the story is already 10s\n"),
    ] {
        let Some(wrong) = run_story(&format!("{RESTARTED}run command as a\n{line}"), SHORT, "--exit 7")
        else {
            return;
        };
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""), "{wrong:?}");
        assert!(wrong.err.contains(words), "{wrong:?}");
    }
}

#[test]
fn a_deletion_without_notice_has_a_hint() {
    let story = format!("{RESTARTED}run command as a\nat 10s delete a\n");
    let Some(failed) = run_story(&story, SHORT, "") else { return };
    assert_eq!(conclusion(&failed), "FAILED: no event was announced, so nothing was tested", "{failed:?}");
    let hint = "hint: a was deleted without notice: `terminate 5m` in the statement that makes it gives it one, such as \
                `vm a on h1 terminate 5m`\n";
    assert!(failed.out.contains(hint) && !failed.out.contains("403"), "{failed:?}");
    let Some(failed) = run_story(&format!("{story}expect a Scheduled\n"), SHORT, "") else { return };
    assert_eq!(conclusion(&failed), "FAILED: the story failed in line 6: no such tenant: a", "{failed:?}");
    assert!(failed.out.contains(hint) && !failed.out.contains("nothing was tested"), "{failed:?}");
    let story = "host h1 h2\nvm a on h1 terminate 5m\nrun command as a\nat 10s delete a\n";
    let Some(passed) = run_story(story, SHORT, "") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
}
