//! Variables, repetition and random stories.

use std::time::{Duration, Instant};

use forewarn_story::{STATEMENTS_MAX, Story, parse, run};

fn parsed(text: &str) -> Story {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn played(text: &str) -> String {
    run(&parsed(text)).unwrap_or_else(|error| panic!("{error}")).to_string()
}

fn mistake(text: &str) -> String {
    parse(text).and_then(|story| run(&story)).expect_err("a mistake").to_string()
}

/// promise: X1
#[test]
fn a_block_means_what_its_lines_mean_without_it() {
    let short = "\
let zone = 2
let rest = terminate 5m
for h in 0..3
  host h$h zone $zone
  for name in a b   # two machines on each
    vm ${name}_$h on h$h $rest
  end
end
poll all
repeat 2 times
  at +30s restart a_0
  advance 1h
end
";
    let long = "\
host h0 zone 2
vm a_0 on h0 terminate 5m
vm b_0 on h0 terminate 5m
host h1 zone 2
vm a_1 on h1 terminate 5m
vm b_1 on h1 terminate 5m
host h2 zone 2
vm a_2 on h2 terminate 5m
vm b_2 on h2 terminate 5m
poll all
at 30s restart a_0
at 30s advance 1h
at 1h1m restart a_0
advance 1h
";
    assert_eq!(played(short), played(long));
    assert_eq!(parsed(short).statement_count(), 14);
}

/// promise: X1
#[test]
fn a_variable_of_a_loop_ends_with_it() {
    let text = "let n = 7\nfor n in 1..3\nhost a$n\nend\nhost b$n\nfor m in x\nhost $m\nend\n";
    let shown = played(text);
    for host in ["host a1", "host a2", "host b7", "host x"] {
        assert!(shown.contains(host), "{shown}");
    }
    assert!(mistake(&format!("{text}host $m\n")).contains("no such variable: m"));
    // A range without numbers, or no repetition, is nothing.
    assert_eq!(parsed("for n in 3..3\nhost a$n\nend\nrepeat 0 times\nhost b\nend\n").statement_count(), 0);
}

/// promise: X1
#[test]
fn a_text_keeps_the_variables_of_the_shell() {
    let story = "host h1\nlet n = 3\nlet said = \"a b\"\nvm solo on h1\nrun \"echo $HOME $n ${n} $said $(x) $\" as solo\n";
    let shown = played(story);
    assert!(shown.contains("run \"echo $HOME 3 3 a b $(x) $\" as solo"), "{shown}");
    let quotes = "host h1\nvm solo on h1\nlet two = \"a\" \"b\"\nrun \"echo $two\" as solo\n";
    assert!(played(quotes).contains(r#"run "echo \"a\" \"b\"" as solo"#), "{}", played(quotes));
}

/// promise: X1
#[test]
fn a_mistake_in_a_block_names_the_line_of_the_story() {
    let shown = mistake("host h1\nfor n in 0..3\n  vm v$n on h1\n  restart w$n\nend\n");
    let expected = "\
line 4, column 11: no such machine: w0
  |
4 |   restart w0
  |           ^^
  = hint: did you mean v0?
  = written: restart w$n";
    assert_eq!(shown, expected);
    for (text, words) in [
        ("repeat 2 times\nhost h\n", "line 1, column 16: the block has no `end`"),
        ("host h\nend\n", "line 2, column 1: no block begins before this `end`"),
        ("repeat\nend\n", "line 1, column 8: expected a number"),
        ("repeat often\nend\n", "not a number from 0"),
        ("repeat 2\nend\n", "expected `times`"),
        ("repeat 2 times now\nend\n", "unexpected word after the end of the statement"),
        ("for in a b\nend\n", "column 8: expected `in`"),
        ("for 2 in a b\nend\n", "column 5: the name of a variable has letters"),
        ("for n in\nend\n", "expected a range, such as 0..4, or words"),
        ("for n in 0..x\nend\n", "column 10: expected a range"),
        ("let x\n", "expected `=`"),
        ("let x =\n", "expected a value"),
        ("let x y\n", "expected `=`"),
        ("host h$\n", "column 6: expected the name of a variable after `$`"),
        ("host h$n\n", "column 6: no such variable: n"),
        ("let n = 1\nhost h$n_0\n", "hint: write ${n}_0"),
        ("at 5s repeat 2 times\n", "column 7: unknown statement"),
        ("randomly seed 1 2 times between 1s and 2s\nend\n", "needs at least one line"),
        ("randomly seed 1 2 times between 2s and 1s\nhost h\nend\n", "column 40: the second time is shorter"),
        ("randomly 2 times between 2s and 1s\nhost h\nend\n", "expected `seed`"),
        (
            "randomly seed 1 1 times between 1s and 2s\nat 5s host h\nend\n",
            "line 2, column 1: a line of `randomly` has no time",
        ),
        (
            "randomly seed 1 1 times between 1s and 2s\nrepeat 1 times\nhost h\nend\nend\n",
            "line 2, column 16: a block cannot",
        ),
    ] {
        let shown = mistake(text);
        assert!(shown.contains(words), "{text}: {shown}");
    }
}

/// promise: X1
#[test]
fn repetition_has_limits() {
    let deep =
        |depth: usize| format!("{}host h\n{}", "repeat 1 times\n".repeat(depth), "end\n".repeat(depth));
    assert!(parse(&deep(8)).is_ok());
    assert!(mistake(&deep(9)).contains("line 9, column 1: blocks are nested at most 8 deep"));
    let begin = Instant::now();
    for endless in [
        "repeat 4000000000 times\nend\n",
        "repeat 1000 times\nrepeat 1000 times\nadvance 1s\nend\nend\n",
        "for n in 0..4000000000\nlet x = $n\nend\n",
        "let a = 0123456789\nrepeat 100 times\nlet a = $a$a\nend\n",
        "let a = 0123456789\nrepeat 100 times\nlet a = \"$a $a\"\nend\n",
    ] {
        let error = parse(endless).expect_err("a limit");
        assert!(error.message.contains("at most"), "{error}");
    }
    assert!(begin.elapsed() < Duration::from_mins(2), "{:?}", begin.elapsed());
    assert!(parse(&format!("repeat {} times\nend\n", STATEMENTS_MAX - 1)).is_ok());
}

/// promise: X1
#[test]
fn a_random_story_follows_from_its_seed() {
    let story = |seed: u32| {
        format!(
            "host h1 h2 h3\nscaleset web\ninstance of web on h1 times 3\npoll all\n\
             randomly seed {seed} 40 times between 10s and 10m\n  restart web_0\n  redeploy web_1\n  update host h1\n  \
             approve web by web_2\n  poll all\nend\n"
        )
    };
    assert_eq!(played(&story(7)), played(&story(7)));
    assert_ne!(played(&story(7)), played(&story(8)));
    let shown = played(&story(7));
    for line in ["restart web_0", "redeploy web_1", "update host h1", "approve web by web_2", "poll all"] {
        assert!(shown.contains(&format!("  {line}\n")), "{line}: {shown}");
    }
    // The rules may refuse a line of it; the transcript says so.
    assert!(shown.contains("      refused: "), "{shown}");
}

/// promise: X1
#[test]
fn a_large_fleet_runs_in_reasonable_time() {
    let text = "\
for s in 0..10
  scaleset web$s
  for n in 0..100
    host r${s}_$n
    instance of web$s on r${s}_$n times 10
  end
end
for n in 0..200
  vm solo$n on r0_7
end
poll all
repeat 5 times
  for n in 0..200
    restart solo$n
  end
  advance 1h
end
";
    let begin = Instant::now();
    let shown = played(text);
    let took = begin.elapsed();
    assert!(shown.contains("E1000 Reboot Started"), "{}", &shown[shown.len() - 2_000..]);
    assert!(shown.ends_with("and 10160 more\n"), "{}", &shown[shown.len() - 200..]);
    assert!(took < Duration::from_mins(5), "{took:?}");
}

#[test]
fn a_block_without_a_round_changes_no_variable() {
    let text = "let x = 1\nhost h$x\nfor x in 3..3\n  host h$x\nend\nvm solo on h$x\nexpect solo on h1\n";
    assert!(played(text).contains("vm solo on h1"));
}
