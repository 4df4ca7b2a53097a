//! `forewarn driver check`: a program that keeps the contract passes, and each fault is found.

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, TestDir, clean_command};
use serde_json::Value;

/// Faults of the test driver, and a check that has to find each.
const FAULTS: [(&str, &str); 13] = [
    ("hasty", "truncated request"),
    ("lenient", "truncated request"),
    ("forgetful", "pause, repeated later"),
    ("ashamed", "pause, repeated"),
    ("early", "reboot, killed at 50 %"),
    ("garbled", "pause"),
    ("impatient", "pause for 2 s, length"),
    ("hanging", "reboot"),
    ("violent", "reboot"),
    ("lazy", "stop"),
    ("lying", "stop"),
    ("doubling", "migrate to h2, gone from h1"),
    ("agreeable", "unknown verb"),
];

/// The test driver with a fault, or with a name that is none.
fn driver(fault: &str) -> TestDir {
    let dir = TestDir::new();
    for part in ["h1/web_0", "h2/other", "records/none"] {
        dir.write(part, "running\n");
    }
    dir.write("fault", &format!("{fault}\n"));
    dir.script("driver", include_str!("good-driver"));
    dir
}

fn check(dir: &TestDir, words: &[&str]) -> CommandResult {
    let mut command = clean_command(crate::program());
    command.args(["driver", "check", &dir.path("driver"), "--machine", "web_0", "--host", "h1"]);
    run_with_input(command.args(words), "")
}

const ALL: [&str; 12] = [
    "--yes",
    "--destroy",
    "--to",
    "h2",
    "--host-order",
    "update_host",
    "--host-order",
    "reboot_host",
    "--host-order",
    "fence_host",
    "--output",
    "json",
];

fn verdict<'a>(report: &'a Value, check: &str) -> &'a str {
    let rows = report["checks"].as_array().unwrap();
    let row = rows.iter().find(|row| row["check"] == check);
    row.unwrap_or_else(|| panic!("no check {check}: {report:#}"))["verdict"].as_str().unwrap()
}

/// promise: X2
#[test]
fn a_driver_that_keeps_the_contract_passes() {
    let dir = driver("none");
    let ran = check(&dir, &ALL);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["findings"], 0);
    let rows = report["checks"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["verdict"] == "ok"), "{report:#}");
    for part in FAULTS.map(|(_, check)| check).into_iter().chain(["delete", "fence_host, repeated", "state"])
    {
        assert_eq!(verdict(&report, part), "ok", "{part}");
    }
    assert!(!dir.file("h1/web_0").exists(), "it was deleted");
}

/// promise: X2
#[test]
fn each_fault_is_found() {
    // Drivers mostly wait, so all of them are checked at the same time.
    std::thread::scope(|scope| {
        for (fault, found) in FAULTS {
            scope.spawn(move || is_found(fault, found));
        }
    });
}

fn is_found(fault: &str, found: &str) {
    let mut words = ALL.to_vec();
    if fault == "hanging" {
        words.extend(["--time-limit", "10s"]);
    }
    let ran = check(&driver(fault), &words);
    assert_eq!(ran.code, Some(1), "{fault}: {}{}", ran.out, ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(verdict(&report, found), "finding", "{fault}: {report:#}");
    assert!(ran.err.contains("the program does not keep the contract: "), "{fault}: {}", ran.err);
}

#[test]
fn the_machine_is_left_running_and_optional_checks_are_named() {
    let dir = driver("mute");
    let ran = check(&dir, &["--yes"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert_eq!(dir.read("h1/web_0"), "running\n");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = ran.out.lines().map(words).collect();
    for line in [
        "CHECK VERDICT DETAILS",
        "state skipped effects are not seen; the query has no answer: exit code 3",
        "migrate, redeploy skipped add --to HOST",
        "orders on hosts skipped add --host-order VERB",
        "reimage, delete skipped add --destroy to lose the machine",
    ] {
        assert!(lines.iter().any(|seen| seen == line), "{line}: {}", ran.out);
    }
    assert!(ran.out.ends_with(" ok, 0 findings, 0 refused, 4 skipped\n"), "{}", ran.out);
}

/// promise: X2
#[test]
fn a_check_acts_only_if_it_is_confirmed() {
    let dir = driver("none");
    let ran = check(&dir, &["--to", "h2"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.starts_with("forewarn: confirmation is required: check of "), "{}", ran.err);
    assert!(
        ran.err.contains("pause, restart, stop, move of web_0") && ran.err.contains("--yes"),
        "{}",
        ran.err
    );
    assert_eq!(std::fs::read_dir(dir.file("records")).unwrap().count(), 1, "nothing was sent");
    let missing = run_with_input(
        clean_command(crate::program()).args([
            "driver",
            "check",
            "/no/driver",
            "--machine",
            "m",
            "--host",
            "h",
            "--yes",
        ]),
        "",
    );
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("cannot start the driver program: /no/driver"), "{}", missing.err);
}

#[test]
fn an_unknown_result_is_a_finding() {
    let ran = check(&driver("unsure"), &ALL);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, report["findings"].as_u64()), (Some(1), Some(3)), "{report:#}");
    assert_eq!(verdict(&report, "update_host"), "finding");
}
