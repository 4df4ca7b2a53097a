//! "Why is that?" and "who did that?", as somebody at a terminal asks.

use crate::support::Server;

/// An event of web_0 that was announced to web.
fn restarted(server: &Server) -> String {
    server.enrol("web_0");
    server.json("vm restart web_0")["events"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn who_restarted_a_machine_is_told_when_it_is_over() {
    let server = Server::start();
    let id = restarted(&server);
    server.out("event approve --tenant web");
    server.out("clock advance 1h");
    let told = server.out("vm explain web_0");
    let first = "It is running on h1. Last: 2026-01-01T00:00:30Z, Reboot of web_0 (restart by the owner) is done for web_0; \
                 because of entry 35, by anyone: restart, machine web_0.\n";
    assert!(told.starts_with(first), "{told}");
    assert!(told.contains("  2026-01-01 00:00:30Z  completed  Reboot of web_0"), "{told}");
    assert!(told.contains(", by anyone: restart, machine web_0\n"), "{told}");
    let json = server.json("vm explain web/web_0");
    assert_eq!(json["machine"]["boots"], 2);
    assert_eq!(json["history"][0]["origin"]["by"], "anyone");
    assert_eq!(json["history"][0]["events"][0], id.as_str());
}

#[test]
fn an_event_is_explained_while_it_waits_and_when_it_is_gone() {
    let server = Server::start();
    let id = restarted(&server);
    let told = server.out(&format!("event explain {}", &id[..4]));
    assert!(told.contains("\nasked for by  anyone: restart, machine web_0\n"), "{told}");
    assert!(told.contains("\nIn the way\n  Tenant web has not approved\n"), "{told}");
    assert!(told.contains("  web_0 is restarted: memory is lost, disks are kept\n"), "{told}");
    assert!(told.contains("  web_0: has not asked since; asked 2026-01-01 00:00:00Z (now)"), "{told}");
    // The clock stands still, and yet it is known who has seen it.
    server.enrol("web_1");
    let told = server.out(&format!("event explain {id}"));
    assert!(
        told.contains(
            "  web_1: has seen it; asked 2026-01-01 00:00:00Z (now), with api-version 2020-07-01\n"
        ),
        "{told}"
    );
    server.out("clock advance 1h");
    let gone = server.json(&format!("event explain {}", &id[..8]));
    assert_eq!((gone["status"].as_str(), gone["id"].as_str()), (Some("Completed"), Some(id.as_str())));
    assert_eq!(gone["history"].as_array().unwrap().len(), 3);
    let nothing = server.run("event explain 00000000-0000-0000-0000-000000000000");
    assert_eq!(
        (nothing.code, nothing.err.as_str()),
        (Some(1), "forewarn: no such event: 00000000-0000-0000-0000-000000000000\n")
    );
    assert_eq!(server.run("event explain FFFFFFFF").code, Some(1));
}

#[test]
fn a_machine_that_is_gone_has_a_history_and_a_long_one_is_told_whole() {
    let server = Server::start();
    server.out("vm delete solo --wait");
    assert_eq!(server.run("vm show solo").code, Some(1));
    let told = server.out("vm explain solo");
    assert!(told.starts_with("It is gone. Last: "), "{told}");
    assert!(told.contains("asked for: delete, machine solo [anyone]"), "{told}");
    let wrong = server.run("vm explain sola");
    assert_eq!(wrong.code, Some(1), "{}", wrong.out);
    assert!(wrong.err.starts_with("forewarn: no such machine: sola"), "{}", wrong.err);

    for _ in 0..5 {
        server.out("vm stop db-0");
        server.out("vm start db-0");
        server.out("clock advance 1h");
    }
    let (some, all) = (server.out("vm explain db-0"), server.out("vm explain db-0 --all"));
    assert!(some.ends_with("… and older: --all\n") && all.len() > some.len(), "{some}");
    let all = server.json("vm explain db-0 --all");
    let numbers: Vec<_> =
        all["history"].as_array().unwrap().iter().map(|step| step["number"].as_u64()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] > pair[1]) && numbers.len() > 20, "{numbers:?}");
}
