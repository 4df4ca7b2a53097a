//! `forewarn dashboard`: who gets in, how it begins, and how it ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use forewarn_testkit::command::output_of;
use forewarn_testkit::{RunningCommand, TestServer, clean_command, wait_until};

use super::place::{Ask, Dashboard, MARK, connect, parts};
use crate::access::place::Place;

/// `forewarn --api URL`.
fn forewarn(server: &TestServer) -> Command {
    let mut command = clean_command(crate::program());
    command.args(["--api", server.api_url()]);
    command
}

/// promise: S1
#[test]
fn a_code_works_once_and_another_address_is_printed() {
    let server = TestServer::start(crate::program());
    let dashboard = Dashboard::start(&mut forewarn(&server));
    let page = dashboard.ask_with("GET /", "", "");
    assert!(page.status == 200 && page.text().starts_with("<!doctype html>"), "{page:?}");
    let unknown = dashboard.ask("GET /v1/caller", "");
    assert_eq!(unknown.status, 401);
    let opened = dashboard.log_in(&dashboard.code);
    assert_eq!(opened.status, 204);
    let cookie = opened.header("set-cookie").unwrap();
    let name = format!("forewarn_dashboard_{}=", dashboard.port);
    assert!(cookie.starts_with(&name), "{cookie}");
    assert!(cookie.contains("; HttpOnly; SameSite=Strict"), "{cookie}");

    let again = dashboard.log_in(&dashboard.code);
    assert_eq!((again.status, again.header("set-cookie")), (401, None));
    let problem = again.json();
    assert_eq!(problem["type"], "/problems/dashboard-session");
    assert!(
        problem["detail"].as_str().unwrap().contains("open the address that `forewarn dashboard` prints")
    );
    let (port, code) = parts(&dashboard.running.line());
    assert_eq!(port, dashboard.port);
    assert_ne!(code, dashboard.code);
    // While that one works, nothing more is printed, whoever asks.
    assert_eq!(dashboard.log_in("0").status, 401);
    assert_eq!(dashboard.ask("GET /v1/caller", "").status, 401);
    assert_eq!(dashboard.log_in(&code).status, 204);
    let ended = dashboard.running.interrupted();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{}", ended.err);
}

