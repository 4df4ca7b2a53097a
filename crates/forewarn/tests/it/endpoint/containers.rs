//! `forewarn dev` for callers in containers: host names, and identification by address beyond loopback.
//!
//! | rule | test |
//! |---|---|
//! | `--host-name` and its variable name hosts of all listeners | `a_name_of_the_option_is_accepted_by_every_listener` |
//! | `--i-know-this-is-open` accepts the names of container networks | `an_open_server_accepts_names_of_container_networks` |
//! | a hint names what the server has | `a_hint_names_the_option_of_dev_and_the_setting_of_serve` |
//! | loopback callers beside declared addresses | `a_caller_on_loopback_is_known_by_its_path_unless_a_machine_has_its_address` |
//! | a hint for a machine with an address | `the_hint_about_enrolment_is_a_poll_from_the_address_of_the_machine` |
//! | callers beyond loopback | `beyond_loopback_callers_are_known_by_their_addresses_if_any_machine_has_one` |

use forewarn_testkit::network::{Network, address};
use forewarn_testkit::{NEWEST, ServeDir, TestDir, TestServer, clean_command, get, programs};
use std::process::Command;

const FORBIDDEN: &str = r#"{ "error": "Forbidden: the caller is not a known virtual machine" }"#;
const NAME: &str = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";

/// Status of a poll with that `Host`, and the body.
fn poll(server: &TestServer, host: &str) -> (u16, String) {
    let answer = server.say(&get(NEWEST).replace("169.254.169.254", host));
    (answer.status(), answer.body)
}

/// Status of a request of an operator with that `Host`, and the body.
fn operate(server: &TestServer, path: &str, host: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = forewarn_testkit::raw_http::ask(server.api(), &request).unwrap();
    (answer.status(), answer.body)
}

#[test]
fn a_name_of_the_option_is_accepted_by_every_listener() {
    let by_option = TestServer::start_with(
        crate::program(),
        &["--host-name", "imds.example.org", "--host-name", "b.example"],
    );
    let mut command = clean_command(crate::program());
    forewarn_testkit::server::dev(&mut command, &[]);
    command.env("FOREWARN_DEV_HOST_NAME", "imds.example.org,b.example");
    let by_variable = TestServer::spawn(crate::program(), command);
    for server in [&by_option, &by_variable] {
        for host in ["imds.example.org", "IMDS.example.org:1338", "b.example", "localhost", "imds"] {
            assert_eq!(poll(server, host).0, 200, "{host}");
            assert_eq!(operate(server, "/v1/machines", host).0, 200, "{host}");
        }
        for host in ["example.org", "www.imds.example.org", "host.docker.internal", "a.default.svc"] {
            assert_eq!(poll(server, host).0, 400, "{host}");
            assert_eq!(operate(server, "/v1/machines", host).0, 403, "{host}");
        }
    }
}

