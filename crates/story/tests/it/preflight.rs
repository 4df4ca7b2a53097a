//! Mistakes that are found without running a story.

use forewarn_story::library::library;
use forewarn_story::parse;

fn mistake(text: &str) -> String {
    parse(text).unwrap().check().expect_err("a mistake").to_string()
}

const FLEET: &str = "host h1 h2\nvm solo on h1\nscaleset web\ninstance of web on h2 times 2\n";

/// promise: X1
#[test]
fn names_of_objects_that_nothing_makes_are_mistakes() {
    for (line, words) in [
        ("restart sloo", "line 5, column 9: no such machine: sloo"),
        ("poll web_2", "column 6: no such machine: web_2"),
        ("run command as svc", "column 16: no such machine: svc"),
        ("reboot host h1 h9", "column 16: no such host: h9"),
        ("vm other on h3", "column 13: no such host: h3"),
        ("machine db-0 of db on h1", "no such tenant: db"),
        ("instance of wbe on h1", "no such scale set: wbe"),
        ("approve sol by solo", "column 9: no such tenant: sol"),
        ("approve E1 by web_7", "column 15: no such machine: web_7"),
        ("refused restart nobody", "column 17: no such machine: nobody"),
        ("policy sol restart automatic", "no such tenant: sol"),
        ("change rollout add h7", "column 20: no such host: h7"),
        ("next poll of sol answer 500", "no such machine: sol"),
        ("expect slo Started", "column 8: no such tenant: slo"),
        ("await web_9 running within 1m", "column 7: no such machine: web_9"),
        ("expect solo on h4", "column 16: no such host: h4"),
        ("expect h9 open", "no such host: h9"),
    ] {
        let found = mistake(&format!("{FLEET}{line}\n"));
        assert!(found.contains(words), "{line}: {found}");
    }
    let hint = mistake(&format!("{FLEET}restart sloo\n"));
    assert!(hint.ends_with("hint: did you mean solo?"), "{hint}");
}

/// promise: X1
#[test]
fn times_that_go_back_are_mistakes() {
    let late = mistake(&format!("{FLEET}at 10s poll solo\nadvance 5s\nat 14s poll solo\n"));
    assert!(late.starts_with("line 7, column 1: the time of the story is already 15s"), "{late}");
    let late = mistake(&format!("{FLEET}repeat 2 times\n  at +10s poll solo\nend\nat 19s poll solo\n"));
    assert!(late.contains("the time of the story is already 20s"), "{late}");
    // An `await` may end at once.
    let text = format!("{FLEET}await solo unenrolled within 1h\nat 1s poll solo\nat 1s restart solo\n");
    parse(&text).unwrap().check().unwrap();
}

/// promise: X1
#[test]
fn an_object_that_may_have_gone_is_no_mistake() {
    for more in [
        "delete solo\nexpect solo gone\nexpect never gone\n",
        "refused vm other on h1 cpus 99\n",
        // Both fit only one after the other: the fleet of the check has no room for the second one.
        "host small cpus 1\nvm a on small cpus 1\ndelete a\nvm b on small cpus 1\nrestart b\n",
        "approve E9 by solo\ncancel E9\n",
    ] {
        let story = parse(&format!("{FLEET}{more}")).unwrap();
        story.check().unwrap_or_else(|mistake| panic!("{more}: {mistake}"));
    }
}

/// promise: X1
#[test]
fn the_stories_of_the_repository_have_no_mistakes() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stories");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|ending| ending == "story"));
    let mut count = 0;
    for file in files {
        let story = parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        story.check().unwrap_or_else(|mistake| panic!("{}: {mistake}", file.display()));
        count += 1;
    }
    assert!(count > 50);
    for scenario in library() {
        let story = parse(&scenario.story_in_place()).unwrap();
        story.check().unwrap_or_else(|mistake| panic!("{}: {mistake}", scenario.name));
    }
}

#[test]
fn the_command_is_the_machine_that_the_story_says_or_the_first_one() {
    let machine = |more: &str| parse(&format!("host h1\n{more}")).unwrap().command_machine();
    assert_eq!(machine("vm a on h1\nvm b on h1\nrun command as b\n").as_deref(), Some("b"));
    assert_eq!(machine("vm a on h1\nvm b on h1\nrun \"x\" as b\n").as_deref(), Some("a"));
    assert_eq!(machine("vm a on h1\nvm b on h1\nrun command as a\nrun command as b\n"), None);
    assert_eq!(machine("scaleset web\ninstance of web on h1 times 2\n").as_deref(), Some("web/web_0"));
    assert_eq!(machine("service s\nmachine m of s on h1\n").as_deref(), Some("s/m"));
    assert_eq!(machine(""), None);
}
