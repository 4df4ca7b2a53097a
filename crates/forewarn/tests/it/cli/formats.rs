//! Every command in every output format, on a real server. The commands are read from the help of the program: a new
//! one needs a line here.

use std::collections::BTreeSet;
use std::process::Command;

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, TestDir, clean_command};
use serde_json::{Value, json};

use super::support::{Server, alone};

const FORMATS: [&str; 5] = ["table", "wide", "json", "yaml", "name"];

/// Commands that print no result, or one that has a format of its own, with the reason.
const WITHOUT_FORMATS: [(&str, &str); 13] = [
    ("dev", "a server: it prints its addresses and its log"),
    ("audit export", "writes a file of NDJSON"),
    ("state save", "writes a file of JSON"),
    ("store export", "writes a file for `store import`"),
    ("store import", "writes a data directory"),
    ("store migrate", "moves a data directory into a realm"),
    ("realm accept-restore", "accepts the older state of a realm whose etcd was restored"),
    ("store accept-loss", "repairs a data directory"),
    ("completions", "prints a script for a shell"),
    ("man", "writes manual pages"),
    ("dashboard", "runs until Ctrl-C: see `a_script_gets_the_address_as_json_and_ctrl_c_ends_the_command`"),
    ("realm dev", "a realm on this computer: it prints what happens, until Ctrl-C"),
    ("watch", "a stream: see `changes_are_followed_in_each_format`"),
];

/// One command per line, in this order, once in each format; `{n}` is the number of the format. Before a command: `=`
/// if its data is the same in each format, `~` if its data may differ and its exit code may be 1, `-` if it may be
/// rejected, and `+` if it is only a preparation.
const COMMANDS: &str = include_str!("formats_commands.txt");

/// Lists, and the commands that take the names in them.
const TAKERS: [(&str, &str); 14] = [
    ("vm ls", "vm show"),
    ("host ls", "host show"),
    ("tenant ls", "tenant show"),
    ("scaleset ls", "scaleset show"),
    ("availabilityset ls", "availabilityset show"),
    ("event ls", "event show"),
    ("rollout ls", "rollout show"),
    ("cluster ls", "cluster show"),
    ("token ls", "token show"),
    ("webhook ls", "webhook show"),
    ("story ls", "story show"),
    ("cloudservice ls", "cloudservice show"),
    ("fault ls", "fault show"),
    ("context ls", "context show"),
];

/// The commands below a command, as its help lists them.
fn leaves(path: &[String], found: &mut BTreeSet<String>) {
    let help = alone(&format!("{} --help", path.join(" "))).out;
    let section = help.split("\nCommands:\n").nth(1).map(|rest| rest.split("\n\n").next().unwrap());
    let Some(section) = section else {
        found.insert(path.join(" "));
        return;
    };
    let names =
        section.lines().filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    for name in names.map(|line| line.split(' ').next().unwrap()).filter(|name| *name != "help") {
        leaves(&[path, &[name.to_owned()]].concat(), found);
    }
}

/// The name of the command of a line, from its usage: a line may have an alias.
fn command_of(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().take_while(|word| *word != "--").collect();
    for end in (1..=words.len().min(3)).rev() {
        let help = alone(&format!("{} --help", words[..end].join(" ")));
        let usage = help.out.lines().find_map(|line| line.strip_prefix("Usage: forewarn "));
        if let Some(usage) = usage.filter(|_| help.code == Some(0)) {
            let is_name = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
            return usage.split(' ').take_while(is_name).collect::<Vec<_>>().join(" ");
        }
    }
    panic!("no such command: {line}");
}

/// A server, and the files that commands read.
struct Trial {
    server: Server,
    files: TestDir,
    yaml: Vec<Value>,
}