#[test]
fn a_host_name_with_a_port_is_refused_with_an_example() {
    let mut command = clean_command(crate::program());
    let output = command.args(["dev", "--host-name", "a.b:80"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("a host name without a port, such as metadata.example.com"), "{error}");
}

#[test]
fn an_open_server_accepts_names_of_container_networks() {
    let server = TestServer::start_with(crate::program(), &["--i-know-this-is-open"]);
    for host in [
        "host.docker.internal",
        "host.docker.internal:1338",
        "forewarn.default.svc",
        "forewarn.default.svc.cluster.local",
    ] {
        assert_eq!(poll(&server, host).0, 200, "{host}");
        assert_eq!(operate(&server, "/v1/machines", host).0, 200, "{host}");
    }
    for host in [
        "evil.example",
        "host.docker.internal.evil.example",
        "docker.internal.",
        "cluster.local.evil.example",
    ] {
        assert_eq!(poll(&server, host).0, 400, "{host}");
        assert_eq!(operate(&server, "/v1/machines", host).0, 403, "{host}");
    }
}

#[test]
fn a_hint_names_the_option_of_dev_and_the_setting_of_serve() {
    let dev = TestServer::start(crate::program());
    let option = "start the server with --host-name NAME";
    assert_eq!(
        poll(&dev, "host.docker.internal").1,
        format!(
            r#"{{ "error": "Bad request: Host must be an IP address, localhost, a single label or a configured name: {option}" }}"#
        )
    );
    for path in ["/v1/machines", "/subscriptions?api-version=2022-12-01"] {
        let (status, body) = operate(&dev, path, "host.docker.internal");
        assert!(status == 403 && body.contains(option) && !body.contains("host_names"), "{path}: {body}");
    }
    let files =
        ServeDir::new(crate::program(), "host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]");
    let serve = files.start(
        "in_memory = true\nfleet = 'DIR/fleet.toml'\ndriver.kind = 'simulated'\napi.listen = '127.0.0.1:0'\n\
         metadata.listen = [{ address = 'localhost:0', machine = 'solo' }]\n",
    );
    let (_, body) = poll(&serve, "host.docker.internal");
    assert!(body.contains("add the name to metadata.host_names"), "{body}");
    let (_, body) = operate(&serve, "/v1/machines", "host.docker.internal");
    assert!(body.contains("add the name to api.host_names"), "{body}");
}

#[test]
fn a_port_alone_listens_on_loopback() {
    let listens = |address: &str| {
        let mut command = clean_command(crate::program());
        command.args(["dev", "--metadata-listen", address, "--api-listen", address, "--arm-listen", address]);
        let directory = TestDir::new();
        command.env("XDG_STATE_HOME", directory.file("state"));
        let server = TestServer::spawn(crate::program(), command);
        [server.metadata(), server.api(), server.arm()].map(|address| address.ip().to_string())
    };
    for address in ["0", ":0", "localhost:0", "127.0.0.1:0"] {
        assert_eq!(listens(address), ["127.0.0.1"; 3], "{address}");
    }
}

/// A fleet in which `listed` has an address, and `solo` has none.
fn fleet(directory: &TestDir, addresses: &str) -> String {
    let file = directory.file("fleet.toml");
    let text = format!(
        "host = [{{ name = 'h1' }}]\n\
         vm = [{{ name = 'listed', host = 'h1', addresses = [{addresses}] }}, {{ name = 'solo', host = 'h1' }}]\n"
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The line of a response of curl: status and body.
fn curl(mut command: Command, url: &str, more: &[&str]) -> String {
    command.args(["--silent", "--show-error", "--max-time", "60", "--header", "Metadata: true"]).args(more);
    let output = command.args(["--write-out", " %{http_code}", url]).output().expect("curl starts");
    assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_caller_on_loopback_is_known_by_its_path_unless_a_machine_has_its_address() {
    if programs::find_or_skip("curl").is_none() {
        return;
    }
    let directory = TestDir::new();
    let fleet = fleet(&directory, "'127.0.0.5', '10.9.8.7'");
    let words = ["--fleet", &fleet, "--i-know-this-is-open", "--metadata-listen", "0.0.0.0:0"];
    let mut command = clean_command(crate::program());
    command.args(["dev", "--api-listen", ":0", "--arm-listen", "off"]).args(words);
    let server = TestServer::spawn(crate::program(), command);
    let port = server.metadata().port();
    let ask = |from: &str, path: &str| {
        curl(clean_command("curl"), &format!("http://127.0.0.1:{port}{path}{NAME}"), &["--interface", from])
    };
    assert_eq!(ask("127.0.0.1", ""), "solo 200");
    assert_eq!(ask("127.0.0.1", "/vm/listed"), "listed 200");
    assert_eq!(ask("127.0.0.5", ""), "listed 200");
    assert_eq!(
        ask("127.0.0.5", "/vm/solo"),
        r#"{ "error": "Not found" } 404"#,
        "its address tells the machine"
    );
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "needs root and `ip`; `cargo xtask test` runs it among the real clients"]
fn beyond_loopback_callers_are_known_by_their_addresses_if_any_machine_has_one() {
    let (network, directory) = (Network::of(2), TestDir::new());
    let serve = |addresses: &str| {
        let fleet = fleet(&directory, addresses);
        let mut command = network.host().command(crate::program());
        command.args(["dev", "--fleet", &fleet, "--metadata-listen", "0.0.0.0:80", "--i-know-this-is-open"]);
        command.args(["--api-listen", ":0", "--arm-listen", "off"]);
        TestServer::spawn(crate::program(), command).inside(network.host().name())
    };
    let ask = |machine: usize, path: &str, more: &[&str]| {
        curl(network.machine(machine).command("curl"), &format!("http://169.254.169.254{path}{NAME}"), more)
    };
    let here =
        |path: &str| curl(network.host().command("curl"), &format!("http://127.0.0.1{path}{NAME}"), &[]);
    let forbidden = format!("{FORBIDDEN} 403");

    let server = serve(&format!("'{}'", address(0)));
    assert_eq!(ask(0, "", &[]), "listed 200");
    assert_eq!(ask(0, "", &["--header", "Host: host.docker.internal"]), "listed 200");
    assert_eq!(ask(0, "/vm/solo", &[]), r#"{ "error": "Not found" } 404"#);
    for path in ["", "/vm/solo", "/vm/listed", "/elsewhere"] {
        assert_eq!(ask(1, path, &[]), forbidden, "{path}");
        assert_eq!(ask(1, path, &["--header", "Host: evil.example"]), forbidden, "{path}");
    }
    assert_eq!((here("").as_str(), here("/vm/listed").as_str()), ("solo 200", "listed 200"));
    // The rule follows the fleet while the server runs.
    server.run(&["vm", "describe", "solo", "--address", &address(1)]);
    assert_eq!(ask(1, "", &[]), "solo 200");
    drop(server);

    let server = serve("");
    assert_eq!(ask(1, "", &[]), "solo 200");
    assert_eq!(ask(1, "/vm/listed", &["--header", "Host: forewarn.default.svc"]), "listed 200");
    assert_eq!(ask(1, "/vm/unknown", &[]), forbidden);
    server.run(&["vm", "describe", "listed", "--address", &address(0)]);
    assert_eq!(ask(1, "", &[]), forbidden);
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "needs root and `ip`; `cargo xtask test` runs it among the real clients"]
fn the_hint_about_enrolment_is_a_poll_from_the_address_of_the_machine() {
    let (network, directory) = (Network::of(1), TestDir::new());
    let fleet = fleet(&directory, &format!("'{}'", address(0)));
    let mut command = network.host().command(crate::program());
    command.args([
        "dev",
        "--fleet",
        &fleet,
        "--metadata-listen",
        "169.254.169.254:80",
        "--i-know-this-is-open",
    ]);
    command.args(["--api-listen", ":0", "--arm-listen", "off"]);
    let server = TestServer::spawn(crate::program(), command).inside(network.host().name());
    let refused = server.try_run(&["vm", "restart", "listed", "--require-notice"]);
    let error = String::from_utf8(refused.stderr).unwrap();
    let place = format!("poll once from listed ({}): ", address(0));
    let (_, poll) = error.split_once(&place).unwrap_or_else(|| panic!("{error}"));
    let poll = poll.lines().next().unwrap();
    assert!(!poll.contains("/vm/"), "{poll}");
    let document = network.machine(0).shell(&format!("{poll} --silent --show-error --max-time 60"));
    assert!(document.contains("\"DocumentIncarnation\":1"), "{document}");
    server.run(&["vm", "restart", "listed", "--require-notice"]);
}
