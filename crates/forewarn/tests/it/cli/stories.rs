//! `forewarn story`: reports, checks and layouts.

use forewarn_testkit::TestDir;
use serde_json::Value;

use super::support::alone;

const GOOD: &str = "host h1\nvm solo on h1\npoll solo\nat 10s  restart solo\nexpect solo Scheduled\n";
const BAD: &str =
    "host h1\nvm solo on h1\npoll solo\nat 10s  restart solo\nexpect solo Started\nadvance 1h\n";

/// promise: X1
#[test]
fn a_failing_story_shows_its_transcript_and_what_was_expected() {
    let dir = TestDir::new();
    let bad = dir.write("bad.story", BAD);
    let ran = alone(&format!("story run {bad}"));
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.starts_with("at 0s\n  host h1\n"), "{}", ran.out);
    assert!(ran.out.contains("E1 Reboot Scheduled") && !ran.out.contains("advance"), "{}", ran.out);
    let expected = format!(
        "forewarn: {bad}: line 5, column 8: expectation failed, found: Scheduled\n  |\n5 | expect solo Started\n  |        ^^^^\n  \
         = expected: solo Started\n  = actual:   Scheduled\nforewarn: 1 of 1 stories failed\n"
    );
    assert_eq!(ran.err, expected);
    let quiet = alone(&format!("story run --quiet {bad}"));
    assert_eq!((quiet.out.as_str(), quiet.err), ("", expected));
}

/// promise: X1
#[test]
fn results_of_stories_are_reported_as_json_and_junit() {
    let dir = TestDir::new();
    let (good, bad) = (dir.write("good.story", GOOD), dir.write("bad.story", BAD));
    let ran = alone(&format!("story run --output json {good} {bad} /nowhere.story"));
    assert_eq!(ran.code, Some(1));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    let [first, second, third] = report["stories"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&first["name"], &first["passed"]), (&Value::from(good.clone()), &Value::Bool(true)));
    assert!(first["transcript"].as_str().unwrap().contains("in the end"));
    assert!(first["line"].is_null() && first["message"].is_null());
    assert_eq!((second["passed"].as_bool(), second["line"].as_u64()), (Some(false), Some(5)));
    assert_eq!(second["message"], "expectation failed, found: Scheduled");
    assert_eq!(
        (second["expected"].as_str(), second["actual"].as_str()),
        (Some("solo Started"), Some("Scheduled"))
    );
    assert!(second["transcript"].as_str().unwrap().ends_with("solo\n"), "{second}");
    assert!(third["message"].as_str().unwrap().starts_with("cannot read the story"), "{third}");
    let ran = alone(&format!("story run --output junit {good} {bad}"));
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("tests=\"2\" failures=\"1\""), "{}", ran.out);
    assert!(ran.out.contains(&format!("<testcase classname=\"stories\" name=\"{good}\"/>")), "{}", ran.out);
    assert!(ran.out.contains("<failure message=\"expectation failed, found: Scheduled\">"), "{}", ran.out);
    assert!(ran.out.contains("actual:   Scheduled"), "{}", ran.out);
    let other = alone("vm ls --output junit");
    assert_eq!((other.code, other.out.as_str()), (Some(2), ""));
    assert!(other.err.contains("only `story run` prints JUnit XML"), "{}", other.err);
}

/// promise: X1
#[test]
fn a_check_reads_stories_and_lists_what_they_need() {
    let dir = TestDir::new();
    let (good, bad) = (dir.write("good.story", BAD), dir.write("bad.story", "host h1\nexpct h1 open\n"));
    let text = "host h1\nvm a on h1\nrepeat 3 times\n  crash\nend\nrun command as a\nfencing off\n";
    let needy = dir.write("needy.story", text);
    let ran = alone(&format!("story check {good} {needy}"));
    let needs = format!(
        "{good}: 6 statements; runs in the rules and on a server\n{needy}: 7 statements\n  \
         line 4 runs only in the rules: crash\n  \
         line 6 starts the command of `forewarn test`, and simulates it elsewhere: run command as a\n"
    );
    assert_eq!((ran.code, ran.out), (Some(0), needs));
    let ran = alone(&format!("story check {bad} {good}"));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("did you mean `expect`?") && ran.err.ends_with("1 of 2 stories are invalid\n"),
        "{}",
        ran.err
    );
    let ran = alone(&format!("story check --output json {needy} {bad}"));
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (report["stories"][0]["live"].as_bool(), report["stories"][0]["needs"][0]["line"].as_u64()),
        (Some(false), Some(4))
    );
    assert_eq!(
        (report["stories"][1]["passed"].as_bool(), report["stories"][1]["line"].as_u64()),
        (Some(false), Some(2))
    );
}

/// promise: X1
#[test]
fn a_layout_is_checked_and_written() {
    let dir = TestDir::new();
    let (usual, other) =
        (dir.write("usual.story", GOOD), dir.write("other.story", "repeat 2 times\nhost   h1 #so\nend\n"));
    let ran = alone(&format!("story fmt --check {usual} {other}"));
    assert_eq!((ran.code, ran.out), (Some(1), format!("{other}\n")));
    assert!(
        ran.err.contains("1 of 2 stories have another layout\n  hint: forewarn story fmt"),
        "{}",
        ran.err
    );
    let ran = alone(&format!("story fmt {usual} {other}"));
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", ""));
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "repeat 2 times\n  host h1  #so\nend\n");
    assert_eq!(std::fs::read_to_string(&usual).unwrap(), GOOD);
    assert_eq!(alone(&format!("story fmt --check {usual} {other}")).code, Some(0));
    let bad = dir.write("bad.story", "hots h1\n");
    assert_eq!(alone(&format!("story fmt {bad}")).code, Some(1));
    assert_eq!(std::fs::read_to_string(&bad).unwrap(), "hots h1\n");
}
