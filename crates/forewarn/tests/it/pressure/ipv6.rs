//! IPv6: listeners, callers that are known by their address, and IPv4-mapped addresses.

use std::net::SocketAddr;

use crate::pressure::attack::{ask, request};
use crate::pressure::place::Place;
use crate::program;
use forewarn_testkit::RawConnection;
#[cfg(target_os = "linux")]
use forewarn_testkit::network::Network;
use forewarn_testkit::{NEWEST, TestServer, get};

/// Settings of a server that listens on those addresses only.
fn settings(place: &Place, metadata: &str, api: &str) -> String {
    let config = place.settings(&format!("listen = '{api}'"), "");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("127.0.0.1:0' }]", &format!("{metadata}' }}]"))).unwrap();
    config
}

fn start(place: &Place, metadata: &str, api: &str) -> TestServer {
    let config = settings(place, metadata, api);
    let mut command = place.command();
    command.args(["serve", "--config", &config]);
    TestServer::spawn(crate::program(), command)
}

fn document(at: SocketAddr) -> u16 {
    let mut line = RawConnection::connect(at);
    line.send(&get(NEWEST));
    line.answer().status()
}

/// promise: M3
#[test]
fn machines_and_operators_come_by_ipv6() {
    let place = Place::new();
    let server = start(&place, "[::1]:0", "[::1]:0");
    let token = place.token();
    assert!(server.metadata().is_ipv6() && server.api().is_ipv6());
    assert_eq!(document(server.metadata()), 200, "::1 is an address of the machine");
    assert_eq!(ask(server.api(), &request("/v1/hosts", &token)), 200);
    assert_eq!(ask(server.api(), &request("/v1/hosts", &token).replace("localhost", "[::1]:1339")), 200);
    let listed = place.command().args(["--api", server.api_url(), "--token", &token, "host", "ls"]).output();
    assert!(listed.unwrap().status.success());
}

/// promise: M3
#[test]
fn an_ipv4_mapped_caller_is_the_machine_with_the_ipv4_address() {
    let place = Place::new();
    let server = start(&place, "[::]:0", "127.0.0.1:0");
    let mapped = SocketAddr::from(([127, 0, 0, 1], server.metadata().port()));
    assert_eq!(document(mapped), 200, "the server sees ::ffff:127.0.0.1");
}

/// A machine and its host on one link, with nothing but link-local addresses.
#[cfg(target_os = "linux")]
/// promise: M3
#[test]
#[ignore = "needs root and network namespaces; cargo xtask test runs it"]
fn machines_come_by_a_link_local_address() {
    let (place, network) = (Place::new(), Network::of(1));
    let (host, machine) = (network.host(), network.machine(0));
    host.shell("ip -6 addr flush dev vm0 && ip -6 addr add fe80::1/64 dev vm0 nodad");
    machine.shell("ip -6 addr flush dev eth0 && ip -6 addr add fe80::2/64 dev eth0 nodad");
    let scope = host.shell("cat /sys/class/net/vm0/ifindex");
    let fleet = std::fs::read_to_string(place.path("fleet.toml")).unwrap().replace("::1'", "fe80::2'");
    std::fs::write(place.path("fleet.toml"), fleet).unwrap();
    let config = settings(&place, &format!("[fe80::1%{}]:80", scope.trim()), "127.0.0.1:0");
    let mut command = host.command(program());
    command.args(["serve", "--config", &config]);
    let server = TestServer::spawn(crate::program(), command);
    let url = format!("http://[fe80::1%25eth0]{NEWEST}");
    let ask =
        |more: &str| machine.shell(&format!("curl -sg -H Metadata:true -w '%{{http_code}}' {more} '{url}'"));
    assert_eq!(ask(""), r#"{"DocumentIncarnation":1,"Events":[]}200"#);
    machine.shell("ip -6 addr add fe80::3/64 dev eth0 nodad && ip -6 addr del fe80::2/64 dev eth0");
    assert!(ask("").ends_with("403"), "no machine has fe80::3");
    drop(server);
}
