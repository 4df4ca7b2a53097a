//! Data that moves into a realm and out of it: a stopped server becomes the first of several, a backup becomes a realm.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use forewarn_testkit::etcd::EtcdCluster;
use forewarn_testkit::{SOLO_FLEET, ServeDir, TestServer, wait_until};
use serde_json::Value;

use crate::realm::site::{create, document, names, settings};

const SOCKET: &str = "api.socket = 'DIR/api.sock'";

/// Moments at which a move is killed.
const KILLS: u32 = 10;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The settings of a server without others.
fn alone() -> String {
    format!(
        "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\n{SOCKET}\ndriver.kind = 'simulated'\n\
         [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n[metadata.limits]\nenabled = false\n"
    )
}

/// The settings of a server in a realm of its own.
fn in_realm(etcd: &EtcdCluster, number: usize, realm: &str) -> String {
    settings(etcd, number, SOCKET).replace("[engine]\n", &format!("[engine]\nprefix = '/{realm}/'\n"))
}

fn forewarn(place: &ServeDir, words: &[&str]) -> Output {
    place.command().args(words).output().expect("the program runs")
}

/// Runs a command that has to fail; gives its error.
fn refused(place: &ServeDir, words: &[&str]) -> String {
    let output = forewarn(place, words);
    let error = text(&output.stderr);
    assert!(!output.status.success(), "{words:?} succeeds: {}", text(&output.stdout));
    assert!(error.contains("hint: "), "{words:?}: {error}");
    error
}

/// The command that moves the data of a directory.
fn migration(place: &ServeDir, settings: &str) -> Command {
    let config = place.configure("realm.toml", settings);
    let mut command = place.command();
    command.args(["store", "migrate", &place.path("data"), "--config", &config]);
    command
}

