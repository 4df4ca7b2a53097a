//! What the language understands, and how it says that it does not.

use proptest::prelude::*;

fn error(text: &str) -> String {
    let played = forewarn_story::parse(text).and_then(|story| forewarn_story::run(&story));
    played.expect_err("a error").to_string()
}

/// promise: X1
#[test]
fn an_error_shows_the_line_and_points_at_the_word() {
    let shown = error("host h1\nvm solo on h1\nat 30s  aprove solo by solo\n");
    let expected = "\
line 3, column 9: unknown statement; did you mean `approve`?
  |
3 | at 30s  aprove solo by solo
  |         ^^^^^^";
    assert_eq!(shown, expected);
}

/// promise: X1
#[test]
fn a_byte_order_mark_before_a_story_is_skipped() {
    assert!(forewarn_story::parse("\u{feff}host h1\nvm solo on h1\n").is_ok());
    assert!(error("\u{feff}hots h1\n").starts_with("line 1, column 1: "));
}

/// promise: X1
#[test]
fn every_kind_of_error_has_a_message() {
    let fleet = "host h1\nvm solo on h1\npoll solo\n";
    for (line, words) in [
        ("fly to the moon", "column 1: unknown statement"),
        ("at", "column 4: expected a duration"),
        ("at noon restart solo", "column 4: not a duration"),
        ("at 5s", "column 7: expected a statement"),
        ("restart", "expected a machine"),
        ("restart nobody", "column 9: no such machine"),
        ("restart solo again", "column 14: unexpected word after the end of the statement"),
        ("approve solo", "expected `by`"),
        ("approve E7 by solo", "column 9: no such tenant"),
        ("cancel E7", "column 8: no such event in the transcript"),
        ("cancel rollout", "no rollout is in progress"),
        ("update machine h1", "expected `host` or `network`"),
        ("update host h9", "column 13: no such host"),
        ("scaleset web terminate 4m", "column 24: the notice of a Terminate event is 5m to 15m"),
        ("host h1 zone north", "column 14: not a number"),
        ("host h/1", "column 6: a name has only letters"),
        ("refused restart solo", "expected a refusal, but the statement succeeded"),
        ("host h1", "refused: the name is taken: h1"),
        ("expect solo Started", "column 8: expectation failed, found: nothing"),
        ("expect solo", "expected a condition"),
        ("expect solo happy", "column 13: unknown expectation"),
        ("expect solo gone", "column 8: expectation failed, found: still there"),
        ("expect solo unenrolled", "expectation failed, found: enrolled"),
        ("expect solo incarnation 7", "expectation failed, found: incarnation 1"),
        ("expect solo on h2", "expectation failed, found: on h1"),
        ("expect solo boots 2", "expectation failed, found: boot 1"),
        ("expect solo disk 2", "expectation failed, found: disk 1"),
        ("expect solo stopped", "expectation failed, found: running"),
        ("step clock sideways 5s", "expected `forward` or `back`"),
        ("vm h9 on h9", "column 10: no such host: h9"),
        ("machine a of sol on h1", "column 14: no such tenant: sol"),
        ("restart sol/solo", "column 9: no such tenant: sol"),
        ("instance of web on h1", "column 13: no such scale set: web"),
        ("instance of web on h1 spot delete", "column 23: unexpected word after the end of the statement"),
        ("poll nobody", "column 6: no such machine: nobody"),
        ("approve solo by nobody", "column 17: no such machine: nobody"),
        ("approve solo by owner of nobody", "column 26: no such tenant: nobody"),
        ("set useroperations 0", "column 20: expected a number from 1, or `unlimited`"),
        ("set mood good", "expected `unenrolled` or `useroperations` or `failure`"),
    ] {
        let shown = error(&format!("{fleet}{line}\n"));
        assert!(shown.starts_with("line 4, ") && shown.contains(words), "{line}: {shown}");
    }
    assert!(error("host h1\nadvance 1m\nat 30s crash").contains("the time of the story is already 1m"));
    assert!(
        error("host h1\nvm vm on h1\nvm a on h1\navailabilityset s\nmachine a of s on h1\nrestart a")
            .contains("several machines have this name: a")
    );
}

/// promise: X1
#[test]
fn a_hint_follows_the_quoted_line() {
    let shown = error("host h1\nvm solo on h1\nat 30s  restart slo\n");
    let expected = "\
line 3, column 17: no such machine: slo
  |
3 | at 30s  restart slo
  |                 ^^^
  = hint: did you mean solo?";
    assert_eq!(shown, expected);
}

