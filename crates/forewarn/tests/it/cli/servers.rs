//! Servers that do not start, or say what they are when they do.

use std::fs;
use std::path::Path;

use crate::cli::support::{Server, alone, curl};
use forewarn_testkit::{CommandResult, SOLO_FLEET, TestDir};

/// Settings that are in order, in a directory with everything that they need.
struct Settings {
    files: TestDir,
    text: String,
}

impl Settings {
    fn new() -> Self {
        let files = TestDir::new();
        files.write("fleet.toml", SOLO_FLEET);
        files.script("hands", "");
        let text = format!(
            "in_memory = true\nfleet = {:?}\napi.socket = {:?}\n[driver]\nkind = 'program'\nprogram = {:?}\n\
             time_limit = '5m'\n[[metadata.listen]]\nsocket = {:?}\nmode = 0o660\nmachine = 'solo'\n\
             [metadata.limits]\nburst = 20\n",
            files.file("fleet.toml"),
            files.file("api.sock"),
            files.file("hands"),
            files.file("solo.sock"),
        );
        Self { files, text }
    }

    fn check(&self, text: &str) -> CommandResult {
        alone(&format!("serve --check --config {}", self.files.write("config.toml", text)))
    }
}

#[test]
fn settings_that_cannot_work_are_told_before_the_server_starts() {
    let settings = Settings::new();
    let right = settings.check(&settings.text);
    assert_eq!(right.code, Some(0), "{}", right.err);
    for (was, is, words) in [
        ("'5m'", "'0s'", "timeout of zero: driver.time_limit"),
        ("/hands\"", "/feet\"", "driver program not found: "),
        ("/hands\"", "/fleet.toml\"", "driver program is not executable: "),
        ("'solo'", "'sola'", "no such machine: sola\n  hint: did you mean solo?"),
        ("'solo'", "'zz'", "no such machine: zz\n  hint: "),
        ("machine = 'solo'", "machine = 'solo'\ninterface = 'no-such'", "invalid metadata.listen: "),
        ("/solo.sock\"", "/api.sock\"", "two listeners with the same address: "),
        ("/solo.sock\"", "/missing/solo.sock\"", "the directory of the socket does not exist: "),
        ("0o660", "660", "hint: mode = 0o660"),
        ("0o660", "0o1777", "invalid socket mode: 0o1777"),
        ("burst = 20", "burst = 0", "metadata.limits.burst = 0"),
    ] {
        assert!(settings.text.contains(was), "{was}");
        let ran = settings.check(&settings.text.replace(was, is));
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{is}: {}", ran.err);
        assert!(ran.err.contains(words) && ran.err.contains("config.toml"), "{is}: {}", ran.err);
    }
    let socket = settings.text.split("socket = ").nth(2).unwrap().lines().next().unwrap();
    let door = format!("socket = {socket}\nmode = 0o660");
    let cable = settings.text.replace(&door, "address = '127.0.0.1:0'\ninterface = 'no-such'");
    let ran = settings.check(&cable);
    assert!(ran.err.contains("no such network interface: no-such\n  hint: "), "{}", ran.err);
}

#[test]
fn a_fleet_that_the_rules_refuse_is_found_by_a_check() {
    let settings = Settings::new();
    fs::write(settings.files.file("fleet.toml"), SOLO_FLEET.replace("host = 'h1'", "host = 'h2'")).unwrap();
    let ran = settings.check(&settings.text);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("no such host: h2"), "{}", ran.err);
}

#[test]
fn what_is_kept_counts_more_than_the_fleet_file() {
    let settings = Settings::new();
    let data = settings.files.file("data");
    let kept = format!("data_dir = {data:?}");
    let text = settings.text.replace("in_memory = true", &kept).replace("'solo'", "'later'");
    assert_eq!(settings.check(&text).code, Some(1), "nothing is kept yet");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("journal"), "").unwrap();
    assert_eq!(settings.check(&text).code, Some(0), "it may have joined since");
}

#[test]
fn a_default_machine_is_one_that_is_there() {
    let free = "--metadata-listen 127.0.0.1:0 --api-listen 127.0.0.1:0 --arm-listen off";
    let ran = alone(&format!("dev {free} --default-vm sola"));
    assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""));
    assert_eq!(ran.err, "forewarn: --default-vm: no such machine: sola\n  hint: did you mean solo?\n");
}

#[test]
fn a_server_says_what_is_there_and_where_it_is_kept() {
    let files = TestDir::new();
    let fleet = files.write("fleet.toml", &SOLO_FLEET.replace("solo", "other"));
    let data = files.file("data");
    let kept = format!("--data-dir {} --fleet {fleet}", data.display());
    let server = Server::start_with(&kept);
    let said = server.said();
    assert!(said.contains("1 machines of 1 tenants on 1 hosts"), "{said}");
    assert!(said.contains(" vm restart other\n"), "{said}");
    assert!(said.ends_with(&format!("Its data directory is {}.\n", data.display())), "{said}");
    drop(server);
    // What is kept counts, not the demo fleet.
    let said = Server::start_with(&format!("--data-dir {}", data.display())).said();
    assert!(said.contains("1 machines of 1 tenants on 1 hosts"), "{said}");
    assert!(!said.contains("solo"), "{said}");
    let said = Server::start_with("--fleet none").said();
    assert!(
        said.contains(" fleet apply FILE\n") && said.ends_with("Its state is only in memory.\n"),
        "{said}"
    );
}

#[test]
fn a_port_that_is_taken_is_told_with_a_hint() {
    let server = Server::start();
    let taken = Path::new(&server.api).file_name().unwrap().to_str().unwrap();
    let free = "127.0.0.1:0";
    for (metadata, api, arm) in [(taken, free, "off"), (free, taken, "off"), (free, free, taken)] {
        let data = tempfile::tempdir().unwrap();
        let line = format!("dev --metadata-listen {metadata} --api-listen {api} --arm-listen {arm}");
        let ran = alone(&format!("{line} --data-dir {}", data.path().display()));
        assert_eq!(ran.code, Some(1));
        assert!(ran.err.contains("Address already in use"), "{}", ran.err);
        assert!(
            ran.err.contains("\n  hint: another `forewarn dev` may be running: --metadata-listen"),
            "{}",
            ran.err
        );
    }
}

/// promise: M3
#[test]
fn a_machine_of_another_cluster_takes_no_name_and_is_named_with_its_cluster() {
    let server = Server::start();
    server.out("cluster create west");
    let fleet =
        "host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }, { name = 'w', host = 'h1' }]";
    let fleet = server.file("west.toml", fleet);
    server.out(&format!("fleet apply {} --cluster west", fleet.display()));
    let poll = |path: &str| {
        curl(&format!(
            "curl -H Metadata:true '{}{path}/metadata/scheduledevents?api-version=2020-07-01'",
            server.metadata
        ))
    };
    for path in ["", "/vm/solo", "/vm/solo/solo"] {
        assert_eq!(poll(path)["DocumentIncarnation"], 1, "{path}");
    }
    assert!(poll("/vm/w")["error"].is_string(), "a name without a cluster is one of the default cluster");
    let restarted = server.run("vm restart w --cluster west");
    assert!(restarted.err.contains("/vm/west/w/w/metadata/"), "{}", restarted.err);
    assert_eq!(curl(&restarted.err)["DocumentIncarnation"], 1);
}
