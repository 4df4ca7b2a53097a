//! What the language understands, and how it says that it does not.

use proptest::prelude::*;

fn mistake(text: &str) -> String {
    let played = forewarn_story::parse(text).and_then(|story| forewarn_story::run(&story));
    played.expect_err("a mistake").to_string()
}

#[test]
fn a_mistake_shows_the_line_and_points_at_the_word() {
    let shown = mistake("host h1\nvm solo on h1\nat 30s  aprove solo by solo\n");
    let expected = "\
line 3, column 9: not something that can happen; did you mean `approve`?
  |
3 | at 30s  aprove solo by solo
  |         ^^^^^^";
    assert_eq!(shown, expected);
}

#[test]
fn every_kind_of_mistake_is_told_in_words() {
    let fleet = "host h1\nvm solo on h1\npoll solo\n";
    for (line, words) in [
        ("fly to the moon", "column 1: not something that can happen"),
        ("at", "column 4: here should be a length of time"),
        ("at noon restart solo", "column 4: not a length of time"),
        ("at 5s", "column 7: here should be what happens"),
        ("restart", "here should be a machine"),
        ("restart nobody", "column 9: no such machine"),
        ("restart solo again", "column 14: the line should end before this word"),
        ("approve solo", "here should be `by`"),
        ("approve E7 by solo", "column 9: no such tenant"),
        ("cancel E7", "column 8: no such event has appeared"),
        ("cancel rollout", "no rollout is under way"),
        ("update machine h1", "here should be `host` or `network`"),
        ("update host h9", "column 13: no such host"),
        ("scaleset web terminate 4m", "column 24: the notice of a Terminate event is 5m to 15m"),
        ("host h1 zone north", "column 14: not a number"),
        ("host h/1", "column 6: a name has only letters"),
        ("refused restart solo", "this was not refused"),
        ("host h1", "refused: the name is taken: h1"),
        ("expect solo Started", "column 8: not as expected, but: nothing"),
        ("expect solo", "here should be what is expected"),
        ("expect solo happy", "column 13: not something that can be expected"),
        ("expect solo gone", "column 8: not as expected, but: still there"),
        ("expect solo unenrolled", "not as expected, but: enrolled"),
        ("expect solo incarnation 7", "not as expected, but: incarnation 1"),
        ("expect solo on h2", "not as expected, but: on h1"),
        ("expect solo boots 2", "not as expected, but: boot 1"),
        ("expect solo disk 2", "not as expected, but: disk 1"),
        ("expect solo stopped", "not as expected, but: running"),
        ("step clock sideways 5s", "here should be `forward` or `back`"),
        ("set mood good", "here should be `unenrolled` or `useroperations` or `failure`"),
    ] {
        let shown = mistake(&format!("{fleet}{line}\n"));
        assert!(shown.starts_with("line 4, ") && shown.contains(words), "{line}: {shown}");
    }
    assert!(mistake("host h1\nadvance 1m\nat 30s crash").contains("the story is at 1m already"));
    assert!(
        mistake("host h1\nvm vm on h1\nvm a on h1\navailabilityset s\nmachine a of s on h1\nrestart a")
            .contains("tenant/name")
    );
}

#[test]
fn a_story_has_limits() {
    assert!(forewarn_story::parse(&"\n".repeat(2_000)).is_ok());
    let long = forewarn_story::parse(&"\n".repeat(2_001)).expect_err("one line too many");
    assert_eq!((long.line, long.message.as_str()), (2_001, "a story has at most 2000 lines"));
    assert!(forewarn_story::parse(&format!("#{}", "x".repeat(499))).is_ok());
    let wide = forewarn_story::parse(&format!("#{}", "x".repeat(500))).expect_err("one byte too many");
    assert_eq!(wide.message, "a line has at most 500 bytes");
}

#[test]
fn the_same_story_tells_the_same_every_time() {
    let text = include_str!("../../../stories/rollout.story");
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
    #[test]
    fn no_text_makes_the_reader_stumble(text in "(?s).{0,200}") {
        let _ = forewarn_story::parse(&text);
    }

    #[test]
    fn no_words_make_the_player_stumble(text in lines()) {
        let fleet = "host h1 h2\nvm solo on h1\nscaleset web\ninstance of web on h1\npoll all\n";
        if let Err(mistake) = forewarn_story::parse(&format!("{fleet}{text}")).and_then(|story| forewarn_story::run(&story)) {
            let place = format!("line {}, column {}", mistake.line, mistake.column);
            prop_assert!(mistake.to_string().starts_with(&place));
        }
    }
}