impl Trial {
    fn start() -> Self {
        let server = Server::start_with("--enrolled --host-work manual");
        let files = TestDir::new();
        let config = "data_dir = 'DIR/none'\n[api]\nlisten = '127.0.0.1:0'\n[driver]\nkind = 'simulated'\n\
                      [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n";
        files.configure("serve.toml", config);
        files.write("odd.story", "host   h1\n");
        files.write("fleet.toml", "[[host]]\nname = \"added\"\n");
        files.script("driver", "exit 1\n");
        Self { server, files, yaml: Vec::new() }
    }

    fn run(&self, line: &str) -> CommandResult {
        let replaced = |word: &str| match word {
            "EVENT" => self.server.out("event ls -o name").lines().next().unwrap().to_owned(),
            "ROLLOUT" => self.server.out("rollout ls -o name").lines().last().unwrap_or("0").to_owned(),
            "METADATA" => self.server.metadata.clone(),
            "CONFIG" => self.files.path("serve.toml"),
            "STORY" => self.files.path("odd.story"),
            "FLEET" => self.files.path("fleet.toml"),
            "STATE" => self.files.path("state.json"),
            "DATA" => self.files.path("data"),
            "DRIVER" => self.files.path("driver"),
            backup if backup.starts_with("BACKUP") => self.files.path(backup),
            other => other.to_owned(),
        };
        let words: Vec<_> = line.split_whitespace().map(replaced).collect();
        let mut command = clean_command(crate::program());
        command.env("FOREWARN_API", &self.server.api).env("XDG_CONFIG_HOME", self.files.path("config"));
        run_with_input(command.args(words), "")
    }

    /// Runs a command in each format.
    fn check(&mut self, line: &str) {
        let (mark, words) = line.split_at(2);
        if mark == "+ " {
            assert_eq!(self.run(words).code, Some(0), "{line}");
            return;
        }
        let mut as_json = None;
        for (number, format) in FORMATS.iter().enumerate() {
            let option = format!("-o {format}");
            let words = words.replace("{n}", &number.to_string());
            let words = match words.split_once(" -- ") {
                Some((before, after)) => format!("{before} {option} -- {after}"),
                None => format!("{words} {option}"),
            };
            let ran = self.run(&words);
            assert!(ran.code == Some(0) || (mark != "  " && ran.code == Some(1)), "{words}: {ran:?}");
            match *format {
                "json" if mark != "- " || ran.code == Some(0) => as_json = Some(documents(&words, &ran.out)),
                "yaml" if mark != "- " || ran.code == Some(0) => {
                    let expected = as_json.take().filter(|_| mark == "= ");
                    self.yaml.push(json!({ "command": words, "yaml": ran.out, "json": expected }));
                }
                "table" if is_list(&words) => check_width(&words, &ran.out),
                "name" if mark != "- " || ran.code == Some(0) => check_names(&words, &ran.out),
                _ => {}
            }
        }
    }
}

/// The JSON documents that a command prints: at least one.
fn documents(words: &str, out: &str) -> Vec<Value> {
    let stream = serde_json::Deserializer::from_str(out).into_iter();
    let all: Vec<Value> =
        stream.map(|one| one.unwrap_or_else(|error| panic!("{words}: {error}: {out}"))).collect();
    assert!(!all.is_empty(), "{words} prints nothing");
    all
}

/// Lists are tables of columns; the title of a story is a sentence.
fn is_list(words: &str) -> bool {
    let is_ls = words.split(' ').nth(1) == Some("ls");
    let has_sentences = words.starts_with("story ") || words.starts_with("audit ");
    is_ls && !has_sentences || words.starts_with("scaleset show") || words.starts_with("availabilityset show")
}

fn check_width(words: &str, out: &str) {
    let widest = out.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 80, "{words} has {widest} columns:\n{out}");
}

fn check_names(words: &str, out: &str) {
    let is_plain = |line: &str| !line.trim().is_empty() && !line.contains(['{', '"']);
    assert!(out.lines().all(is_plain), "{words}: {out}");
    if is_list(words) {
        assert!(!out.is_empty(), "{words} has no names");
    }
}

