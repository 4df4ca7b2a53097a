//! What settings mean, and what is wrong with them.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    // The usual place of hooks may have some on the machine that runs this.
    let text = if text.contains("hooks =") { text.to_owned() } else { format!("hooks = \"/\"\n{text}") };
    Config::parse(Path::new("agent.toml"), &text)
}

fn problems(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

fn problem(text: &str) -> String {
    let problems = problems(text);
    assert_eq!(problems.len(), 1, "{text}: {problems:?}");
    problems[0].clone()
}

const HOOK: &str = "[[hook]]\nname = \"a\"\nwait = \"1s\"\n";

#[test]
fn without_settings_there_are_the_usual_ones() {
    let config = parse("").unwrap();
    assert_eq!(config.poll, POLL);
    assert!(config.long_poll && config.endpoint.is_none() && config.name.is_none());
    assert_eq!(config.listen, Some("127.0.0.1:9911".parse().unwrap()));
    assert_eq!(config.approval, Approval::Alone);
    assert_eq!(config.on_failure, Failure::Hold);
    assert!(config.hooks.is_empty() && config.rules.is_empty());
    assert_eq!(config.settings("web_0").me, "web_0");
}

#[test]
fn everything_can_be_said() {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "0123456789abcdef0123456789abcdef").unwrap();
    std::fs::set_permissions(key.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    let text = format!(
        r#"
        endpoint = "http://127.0.0.1:4080/vm/web_0"
        name = "web_0"
        poll = "2s"
        long_poll = false
        state = "/tmp/state.json"
        hook_limit = "1m"
        spare = "0s"
        event_log = "/tmp/events.jsonl"
        listen = "10.0.0.4:9911"
        [log]
        format = "json"
        level = "debug"
        [approval]
        policy = "leader"
        on_failure = "approve"
        [peers]
        list = ["web_0=10.0.0.4:9911", "web_1=web-1.example:9911"]
        key_file = "{}"
        silent_after = "20s"
        go_on_when_left = "5m"
        at_once = 1
        reserve = "10m"
        [[rule]]
        when = {{ types = ["Freeze"], shorter_than = "10s", unknown = true }}
        treatment = "ignore"
        [[rule]]
        when = {{ sources = ["User"] }}
        treatment = "approve-at-once"
        approval = "when-done"
        on_failure = "hold"
        [[hook]]
        name = "stop"
        command = ["/bin/true", "x"]
        undo = ["/bin/true"]
        when = {{ types = ["Reboot"], mine = "yes" }}
        order = 10
        limit = "2m"
        retries = 2
        even_late = true
        [[hook]]
        name = "note"
        phase = "cancelled"
        when = {{ mine = "any" }}
        touch = {{ path = "/run/x" }}
        "#,
        key.path().display()
    );
    let config = parse(&text).unwrap();
    assert_eq!(config.rules.len(), 2);
    let stop = &config.hooks[0];
    assert_eq!((stop.order, stop.limit, stop.retries), (10, Duration::from_mins(2), 2));
    assert!(stop.undoes && stop.even_late);
    let note = &config.hooks[1];
    assert_eq!((note.order, note.limit), (50, Duration::from_mins(1)));
    assert!(!note.undoes, "only what is done in order to prepare is undone");
    assert!(config.peers.places.is_some() && config.peers.watched.at_once == Some(1));
}

#[test]
fn all_that_is_wrong_is_told_at_once_with_its_line() {
    let text = "hooks = \"/\"\npoll = \"soon\"\nlong_pol = true\nlisten = \"here\"\n\
                [log]\nlevel = \"loud\"\n\
                [[hook]]\nname = \"a\"\nlimit = 5\nwait = \"1s\"\n\
                [[hook]]\nname = \"b\"\n\
                [[hook]]\nname = \"b c\"\nwait = \"1s\"\nsystemd = { stop = [\"x\"] }\n";
    let told = problems(text);
    let lines: Vec<_> = told.iter().map(|problem| problem.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "3", "4", "6", "9", "11", "13", "13"], "{told:#?}");
    assert!(told[0].contains("not a length of time"), "{}", told[0]);
    assert!(told[1].contains("unknown field `long_pol`"), "{}", told[1]);
    assert!(told[2].contains("not an address to listen at"), "{}", told[2]);
    assert!(told[3].contains("unknown variant `loud`"), "{}", told[3]);
    assert!(told[5].contains("a hook does something"), "{}", told[5]);
    assert!(told[6].contains("a hook has a name"), "{}", told[6]);
    assert!(told[7].contains("a hook does one thing"), "{}", told[7]);
}