/// promise: S1
#[test]
fn other_users_and_other_pages_get_nothing() {
    let server = TestServer::start(crate::program());
    let (dashboard, other) =
        (Dashboard::open(&mut forewarn(&server)), Dashboard::open(&mut forewarn(&server)));
    assert_eq!(dashboard.ask("GET /v1/caller", "").status, 200);
    let (cookie, own) = (dashboard.cookie.clone(), dashboard.host());
    let page = format!("{MARK}{cookie}");
    let renamed = other.cookie.replace(&other.port.to_string(), &dashboard.port.to_string());
    for (name, host, fields, status) in [
        ("another user", own.as_str(), String::new(), 403),
        ("another user who knows the header", &own, MARK.to_owned(), 401),
        ("a cookie of another dashboard", &own, format!("{MARK}{}", other.cookie), 401),
        ("its session under this name", &own, format!("{MARK}{renamed}"), 401),
        ("a token", &own, format!("{MARK}Authorization: Bearer fwt_0_00\r\n"), 401),
        ("no header of the page", &own, cookie.clone(), 403),
        ("another site", &own, format!("{page}Sec-Fetch-Site: cross-site\r\n"), 403),
        ("another origin", &own, format!("{page}Origin: http://evil.example\r\n"), 403),
        ("the other dashboard", &own, format!("{page}Origin: http://{}\r\n", other.host()), 403),
        ("DNS rebinding", "evil.example", page.clone(), 403),
        ("another port", &other.host(), page.clone(), 403),
        ("two hosts", &own, format!("{page}Host: evil.example\r\n"), 403),
    ] {
        for (line, body) in [("GET /v1/events", ""), ("POST /v1/commands", r#"{"command":"brake_on"}"#)] {
            let answer = Ask { line, host, fields: &fields, body }.over(dashboard.connect());
            // HTTP allows one `Host` only.
            let is_status = answer.status == status || (name == "two hosts" && answer.status == 400);
            assert!(is_status, "{name}: {line}: {answer:?}");
        }
    }
    let foreign = Ask { line: "GET /", host: "evil.example", ..Ask::default() }.over(dashboard.connect());
    assert_eq!(foreign.status, 403, "the page is not for foreign names");
    let absolute = dashboard.ask_with("GET http://evil.example/v1/events", &page, "");
    assert_eq!(absolute.status, 403);
    assert!(!server.run(&["audit", "ls", "--kind", "command"]).contains("brake"), "nothing was changed");
    let own_name = format!("localhost:{}", dashboard.port);
    let answer = Ask { line: "GET /v1/events", host: &own_name, fields: &page, body: "" };
    assert_eq!(answer.over(dashboard.connect()).status, 200);
}

#[test]
fn a_logout_ends_the_session() {
    let server = TestServer::start(crate::program());
    let dashboard = Dashboard::open(&mut forewarn(&server));
    let answer = dashboard.ask("DELETE /session", "");
    assert!(answer.status == 204 && answer.header("set-cookie").unwrap().contains("Max-Age=0"), "{answer:?}");
    assert_eq!(dashboard.ask("GET /v1/caller", "").status, 401);
    parts(&dashboard.running.line());
}

/// promise: S5
#[test]
fn requests_have_limits() {
    let server = TestServer::start(crate::program());
    let dashboard = Dashboard::open(&mut forewarn(&server));
    let many: String = (0..100).map(|number| format!("X-{number}: 1\r\n")).collect();
    assert_eq!(dashboard.ask_with("GET /", &many, "").status, 431);
    let long = format!("{MARK}X: {}\r\n", "x".repeat(200_000));
    assert_eq!(dashboard.ask_with("GET /", &long, "").status, 431);
    let login = dashboard.log_in(&"0".repeat(2_000));
    assert_eq!(login.status, 400, "{login:?}");
    for line in ["PUT /session", "POST /", "DELETE /dashboard/main.js"] {
        assert_eq!(dashboard.ask(line, "").status, 405, "{line}");
    }
    assert_eq!(dashboard.ask("GET /v1/caller", "").status, 200);
}

#[test]
fn a_script_gets_the_address_as_json_and_ctrl_c_ends_the_command() {
    let server = TestServer::start(crate::program());
    let mut command = forewarn(&server);
    let mut running = RunningCommand::start(command.args(["--output", "json", "dashboard", "--no-browser"]));
    let mut text = String::new();
    let printed: serde_json::Value = loop {
        text += &(running.line() + "\n");
        if let Ok(printed) = serde_json::from_str(&text) {
            break printed;
        }
    };
    let (port, _) = parts(printed["url"].as_str().unwrap());
    running.hear("Ctrl-C ends the dashboard");
    assert_eq!(running.interrupt(), Some(0));
    // The port is free again.
    let mut same = forewarn(&server);
    let running =
        RunningCommand::start(same.args(["dashboard", "--no-browser", "--port", &port.to_string()]));
    assert_eq!(parts(&running.line()).0, port);
    let taken = output_of(forewarn(&server).args(["dashboard", "--no-browser", "--port", &port.to_string()]));
    let error = String::from_utf8(taken.stderr).unwrap();
    assert_eq!(taken.status.code(), Some(1), "{error}");
    assert!(
        error.contains("cannot listen on 127.0.0.1:") && error.contains("  hint: without --port"),
        "{error}"
    );
    assert_eq!(running.interrupt(), Some(0));
}

#[test]
fn a_server_that_does_not_answer_is_an_error_at_once() {
    let run = |words: &[&str]| {
        let output =
            output_of(clean_command(crate::program()).args(words).args(["dashboard", "--no-browser"]));
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (code, said) = run(&["--api", "unix:/nonexistent/api.sock"]);
    assert!(
        code == Some(1) && said.contains("cannot reach the server at unix:/nonexistent/api.sock"),
        "{said}"
    );
    let place = Place::new();
    let server = place.start();
    let token = place.token("ann --role viewer").replace("fwt_", "fwt_9");
    let (code, said) = run(&["--api", server.api_url(), "--token", &token]);
    assert!(code == Some(1) && said.contains("the token is missing or invalid"), "{said}");
}

/// Every user can read the arguments of programs.
///
/// promise: S4
#[test]
fn the_browser_gets_the_address_in_a_private_file() {
    let place = Place::new();
    let _server = place.start();
    let files = place.path("runtime");
    fs::create_dir(&files).unwrap();
    let browser = place.script(
        "browser",
        "#!/bin/sh\nstat -c %a \"$1\" > \"$SEEN.new\"\ncat \"$1\" >> \"$SEEN.new\"\necho \"$*\" >> \"$SEEN.new\"\nmv \"$SEEN.new\" \"$SEEN\"\n",
    );
    let mut command = place.command();
    command.args(["--api", &format!("unix:{}", place.path("api.sock")), "dashboard"]);
    command.env("BROWSER", &browser).env("DISPLAY", ":99").env("XDG_RUNTIME_DIR", &files);
    command.env("SEEN", place.path("seen"));
    let running = RunningCommand::start(&mut command);
    let url = running.line();
    let seen = wait_until("the browser", || fs::read_to_string(place.path("seen")).ok());
    assert!(seen.starts_with("600\n") && seen.contains(&format!("url={url}\"")), "{seen}");
    let arguments = seen.lines().last().unwrap();
    assert!(arguments.starts_with(&files) && !arguments.contains(&parts(&url).1), "{arguments}");
    assert_eq!(fs::metadata(&files).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(running.interrupt(), Some(0));
    assert_eq!(fs::read_dir(&files).unwrap().count(), 0, "the file is removed");
}

#[test]
fn a_silent_connection_does_not_hold_up_others() {
    let server = TestServer::start(crate::program());
    let dashboard = Dashboard::open(&mut forewarn(&server));
    let at = format!("127.0.0.1:{}", dashboard.port).parse().unwrap();
    let silent: Vec<_> = (0..50).map(|_| connect(at)).collect();
    assert_eq!(dashboard.ask("GET /v1/caller", "").status, 200);
    drop(silent);
}
