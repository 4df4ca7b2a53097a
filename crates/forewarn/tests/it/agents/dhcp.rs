//! Where nothing leads to 169.254.169.254, the real agent finds the real server by DHCP option 245: in what dhclient wrote down,
//! and by asking.
//!
//! ```text
//!   namespace of the machine                        namespace of the host
//!   eth0 10.77.0.2 ──────────────── veth ────────── vm0 10.77.0.1   dnsmasq: option 245 is 10.77.0.1
//!   no route to anywhere else                                       forewarn serve: metadata on 10.77.0.1:80
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tempfile::TempDir;

use crate::program;
use forewarn_testkit::agents::Beside;
use forewarn_testkit::agents::agent_program;
use forewarn_testkit::network::{METADATA, Namespace, Network, address};
use forewarn_testkit::{TestServer, wait_until};

/// The host as its machine sees it.
const HOST: &str = "10.77.0.1";

/// Where dhclient writes. A machine sees a directory of the test there, and no leases elsewhere; nobody else sees that.
const LEASES: &str = "/var/lib/dhcp";
const LIVES_THERE: &str = "mount -t tmpfs none /var/lib && mkdir /var/lib/dhcp && mount --bind \"$1\" /var/lib/dhcp && \
                           if test -d /run/systemd; then mount -t tmpfs none /run/systemd; fi && shift && exec \"$@\"";

/// A machine with leases, a server beside it, and someone who gives addresses. What is declared first ends first.
struct Town {
    beside: Beside,
    server: TestServer,
    network: Network,
    files: TempDir,
}

impl Town {
    fn build() -> Self {
        let (files, network) = (TempDir::new().unwrap(), Network::of(1));
        network.machine(0).shell(&format!("ip route del {METADATA}"));
        for directory in ["leases", "none"] {
            fs::create_dir(files.path().join(directory)).unwrap();
        }
        fs::write(files.path().join("agent.toml"), "").unwrap();
        let server = serve(files.path(), network.host());
        Self { beside: Beside::new(), server, network, files }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.file(name).to_str().expect("a path that is text").to_owned()
    }

    fn start_dnsmasq(&self) {
        let option = format!("--dhcp-option-force=245,{HOST}");
        let alone = ["--no-daemon", "--conf-file=/dev/null", "--user=root", "--leasefile-ro", "--no-ping"];
        let there = ["--port=0", "--interface=vm0", "--bind-interfaces"];
        let gives = ["--dhcp-range=10.77.0.10,10.77.0.50,1h", "--dhcp-option=3", &option];
        self.beside.run(self.network.host(), "dnsmasq", &[&alone[..], &there, &gives].concat());
    }

    /// dhclient, until it has a lease; the file of that lease, as the machine sees it.
    fn start_dhclient(&self) -> String {
        let (lease, config) = (format!("{LEASES}/dhclient.eth0.leases"), self.text("dhclient.conf"));
        fs::write(&config, "request subnet-mask;\n").unwrap();
        let (leases, pid) = (self.text("leases"), self.text("pid"));
        let dhclient =
            ["dhclient", "-d", "-cf", &config, "-lf", &lease, "-pf", &pid, "-sf", "/bin/true", "eth0"];
        let words = [&["-c", LIVES_THERE, "sh", &leases][..], &dhclient].concat();
        self.beside.run(self.network.machine(0), "sh", &words);
        let written = self.file("leases/dhclient.eth0.leases");
        let has_option = |text: String| text.contains("option unknown-245").then_some(());
        wait_until("dhclient has a lease", || fs::read_to_string(&written).ok().and_then(has_option));
        lease
    }

    /// The agent in the machine, where leases are those in this directory.
    fn agent(&self, leases: &str, words: &[&str]) -> Output {
        let mut agent = self.network.machine(0).command("sh");
        agent.args(["-c", LIVES_THERE, "sh"]).arg(self.file(leases)).arg(agent_program(&crate::program()));
        agent.args(words).arg("--config").arg(self.file("agent.toml"));
        for name in ["SCHEDULEDEVENTSIP", "FOREWARN_AGENT_CONFIG"] {
            agent.env_remove(name);
        }
        agent.output().unwrap()
    }

    /// How the agent says it has found the server, with leases at that place; those who answer may still be starting.
    fn found(&self, leases: &str) -> String {
        let output = wait_until("the agent finds the server", || {
            let output = self.agent(leases, &["find"]);
            output.status.success().then_some(output)
        });
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("http://{HOST}\n"));
        String::from_utf8(output.stderr).unwrap()
    }

    /// What the agent reads there.
    fn events(&self, leases: &str) -> Value {
        let output = self.agent(leases, &["events", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// A server that knows one machine, by its address.
fn serve(files: &Path, host: &Namespace) -> TestServer {
    let (fleet, socket, config) =
        (files.join("fleet.toml"), files.join("api.sock"), files.join("serve.toml"));
    let machine = address(0);
    let text = format!(
        "host = [{{ name = \"h1\" }}]\nvm = [{{ name = \"solo\", host = \"h1\", addresses = [{machine:?}] }}]\n"
    );
    fs::write(&fleet, text).unwrap();
    let text = format!(
        "in_memory = true\nfleet = {fleet:?}\n[api]\nsocket = {socket:?}\n[driver]\nkind = 'simulated'\n\
         [[metadata.listen]]\naddress = '{HOST}:80'\n"
    );
    fs::write(&config, text).unwrap();
    let mut command = host.command(program());
    command.arg("serve").arg("--config").arg(config);
    TestServer::spawn(crate::program(), command)
}

/// promise: A6
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn without_a_route_to_the_usual_place_the_server_is_found_by_lease_and_by_question() {
    let town = Town::build();

    // Without DHCP there is no way to it, and every place is told in which it is not.
    let lost = town.agent("none", &["find"]);
    let told = String::from_utf8(lost.stderr).unwrap();
    assert_eq!(lost.status.code(), Some(1), "{told}");
    for place in [&format!("http://{METADATA}: "), LEASES, "eth0: "] {
        assert!(told.contains(place), "{place} is not in {told}");
    }

    // Nobody else uses the port of DHCP clients.
    town.start_dnsmasq();
    let asked = "by DHCP option 245 on eth0\n";
    let told = town.found("none");
    assert!(told.ends_with(asked), "{told}");
    assert_eq!(town.events("none"), Value::Array(Vec::new()));

    // Now there is a lease; and while dhclient uses the port, asking works still.
    let lease = town.start_dhclient();
    let told = town.found("leases");
    assert!(told.ends_with(&format!("by DHCP option 245 in {lease}\n")), "{told}");
    let told = town.found("none");
    assert!(told.ends_with(asked), "{told}");

    // It is the real one, which knows who is asking.
    town.server.run(&["vm", "restart", "solo"]);
    for leases in ["leases", "none"] {
        let events = town.events(leases);
        assert_eq!(events[0]["type"], "Reboot", "{events}");
        assert_eq!(events[0]["resources"], serde_json::json!(["solo"]), "{events}");
    }
}