/// Python with a reader of YAML 1.1.
fn python() -> Option<&'static str> {
    let has_yaml = |python: &&str| {
        Command::new(python).args(["-c", "import yaml"]).output().is_ok_and(|ran| ran.status.success())
    };
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has_yaml);
    if found.is_none() {
        let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!is_ci, "no PyYAML; with CI=true a test that cannot run has failed");
        eprintln!("SKIPPED: no PyYAML\n  hint: apt install python3-yaml");
    }
    found
}

/// Reads YAML back.
const READER: &str = r#"
import json, sys, yaml
for one in json.load(sys.stdin):
    documents = list(yaml.safe_load_all(one["yaml"]))
    assert documents and None not in documents, one
    if one["json"] is not None:
        assert documents == one["json"], (one["command"], documents, one["json"])
print("read")
"#;

#[test]
fn every_command_has_every_format() {
    let mut trial = Trial::start();
    data_directory(&trial.files);
    for line in COMMANDS.lines().filter(|line| !line.is_empty()) {
        trial.check(line);
        let Some((_, taker)) = TAKERS.iter().find(|(list, _)| line.get(2..) == Some(list)) else { continue };
        let names = trial.run(&format!("{} -o name", &line[2..])).out;
        for name in names.lines() {
            let shown = trial.run(&format!("{taker} {name} -o name"));
            assert_eq!(
                (shown.code, shown.out),
                (Some(0), format!("{name}\n")),
                "{taker} {name}: {}",
                shown.err
            );
        }
    }
    read_back(&trial.yaml);
}

/// Reads YAML with a reader of others, which has to find the data.
fn read_back(yaml: &[Value]) {
    let Some(python) = python() else { return };
    let read = run_with_input(Command::new(python).args(["-c", READER]), &json!(yaml).to_string());
    assert_eq!(read.out, "read\n", "{}", read.err);
}

/// Texts with line ends are in the stories that `every_command_has_every_format` reads back.
#[test]
fn a_text_that_a_reader_of_yaml_might_take_for_something_else_is_read_back() {
    let texts = [
        "yes",
        "NO",
        "on",
        "Off",
        "y",
        "n",
        "null",
        "~",
        "true",
        "1",
        "-1",
        "+1",
        "0x1F",
        "0o7",
        "0777",
        "1e3",
        "1_000",
        ".5",
        ".inf",
        "12:30:00",
        "1:20",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "- x",
        "? x",
        "x: y",
        "x:",
        "x #y",
        "#x",
        "*x",
        "&x",
        "!!int 3",
        "|",
        ">",
        "@x",
        "`x`",
        "%x",
        "{x}",
        "[x]",
        "'x'",
        "\"x\"",
        "<<",
        "=",
        "a\\b",
        " x ",
        "größe 東京 👍",
        "x\u{202e}\u{e0041}",
    ];
    let server = Server::start();
    let tags =
        texts.iter().enumerate().flat_map(|(number, text)| ["--tag".to_owned(), format!("t{number}={text}")]);
    let mut describe = clean_command(crate::program());
    describe.args(["vm", "set", "solo"]).args(tags).env("FOREWARN_API", &server.api);
    let described = run_with_input(&mut describe, "");
    assert_eq!(described.code, Some(0), "{described:?}");
    let json = server.json("vm show solo");
    assert_eq!(json["tags"].as_object().unwrap().len(), texts.len());
    read_back(&[json!({ "command": "vm show", "yaml": server.out("vm show solo -o yaml"), "json": [json] })]);
}

/// Makes a data directory for `store check`.
fn data_directory(files: &TestDir) {
    let server = Server::start_with(&format!("--data-dir {}", files.path("data")));
    server.out("clock advance 1s");
}

