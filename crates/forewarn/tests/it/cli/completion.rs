//! Tests of shell completion, in a real bash whose line editor gets tabs, against a running server.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use forewarn_testkit::CommandResult;
use forewarn_testkit::command::run_with_input;

use super::support::{Server, alone};

/// The address of no server.
const NOWHERE: &str = "http://127.0.0.1:1";

/// Types lines into an interactive bash and returns the lines as they were after their tabs.
///
/// `say` stands for `forewarn`: it has the same completion and prints its arguments.
fn typed(api: &str, lines: &[&str]) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    let start = place.path().join("bashrc");
    let setting = "PS1=; bind 'set bell-style none'; source <(forewarn completions bash); \
                   complete -o nosort -F _forewarn say; say() { printf 'said<%s>\\n' \"$*\"; }\n";
    std::fs::write(&start, setting).unwrap();
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--rcfile"]).arg(&start).arg("-i").current_dir(place.path());
    let program = PathBuf::from(crate::program());
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    command.env("PATH", path).env("FOREWARN_API", api).env("TERM", "dumb").env_remove("FOREWARN_CLUSTER");
    let said = run_with_input(&mut command, &format!("{}\nexit\n", lines.join("\n")));
    let said = said.out.lines().filter_map(|line| line.strip_prefix("said<")?.strip_suffix('>'));
    said.map(|line| line.trim_end().to_owned()).collect()
}

/// The candidates that a shell gets for the words of a line.
fn candidates(api: &str, words: &str) -> CommandResult {
    let mut command = forewarn_testkit::clean_command(crate::program());
    command.args(["complete", "fish", "--"]).args(words.split(' ')).env("FOREWARN_API", api);
    run_with_input(&mut command, "")
}

fn names(api: &str, words: &str) -> Vec<String> {
    let answer = candidates(api, words);
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""), "{words}");
    answer.out.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

/// promise: X2
#[test]
fn bash_completes_names_of_a_running_server() {
    let server = Server::start();
    server.enrol("web_0");
    server.out("vm restart web_0");
    server.out("cluster create west");
    server.out("token create grafana --role viewer");
    let event = server.json("event ls")["items"][0]["id"].as_str().unwrap()[..8].to_owned();
    let lines = [
        "say vm restart so\t",
        "say vm reb\t web/web_3\t",
        "say host show h1\t0",
        "say event approve \t",
        "say cluster show we\t",
        "say token delete g\t",
        "say scaleset upgrade bat\t batch_1\t",
        "say availabilityset show \t",
        "say vm ls --tenant=sol\t",
        "say --cluster we\t",
        "say rollout sta\t so\t",
    ];
    assert_eq!(
        typed(&server.api, &lines),
        [
            "vm restart solo",
            "vm reboot web/web_3",
            "host show h10",
            &format!("event approve {event}"),
            "cluster show west",
            "token delete grafana",
            "scaleset upgrade batch batch_1",
            "availabilityset show db",
            "vm ls --tenant=solo",
            "--cluster west",
            "rollout start so",
        ]
    );
}

#[test]
fn the_server_and_the_cluster_of_the_line_are_asked() {
    let server = Server::start();
    server.out("cluster create west");
    server.out("--cluster west host create far-away");
    let lines = [
        format!("say --api {} vm show sol\t", server.api),
        format!("say vm show --api={} sol\t", server.api),
        format!("say --api {} --cluster west host show f\t", server.api),
    ];
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let said = typed(NOWHERE, &lines);
    let ends: Vec<_> = said.iter().map(|line| line.rsplit(' ').next().unwrap_or_default()).collect();
    assert_eq!(ends, ["solo", "solo", "far-away"], "{said:?}");
}

#[test]
fn every_kind_of_name_is_completed() {
    let server = Server::start();
    server.enrol("web_0");
    server.out("rollout start h1");
    server.out("fault create web_0 --answer 500");
    server.out("cloudservice create desk");
    for (line, expected) in [
        ("forewarn rollout show ", &["0"][..]),
        ("forewarn fault delete ", &["1"]),
        ("forewarn cloudservice delete ", &["shop", "desk"]),
        ("forewarn tenant set we", &["web"]),
        ("forewarn availabilityset add-vm ", &["db"]),
        ("forewarn host maintenance enter h9", &["h9"]),
        ("forewarn vm move web_0 --host h9", &["h9"]),
        ("forewarn vm create new --host h9", &["h9"]),
        ("forewarn rollout set 0 --add h9", &["h9"]),
        ("forewarn vm delete web/web_1", &["web/web_1"]),
        ("forewarn fault create db-1", &["db-1"]),
        ("forewarn audit ls --machine sol", &["solo"]),
        ("forewarn vm create ne", &[]),
        ("forewarn host create h", &[]),
    ] {
        assert_eq!(names(&server.api, line), expected, "{line}");
    }
    let hosts = names(&server.api, "forewarn host update ");
    assert_eq!(hosts.len(), 10, "only names, without options: {hosts:?}");
    assert!(names(&server.api, "forewarn host update h1 --").contains(&"--wait".to_owned()));
    let described = candidates(&server.api, "forewarn vm show web_0").out;
    assert_eq!(described, "web_0\ton h1\n");
}

#[test]
fn a_line_without_a_server_is_completed_as_far_as_possible() {
    let server = Server::start();
    let refused = candidates(NOWHERE, "forewarn vm show we");
    assert_eq!((refused.code, refused.out.as_str(), refused.err.as_str()), (Some(0), "", ""));
    assert_eq!(names(NOWHERE, "forewarn vm expl"), ["explain"]);
    assert_eq!(typed(NOWHERE, &["say vm show we\tb"]), ["vm show web"]);
    for wrong in ["forewarn --api nonsense vm show we", "forewarn --cluster nowhere vm show we"] {
        assert_eq!(names(&server.api, wrong), Vec::<String>::new(), "{wrong}");
    }
}

#[test]
fn a_server_that_does_not_answer_does_not_hold_up_the_line() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let api = format!("http://{}", silent.local_addr().unwrap());
    let begun = Instant::now();
    assert_eq!(names(&api, "forewarn vm show we"), Vec::<String>::new());
    // The deadline is 900 ms; the rest is for a busy computer.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn the_scripts_call_the_program() {
    for shell in ["bash", "zsh", "fish"] {
        let script = alone(&format!("completions {shell}")).out;
        assert!(script.contains(&format!("forewarn complete {shell} ")), "{script}");
    }
    for shell in ["elvish", "powershell"] {
        assert!(alone(&format!("completions {shell}")).out.contains("deallocate"), "{shell}");
    }
}