#[test]
fn a_byte_order_mark_before_the_settings_is_skipped() {
    let text = "\u{feff}hooks = \"/\"\nname = \"web_0\"\n";
    assert_eq!(parse(text).unwrap().name.as_deref(), Some("web_0"));
    assert!(problems("\u{feff}hooks = \"/\"\npoll = \"soon\"\n")[0].starts_with("agent.toml:2:"));
}

#[test]
fn an_empty_list_is_rejected_with_its_line() {
    let text = "hooks = \"/\"\n[[rule]]\nwhen = { types = [] }\ntreatment = \"ignore\"\n\
                [[hook]]\nname = \"a\"\nwait = \"1s\"\nwhen = { sources = [] }\n";
    let told = problems(text);
    let lines: Vec<_> = told.iter().map(|problem| problem.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["3", "8"], "{told:#?}");
    assert!(told.iter().all(|problem| problem.contains("at least one")), "{told:#?}");
    let told = problems("[peers]\nlist = []\nkey_file = \"/nowhere\"\n");
    assert!(told[0].contains("peers.list is empty"), "{told:#?}");
}

#[test]
fn what_is_no_toml_is_told_with_its_line() {
    let told = problems("name = \"a\"\nlisten = \n[log\n");
    assert!(told[0].starts_with("agent.toml:3: "), "{told:?}");
}

#[test]
fn lengths_of_time_have_bounds() {
    for (text, what) in [
        ("poll = \"0s\"", "poll is from 1s to 1m"),
        ("poll = \"1h\"", "poll is from 1s to 1m"),
        ("spare = \"1h\"", "spare is from 0s to 10m"),
        ("hook_limit = \"0s\"", "hook_limit is from 1s to 1d"),
    ] {
        assert!(problem(text).contains(what), "{}", problem(text));
    }
    assert!(
        problem("[[hook]]\nname = \"a\"\nwait = \"1s\"\nlimit = \"2d\"").contains("limit is from 1s to 1d")
    );
}

#[test]
fn a_leader_needs_peers_and_peers_need_a_key() {
    assert!(
        problem("[approval]\npolicy = \"leader\"").contains("agent.toml:3: a leader waits for its peers")
    );
    assert!(problem("[[rule]]\napproval = \"leader\"").contains("a leader waits for its peers"));
    assert!(problem("[peers]\nmembers = true").contains("peers share a key"));
    let told = problems("listen = \"off\"\n[peers]\nmembers = true\nkey_file = \"/nonexistent\"");
    assert!(told[0].contains("peers ask this agent as well"), "{told:?}");
    assert!(told[1].contains("/nonexistent: "), "{told:?}");
    let told = problems("[peers]\nkey_file = \"/x\"");
    assert!(told.iter().any(|what| what.contains("peers are found in one way")), "{told:?}");
    let told = problems("[peers]\nlist = [\"web_0\", \"a=b:1\", \"a=c:2\"]\nmembers = true\nat_once = 0\n");
    assert!(told.iter().any(|what| what.contains("peers are found in one way")), "{told:?}");
    assert!(told.iter().any(|what| what.contains("at_once = 0 would let nobody prepare")), "{told:?}");
    let told = problems("[peers]\nlist = [\"web_0\", \"a=b:1\", \"a=c:2\"]\n");
    assert!(told.iter().any(|what| what.contains("not a name and where it is: \"web_0\"")), "{told:?}");
    assert!(told.iter().any(|what| what.contains("a peer is named twice: a")), "{told:?}");
}

