//! Statements of the language that wait, repeat and run programs: a server shows what the rules show, and its audit log
//! has what theirs has.

use forewarn_control::AuditEntry;
use forewarn_story::{Backend, RulesBackend, parse, run_on};
use forewarn_testkit::server::dev;
use forewarn_testkit::{TestServer, clean_command};
use serde_json::Value;

use crate::live::server::{STAGE, play};

/// What the rules show, and their audit log.
fn in_the_rules(text: &str) -> (String, Vec<AuditEntry>) {
    let mut rules = RulesBackend::default();
    let transcript = run_on(&parse(text).unwrap(), &mut rules).unwrap_or_else(|error| panic!("{error}"));
    (transcript.to_string(), rules.audit(0).unwrap())
}

/// What a server shows, and its audit log.
fn on_a_server(text: &str) -> (String, Vec<AuditEntry>) {
    let mut command = clean_command(crate::program());
    dev(&mut command, &STAGE);
    let server = TestServer::spawn(crate::program(), command);
    let output = play(text, &["--live", "--api", server.api_url()]);
    let problem = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{problem}");
    let audit = server.run(&["audit", "ls", "--cluster", "default", "--limit", "100000", "--output", "json"]);
    let mut page: Value = serde_json::from_str(&audit).unwrap();
    let mut entries: Vec<AuditEntry> = serde_json::from_value(page["items"].take()).unwrap();
    entries.reverse();
    (String::from_utf8(output.stdout).unwrap(), entries)
}

/// An entry without what differs between servers: ids of events, and the hash over them.
fn comparable(entry: &AuditEntry, ids: &mut Vec<String>) -> Value {
    let mut text = serde_json::to_string(&AuditEntry { hash: String::new(), ..entry.clone() }).unwrap();
    for id in &entry.events {
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    for (number, id) in ids.iter().enumerate() {
        text = text.replace(id, &format!("E{}", number + 1));
    }
    serde_json::from_str(&text).unwrap()
}

const STORY: &str = "\
let spare = h9
host $spare
for n in 0..3
  host h$n
end
scaleset web terminate 5m
for n in 0..2
  instance of web on h$n ud $n times 2
end
vm solo on h0
vm other on h2
run command as solo
run \"./service --port 80, # and more\" as web_1
poll other
at 10s  restart solo
await solo Started within 1m
await solo nothing, solo boots 2 within 5m
expect solo approved by itself, no start before approval
update host h0 h1
await rollout finished within 2h
redeploy other
await other Started within 1h
await other on h9, other disk 2 within 10m
for gone in 3 2
  at +30s delete web_$gone
  advance 1h
  instance of web on h2 ud 2
end
randomly seed 11 12 times between 5s and 20m
  restart web_0
  redeploy other
  reboot host h0
  poll other
  approve other by other
end
await other unenrolled within 3d
expect solo enrolled
fail host h0
advance 10m
";

/// promise: X1
#[test]
fn programs_waits_and_repetitions_show_the_same_on_a_server() {
    let (rules, _) = in_the_rules(STORY);
    let (server, _) = on_a_server(STORY);
    assert_eq!(server, rules);
    for line in ["solo approves E1", "web_1 approves", "      refused: ", "await other unenrolled within 3d"]
    {
        assert!(rules.contains(line), "{line}: {rules}");
    }
}

/// promise: X1
#[test]
fn the_rules_have_the_audit_log_of_a_server() {
    let ((_, rules), (_, server)) = (in_the_rules(STORY), on_a_server(STORY));
    let (mut ids_there, mut ids_here) = (Vec::new(), Vec::new());
    for (there, here) in server.iter().zip(&rules) {
        let (there, here) = (comparable(there, &mut ids_there), comparable(here, &mut ids_here));
        assert_eq!(there, here);
    }
    assert_eq!(server.len(), rules.len());
    assert!(rules.len() > 100);
}

/// promise: X1
#[test]
fn a_condition_that_is_never_met_fails_at_the_same_time_on_a_server() {
    let fleet = "host h1\nvm solo on h1\npoll solo\nat 7s restart solo\n";
    for line in
        ["await solo nothing within 10m", "await solo approved by itself within 20m", "expect solo Started"]
    {
        let story = format!("{fleet}{line}\n");
        let mut command = clean_command(crate::program());
        dev(&mut command, &STAGE);
        let server = TestServer::spawn(crate::program(), command);
        let (there, here) = (play(&story, &["--live", "--api", server.api_url()]), play(&story, &[]));
        assert_eq!(there, here, "{line}");
        let (shown, problem) =
            (String::from_utf8(here.stdout).unwrap(), String::from_utf8(here.stderr).unwrap());
        assert!(shown.contains("E1 Reboot Scheduled"), "{shown}");
        assert!(problem.contains(&format!("5 | {line}\n")), "{problem}");
        assert!(problem.contains("  = expected: solo ") && problem.contains("  = actual:   "), "{problem}");
    }
}
