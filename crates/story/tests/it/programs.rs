//! Programs that are machines: simulated in the rules, where they behave well.

use forewarn_control::AuditEntry;
use forewarn_story::{Backend, RulesBackend, parse, run, run_on};

fn played(text: &str) -> String {
    run(&parse(text).unwrap()).unwrap_or_else(|error| panic!("{error}")).to_string()
}

fn mistake(text: &str) -> String {
    parse(text).and_then(|story| run(&story)).expect_err("a mistake").to_string()
}

const SOLO: &str = "host h1 h2\nvm solo on h1\n";

/// promise: X1
#[test]
fn a_simulated_program_polls_at_once_and_approves_what_it_reads() {
    let story = "run \"sleep 1, # not a comment\" as solo\nexpect solo enrolled\nat 10s restart solo\nexpect solo Started\n";
    let shown = played(&format!("{SOLO}{story}"));
    assert!(shown.contains("run \"sleep 1, # not a comment\" as solo"), "{shown}");
    let after = "\
at 10s
  restart solo
      solo sees document 2
        E1 Reboot Scheduled, not before 15m10s, User, 9 s, \"Virtual machine is being restarted.\": solo
      solo approves E1
      solo sees document 3
";
    let start = shown.find("at 10s").unwrap();
    let words =
        |text: &str| text.lines().map(|line| line.split(", ").next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(words(&shown[start..])[..6], words(after)[..], "{shown}");
}

/// promise: X1
#[test]
fn several_programs_approve_for_their_own_tenants() {
    let fleet = "host h1\nvm a on h1\nvm b on h1\nscaleset web\ninstance of web on h1 times 2\n";
    let story = "run command as a\nrun command as b\nrun command as web_1\nupdate host h1\nexpect a Started, b Started, web Started\n";
    let shown = played(&format!("{fleet}{story}"));
    for approval in ["a approves E1", "b approves E2", "web_1 approves E3"] {
        assert!(shown.contains(approval), "{shown}");
    }
}

/// promise: T2
#[test]
fn a_simulated_program_keeps_its_tenant_enrolled() {
    let story = format!(
        "{SOLO}run command as solo\nadvance 5d\nexpect solo enrolled\nrestart solo\nexpect solo Started\n"
    );
    played(&story);
    let silent = mistake(&format!("{SOLO}poll solo\nadvance 5d\nexpect solo enrolled\n"));
    assert!(silent.contains("found: not enrolled"), "{silent}");
    let long = mistake(&format!("{SOLO}run command as solo\nadvance 400d\n"));
    assert!(long.contains("line 4, column 1: a story that simulates programs lasts at most 366d"), "{long}");
}

#[test]
fn a_program_of_a_machine_that_is_off_or_gone_does_nothing() {
    let off = format!("{SOLO}run command as solo\nstop solo\npoll solo\nadvance 1d\n");
    assert!(!played(&off).contains("approves"), "{}", played(&off));
    played(&format!("{SOLO}run command as solo\ndelete solo\nadvance 1h\nexpect solo gone\nadvance 2d\n"));
}

/// promise: X1
#[test]
fn mistakes_in_programs_are_pointed_out() {
    for (line, words) in [
        ("run", "expected a command in quotation marks, or `command`"),
        ("run sleep as solo", "column 5: expected a command in quotation marks, or `command`"),
        ("run \" \" as solo", "column 5: expected a command in quotation marks"),
        ("run \"sleep 1\" solo", "column 15: expected `as`"),
        ("run \"sleep 1 as solo", "column 5: the text has no closing quotation mark"),
        ("run command as nobody", "column 16: no such machine: nobody"),
        ("run command as solo\nrun command as solo", "column 16: a program already runs as this machine"),
        ("refused run command as solo", "unknown statement"),
    ] {
        let shown = mistake(&format!("{SOLO}{line}\n"));
        assert!(shown.contains(words), "{line}: {shown}");
    }
}

fn audit(text: &str) -> Vec<AuditEntry> {
    let mut backend = RulesBackend::default();
    run_on(&parse(text).unwrap(), &mut backend).unwrap();
    backend.audit(0).unwrap()
}

/// promise: X1
#[test]
fn the_rules_write_the_audit_log_of_a_server() {
    let text = format!("{SOLO}run command as solo\nrefused restart nobody\n");
    assert!(parse(&text).and_then(|story| run(&story)).is_err());
    let entries = audit(&format!(
        "{SOLO}set useroperations 1\nrun command as solo\nrestart solo\nadvance 5m\nupdate host h1\nadvance 1h\n"
    ));
    let mut chain = forewarn_control::Chain::default();
    for entry in &entries {
        assert_eq!(chain.verify(entry), Ok(()), "{entry:?}");
    }
    let approved: Vec<_> = entries.iter().filter(|entry| entry.kind == "approved").collect();
    assert_eq!(approved.len(), 2);
    assert!(approved.iter().all(|entry| entry.by == "machine solo/solo" && entry.because.is_none()));
    let restart = entries.iter().find(|entry| entry.text == "requested: restart, machine solo").unwrap();
    let announced = entries.iter().find(|entry| entry.kind == "announced").unwrap();
    assert_eq!((restart.by.as_str(), announced.because), ("anyone", Some(restart.number)));
    assert_eq!(announced.notices.len(), 1);
    let mut backend = RulesBackend::default();
    run_on(&parse(SOLO).unwrap(), &mut backend).unwrap();
    let all = backend.audit(0).unwrap();
    assert_eq!(backend.audit(2).unwrap(), all[2..]);
}

/// promise: X1
#[test]
fn a_refused_command_leaves_no_entry() {
    let before = audit(SOLO).len();
    assert_eq!(audit(&format!("{SOLO}refused host h1\n")).len(), before);
    assert_eq!(audit(&format!("{SOLO}brake on\n")).len(), before + 2);
}

/// promise: X1
#[test]
fn an_event_that_a_simulated_program_has_approved_is_not_scheduled_and_a_hint_says_so() {
    let shown = mistake(&format!("{SOLO}run command as solo\nreboot host h1\nexpect solo Scheduled\n"));
    assert!(shown.contains("expectation failed, found: Started"), "{shown}");
    assert!(
        shown.contains("hint: the simulated program of solo approves in the same instant; write `await solo approved within 1m`"),
        "{shown}"
    );
    let without = mistake(&format!("{SOLO}expect solo Scheduled\n"));
    assert!(!without.contains("hint"), "{without}");
}