fn migrate(place: &ServeDir, settings: &str) -> String {
    let output = migration(place, settings).output().expect("the program runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// All audit entries, the oldest first, without those that servers write when they start.
fn audit(server: &TestServer) -> Vec<Value> {
    let output = server.run(&["audit", "export", "-"]);
    output.lines().map(|line| serde_json::from_str(line).expect("an entry is JSON")).collect()
}

/// The lists and the document that a move must not change.
fn content(server: &TestServer) -> (Vec<Vec<String>>, Value) {
    let lists = ["host", "vm", "tenant", "cluster", "token"].map(|list| names(server, list));
    (lists.to_vec(), document(server))
}

/// A server with two clusters, a token, and an event that its machine has read. It is killed.
fn killed_server(place: &ServeDir) -> ((Vec<Vec<String>>, Value), Vec<Value>) {
    let server = place.start(&alone());
    drop(document(&server));
    server.run(&["cluster", "create", "other"]);
    server.run(&["token", "create", "reader", "--role", "viewer"]);
    server.run(&["vm", "restart", "solo"]);
    let shown = |server: &TestServer| document(server)["Events"][0]["EventId"].is_string();
    wait_until("the event is shown", || shown(&server).then_some(()));
    for number in 0..5 {
        create(&server, &["host", "create", &format!("extra{number}")]);
    }
    let kept = (content(&server), audit(&server));
    server.kill();
    kept
}

/// promise: D5
#[test]
fn a_stopped_server_becomes_the_first_of_a_realm_exactly_as_it_was() {
    let Some(etcd) = EtcdCluster::start(1) else { return };
    let place = ServeDir::new(crate::program(), SOLO_FLEET);
    let settings = in_realm(&etcd, 0, "moved");
    let config = place.configure("realm.toml", &settings);
    let data = place.path("data");
    let (before, entries) = killed_server(&place);
    {
        let running = place.start(&alone());
        let error = refused(&place, &["store", "migrate", &data, "--config", &config]);
        assert!(error.contains("in use by another process"), "{error}");
        running.kill();
    }
    let elsewhere = place.configure("else.toml", &settings.replace("DIR/data", "DIR/else"));
    let error = refused(&place, &["store", "migrate", &data, "--config", &elsewhere]);
    assert!(error.contains("data_dir is another directory"), "{error}");
    let single = place.configure("single.toml", &alone());
    let error = refused(&place, &["store", "migrate", &data, "--config", &single]);
    assert!(error.contains("the configuration is that of a single server"), "{error}");
    let error = refused(&place, &["store", "migrate", &data, "--config", &config, "--cancel"]);
    assert!(error.contains("no move of the journal was begun"), "{error}");
    // A realm that does not exist is not created beside the journal: that would be in the way of the move.
    let error = refused(&place, &["serve", "--config", &config]);
    assert!(error.contains("belongs to a single server") && error.contains("store migrate"), "{error}");
    let report = migrate(&place, &settings);
    assert!(report.contains("2 clusters, 6 hosts, 1 tenants, 1 machines"), "{report}");
    // It is no single server any more.
    for words in [["serve", "--config", &single], ["dev", "--data-dir", &data]] {
        let error = refused(&place, &words);
        assert!(error.contains("a copy of the log of several servers"), "{error}");
    }
    let error = refused(&place, &["store", "accept-loss", &data]);
    assert!(error.contains("it copies the log again"), "{error}");
    let error = refused(&place, &["store", "migrate", &data, "--config", &config]);
    assert!(error.contains("already a copy"), "{error}");
    let error = refused(&place, &["store", "migrate", &data, "--config", &config, "--cancel"]);
    assert!(error.contains("the move of the journal is complete"), "{error}");
    let checked = forewarn(&place, &["store", "check", &data]);
    assert!(text(&checked.stdout).contains("6 hosts, 1 tenants, 1 machines"), "{checked:?}");
    // Nor does another journal replace the realm.
    let other = ServeDir::new(crate::program(), SOLO_FLEET);
    drop(killed_server(&other));
    let config = other.configure("realm.toml", &settings);
    let error = refused(&other, &["store", "migrate", &other.path("data"), "--config", &config]);
    assert!(error.contains("the realm exists: /moved/"), "{error}");
    let back = other.start(&alone());
    back.kill();

    let server = place.start(&settings);
    assert_eq!(content(&server), before);
    let moved = audit(&server);
    assert_eq!(moved[..entries.len()], entries[..]);
    create(&server, &["host", "create", "after"]);
    server.run(&["audit", "verify"]);
    server.kill();
    let server = place.start(&settings);
    assert!(names(&server, "host").contains(&"after".to_owned()));
    assert_eq!(document(&server), before.1);
    drop(server);
    // The copy does not begin another realm.
    let error =
        refused(&place, &["serve", "--config", &place.configure("o.toml", &in_realm(&etcd, 0, "other"))]);
    assert!(error.contains("the engine has no realm, and this server was part of one"), "{error}");
}

/// promise: D5
#[test]
fn a_move_that_is_killed_at_any_moment_can_be_repeated() {
    let Some(etcd) = EtcdCluster::start(1) else { return };
    let original = ServeDir::new(crate::program(), SOLO_FLEET);
    let (before, entries) = killed_server(&original);
    let copy = |realm: &str| {
        let place = ServeDir::new(crate::program(), SOLO_FLEET);
        let copied = Command::new("cp").args(["-a", &original.path("data"), &place.path("data")]).status();
        assert!(copied.expect("it runs").success());
        let settings = in_realm(&etcd, 0, realm);
        (place, settings)
    };
    let (place, settings) = copy("whole");
    let begin = Instant::now();
    migrate(&place, &settings);
    let whole = begin.elapsed();
    let mut interrupted = 0;
    for kill in 1..=KILLS {
        let (place, settings) = copy(&format!("killed{kill}"));
        interrupted += usize::from(kill_after(migration(&place, &settings), whole * kill / KILLS));
        let is_marked = Path::new(&place.path("data")).join("realm.json").exists();
        let single = place.configure("single.toml", &alone());
        if is_marked {
            let error = refused(&place, &["serve", "--config", &single]);
            let reasons = ["is not complete", "a copy of the log of several servers"];
            assert!(reasons.iter().any(|reason| error.contains(reason)), "{error}");
            if kill % 2 == 0 {
                cancel(&place, &settings);
            }
        } else {
            // Nothing has happened yet: it is still a server of its own.
            place.start(&alone()).kill();
        }
        // The second one finds it complete if the first one was, and says so.
        let output = migration(&place, &settings).output().expect("the program runs");
        let error = text(&output.stderr);
        assert!(output.status.success() || error.contains("already a copy"), "{error}");
        let server = place.start(&settings);
        assert_eq!(content(&server), before, "killed after {kill} of {KILLS} parts");
        assert_eq!(audit(&server)[..entries.len()], entries[..]);
        create(&server, &["host", "create", "after"]);
    }
    println!("{interrupted} of {KILLS} moves were interrupted; a whole one takes {whole:?}");
    assert!(interrupted > 0, "no move was interrupted");
}

/// Undoes a move, unless it is complete: then the server is alone again.
fn cancel(place: &ServeDir, settings: &str) {
    let output = migration(place, settings).arg("--cancel").output().expect("the program runs");
    let error = text(&output.stderr);
    if output.status.success() {
        place.start(&alone()).kill();
    } else {
        assert!(error.contains("the move of the journal is complete"), "{error}");
    }
}

/// Kills a command after a time. Returns true if it had not ended.
fn kill_after(mut command: Command, time: Duration) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    thread::sleep(time);
    let is_running = child.try_wait().expect("it can be waited for").is_none();
    // It may have ended just now.
    drop(child.kill());
    child.wait().expect("it can be waited for");
    is_running
}

/// Starts another realm from a file, and checks that it is on hold with the content of the first one.
fn check_imported(etcd: &EtcdCluster, file: &str, realm: &str, hosts: &[String]) {
    let place = ServeDir::new(crate::program(), SOLO_FLEET);
    let settings = in_realm(etcd, 0, realm);
    let config = place.configure("realm.toml", &settings);
    let imported = forewarn(&place, &["store", "import", file, &place.path("data"), "--config", &config]);
    assert!(imported.status.success(), "{}", text(&imported.stderr));
    let server = place.start(&settings);
    assert_eq!(names(&server, "host"), hosts);
    let let_go = text(&server.try_run(&["brake", "off"]).stdout);
    assert!(!let_go.contains("already off"), "the brake was on: {let_go}");
    create(&server, &["host", "create", "after"]);
    server.run(&["audit", "verify"]);
    // It has no initial states any more, and can be backed up all the same.
    let report = server.json(&["backup", &place.path("backup")]);
    assert_eq!(report["hosts"], hosts.len() + 1);
}

/// promise: D4
#[test]
fn a_backup_of_a_realm_makes_another_one_with_the_brake_on() {
    let Some(etcd) = EtcdCluster::start(1) else { return };
    let places = [(); 2].map(|()| ServeDir::new(crate::program(), SOLO_FLEET));
    let of_server = |number: usize| in_realm(&etcd, number, "first");
    let servers = [0, 1].map(|number| places[number].start(&of_server(number)));
    servers.iter().for_each(|server| {
        wait_until("the server has the fleet", || crate::realm::site::has_solo(server).then_some(()));
    });
    servers[1].run(&["cluster", "create", "other"]);
    for number in 0..6 {
        create(&servers[number % 2], &["host", "create", &format!("extra{number}")]);
    }
    let hosts = names(&servers[0], "host");
    let files = places[0].path("");
    for (number, server) in servers.iter().enumerate() {
        let file = format!("{files}/backup{number}");
        // A write that was acknowledged by another server is in the backup of this one.
        let last = format!("last{number}");
        create(&servers[1 - number], &["host", "create", &last]);
        let report = server.json(&["backup", &file]);
        assert_eq!((&report["clusters"], &report["hosts"]), (&2.into(), &(hosts.len() + number + 1).into()));
    }
    let mut hosts = names(&servers[0], "host");
    check_imported(&etcd, &format!("{files}/backup1"), "second", &hosts);
    hosts.retain(|name| name != "last1");
    check_imported(&etcd, &format!("{files}/backup0"), "third", &hosts);
    // The copy of a stopped server can be exported as well.
    let [server, other] = servers;
    drop((server, other));
    let export = format!("{files}/export");
    let exported = forewarn(&places[0], &["store", "export", &places[0].path("data"), &export]);
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    hosts.push("last1".to_owned());
    hosts.sort_unstable();
    check_imported(&etcd, &export, "fourth", &hosts);
}
