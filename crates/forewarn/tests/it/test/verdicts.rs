//! Verdicts on services that approve, that do not, and that do not even poll.

use std::time::{Duration, Instant};

use super::{SHORT, conclusion, run};

#[test]
fn a_service_that_drains_and_approves_passes_and_fifteen_minutes_take_no_time() {
    let begin = Instant::now();
    let Some(passed) = run("", "") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert_eq!(conclusion(&passed), "PASSED: 1 event announced, 1 approved before the start");
    let sentence = "svc approved E1 (Reboot) less than 1 s after the announcement, 15m before NotBefore\n\
                    nothing was interrupted before it was drained\n";
    assert!(passed.out.contains(sentence), "{}", passed.out);
    assert!(passed.out.starts_with("drained and approved\n"), "output is passed through: {}", passed.out);
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}

/// promise: X1
#[test]
fn a_service_that_never_approves_fails_and_the_verdict_says_how_to_approve() {
    let Some(failed) = run(SHORT, "--ignore") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let sentence = "svc did not approve E1 (Reboot); it was restarted at NotBefore";
    assert_eq!(conclusion(&failed), format!("FAILED: {sentence}"));
    for words in [sentence, "hint: a program approves with POST", "15m40s on the clock of the test"] {
        assert!(failed.out.contains(words), "{words}: {}", failed.out);
    }
    let Some(passed) = run("--patience 1s --approval optional", "--ignore") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
}

/// promise: X1
#[test]
fn a_service_that_never_polls_fails_unless_that_is_allowed() {
    let Some(failed) = run("--startup 1s", "--silent") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(conclusion(&failed), "FAILED: no machine polled, so nothing was tested");
    assert!(
        failed.out.starts_with("no machine polled, so nothing was tested\n  hint: the program has to poll "),
        "hints follow what they are about: {}",
        failed.out
    );
    for words in [
        "FOREWARN_METADATA was http://127.0.0.1:",
        "/vm/svc",
        "--startup changes that",
        "see docs/guides/my-program-uses-169-254-169-254.md",
    ] {
        assert!(failed.out.contains(words), "{words}: {}", failed.out);
    }
    let Some(passed) = run("--startup 1s --allow-untested", "--silent") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
}

#[test]
fn a_drain_may_take_as_long_as_the_patience() {
    let drains = [("3s", "2.1", 0), ("3s", "4", 1)];
    let threads = drains.map(|(patience, drain, code)| {
        let (options, service) = (format!("--patience {patience}"), format!("--drain {drain}"));
        std::thread::spawn(move || (run(&options, &service), code))
    });
    for thread in threads {
        let (Some(result), code) = thread.join().unwrap() else { return };
        assert_eq!(result.code, Some(code), "{result:?}");
    }
}

/// The true figures: they take as long as they say.
#[test]
fn with_the_usual_patience_nine_seconds_pass_and_eleven_do_not() {
    let threads = [("0", 0), ("3", 0), ("9", 0), ("11", 1)]
        .map(|(drain, code)| std::thread::spawn(move || (run("", &format!("--drain {drain}")), drain, code)));
    for thread in threads {
        let (Some(result), drain, code) = thread.join().unwrap() else { return };
        assert_eq!(result.code, Some(code), "{drain}: {result:?}");
    }
}

#[test]
fn every_type_of_event_can_be_requested_and_several_come_one_after_the_other() {
    let events = "--event Freeze --event Redeploy --event reboot --event Terminate";
    let Some(passed) = run(events, "") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
    for event in ["E1 (Freeze)", "E2 (Redeploy)", "E3 (Reboot)", "E4 (Terminate)"] {
        assert!(passed.out.contains(&format!("svc approved {event} ")), "{event}: {}", passed.out);
    }
    let Some(passed) = run("--event Preempt:cheap", "--as CHEAP") else { return };
    assert!(passed.out.contains("cheap approved E1 (Preempt) "), "{passed:?}");
}

#[test]
fn a_machine_that_does_not_poll_gets_no_notice_and_the_test_says_so() {
    let Some(failed) = run("--event Reboot:a --event Reboot:b --startup 5s", "--as A") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.out.contains("a approved E1 (Reboot) "), "{}", failed.out);
    assert_eq!(conclusion(&failed), "FAILED: b did not poll within 5s, so its Reboot was not announced");
}

#[test]
fn a_fleet_file_has_the_machines_and_the_events_of_a_tenant_concern_all_of_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("fleet.toml");
    let fleet = "host = [{ name = \"h1\" }, { name = \"h2\" }]\n[[scale_set]]\nname = \"web\"\n\
                 instance = [{ host = \"h1\" }, { host = \"h2\", update_domain = 1 }]\n";
    std::fs::write(&file, fleet).unwrap();
    let options = format!("--fleet {} --event Reboot:web_1 --vm web_0", file.display());
    let Some(passed) = run(&options, "") else { return };
    assert_eq!(passed.code, Some(0), "{passed:?}");
    assert!(passed.out.contains("web_0 approved E1 (Reboot of web_1) "), "{}", passed.out);
}
