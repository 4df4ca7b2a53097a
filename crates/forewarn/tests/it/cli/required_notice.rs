//! `--require-notice`: a command that would notify no machine fails, and changes nothing.

use crate::cli::support::{Server, curl, shell};

/// Commands that would announce something if a tenant was enrolled.
const COMMANDS: [&str; 9] = [
    "vm restart web_0",
    "vm delete web_4 --yes",
    "host update h1",
    "host reboot h1",
    "host degrade h1",
    "host maintenance enter h1",
    "rollout start --all",
    "scaleset scale web 1 --yes",
    "scaleset delete-instances web 4 --yes",
];

#[test]
fn a_refused_command_leaves_the_audit_log_and_the_documents_as_they_are() {
    let server = Server::start();
    let state = || {
        (
            server.out("audit export -"),
            server.out("tenant ls --output json"),
            server.out("vm ls --output json"),
        )
    };
    let before = state();
    for command in COMMANDS {
        let refused = server.run(&format!("{command} --require-notice"));
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{command}: {refused:?}");
        assert!(refused.err.starts_with("forewarn: no machine would be notified: tenant"), "{refused:?}");
        assert!(refused.err.contains("\n  hint: "), "{refused:?}");
    }
    assert_eq!(state(), before);
    let document = "curl -sS -H Metadata:true ";
    let place = format!("{}/v1/tenants/web/document?api-version=2020-07-01", server.api);
    assert!(shell(&server, &format!("{document}'{place}'")).out.contains(r#""DocumentIncarnation":1"#));
}

#[test]
fn a_command_with_an_enrolled_tenant_is_carried_out() {
    for command in COMMANDS {
        let server = Server::start();
        server.enrol("web_0");
        server.out(&format!("{command} --require-notice"));
        let made = server.json("event ls")["items"].as_array().unwrap().len();
        assert!(made > 0, "{command}");
    }
}

#[test]
fn the_hint_is_the_poll_that_helps() {
    let server = Server::start();
    let refused = server.run("vm restart solo --require-notice");
    assert!(
        refused.err.contains("no machine would be notified: tenant solo is not enrolled\n"),
        "{refused:?}"
    );
    assert!(refused.err.contains("forewarn settings set --enrolment always"), "{refused:?}");
    curl(&refused.err);
    server.out("vm restart solo --require-notice");
    // Work without an event, whoever is enrolled.
    server.out("vm create plain --host h1");
    server.enrol("plain");
    let silent = server.run("vm delete plain --yes --require-notice");
    assert!(silent.err.contains("no machine would be notified: the request makes no event\n"), "{silent:?}");
    assert_eq!(server.run("vm show plain").code, Some(0));
}

#[test]
fn each_of_several_operations_is_decided_by_itself() {
    let server = Server::start();
    server.enrol("solo");
    let ran = server.run("vm restart solo web_0 --require-notice");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("tenant web is not enrolled"), "{ran:?}");
    assert!(ran.err.contains("1 of 2 operations were rejected"), "{ran:?}");
    assert_eq!(server.json("event ls")["items"].as_array().unwrap().len(), 1);
    assert_eq!(server.json("vm show web_0")["boots"], 1);
}

#[test]
fn the_problem_has_a_type_of_its_own() {
    let server = Server::start();
    let post = |query: &str| {
        let body = r#"{"command":"restart","machine":"solo"}"#;
        let place = format!("{}/v1/commands{query}", server.api);
        curl(&format!("curl -H Content-Type:application/json -d '{body}' '{place}'"))
    };
    let problem = post("?require_notice=true");
    assert_eq!((&problem["type"], &problem["status"]), (&"/problems/no-notice".into(), &409.into()));
    assert_eq!(problem["title"], "No machine would be notified");
    assert!(problem["hint"].as_str().unwrap().starts_with("poll once"), "{problem}");
    assert_eq!(post("?require_notice=maybe")["status"], 400);
    assert_eq!(post("?require_notice=false")["unnotified"][0], "solo");
}

/// Work on a host skips deallocated machines, so their tenant gets no notice of it.
#[test]
fn a_deallocated_machine_gets_no_notice_of_work_on_its_host() {
    let server = Server::start();
    server.enrol("solo");
    server.out("vm deallocate solo --wait");
    let refused = server.run("host update h1 --require-notice");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.err.contains("tenant web is not enrolled"), "{refused:?}");
}