#[test]
fn every_command_is_tried_in_every_format_or_is_listed() {
    let mut all = BTreeSet::new();
    leaves(&[], &mut all);
    let tried: BTreeSet<_> = COMMANDS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('+'))
        .map(|line| command_of(&line[2..]))
        .collect();
    let listed: BTreeSet<_> = WITHOUT_FORMATS.iter().map(|(command, _)| (*command).to_owned()).collect();
    let missing: Vec<_> =
        all.iter().filter(|leaf| !tried.contains(*leaf) && !listed.contains(*leaf)).collect();
    assert!(missing.is_empty(), "not in COMMANDS, and not in WITHOUT_FORMATS: {missing:?}");
    let gone: Vec<_> = listed.iter().filter(|leaf| !all.contains(*leaf)).collect();
    assert!(gone.is_empty(), "no longer a command: {gone:?}");
}

#[test]
fn json_is_a_synonym_and_formats_exclude_each_other() {
    let server = Server::start();
    let json = server.out("vm ls --output json");
    for same in ["vm ls -o json", "vm ls --json", "--json vm ls", "-ojson vm ls"] {
        assert_eq!(server.out(same), json, "{same}");
    }
    let both = server.run("vm ls --json -o yaml");
    assert_eq!(both.code, Some(2), "{both:?}");
    assert_eq!(server.run("vm ls -o xml").code, Some(2));
}

#[test]
fn the_names_of_a_change_are_those_of_what_it_made() {
    let server = Server::start_with("--enrolled");
    let event = server.out("vm restart web_0 -o name");
    assert_eq!(event, server.out("event ls -o name"), "the id of the announced event");
    assert_eq!(server.run(&format!("event approve {event}")).code, Some(0));
    assert_eq!(server.out("host create h99 -o name"), "h99\n");
    assert_eq!(server.out("rollout start h99 -o name"), server.out("rollout ls --all -o name"));
    assert_eq!(server.out("settings set --failure reboot -o name"), "");
}

#[test]
fn a_token_is_not_made_without_its_secret() {
    let server = Server::start();
    let refused = server.run("token create ci --role viewer -o name");
    assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""));
    assert!(refused.err.contains("hint: --output"), "{}", refused.err);
    assert_eq!(server.out("token ls -o name"), "");
}

#[test]
fn a_table_has_the_width_that_the_environment_says() {
    let server = Server::start_with("--enrolled");
    server.out("vm restart web_0");
    let header = |columns: &str, words: &str| {
        let mut command = clean_command(crate::program());
        command.args(words.split(' ')).env("FOREWARN_API", &server.api).env("COLUMNS", columns);
        run_with_input(&mut command, "").out.lines().next().unwrap().to_owned()
    };
    let usual = "ID        TENANT  EVENT   STATUS     MACHINES  NOT BEFORE          APPROVED";
    for unknown in ["80", "", "many", "0"] {
        assert_eq!(header(unknown, "event ls"), usual, "COLUMNS={unknown}");
    }
    assert!(header("200", "event ls").ends_with("APPROVED  WHY"));
    assert_eq!(header("40", "event ls"), "ID        EVENT   STATUS     MACHINES");
    assert!(header("40", "event ls -o wide").ends_with("DESCRIPTION"));
}

#[test]
fn changes_are_followed_in_each_format() {
    let server = Server::start_with("--enrolled");
    let streams =
        ["json", "yaml", "name"].map(|format| server.begin(&format!("watch --tenant web -o {format}")));
    // A stream begins when its request arrives: changes are made until each has shown one.
    let [json, yaml, name] = streams.each_ref().map(|stream| {
        let line = std::iter::repeat_with(|| {
            let event = server.out("vm restart web_0 -o name");
            server.out(&format!("event cancel {event}"));
            stream.line_soon()
        });
        line.flatten().next().unwrap()
    });
    let change: Value = serde_json::from_str(&json).unwrap();
    assert!(change["kind"].is_string(), "{change}");
    assert_eq!(yaml, "---");
    let explained = server.json(&format!("event explain {name}"));
    assert_eq!(explained["id"], json!(name));
    for stream in streams {
        stream.interrupt();
    }
}
