//! The operator's commands, as somebody at a terminal or a script knows them: words in; lines, messages and an exit code
//! out. What the commands do to machines is tested where the rules are.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stumble")]
#![allow(unreachable_pub, missing_docs, reason = "nobody calls a test")]

mod api;
mod audit;
mod clock;
mod completion;
mod contexts;
mod driver;
mod enrolment_setting;
mod explain;
mod fleets;
mod formats;
mod invisible;
mod many_clusters;
mod messages;
mod required_notice;
mod scalesets;
mod servers;
mod stories;
mod support;
mod verbs;
mod wait_for;
mod windows;

use self::support::{Server, alone, curl, shell};

#[test]
fn exit_codes_tell_usage_from_failure() {
    let server = Server::start();
    assert_eq!(server.run("vm show web_0").code, Some(0));
    let wrong = server.run("vm show web-0");
    assert_eq!((wrong.code, wrong.out.as_str()), (Some(1), ""));
    assert_eq!(wrong.err, "forewarn: no such machine: web-0\n  hint: did you mean web_0?\n");
    for usage in ["vm", "vm fly web_0", "event approve 12", "clock advance soon"] {
        let wrong = server.run(usage);
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(2), ""), "{usage}");
        assert!(!wrong.err.is_empty(), "{usage}");
    }
}

#[test]
fn a_machine_that_cannot_be_is_not_there() {
    let server = Server::start();
    for name in ["/", "web/", "/web_0", "..", "web/web_0/x"] {
        let wrong = server.run(&format!("vm show {name}"));
        assert_eq!(wrong.code, Some(1), "{name}");
        assert!(wrong.err.starts_with(&format!("forewarn: no such machine: {name}\n")), "{}", wrong.err);
    }
    let wrong = server.run("vm show a\u{1b}[2J");
    assert_eq!(wrong.err, "forewarn: no such machine: a\\u{1b}[2J\n");
}

#[test]
fn where_a_server_is_may_be_said_in_several_ways() {
    let server = Server::start();
    let (api, metadata) = (&server.api, &server.metadata);
    for same in [format!("{api}/"), format!("{api}/v1"), format!("{api}/v1/")] {
        assert_eq!(alone(&format!("--api {same} clock show")).code, Some(0), "{same}");
    }
    for wrong in ["localhost:1339", "ftp://127.0.0.1:1339", "http://127.0.0.1:1339/v2"] {
        let ran = alone(&format!("--api {wrong} clock show"));
        assert_eq!(ran.code, Some(2), "{wrong}: {}", ran.err);
        assert!(
            ran.err.contains("hint: write http://HOST:PORT, https://HOST:PORT, or unix:PATH"),
            "{}",
            ran.err
        );
    }
    let machines = alone(&format!("--api {metadata} clock show"));
    assert_eq!(machines.code, Some(1));
    assert!(machines.err.starts_with("forewarn: this is the metadata endpoint"), "{}", machines.err);
    // It asks where servers usually are; whether one is there is not a matter of this test.
    let empty = shell(&server, "FOREWARN_API= forewarn clock show");
    assert!(empty.code != Some(2) && !empty.err.contains("not the address"), "{}", empty.err);
}

#[test]
fn what_happens_at_once_needs_no_advice() {
    let server = Server::start();
    let ran = server.run("vm stop solo --wait");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    assert!(ran.out.ends_with("Stop of solo completed.\n"), "{}", ran.out);
}

#[test]
fn the_examples_of_the_fleet_work() {
    let server = Server::start();
    let help = alone("fleet apply --help").out;
    let example = help.lines().find(|line| line.contains(" | ")).expect("an example with a pipe");
    let ran = shell(&server, example);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "~ web: terminate 5m -> 10m\n"), "{}", ran.err);
}

#[test]
fn a_server_that_is_not_there_is_named_with_a_hint() {
    // Nobody listens on port 1 of loopback.
    let ran = alone("vm ls --api http://127.0.0.1:1");
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""));
    assert!(ran.err.starts_with("forewarn: cannot reach the server at http://127.0.0.1:1: "), "{}", ran.err);
    assert!(ran.err.contains("\n  hint: start a server with `forewarn dev`"), "{}", ran.err);
}

