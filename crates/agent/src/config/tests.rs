//! Tests of the settings and their errors.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn parse(text: &str) -> Result<Config, Vec<ConfigError>> {
    // The machine that runs the tests may have hooks in the default directory.
    let text = if text.contains("hooks =") { text.to_owned() } else { format!("hooks = \"/\"\n{text}") };
    Config::parse(Path::new("agent.toml"), &text)
}

fn errors(text: &str) -> Vec<String> {
    match parse(text) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

fn error(text: &str) -> String {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{text}: {errors:?}");
    errors[0].clone()
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
    assert!(config.peers.discovery.is_some() && config.peers.watched.at_once == Some(1));
}

#[test]
fn all_errors_are_reported_at_once_with_their_lines() {
    let text = "hooks = \"/\"\npoll = \"soon\"\nlong_pol = true\nlisten = \"here\"\n\
                [log]\nlevel = \"loud\"\n\
                [[hook]]\nname = \"a\"\nlimit = 5\nwait = \"1s\"\n\
                [[hook]]\nname = \"b\"\n\
                [[hook]]\nname = \"b c\"\nwait = \"1s\"\nsystemd = { stop = [\"x\"] }\n";
    let messages = errors(text);
    let lines: Vec<_> = messages.iter().map(|error| error.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["2", "3", "4", "6", "9", "11", "13", "13"], "{messages:#?}");
    assert!(messages[0].contains("not a duration"), "{}", messages[0]);
    assert!(messages[1].contains("unknown field `long_pol`"), "{}", messages[1]);
    assert!(messages[2].contains("invalid listen address"), "{}", messages[2]);
    assert!(messages[3].contains("unknown variant `loud`"), "{}", messages[3]);
    assert!(messages[5].contains("a hook has no work"), "{}", messages[5]);
    assert!(messages[6].contains("invalid hook name"), "{}", messages[6]);
    assert!(messages[7].contains("a hook has more than one kind of work"), "{}", messages[7]);
}

/// promise: A7
#[test]
fn an_error_in_an_entry_hides_no_other_error() {
    let text = "hooks = \"/nonexistent\"\nlisten = \"here\"\n\
                [[hook]]\nname = \"a b\"\nwhen = { types = [\"Restart\"], mine = \"any\" }\n\
                touch = { path = \"x\" }\ncommand = [\"true\"]\n\
                [[hook]]\nname = \"c\"\nphase = \"never\"\nsystemd = { stop = [\"*\", \"?\"], mask = true }\n\
                [[hook]]\nname = \"c\"\nwait = \"1s\"\nretries = 101\n\
                [peers]\nlist = [\"web_0\"]\nsilence = \"maybe\"\n";
    let messages = errors(text);
    let expected = [
        ("agent.toml:2:", "invalid listen address"),
        ("agent.toml:3:", "invalid hook name"),
        ("agent.toml:3:", "which is not an absolute path"),
        ("agent.toml:3:", "is not the absolute path of a file"),
        ("agent.toml:3:", "a hook has more than one kind of work"),
        ("agent.toml:3:", "only hooks for events of this machine can be undone"),
        ("agent.toml:5:", "unknown variant `Restart`"),
        ("agent.toml:8:", "invalid unit name: \"*\""),
        ("agent.toml:8:", "invalid unit name: \"?\""),
        ("agent.toml:10:", "unknown variant `never`"),
        ("agent.toml:12:", "duplicate hook name: c"),
        ("agent.toml:12:", "retries is at most 100"),
        ("agent.toml:16:", "peers need a shared key"),
        ("agent.toml:17:", "invalid peer"),
        ("agent.toml:18:", "unknown variant `maybe`"),
        ("/nonexistent:", "hook directory not found"),
    ];
    for (place, what) in expected {
        let is_there = |message: &&String| message.starts_with(place) && message.contains(what);
        assert!(messages.iter().any(|message| is_there(&message)), "{place} {what}: {messages:#?}");
    }
    assert_eq!(messages.len(), expected.len(), "{messages:#?}");
}

/// promise: A7
#[test]
fn an_error_causes_no_further_errors() {
    for text in [
        "[[rule]]\nwhen = { types = [\"Restart\"] }\ntreatment = \"ignore\"",
        "[[hook]]\nname = \"a\"\nwait = \"soon\"",
        "[[hook]]\nname = \"a\"\ncomand = [\"/bin/true\"]",
        "[[hook]]\nname = \"a\"\ncommand = \"/bin/true\"\nundo = [\"/bin/true\"]",
        "[[hook]]\nname = 3\nwait = \"1s\"",
        "[[hook]]\nnme = \"a\"\nwait = \"1s\"",
        "[[hook]]\nname = \"a\"\nsystemd = { stop = 3 }",
        "[[hook]]\nname = \"a\"\n[hook.systemd]\nstop = [3]",
        "[[hook]]\nname = \"a\"\nsignal = { unit = \"x\" }",
        "[[hook]]\nname = \"a\"\nphase = \"startd\"\nwhen = { mine = \"any\" }\ntouch = { path = \"/run/x\" }",
        "[approval]\npolicy = \"leader\"\n[peer]\nmembers = true",
        "[approval]\npolicy = \"leader\"\n[peers]\nmember = true",
        "[peers]\nlist = [1]\nkeyfile = \"/nowhere\"",
        "hooks = 3",
    ] {
        let messages = errors(text);
        let schema = ["unknown ", "invalid type", "not a duration", "missing: ", "expected "];
        let is_schema = |message: &String| schema.iter().any(|word| message.contains(word));
        assert!(!messages.is_empty() && messages.iter().all(is_schema), "{text}: {messages:#?}");
    }
    let messages = errors("listen = \"here\"\n[peers]\nmembers = true\nkey_file = \"/nowhere\"\n");
    assert_eq!(messages.len(), 2, "an address that is wrong is not off: {messages:#?}");
}

/// promise: A7
#[test]
fn a_byte_order_mark_before_the_settings_is_skipped() {
    let text = "\u{feff}hooks = \"/\"\nname = \"web_0\"\n";
    assert_eq!(parse(text).unwrap().name.as_deref(), Some("web_0"));
    assert!(errors("\u{feff}hooks = \"/\"\npoll = \"soon\"\n")[0].starts_with("agent.toml:2:"));
}

/// promise: C3
#[test]
fn an_empty_list_is_rejected_with_its_line() {
    let text = "hooks = \"/\"\n[[rule]]\nwhen = { types = [] }\ntreatment = \"ignore\"\n\
                [[hook]]\nname = \"a\"\nwait = \"1s\"\nwhen = { sources = [] }\n";
    let messages = errors(text);
    let lines: Vec<_> = messages.iter().map(|error| error.split(':').nth(1).unwrap()).collect();
    assert_eq!(lines, ["3", "8"], "{messages:#?}");
    assert!(messages.iter().all(|error| error.contains("at least one")), "{messages:#?}");
    let messages = errors("[peers]\nlist = []\nkey_file = \"/nowhere\"\n");
    assert!(messages[0].contains("peers.list is empty"), "{messages:#?}");
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let messages = errors("name = \"a\"\nlisten = \n[log\n");
    assert!(messages[0].starts_with("agent.toml:3: "), "{messages:?}");
}

#[test]
fn lengths_of_time_have_bounds() {
    for (text, what) in [
        ("poll = \"0s\"", "poll must be between 1s and 1m"),
        ("poll = \"1h\"", "poll must be between 1s and 1m"),
        ("spare = \"1h\"", "spare must be between 0s and 10m"),
        ("hook_limit = \"0s\"", "hook_limit must be between 1s and 1d"),
    ] {
        assert!(error(text).contains(what), "{}", error(text));
    }
    assert!(
        error("[[hook]]\nname = \"a\"\nwait = \"1s\"\nlimit = \"2d\"")
            .contains("limit must be between 1s and 1d")
    );
}

#[test]
fn a_leader_needs_peers_and_peers_need_a_key() {
    assert!(
        error("[approval]\npolicy = \"leader\"").contains("agent.toml:3: the policy \"leader\" needs peers")
    );
    assert!(error("[[rule]]\napproval = \"leader\"").contains("the policy \"leader\" needs peers"));
    assert!(error("[peers]\nmembers = true").contains("peers need a shared key"));
    let messages = errors("listen = \"off\"\n[peers]\nmembers = true\nkey_file = \"/nonexistent\"");
    assert!(messages[0].contains("peers need the listener of this agent"), "{messages:?}");
    assert!(messages[1].contains("/nonexistent: "), "{messages:?}");
    let messages = errors("[peers]\nkey_file = \"/x\"");
    assert!(messages.iter().any(|what| what.contains("no way to find peers")), "{messages:?}");
    let messages = errors("[peers]\nlist = [\"web_0\", \"a=b:1\", \"a=c:2\"]\nmembers = true\nat_once = 0\n");
    assert!(messages.iter().any(|what| what.contains("more than one way to find peers")), "{messages:?}");
    assert!(
        messages.iter().any(|what| what.contains("at_once = 0 would let no machine prepare")),
        "{messages:?}"
    );
    let messages = errors("[peers]\nlist = [\"web_0\", \"a=b:1\", \"a=c:2\"]\n");
    assert!(messages.iter().any(|what| what.contains("invalid peer: \"web_0\"")), "{messages:?}");
    assert!(messages.iter().any(|what| what.contains("duplicate peer: a")), "{messages:?}");
}

#[test]
fn conflicting_hooks_are_rejected() {
    assert!(error(&format!("{HOOK}{HOOK}")).contains("duplicate hook name: a"));
    assert!(error(&format!("{HOOK}undo = [\"/bin/true\"]\n")).contains("undo is only valid with command"));
    let late = format!("{HOOK}phase = \"started\"\neven_late = true\n");
    assert!(error(&late).contains("even_late is only valid for the phase"));
    assert!(error(&HOOK.repeat(257)).contains("too many hooks: 257"));
    assert!(error("[[hook]]\nname = \"a\"\ncommand = [\"true\"]").contains("not an absolute path"));
}

/// promise: A2
#[test]
fn what_is_undone_is_done_for_events_of_this_machine_only() {
    let hook = |mine: &str, work: &str| {
        errors(&format!("[[hook]]\nname = \"a\"\nwhen = {{ mine = \"{mine}\" }}\n{work}\n"))
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
            let messages = hook(mine, work).join("\n");
            assert!(
                messages.starts_with("agent.toml:2: a: only hooks for events of this machine can be undone"),
                "{work}: {messages}"
            );
        }
    }
    for work in ["command = [\"/bin/true\"]", "phase = \"started\"\ntouch = { path = \"/run/x\" }"] {
        assert_eq!(hook("any", work), [""; 0], "nothing of it is ever undone: {work}");
    }
}

