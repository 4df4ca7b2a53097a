//! Windows of tenants, as an operator sets and sees them.

use crate::cli::support::{Server, shell};

/// promise: R1
#[test]
fn work_on_hosts_waits_for_the_windows_of_a_tenant() {
    let server = Server::start();
    server.enrol("web_0");
    let set = shell(&server, "forewarn tenant set web --window 'thu,fri 03:00-04:00 europe/berlin'");
    assert_eq!((set.code, set.out.as_str()), (Some(0), "Windows of web changed.\n"), "{set:?}");
    let shown = server.out("tenant show web");
    assert!(shown.contains("\nwindows             thu,fri 03:00-04:00 Europe/Berlin\n"), "{shown}");
    assert_eq!(server.json("tenant show web")["windows"][0], "thu,fri 03:00-04:00 Europe/Berlin");
    let again = shell(&server, "forewarn tenant set web --window 'thu,fri 03:00-04:00 Europe/Berlin'");
    assert_eq!(again.out, "web already has these windows.\n", "{again:?}");

    let preview = server.out("rollout preview h1 --output wide");
    assert!(preview.contains("  WORK ON HOSTS"), "{preview}");
    assert!(
        preview.contains("2026-01-01 01:45:00Z  2026-01-01 02:00:00Z  02:00:00Z - 02:00:09Z"),
        "{preview}"
    );
    assert!(preview.contains("thu,fri 03:00-04:00 Europe/Berlin"), "{preview}");
    let json = server.json("rollout preview h1");
    assert_eq!(json["longest"]["steps"][0]["host_steps"][0]["host"], "h1");
    assert_eq!(json["longest"]["steps"][0]["host_steps"][0]["begins"], "2026-01-01T02:00:00Z");

    server.out("rollout start h1");
    let status = server.out("rollout show 0");
    let waits = "waits for a window of tenant web: the next group is announced at 2026-01-01T01:45:00Z";
    assert!(status.contains("\nstate        waits-for-window\n") && status.contains(waits), "{status}");
    server.out("clock advance 1h45m");
    server.out("event approve --tenant web");
    let id = server.json("event ls")["items"][0]["id"].as_str().unwrap().to_owned();
    let told = server.out(&format!("event explain {id}"));
    assert!(told.contains("  Held until the next window: 2026-01-01T02:00:00Z\n"), "{told}");
    assert!(told.contains("  The windows of tenant web are closed until 2026-01-01T02:00:00Z: "), "{told}");
    server.out("clock advance 15m");
    assert_eq!(server.json("event ls")["items"][0]["status"], "Started");
    server.out("clock advance 1m");
    assert!(server.out("rollout show 0").contains("\nstate        finished\n"));

    let never = shell(&server, "forewarn rollout start h1 --window 12:00-13:00");
    assert_eq!(never.code, Some(1));
    let why = "the windows of the rollout and of the tenants on host h1 never overlap: web\n  hint: leave the host out";
    assert!(never.err.contains(why), "{}", never.err);
    assert_eq!(server.run("rollout preview h1 --window 12:00-13:00").code, Some(1));
    assert_eq!(server.out("tenant set web --no-window"), "Windows of web changed.\n");
    assert!(server.json("tenant show web").get("windows").is_none());
}

#[test]
fn an_invalid_window_has_a_hint() {
    let server = Server::start();
    let unknown = shell(&server, "forewarn tenant set web --window '03:00-04:00 Europe/Berln'");
    let expected = "unknown time zone: Europe/Berln\n  hint: did you mean Europe/Berlin?\n";
    assert!(unknown.code == Some(1) && unknown.err.ends_with(expected), "{unknown:?}");
    let invalid = shell(&server, "forewarn tenant set web --window 3am");
    assert!(invalid.code == Some(2) && invalid.err.contains("hint: write 22:00-06:00"), "{invalid:?}");
    assert_eq!(server.run("tenant set web").code, Some(2));
    assert_eq!(server.run("tenant set web --no-window --window 01:00-02:00").code, Some(2));
}

#[test]
fn a_fleet_file_has_windows() {
    let server = Server::start();
    let exported = server.out("fleet show");
    let text = exported.replacen(
        "name = \"solo\"\n",
        "name = \"solo\"\nwindows = [\"sun 22:00-04:00 Europe/Berlin\"]\n",
        1,
    );
    assert_ne!(exported, text);
    let file = server.file("windows.toml", &text);
    let applied = server.out(&format!("fleet apply {}", file.display()));
    assert!(applied.contains("~ solo: windows any time -> sun 22:00-04:00 Europe/Berlin"), "{applied}");
    assert!(server.out("fleet show").contains("sun 22:00-04:00 Europe/Berlin"));
    assert!(!server.out(&format!("fleet apply {}", file.display())).contains("~ solo"));
}