#[test]
fn the_server_is_named_on_the_line_or_in_the_environment() {
    let server = Server::start();
    let api = &server.api;
    let expected = server.out("clock show");
    for line in [format!("--api {api} clock show"), format!("clock show --api {api}")] {
        assert_eq!(alone(&line).out, expected, "{line}");
    }
    let other = server.run("clock show --api http://127.0.0.1:1");
    assert_eq!(other.code, Some(1), "the line counts more than the environment");
}

#[test]
fn every_list_has_a_heading_and_as_json_its_items() {
    let server = Server::start();
    for (list, heading) in [
        ("vm ls", "NAME"),
        ("host ls", "NAME"),
        ("tenant ls", "NAME"),
        ("scaleset ls", "NAME"),
        ("availabilityset ls", "NAME"),
        ("event ls", "ID"),
        ("rollout ls", "ID"),
    ] {
        assert!(server.out(list).starts_with(heading), "{list}");
        assert!(server.json(list)["items"].is_array(), "{list}");
    }
    assert_eq!(server.json("vm show web_0")["tenant"], "web");
    assert_eq!(server.json("vm show web/web_0")["name"], "web_0");
    assert_eq!(server.json("host show h1")["health"], "healthy");
    assert_eq!(server.json("tenant show web")["kind"], "scale set");
    assert_eq!(server.json("clock show")["speed"], 0);
    assert_eq!(server.json("vm ls --tenant db")["items"].as_array().unwrap().len(), 3);
    assert_eq!(server.run("event ls --tenant nobody").code, Some(1));
}

#[test]
fn who_is_not_enrolled_is_told_how_to_be() {
    let server = Server::start();
    let ran = server.run("vm restart web_0");
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        ran.out,
        "Restart of web_0 starts now. Tenant web gets no notice: none of its machines has polled for events in the last 24 hours.\n"
    );
    assert!(ran.err.contains("/vm/web_0/metadata/scheduledevents?api-version=2020-07-01"), "{}", ran.err);
    server.out("clock advance 1h");
    assert_eq!(server.json("tenant show web")["enrolled"], false);
    assert_eq!(curl(&ran.err)["Events"].as_array().unwrap().len(), 0);
    assert_eq!(server.json("tenant show web")["enrolled"], true);
    let ran = server.run("vm restart web_0");
    assert!(ran.out.starts_with("Reboot of web_0 is announced: event "), "{}", ran.out);
    assert_eq!(ran.err, "");
}

#[test]
fn an_event_is_announced_approved_and_over() {
    let server = Server::start();
    server.enrol("web_0");
    let announced = server.out("vm restart web_0");
    let short = announced.trim_end().rsplit(' ').next().unwrap().to_owned();
    assert!(announced.ends_with(&format!("or: forewarn event approve {short}\n")), "{announced}");
    assert!(announced.contains("(in 15m)"), "{announced}");
    assert_eq!(server.json(&format!("event show {}", &short[..4]))["status"], "Scheduled");
    assert!(server.out("vm ls --tenant web").contains(&short));

    let approved = server.out(&format!("event approve {short}"));
    assert!(
        approved.starts_with("Event ") && approved.contains(" (Reboot of web_0) approved.\n"),
        "{approved}"
    );
    assert!(approved.ends_with("Reboot of web_0: under way: 1 machine to go.\n"), "{approved}");
    let again = server.out(&format!("event approve {short}"));
    assert!(again.contains(" (Reboot of web_0) is already approved.\n"), "{again}");
    server.out("clock next");
    let gone = server.run(&format!("event approve {short}"));
    assert_eq!(gone.code, Some(1));
    assert!(gone.err.contains("no such event"), "{}", gone.err);
}

#[test]
fn events_are_approved_by_tenant_cancelled_and_forced() {
    let server = Server::start();
    server.enrol("web_0");
    let begin = |words: &str| server.json(words)["events"][0]["id"].as_str().unwrap().to_owned();
    let id = begin("vm restart web_0");
    let cancelled = server.out(&format!("event cancel {id}"));
    assert_eq!(cancelled, format!("Event {id} (Reboot of web_0) cancelled.\n"));
    let id = begin("vm restart web_0");
    assert!(server.out(&format!("event start {id}")).contains("under way"));
    server.out("clock advance 1h");
    begin("vm restart web_1");
    let approved = server.out("event approve --tenant web");
    assert_eq!(approved, "All events of web approved.\nReboot of web_1: under way: 1 machine to go.\n");
    let nothing = server.run("event approve --tenant db");
    assert_eq!(
        (nothing.code, nothing.err.as_str()),
        (Some(1), "forewarn: nothing to approve: db has no events\n")
    );
    assert_eq!(server.json("event ls")["items"][0]["status"], "Started");
}

