//! The endpoint is found by DHCP option 245 where nothing leads to 169.254.169.254: in what dhclient wrote, and by asking.
//!
//! ```text
//!   namespace of the machine                        namespace of the host
//!   eth0 10.78.0.5 ──────────────── veth ────────── vm0 10.78.0.1   dnsmasq, option 245 = 10.78.0.1; HTTP on port 80
//! ```
//!
//! Needs root, `ip`, `dnsmasq` and `dhclient`, so it runs only when it is asked for.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forewarn_client::{Client, Endpoint, How, News, Search};

/// What tells a child what it is.
const ROLE: &str = "FOREWARN_TEST_ROLE";
const LEASES: &str = "FOREWARN_TEST_LEASES";

const HOST: &str = "10.78.0.1";

struct Namespace(String);

impl Namespace {
    fn new(role: &str) -> Self {
        let namespace = Self(format!("forewarn-{role}-{}", std::process::id()));
        run(Command::new("ip").args(["netns", "add", &namespace.0]));
        namespace.ip(&["link", "set", "lo", "up"]);
        namespace
    }

    fn ip(&self, words: &[&str]) {
        run(Command::new("ip").args(["-n", &self.0]).args(words));
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, program]);
        command
    }

    /// This program again, in here, as something else.
    fn role(&self, role: &str) -> Command {
        let own = std::env::current_exe().unwrap();
        let mut command = self.command(own.to_str().unwrap());
        command.args(["--exact", "one_role", "--nocapture"]).env(ROLE, role);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !Command::new("ip").args(["netns", "del", &self.0]).status().is_ok_and(|status| status.success()) {
            eprintln!("left behind: the network namespace {}", self.0);
        }
    }
}

/// Something that runs until the test ends.
struct Running(Child);

impl Running {
    fn new(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().unwrap_or_else(|problem| panic!("{command:?}: {problem}")))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended itself.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|problem| panic!("{command:?}: {problem}"));
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", told(&output.stdout), told(&output.stderr));
    told(&output.stdout)
}

fn until(what: &str, mut look: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !look() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "needs root, dnsmasq and dhclient"]
fn without_a_route_to_the_usual_place_the_endpoint_is_found_by_lease_and_by_question() {
    let (host, machine) = (Namespace::new("host"), Namespace::new("vm"));
    host.ip(&["link", "add", "vm0", "type", "veth", "peer", "name", "eth0", "netns", &machine.0]);
    host.ip(&["addr", "add", &format!("{HOST}/24"), "dev", "vm0"]);
    host.ip(&["link", "set", "vm0", "up"]);
    machine.ip(&["addr", "add", "10.78.0.5/24", "dev", "eth0"]);
    machine.ip(&["link", "set", "eth0", "up"]);
    let place = tempfile::tempdir().unwrap();
    let leases = place.path().join("dhclient.eth0.leases");

    let mut dnsmasq = host.command("dnsmasq");
    dnsmasq.args([
        "--no-daemon",
        "--conf-file=/dev/null",
        "--port=0",
        "--interface=vm0",
        "--bind-interfaces",
    ]);
    dnsmasq.args(["--leasefile-ro", "--no-ping", "--dhcp-range=10.78.0.10,10.78.0.50,1h"]);
    dnsmasq.args([&format!("--dhcp-option-force=245,{HOST}"), "--dhcp-option=3", "--user=root"]);
    let _dnsmasq = Running::new(dnsmasq.stderr(Stdio::null()));
    let _server = Running::new(host.role("endpoint").stdout(Stdio::null()));

    // Nobody else has port 68.
    let found = found_by(&machine, Path::new("/nowhere"));
    assert!(
        found.contains(&format!("found http://{HOST} by DHCP option 245, asked for on eth0\n")),
        "{found}"
    );

    let config = place.path().join("dhclient.conf");
    std::fs::write(&config, "request subnet-mask;\n").unwrap();
    let mut dhclient = machine.command("dhclient");
    dhclient.args(["-d", "-v", "-cf", config.to_str().unwrap(), "-lf", leases.to_str().unwrap()]);
    dhclient.args(["-pf", place.path().join("pid").to_str().unwrap(), "-sf", "/bin/true", "eth0"]);
    let _dhclient = Running::new(dhclient.stderr(Stdio::null()).stdout(Stdio::null()));
    let has_lease = || std::fs::read_to_string(&leases).is_ok_and(|text| text.contains("option unknown-245"));
    until("dhclient has a lease", has_lease);

    // Now there is a lease; and while dhclient runs, and has port 68, asking still works.
    let found = found_by(&machine, place.path());
    assert!(
        found.contains(&format!("found http://{HOST} by DHCP option 245 in {}\n", leases.display())),
        "{found}"
    );
    let found = found_by(&machine, Path::new("/nowhere"));
    assert!(found.contains("asked for on eth0\n"), "{found}");
}

/// What a machine finds, with leases at that place.
fn found_by(machine: &Namespace, leases: &Path) -> String {
    run(machine.role("machine").env(LEASES, leases))
}

/// Does nothing on its own.
#[test]
fn one_role() {
    match std::env::var(ROLE).as_deref() {
        Ok("endpoint") => serve(),
        Ok("machine") => look(),
        _ => {}
    }
}

/// Answers everything with the same document, for ever.
fn serve() {
    let listener = TcpListener::bind((HOST, 80)).unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap_or_default();
        assert!(String::from_utf8_lossy(&buffer[..count]).contains("metadata: true"));
        let body = r#"{"DocumentIncarnation":7,"Events":[]}"#;
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        // Whoever does not wait for the answer has its reasons.
        stream.write_all(format!("{head}{body}").as_bytes()).ok();
    }
}

fn look() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let search = Search {
            explicit: None,
            variable: None,
            well_known: Some(Endpoint::well_known()),
            lease_files: vec![std::env::var(LEASES).unwrap().into()],
            discover: true,
        };
        // Those on the host may still be starting.
        let begin = Instant::now();
        let found = loop {
            match search.run().await {
                Ok(found) => break found,
                Err(nowhere) => assert!(begin.elapsed() < Duration::from_secs(60), "{nowhere}"),
            }
        };
        assert!(!matches!(found.by, How::WellKnown), "nothing leads there");
        let mut client = Client::new(found.endpoint.clone());
        assert!(matches!(client.poll().await.unwrap(), News::Document(_)));
        println!("found {} {}", found.endpoint, found.by);
    });
}