#[test]
fn an_event_that_is_gone_has_the_name_of_the_transcript() {
    let shown = error("host h1\nvm solo on h1\npoll solo\nrestart solo\nadvance 1h\nforce E1\n");
    assert!(shown.starts_with("line 6, column 7: no such event: E1\n"), "{shown}");
}

/// promise: T2, T3
#[test]
fn an_approval_is_a_request_like_any_other() {
    let text = "host h1\nvm solo on h1\nexpect solo unenrolled\n";
    let play = |rest: &str| forewarn_story::run(&forewarn_story::parse(&format!("{text}{rest}")).unwrap());
    // Even one that is refused.
    play("refused approve solo by solo\nexpect solo enrolled\n").unwrap();
    // The day of silence begins anew with it.
    play("poll solo\nat 23h refused approve solo by solo\nat 46h expect solo enrolled\n").unwrap();
    play("poll solo\nat 46h expect solo unenrolled\n").unwrap();
    // The owner is no machine.
    play("refused approve solo by owner of solo\nexpect solo unenrolled\n").unwrap();
}

/// promise: X1
#[test]
fn statements_that_need_the_rules_are_found_before_a_live_run() {
    let check = |text: &str| forewarn_story::parse(text).unwrap().check_live();
    assert_eq!(check("host h1\nvm a on h1\njam a\n"), Ok(()));
    assert_eq!(check("host h1\nat 5s crash\ncrash\n").unwrap_err().line, 2);
    assert_eq!(
        check("step clock back 5s\n").unwrap_err().message,
        "this statement cannot run on a live server"
    );
}

/// promise: X1
#[test]
fn a_story_has_limits() {
    assert!(forewarn_story::parse(&"\n".repeat(2_000)).is_ok());
    let long = forewarn_story::parse(&"\n".repeat(2_001)).expect_err("one line too many");
    assert_eq!((long.line, long.message.as_str()), (2_001, "a story has at most 2000 lines"));
    assert!(forewarn_story::parse(&format!("#{}", "x".repeat(499))).is_ok());
    let wide = forewarn_story::parse(&format!("#{}", "x".repeat(500))).expect_err("one byte too many");
    assert_eq!(wide.message, "a line has at most 500 bytes");
}

/// promise: X1
#[test]
fn a_story_always_gives_the_same_transcript() {
    let text = include_str!("../../../../stories/rollout.story");
    let tell = || forewarn_story::run(&forewarn_story::parse(text).expect("a story")).expect("it comes true");
    assert_eq!(tell(), tell());
}

/// Lines made of words that the language knows, in any order.
fn lines() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "at",
        "0s",
        "5m",
        "30s",
        "1d",
        "host",
        "h1",
        "h2",
        "vm",
        "solo",
        "on",
        "scaleset",
        "web",
        "instance",
        "of",
        "ud",
        "1",
        "times",
        "3",
        "terminate",
        "spot",
        "delete",
        "poll",
        "all",
        "restart",
        "web_0",
        "approve",
        "by",
        "E1",
        "update",
        "fail",
        "advance",
        "expect",
        "Scheduled",
        "nothing",
        "refused",
        "crash",
        "brake",
        "on",
        "off",
        "network",
        "degrade",
        "fails",
        "in",
        "cancel",
        "rollout",
        "step",
        "clock",
        "back",
        "#",
        ",",
        "é",
    ]);
    prop::collection::vec(prop::collection::vec(word, 0..7).prop_map(|words| words.join(" ")), 0..12)
        .prop_map(|lines| lines.join("\n"))
}

proptest! {
    /// promise: X1
    #[test]
    fn parsing_a_story_never_panics(text in "(?s).{0,200}") {
        let _ = forewarn_story::parse(&text);
    }

    /// promise: X1
    #[test]
    fn running_a_story_never_panics(text in lines()) {
        let fleet = "host h1 h2\nvm solo on h1\nscaleset web\ninstance of web on h1\npoll all\n";
        if let Err(error) = forewarn_story::parse(&format!("{fleet}{text}")).and_then(|story| forewarn_story::run(&story)) {
            let place = format!("line {}, column {}", error.line, error.column);
            prop_assert!(error.to_string().starts_with(&place));
        }
    }
}