#[test]
fn waiting_for_what_fails_or_is_cancelled_fails() {
    let server = Server::start();
    assert_eq!(server.out("vm jam solo"), "solo will fail in its next operation.\n");
    let failed = server.run("vm restart solo --wait");
    assert_eq!(failed.code, Some(1), "{}", failed.err);
    assert!(failed.err.contains("Restart of solo failed."), "{}", failed.err);
    server.enrol("web_0");
    let waiting = server.begin("vm restart web_0 --wait");
    assert!(waiting.line().starts_with("Reboot of web_0 is announced"));
    let id = server.json("event ls")["items"][0]["id"].as_str().unwrap().to_owned();
    server.out(&format!("event cancel {id}"));
    let cancelled = waiting.end();
    assert_eq!(cancelled.code, Some(1), "{}", cancelled.err);
    assert!(cancelled.err.contains("Restart of web_0 was cancelled."), "{}", cancelled.err);
}

#[test]
fn waiting_ends_with_the_work_and_says_what_it_waits_for() {
    let server = Server::start();
    server.enrol("web_0");
    let mut waiting = server.begin("vm restart web_0 --wait");
    assert!(waiting.line().starts_with("Reboot of web_0 is announced"));
    // It has asked, was told that there is more to wait for, and says so before it asks again.
    waiting.hear("or approve");
    assert!(!waiting.is_over(), "nothing has happened yet");
    server.out("event approve --tenant web");
    server.out("clock advance 1h");
    let ran = waiting.end();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Restart of web_0 completed.\n"));
    let err = &ran.err;
    assert!(err.contains("Reboot of web_0: waits for approval or for the end of the notice"), "{err}");
    assert_eq!(
        err.matches("the clock is frozen: run `forewarn clock advance 15m`, or approve the event").count(),
        1,
        "{err}"
    );
}

#[test]
fn one_that_is_refused_does_not_keep_the_others_from_being_done() {
    let server = Server::start();
    let ran = server.run("vm stop solo nobody db-0");
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("no such machine: nobody"), "{}", ran.err);
    assert!(ran.err.ends_with("forewarn: 1 of 3 operations were rejected\n"), "{}", ran.err);
    assert_eq!(server.json("vm show db-0")["power"], "stopped");
    assert_eq!(server.out("vm stop solo"), "solo is already stopped.\n");
}

#[test]
fn hosts_are_worked_on_and_recover() {
    let server = Server::start();
    let ran = server.run("host update h1 h2");
    assert!(ran.out.starts_with("Rollout "), "{}", ran.out);
    server.out("clock advance 1h");
    assert_eq!(server.out("host degrade h1 --fails-in 3d").lines().count(), 1);
    assert_eq!(server.json("host show h1")["health"], "degraded");
    server.out("host recover h1");
    assert_eq!(server.out("host recover h1"), "h1 is already marked as healthy.\n");
    server.out("host fail h1");
    assert_eq!(server.json("host show h1")["health"], "failed");
    assert_eq!(server.out("brake on"), "The brake is on: no event starts.\n");
    assert_eq!(server.out("brake on"), "The brake is already on.\n");
    assert_eq!(server.out("brake off"), "The brake is off.\n");
}

