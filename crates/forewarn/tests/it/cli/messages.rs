//! Messages say what the server has decided: when work starts, what it waits for, and what continues.

use crate::cli::support::Server;

/// Two tenants on one host, and a free host.
const SHARED_HOST: &str = "[[host]]\nname = \"h1\"\n[[host]]\nname = \"h2\"\n\
                           [[vm]]\nname = \"solo\"\nhost = \"h1\"\n[[vm]]\nname = \"other\"\nhost = \"h1\"\n";

fn shared_host() -> Server {
    let server = Server::start_with("--fleet none");
    let file = server.file("fleet.toml", SHARED_HOST).display().to_string();
    server.out(&format!("fleet apply {file}"));
    server
}

fn boots(server: &Server) -> u64 {
    server.json("vm show web_0")["boots"].as_u64().unwrap()
}

#[test]
fn work_on_tenants_that_are_not_enrolled_starts_when_the_message_says() {
    let server = Server::start();
    server.out("settings set --unenrolled waits");
    let ran = server.run("vm restart web_0");
    assert!(
        ran.out.starts_with("Restart of web_0 starts at ") && ran.out.contains(" (in 15m): it waits"),
        "{ran:?}"
    );
    assert!(ran.out.contains(" Tenant web gets no notice: "), "{ran:?}");
    let coming = server.out("vm explain web_0");
    assert!(coming.contains("\n  Restart by the owner: waits as long as a notice, until "), "{coming}");
    let host = server.json("vm show web_1")["host"].as_str().unwrap().to_owned();
    let updated = server.out(&format!("host update {host}"));
    assert!(updated.contains(&format!("\nUpdate of {host} starts at ")), "{updated}");
    assert!(!updated.contains("starts now"), "{updated}");
    let work = server.json(&format!("host show {host}"))["work"].as_str().unwrap().to_owned();
    assert!(work.contains("waits as long as a notice, until "), "{work}");
    server.out("clock advance 14m59s");
    assert_eq!(boots(&server), 1, "not before");
    server.out("clock advance 1m");
    assert_eq!(boots(&server), 2, "then");
    server.out("settings set --unenrolled runs");
    let ran = server.out("vm restart web_0");
    assert!(ran.starts_with("Restart of web_0 starts now. "), "{ran}");
    server.out("brake on");
    let held = server.out("vm restart solo");
    assert!(
        held.starts_with("Restart of solo has not started: held by the brake. Tenant solo gets"),
        "{held}"
    );
}

#[test]
fn an_approval_names_the_tenant_that_the_work_still_waits_for() {
    let server = shared_host();
    server.enrol("solo");
    server.enrol("other");
    server.out("host update h1");
    let approved = server.out("event approve --tenant solo");
    let waits = "Freeze of solo: approved, waits for the approval of tenant other, or for the end of the notice, not before ";
    assert!(approved.starts_with(&format!("All events of solo approved.\n{waits}")), "{approved}");
    let last = server.out("event approve --tenant other");
    assert!(last.ends_with("Freeze of other: under way: 2 machines to go.\n"), "{last}");
}

#[test]
fn a_busy_host_is_named_and_can_be_left_out_of_a_rollout() {
    let server = shared_host();
    server.enrol("solo");
    server.out("host update h1");
    for words in ["rollout preview --all", "rollout start --all"] {
        let busy = server.run(words);
        assert_eq!(busy.code, Some(1), "{busy:?}");
        assert_eq!(
            busy.err,
            "forewarn: planned work on a host is announced or in progress: h1\n  hint: wait until it has ended, or leave the host \
             out; with `--all` or `--zone`: `--except h1`\n"
        );
    }
    assert!(server.out("rollout preview --all --except h1").starts_with("Update of 1 host: "));
    let started = server.out("rollout start --all --except h1");
    assert!(started.starts_with("Rollout 1 planned: update of all hosts except h1.\n"), "{started}");
    assert_eq!(server.run("rollout start h2 --except h1").code, Some(2));
}

#[test]
fn a_deletion_without_notice_says_how_to_enable_it() {
    let server = shared_host();
    let deleted = server.run("vm delete solo --yes");
    assert_eq!(deleted.out, "Deletion of solo is in progress, without an event.\n", "{deleted:?}");
    assert!(
        deleted.err.ends_with(" first run: forewarn vm update solo --terminate-notification on\n"),
        "{deleted:?}"
    );
    server.enrol("other");
    server.out("vm update other --terminate-notification on");
    let announced = server.run("vm delete other --yes");
    assert!(announced.out.starts_with("Terminate of other is announced: "), "{announced:?}");
    assert_eq!(announced.err, "");
}

#[test]
fn an_interrupted_wait_says_that_the_operation_continues() {
    let server = shared_host();
    server.enrol("solo");
    let mut waiting = server.begin("vm restart solo --wait");
    let line = waiting.line();
    let id = line.rsplit(' ').next().unwrap().to_owned();
    waiting.hear("or approve");
    let ran = waiting.interrupted();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    let said = format!(
        "forewarn: interrupted: the operation continues on the server\n  hint: `forewarn event show {id}` shows it, \
         `forewarn event cancel {id}` cancels it\n"
    );
    assert!(ran.err.ends_with(&said), "{ran:?}");
    assert_eq!(server.json(&format!("event show {id}"))["status"], "Scheduled", "it continues");
    server.out(&format!("event cancel {id}"));
}

#[test]
fn a_backup_says_what_it_has_written() {
    let files = tempfile::tempdir().unwrap();
    let server = Server::start_with(&format!("--data-dir {}", files.path().join("data").display()));
    let place = files.path().join("copy");
    let text = server.out(&format!("backup {}", place.display()));
    let bytes = std::fs::metadata(&place).unwrap().len();
    assert!(
        text.starts_with(&format!("Backup written and checked: {}, {bytes} bytes.\n", place.display())),
        "{text}"
    );
    assert!(text.contains("It has 1 cluster with 10 hosts, 6 tenants, 14 machines, "), "{text}");
    let other = place.with_file_name("other");
    let report = server.json(&format!("backup {}", other.display()));
    assert_eq!(
        (&report["clusters"], &report["hosts"], &report["machines"]),
        (&1.into(), &10.into(), &14.into())
    );
    assert!(report["position"].as_u64().unwrap() > 0 && report["records"].as_u64().unwrap() > 0, "{report}");
}
