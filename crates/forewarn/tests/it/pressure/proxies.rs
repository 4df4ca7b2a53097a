//! HAProxy and nginx in front of the listeners of operators and clients of Azure: requests that the two sides could read
//! differently.
//!
//! A proxy sends the requests of all clients over one connection. If the server ends a request elsewhere than the proxy does, the
//! rest of an attacker's bytes becomes the beginning of the next client's request. So after every attack other clients ask, and
//! have to get their own answers.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::pressure::attack::{Held, answer, connect, status};
use crate::pressure::place::Place;
use forewarn_testkit::programs::find_or_skip;
use forewarn_testkit::{DEADLINE, TestServer, wait_until};

/// Time to wait for an answer that may never come: a proxy may wait for the rest of a body.
const ANSWER_MAX: Duration = Duration::from_millis(500);

/// A request that must never be answered: the header of the next client's request ends it.
const SMUGGLED: &str = "GET /v1/smuggled HTTP/1.1\r\nHost: localhost\r\nX-Rest: ";

/// Paths that every client may read, of operators and of clients of Azure.
const OPERATORS: &str = "/healthz";
const AZURE: &str = "/metadata/endpoints?api-version=2022-09-01";

/// A proxy with a socket for each listener behind it.
struct Proxy {
    process: Child,
    api: String,
    arm: String,
}

impl Proxy {
    fn start(mut command: Command, place: &Place, name: &str) -> Self {
        let log = File::create(place.path(&format!("{name}.log"))).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let (api, arm) = (place.path("proxy-api.sock"), place.path("proxy-arm.sock"));
        let proxy = Self { process: command.spawn().unwrap(), api, arm };
        wait_until("the proxy listens", || {
            let listens = |path| UnixStream::connect(path).is_ok();
            (listens(&proxy.api) && listens(&proxy.arm)).then_some(())
        });
        proxy
    }

    fn haproxy(place: &Place, server: &TestServer) -> Option<Self> {
        let program = find_or_skip("haproxy")?;
        let (api, arm, ca) = (server.api(), server.arm(), place.path("state/forewarn/tls/ca.pem"));
        let text = format!(
            "global\n  nbthread 1\ndefaults\n  mode http\n  http-reuse always\n  timeout connect 10s\n  timeout client 60s\n  timeout server 60s\n\
             frontend api\n  bind unix@{0}/proxy-api.sock\n  default_backend api\n\
             backend api\n  server s {api} maxconn 1\n\
             frontend arm\n  bind unix@{0}/proxy-arm.sock\n  default_backend arm\n\
             backend arm\n  server s {arm} maxconn 1 ssl verify required ca-file {ca} sni str(localhost) verifyhost localhost\n",
            place.path(""),
        );
        fs::write(place.path("haproxy.cfg"), text).unwrap();
        let mut command = Command::new(program);
        command.args(["-db", "-f", &place.path("haproxy.cfg")]);
        Some(Self::start(command, place, "haproxy"))
    }

    fn nginx(place: &Place, server: &TestServer) -> Option<Self> {
        let program = find_or_skip("nginx")?;
        let (api, arm, ca) = (server.api(), server.arm(), place.path("state/forewarn/tls/ca.pem"));
        let (directory, pid) = (place.path(""), place.path("nginx.pid"));
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {directory}/{name};\n"))
            .concat();
        let forward = "proxy_http_version 1.1; proxy_set_header Connection ''; proxy_set_header Host $http_host; \
                       proxy_request_buffering off;";
        let text = format!(
            "daemon off; master_process off; pid {pid}; error_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}\
             upstream api {{ server {api}; keepalive 1; }}\nupstream arm {{ server {arm}; keepalive 1; }}\n\
             server {{ listen unix:{directory}/proxy-api.sock; location / {{ proxy_pass http://api; {forward} }} }}\n\
             server {{ listen unix:{directory}/proxy-arm.sock; location / {{ proxy_pass https://arm; {forward} \
             proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca}; proxy_ssl_name localhost; proxy_ssl_server_name on; }} }}\n}}\n",
        );
        fs::write(place.path("nginx.conf"), text).unwrap();
        let mut command = Command::new(program);
        command.args(["-p", &directory, "-e", "stderr", "-c", &place.path("nginx.conf")]);
        Some(Self::start(command, place, "nginx"))
    }