#[test]
fn scripts_lie_in_directories() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, mode: u32| {
        let path = dir.path().join(name);
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
    let settings = format!("hooks = \"{}\"", dir.path().display());
    let config = parse(&settings).unwrap();
    let hooks: Vec<_> = config.hooks.iter().map(|hook| (hook.name.as_str(), hook.order)).collect();
    assert_eq!(hooks, [("scheduled.d/10-first", 10), ("scheduled.d/last", 50), ("undo.d/10-first", 10)]);
    assert_eq!(config.notes.len(), 2, "{:?}", config.notes);
    assert!(config.notes[0].contains("20-plain: skipped: not executable"), "{:?}", config.notes);
    file("started.d/open", 0o777);
    assert!(error(&settings).contains("hook is world-writable"));
    assert!(error("hooks = \"/nonexistent\"").contains("hook directory not found"));
    let here = std::env::current_dir().unwrap();
    let expected = format!("{}: hook directory not found", here.join("nonexistent").display());
    assert_eq!(error("hooks = \"nonexistent\""), expected, "where it was looked for");
}

#[test]
fn a_file_that_is_not_there_matters_only_if_it_was_named() {
    let messages = Config::load(Some(Path::new("/nonexistent/agent.toml"))).unwrap_err();
    assert!(messages[0].to_string().starts_with("/nonexistent/agent.toml: cannot read"), "{}", messages[0]);
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
        if let Err(errors) = Config::parse(Path::new("agent.toml"), &text) {
            let lines = text.lines().count() + 1;
            proptest::prop_assert!(!errors.is_empty());
            proptest::prop_assert!(errors.iter().all(|error| error.line.is_none_or(|line| (1..=lines).contains(&line))));
        }
    }
}

/// promise: A7
#[test]
fn what_is_missing_is_noted() {
    let text = "event_log = \"/nowhere/at/all/events.jsonl\"\n\
                [[hook]]\nname = \"a\"\ncommand = [\"/no/such/program\"]\n\
                [[hook]]\nname = \"b\"\nwebhook = { url_file = \"/nowhere/url\" }\n";
    let notes = parse(text).unwrap().notes;
    let expected = [
        "hook a: program not found: /no/such/program",
        "hook b: url_file not found: /nowhere/url",
        "event_log: directory not found: /nowhere/at/all",
    ];
    assert_eq!(notes, expected);
}
