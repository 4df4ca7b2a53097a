//! Reports: each format is read again.

use serde_json::Value;

use super::run;

#[test]
fn every_report_tells_the_same_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let names = ["verdict.xml", "verdict.tap", "verdict.json", "verdict.html"];
    let options: Vec<_> = names.iter().map(|name| format!("--report {}", file(name).display())).collect();
    let options = format!("--patience 1s --output json {}", options.join(" "));
    let Some(failed) = run(&options, "--ignore") else { return };
    assert_eq!(failed.code, Some(1), "{failed:?}");
    let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let sentence = "svc did not approve E1 (Reboot); it was restarted at NotBefore";

    let printed: Value = serde_json::from_str(&failed.out).expect("only the verdict is on standard output");
    let written: Value = serde_json::from_str(&read("verdict.json")).unwrap();
    assert_eq!(printed, written);
    assert_eq!((printed["passed"].as_bool(), printed["exit_code"].as_u64()), (Some(false), Some(1)));
    assert_eq!((&printed["failures"][0], &printed["polled"][0]), (&sentence.into(), &"svc".into()));
    let event = &printed["events"][0];
    assert_eq!((event["type"].as_str(), event["finding"].as_str()), (Some("Reboot"), Some("unapproved")));
    assert_eq!((&event["readers"][0], event["start"]["cause"].as_str()), (&"svc".into(), Some("not_before")));

    let suite = read("verdict.xml");
    assert!(
        suite.contains("<testsuite name=\"forewarn test: Reboot\" tests=\"2\" failures=\"1\""),
        "{suite}"
    );
    assert!(
        suite.contains(&format!("<failure message=\"{sentence}\">a program approves with POST")),
        "{suite}"
    );
    let tap = read("verdict.tap");
    assert!(tap.starts_with("TAP version 13\n1..2\nnot ok 1 - E1 (Reboot of svc) is approved"), "{tap}");
    let page = read("verdict.html");
    for words in [sentence, "<svg viewBox=", "prefers-color-scheme: dark", "class=\"bad\""] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("http://") && !page.contains("https://"), "it needs no other file");
}

#[test]
fn a_passed_test_is_one_in_every_report() {
    let directory = tempfile::tempdir().unwrap();
    let (xml, tap) = (directory.path().join("v.xml"), directory.path().join("v.tap"));
    let Some(passed) = run(&format!("--report {} --report {}", xml.display(), tap.display()), "") else {
        return;
    };
    assert_eq!(passed.code, Some(0), "{passed:?}");
    let xml = std::fs::read_to_string(xml).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"0\""), "{xml}");
    let tap = std::fs::read_to_string(tap).unwrap();
    assert!(
        tap.contains("ok 1 - E1") && tap.contains("ok 2 - the program, the story and the test as a whole"),
        "{tap}"
    );
}