#[test]
fn hooks_are_told_apart() {
    assert!(problem(&format!("{HOOK}{HOOK}")).contains("there are two hooks of this name: a"));
    assert!(problem(&format!("{HOOK}undo = [\"/bin/true\"]\n")).contains("undo goes with a command"));
    let late = format!("{HOOK}phase = \"started\"\neven_late = true\n");
    assert!(problem(&late).contains("even_late is for hooks of the phase"));
    assert!(problem(&HOOK.repeat(257)).contains("there are 257 hooks"));
    assert!(problem("[[hook]]\nname = \"a\"\ncommand = [\"true\"]").contains("not a whole path"));
}

#[test]
fn what_is_undone_is_done_for_events_of_this_machine_only() {
    let hook = |mine: &str, work: &str| {
        problems(&format!("[[hook]]\nname = \"a\"\nwhen = {{ mine = \"{mine}\" }}\n{work}\n"))
    };
    let undone = [
        "systemd = { stop = [\"x\"] }",
        "touch = { path = \"/run/x\" }",
        "kubernetes = {}",
        "signal = { unit = \"x\", send = \"STOP\", undo = \"CONT\" }",
        "command = [\"/bin/true\"]\nundo = [\"/bin/true\"]",
    ];
    for work in undone {
        assert_eq!(hook("yes", work), [""; 0], "{work}");
        for mine in ["no", "any"] {
            let told = hook(mine, work).join("\n");
            assert!(
                told.starts_with("agent.toml:2: a: only what is done for events of this machine"),
                "{work}: {told}"
            );
        }
    }
    for work in ["command = [\"/bin/true\"]", "phase = \"started\"\ntouch = { path = \"/run/x\" }"] {
        assert_eq!(hook("any", work), [""; 0], "nothing of it is ever undone: {work}");
    }
}

#[test]
fn scripts_lie_in_directories() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str, mode: u32| {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    file("scheduled.d/10-first", 0o755);
    file("scheduled.d/last", 0o755);
    file("scheduled.d/20-plain", 0o644);
    file("scheduled.d/30-old.dpkg-old", 0o755);
    file("scheduled.d/.hidden", 0o755);
    file("undo.d/10-first", 0o755);
    let settings = format!("hooks = \"{}\"", place.path().display());
    let config = parse(&settings).unwrap();
    let hooks: Vec<_> = config.hooks.iter().map(|hook| (hook.name.as_str(), hook.order)).collect();
    assert_eq!(hooks, [("scheduled.d/10-first", 10), ("scheduled.d/last", 50), ("undo.d/10-first", 10)]);
    assert_eq!(config.notes.len(), 2, "{:?}", config.notes);
    assert!(config.notes[0].contains("20-plain: passed over: nobody may run it"), "{:?}", config.notes);
    file("started.d/open", 0o777);
    assert!(problem(&settings).contains("everybody may change it"));
    assert!(problem("hooks = \"/nonexistent\"").contains("there is no such directory"));
}

#[test]
fn a_file_that_is_not_there_matters_only_if_it_was_named() {
    let told = Config::load(Some(Path::new("/nonexistent/agent.toml"))).unwrap_err();
    assert!(told[0].to_string().starts_with("/nonexistent/agent.toml: cannot be read"), "{}", told[0]);
}

proptest::proptest! {
    #[test]
    fn no_settings_make_the_reader_stumble(
        lines in proptest::collection::vec(
            proptest::sample::select(vec![
                "poll = \"1s\"", "poll = 3", "[log]", "level = []", "[[hook]]", "[[rule]]", "name = \"a\"", "wait = \"1s\"",
                "when = { types = [\"Freeze\", 3, \"Thaw\"], mine = 1 }", "[peers]", "list = [1, \"a=b:1\"]", "x.y.z = 1",
                "hook = 1", "[hook]", "\"", "[[", "= =", "undo = [\"\"]", "systemd = { stop = 3, x = 1 }", "\u{7f}é",
            ]),
            0..12,
        )
    ) {
        let text = lines.join("\n");
        if let Err(problems) = Config::parse(Path::new("agent.toml"), &text) {
            let lines = text.lines().count() + 1;
            proptest::prop_assert!(!problems.is_empty());
            proptest::prop_assert!(problems.iter().all(|problem| problem.line.is_none_or(|line| (1..=lines).contains(&line))));
        }
    }
}
