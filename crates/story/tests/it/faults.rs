//! Faults in stories: without requests they are recorded and have no effect.

use forewarn_story::{parse, run};

const FLEET: &str = "host h1\nvm solo on h1\npoll solo\n";

fn transcript(lines: &str) -> String {
    run(&parse(&format!("{FLEET}{lines}")).unwrap()).unwrap().to_string()
}

#[test]
fn a_fault_is_recorded_and_changes_nothing_else() {
    let rest = "restart solo\napprove solo by solo\nadvance 10m\n";
    let plain = transcript(rest);
    let faults = [
        "next poll of solo answer 500",
        "next 3 polls of solo answer hide=5s",
        "next 2 approvals of solo answer reset",
        "next request of solo answer slow=2s",
    ];
    let shown = transcript(&format!("{}\n{rest}", faults.join("\n")));
    let others: Vec<_> = shown.lines().filter(|line| !faults.contains(&line.trim())).collect();
    assert_eq!(others, plain.lines().collect::<Vec<_>>());
    assert_eq!(shown.lines().count(), others.len() + faults.len());
}

#[test]
fn a_wrong_fault_is_an_error_at_its_word() {
    for (line, column, message) in [
        ("next", 6, "expected"),
        ("next 0 polls of solo answer 500", 6, "not a number from 1 to 1000000"),
        ("next 2 poll of solo answer 500", 8, "`polls`"),
        ("next polls of solo answer 500", 6, "`poll`"),
        ("next poll of solo answer 200", 26, "not a fault"),
        ("next poll of solo answer slow=1h", 26, "at most 10m"),
        ("next approval of solo answer jump", 30, "applies to polls only"),
        ("next poll of solo answer duplicate", 26, "no fault of a machine"),
        ("next poll of solo answer 500 now", 30, "unexpected word"),
    ] {
        let error = parse(&format!("{FLEET}{line}\n")).unwrap_err();
        assert_eq!((error.line, error.column), (4, column), "{line}: {error}");
        assert!(error.message.contains(message), "{line}: {error}");
    }
    let story = parse(&format!("{FLEET}next poll of nobody answer 500\n")).unwrap();
    let error = run(&story).unwrap_err();
    assert!(error.to_string().contains("no such machine: nobody"), "{error}");
    assert_eq!(story.check_live(), Ok(()));
}