    /// A connection to one of its sockets.
    fn connect(path: &str) -> UnixStream {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Requests that two programs could read differently; each carries `inner` where one of them would look for the next request.
fn attacks(target: &str, inner: &str) -> Vec<(&'static str, String)> {
    let post = |fields: &str, body: &str| {
        format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{fields}\r\n{body}"
        )
    };
    let (chunked, length) = (format!("0\r\n\r\n{inner}"), 5 + inner.len());
    let chunk = format!("{:x}\r\n{inner}\r\n0\r\n\r\n", inner.len());
    let first = chunk.find("\r\n").unwrap() + 2;
    let with = |fields: &str| post(&format!("{fields}Content-Length: {length}\r\n"), &chunked);
    vec![
        ("CL.TE", with("Transfer-Encoding: chunked\r\n")),
        ("TE.CL", post(&format!("Content-Length: {first}\r\nTransfer-Encoding: chunked\r\n"), &chunk)),
        ("TE.TE: unknown coding", with("Transfer-Encoding: xchunked\r\n")),
        ("TE.TE: space before the colon", with("Transfer-Encoding : chunked\r\n")),
        ("TE.TE: tab", with("Transfer-Encoding:\tchunked\r\n")),
        ("TE.TE: two fields", with("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n")),
        ("TE.TE: chunked is not last", with("Transfer-Encoding: chunked, identity\r\n")),
        ("TE.TE: folded", with("Transfer-Encoding:\r\n chunked\r\n")),
        ("TE.TE: vertical tab", with("Transfer-Encoding: \x0bchunked\r\n")),
        ("duplicate CL", post(&format!("Content-Length: 0\r\nContent-Length: {}\r\n", inner.len()), inner)),
        ("list of CL", post(&format!("Content-Length: 0, {}\r\n", inner.len()), inner)),
        ("signed CL", post(&format!("Content-Length: +{}\r\n", inner.len()), inner)),
        (
            "CL of a GET",
            post(&format!("Content-Length: {}\r\n", inner.len()), inner).replacen("POST", "GET", 1),
        ),
        ("chunk extension", post("Transfer-Encoding: chunked\r\n", &format!("0;a=\"\n\"\r\n\r\n{inner}"))),
        (
            "bare LF in a chunk extension",
            post("Transfer-Encoding: chunked\r\n", &format!("2;\nxx\r\n0\r\n\r\n{inner}")),
        ),
        ("bare LF after a chunk size", post("Transfer-Encoding: chunked\r\n", &format!("0\n\r\n{inner}"))),
        ("prefixed chunk size", post("Transfer-Encoding: chunked\r\n", &format!("0x0\r\n\r\n{inner}"))),
        (
            "obs-fold",
            post(&format!("X: a\r\n Content-Length: {}\r\nContent-Length: 0\r\n", inner.len()), inner),
        ),
        ("bare LF", post(&format!("X: a\nContent-Length: {}\r\nContent-Length: 0\r\n", inner.len()), inner)),
        ("bare CR", post(&format!("X: a\rContent-Length: {}\r\n", inner.len()), inner)),
        ("HTTP/1.0 with TE", with("Transfer-Encoding: chunked\r\n").replacen("1.1", "1.0", 1)),
    ]
}

/// Everything that comes back until the other side closes, or says nothing for a while.
fn rest(stream: &mut dyn Held) -> String {
    let mut read = Vec::new();
    match stream.read_to_end(&mut read) {
        Ok(_) => {}
        Err(error) => assert!(
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionReset),
            "{error}"
        ),
    }
    String::from_utf8_lossy(&read).into_owned()
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

/// Attacks a listener through a proxy; other clients get their own answers all the same.
fn attack(name: &str, path: &str, target: &str) {
    let mut first = Proxy::connect(path);
    first.write_all(get(target).as_bytes()).unwrap();
    let (head, expected) = answer(&mut first).unwrap();
    assert_eq!(status(&head), 200, "{name}: {head}");
    for (attack, bytes) in attacks(target, SMUGGLED) {
        let mut attacker = Proxy::connect(path);
        attacker.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        attacker.write_all(bytes.as_bytes()).unwrap();
        let answers = rest(&mut attacker);
        assert!(!answers.contains("/v1/smuggled"), "{name}, {attack}: {answers}");
        drop(attacker);
        for _ in 0..2 {
            let mut client = Proxy::connect(path);
            client.write_all(get(target).as_bytes()).unwrap();
            let (head, body) =
                answer(&mut client).unwrap_or_else(|error| panic!("{name}, {attack}: {error}"));
            assert_eq!((status(&head), body == expected), (200, true), "{name}, {attack}: {head}{body}");
        }
    }
    let mut pipelining = Proxy::connect(path);
    pipelining.write_all([get(target), get("/nothing-here"), get(target)].concat().as_bytes()).unwrap();
    let statuses = [(); 3].map(|()| status(&answer(&mut pipelining).unwrap().0));
    assert_eq!((statuses[0], statuses[2]), (200, 200), "{name}: {statuses:?}");
    assert!(statuses[1] >= 400, "{name}: {statuses:?}");
}

/// promise: M5
#[test]
#[ignore = "needs HAProxy; cargo xtask test runs it"]
fn no_request_is_smuggled_through_haproxy() {
    let place = Place::new();
    let server = place.start("[arm]\nlisten = '127.0.0.1:0'");
    let Some(proxy) = Proxy::haproxy(&place, &server) else { return };
    attack("HAProxy, operators", &proxy.api, OPERATORS);
    attack("HAProxy, Azure", &proxy.arm, AZURE);
}

/// promise: M5
#[test]
#[ignore = "needs nginx; cargo xtask test runs it"]
fn no_request_is_smuggled_through_nginx() {
    let place = Place::new();
    let server = place.start("[arm]\nlisten = '127.0.0.1:0'");
    let Some(proxy) = Proxy::nginx(&place, &server) else { return };
    attack("nginx, operators", &proxy.api, OPERATORS);
    attack("nginx, Azure", &proxy.arm, AZURE);
}

/// Without a proxy: a request that is not plain gets one answer, and what follows it is not read as another request.
/// promise: M5
#[test]
fn a_request_that_is_not_plain_is_the_last_of_its_connection() {
    let place = Place::new();
    let server = place.start("");
    let answers = |bytes: &str| {
        let mut stream = connect(server.api());
        stream.write_all(bytes.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        rest(&mut stream)
    };
    let plain = answers(&[get(OPERATORS), get("/v1/smuggled")].concat());
    assert_eq!(plain.matches("HTTP/1.1 ").count(), 2, "plain requests follow each other: {plain}");
    for (attack, bytes) in attacks(OPERATORS, &get("/v1/smuggled")) {
        let answers = answers(&bytes);
        let count = answers.matches("HTTP/1.1 ").count();
        assert!(count <= 1, "{attack}: {answers}");
    }
}
