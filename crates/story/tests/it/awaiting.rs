//! `await`, and expectations about approvals.

use forewarn_story::{StoryError, parse, run};

fn played(text: &str) -> String {
    run(&parse(text).unwrap_or_else(|error| panic!("{error}")))
        .unwrap_or_else(|error| panic!("{error}"))
        .to_string()
}

fn failed(text: &str) -> StoryError {
    parse(text).and_then(|story| run(&story)).expect_err("a failure")
}

const SOLO: &str = "host h1 h2\nvm solo on h1\npoll solo\n";

/// promise: X1
#[test]
fn a_story_waits_until_a_condition_holds() {
    let shown = played(&format!(
        "{SOLO}redeploy solo\nawait solo Started within 1h\nat 10m expect solo Started\n\
         await solo on h2, solo disk 2, solo nothing within 10m\nat 12m expect solo on h2\nawait solo running within 0s\n"
    ));
    assert!(shown.contains("  await solo Started within 1h\n"), "{shown}");
    // At the instant at which it holds, and not later.
    assert!(
        failed(&format!("{SOLO}redeploy solo\nawait solo Started within 1h\nat 9m59s poll solo\n"))
            .message
            .contains("already 10m")
    );
    played(&format!("{SOLO}await solo unenrolled within 2d\nat 1d poll solo\n"));
    played(&format!(
        "{SOLO}rollout update h1 h2 with window 02:00-03:00 pause 1h\nawait rollout finished within 3d\n"
    ));
}

/// promise: X1
#[test]
fn a_condition_that_does_not_hold_in_time_is_a_failure() {
    let error = failed(&format!("{SOLO}at 5s restart solo\nawait solo nothing, solo Started within 10m\n"));
    let failure = error.failure.as_ref().unwrap();
    assert_eq!((error.line, error.column), (5, 7));
    assert_eq!(error.message, "still unmet after 10m, found: Scheduled");
    assert_eq!(failure.expected.as_deref(), Some("solo nothing"));
    assert_eq!(failure.actual.as_deref(), Some("Scheduled"));
    assert!(failure.transcript.contains("E1 Reboot Scheduled"), "{}", failure.transcript);
    assert!(error.to_string().ends_with("  = expected: solo nothing\n  = actual:   Scheduled"), "{error}");
    // Not a second later.
    let late = failed(&format!("{SOLO}restart solo\nawait solo Started within 14m59s\n"));
    assert_eq!(late.message, "still unmet after 14m59s, found: Scheduled");
    for (line, words) in [
        ("await", "expected a tenant, a machine or `rollout`"),
        ("await solo Started", "column 20: expected `within` and a duration"),
        ("await solo Started within", "expected a duration"),
        ("await nobody Started within 5m", "column 7: no such tenant: nobody"),
        ("refused await solo Started within 5m", "unknown statement"),
    ] {
        let error = failed(&format!("{SOLO}{line}\n"));
        assert!(error.to_string().contains(words), "{line}: {error}");
    }
}

/// promise: X1
#[test]
fn an_approval_has_a_source() {
    let fleet = "host h1\nscaleset web\ninstance of web on h1 times 2\nvm solo on h1\npoll all\n";
    let actual = |rest: &str, expected: &str| {
        let error = failed(&format!("{fleet}{rest}expect {expected}\n"));
        error.failure.and_then(|failure| failure.actual).unwrap_or(error.message)
    };
    assert_eq!(actual("", "web_0 approved"), "no event has been announced to it");
    assert_eq!(actual("restart web_0\n", "web_0 approved"), "E1 is not approved");
    assert_eq!(actual("restart web_0\n", "web_1 approved"), "no event has been announced to it");
    let by_peer = "restart web_0\napprove web by web_1\n";
    played(&format!("{fleet}{by_peer}expect web_0 approved\n"));
    assert_eq!(actual(by_peer, "web_0 approved by itself"), "E1 was approved by web_1");
    let by_owner = "restart web_0\napprove web by owner of web\n";
    played(&format!("{fleet}{by_owner}expect web_0 approved\n"));
    assert_eq!(actual(by_owner, "web_0 approved by itself"), "E1 was approved by its owner or an operator");
    let by_policy = "policy solo restart automatic\nrestart solo\n";
    let approval = actual(by_policy, "solo approved by itself");
    assert!(
        ["E1 was approved by the policy", "no event has been announced to it"].contains(&approval.as_str()),
        "{approval}"
    );
    let by_itself = "restart web_0\napprove web by web_0\n";
    played(&format!(
        "{fleet}{by_itself}expect web_0 approved by itself, no start before approval\nadvance 1h\nexpect web_0 approved\n"
    ));
    // The newest event counts.
    assert_eq!(
        actual(&format!("{by_itself}advance 1h\nrestart web_0\n"), "web_0 approved"),
        "E2 is not approved"
    );
    played(&format!(
        "{fleet}run command as web_0\nrestart web_0\nawait web_0 approved by itself within 1m\n"
    ));
}

/// promise: X1
#[test]
fn a_start_without_approval_is_noticed() {
    let rest = "restart solo\nexpect no start before approval\nadvance 1h\n";
    let error = failed(&format!("{SOLO}{rest}expect no start before approval\n"));
    assert_eq!(error.failure.unwrap().actual.as_deref(), Some("E1 has started without approval"));
    let error = failed(&format!("{SOLO}{rest}restart solo\nforce E2\nexpect no start before approval\n"));
    assert_eq!(error.failure.unwrap().actual.as_deref(), Some("E1 E2 have started without approval"));
    // An event that was never scheduled could not be approved.
    played(&format!("{SOLO}fail host h1\nadvance 1h\nexpect no start before approval\n"));
    assert!(failed(&format!("{SOLO}expect no start\n")).message.contains("expected `before`"));
}

/// promise: X1
#[test]
fn a_misspelt_word_gets_a_suggestion() {
    for (line, words) in [
        ("expect solo started", "unknown expectation; did you mean `Started`?"),
        ("expect solo scheduled", "did you mean `Scheduled`?"),
        ("expect solo stoped", "did you mean `stopped`?"),
        ("expect rollout pausd", "did you mean `paused`?"),
        ("Restart solo", "unknown statement; did you mean `restart`?"),
        ("awiat solo Started within 5m", "did you mean `await`?"),
        ("brake of", "expected `on` or `off`; did you mean `off`?"),
        ("policy solo Restart automatic", "did you mean `restart`?"),
        ("remove hosts h1", "did you mean `host`?"),
    ] {
        let error = failed(&format!("{SOLO}{line}\n"));
        assert!(error.message.contains(words), "{line}: {error}");
    }
}

/// promise: X1
#[test]
fn a_failure_has_the_transcript_up_to_its_line() {
    let error = failed(&format!("{SOLO}at 10s restart solo\nexpect solo Started\nrestart solo\n"));
    let failure = error.failure.clone().unwrap();
    let whole = played(&format!("{SOLO}at 10s restart solo\n"));
    assert!(whole.starts_with(&failure.transcript), "{}", failure.transcript);
    assert_eq!(
        (failure.expected.as_deref(), failure.actual.as_deref()),
        (Some("solo Started"), Some("Scheduled"))
    );
    let refused = failed(&format!("{SOLO}host h1\n")).failure.unwrap();
    assert!(
        refused.transcript.ends_with("host h1\n") && refused.expected.is_none(),
        "{}",
        refused.transcript
    );
    assert_eq!(parse("hots h1\n").unwrap_err().failure, None);
}