/// promise: C4
#[test]
fn a_fleet_file_that_is_refused_is_named_with_the_line() {
    let server = Server::start();
    let text = "# hosts\nhost = [{ name = 'h98' }]\n\n[[vm]]\nname = 'n1'\nhost = 'h98'\n\n[[vm]]\nname = 'n2'\nhost = 'nowhere'\n";
    let file = server.file("wrong.toml", text);
    let named = format!("{}:10: ", file.display());
    for dry in ["", "--dry-run "] {
        let wrong = server.run(&format!("fleet apply {dry}{}", file.display()));
        assert_eq!(wrong.code, Some(1), "{wrong:?}");
        assert!(wrong.err.ends_with(&format!("forewarn: {named}no such host: nowhere\n")), "{wrong:?}");
    }
    let wrong = server.run_with("fleet apply -", "host = [\n  { name = 'x' },\n  { name = 'x' },\n]");
    assert_eq!(wrong.err, "forewarn: -:3: x is listed twice\n");
    let ports = "--metadata-listen 127.0.0.1:0 --api-listen 127.0.0.1:0 --arm-listen off";
    let started = alone(&format!("dev --fleet {} {ports}", file.display()));
    assert_eq!(started.code, Some(1), "{started:?}");
    assert!(started.err.contains(&format!("{named}fleet rejected: no such host: nowhere")), "{started:?}");
    let settings = format!(
        "in_memory = true\nfleet = {:?}\napi.listen = '127.0.0.1:0'\ndriver.kind = 'simulated'\n\
         metadata.listen = [{{ address = '127.0.0.1:0', machine = 'n1' }}]\n",
        file.display().to_string()
    );
    let checked =
        alone(&format!("serve --check --config {}", server.file("serve.toml", &settings).display()));
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(checked.err.contains(&named) && checked.err.contains("no such host: nowhere"), "{checked:?}");
}

/// promise: C4
#[test]
fn instances_may_be_listed_in_any_order() {
    let server = Server::start();
    let text =
        "[[scale_set]]\nname = 'late'\ninstance = [{ id = 2, host = 'h1' }, { id = 0, host = 'h1' }]\n";
    let applied = server.run_with("fleet apply -", text);
    let expected = "+ scale set late\n+ instance late_0 on h1\n+ instance late_2 on h1\n";
    assert_eq!((applied.code, applied.out.as_str()), (Some(0), expected), "{applied:?}");
    let again = server.run_with("fleet apply -", text);
    assert_eq!(again.out, "The fleet already matches the file.\n");
}

#[test]
fn a_fleet_that_is_shown_can_be_applied() {
    let server = Server::start();
    let shown = server.out("fleet show");
    let again = server.run_with("fleet apply - --prune", &shown);
    assert_eq!((again.code, again.out.as_str()), (Some(0), "The fleet already matches the file.\n"));
    let more = server.file("more.toml", "host = [{ name = 'h99' }]\n");
    let dry = server.run(&format!("fleet apply --dry-run {}", more.display()));
    assert_eq!((dry.out.as_str(), dry.err.as_str()), ("+ host h99\n", "dry run: nothing is changed\n"));
    assert_eq!(server.run("host show h99").code, Some(1));
    assert_eq!(server.out(&format!("fleet apply {}", more.display())), "+ host h99\n");
    assert_eq!(server.run("host show h99").code, Some(0));
    let wrong = server.run_with("fleet apply -", "hots = []");
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.err.starts_with("forewarn: cannot read the fleet file: -: "), "{}", wrong.err);
}

#[test]
fn the_clock_is_moved_by_words() {
    let server = Server::start();
    assert!(server.out("clock show").starts_with("now    2026-01-01 00:00:00Z\n"));
    assert!(server.out("clock advance 9m50s").starts_with("now    2026-01-01 00:09:50Z\n"));
    assert!(server.out("clock scale 60x").contains("speed  60x\n"));
    assert!(server.out("clock freeze").contains("speed  frozen\n"));
}

#[test]
fn watching_prints_a_line_a_change_until_it_is_interrupted() {
    let server = Server::start();
    let (watching, of_web) = (server.begin("watch"), server.begin("watch --tenant web --output json"));
    // Whoever watches sees what happens from then on; nobody says when that is.
    let line = std::iter::repeat_with(|| {
        server.out("brake on");
        server.out("brake off");
        watching.line_soon()
    });
    let mut lines = line.flatten();
    assert!(lines.any(|line| line.starts_with("2026-01-01 00:00:00Z  brake      the brake is o")));
    let line = std::iter::repeat_with(|| {
        server.out("vm restart web_0");
        of_web.line_soon()
    });
    let happening: serde_json::Value = serde_json::from_str(&line.flatten().next().unwrap()).unwrap();
    assert_eq!(happening["tenants"][0], "web");
    assert_eq!(watching.interrupt(), Some(0));
    assert_eq!(of_web.interrupt(), Some(0));
    assert_eq!(server.run("watch --tenant nobody").code, Some(1));
}

#[test]
fn completions_are_a_script() {
    let ran = alone("completions bash");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(ran.out.contains("complete -F _forewarn forewarn"), "{}", ran.out);
    assert_eq!(alone("completions abacus").code, Some(2));
}
