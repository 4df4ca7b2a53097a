//! Faults of a server that runs, played by one that only pretends to be a server.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::doctor::place::Place;

/// Something that answers as a server would, on every connection once.
struct Pretender {
    version: &'static str,
    metadata: String,
    /// What its clock shows.
    now: String,
    ready: (u16, Value),
    /// The reason why its cluster `west` has failed.
    failure: Option<&'static str>,
}

impl Pretender {
    fn well() -> Self {
        let now = std::process::Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output().unwrap();
        let now = String::from_utf8(now.stdout).unwrap().trim().to_owned();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            metadata: String::new(),
            now,
            ready: (200, json!({})),
            failure: None,
        }
    }

    fn answer(&self, path: &str) -> (u16, Value) {
        match path.split('?').next().unwrap_or_default() {
            "/v1/server" => {
                let metadata: &[_] = if self.metadata.is_empty() { &[] } else { &[&self.metadata] };
                let view = json!({ "version": self.version, "mode": "serve", "metadata": metadata,
                                   "prefix": false, "default_machine": null });
                (200, view)
            }
            "/v1/clock" => (200, json!({ "now": self.now, "kind": "real", "speed": 1, "next_in": null })),
            "/readyz" => self.ready.clone(),
            "/v1/clusters" => {
                let cluster = |name: &str| json!({ "name": name, "hosts": 1, "tenants": 1, "machines": 1, "brake": "off" });
                let mut west = cluster("west");
                if let Some(failure) = self.failure {
                    west["failure"] = failure.into();
                }
                (200, json!({ "items": [cluster("default"), west] }))
            }
            _ => (404, json!({})),
        }
    }

    /// Answers for as long as the test runs; gives its URL.
    fn start(self) -> String {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        std::thread::spawn(move || socket.incoming().flatten().try_for_each(|stream| self.serve(stream)));
        url
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        lines.find(|line| line.as_ref().is_ok_and(String::is_empty));
        let (status, body) = self.answer(first.split(' ').nth(1).unwrap_or_default());
        let body = body.to_string();
        write!(
            stream,
            "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}

fn doctor(place: &Place, pretender: Pretender) -> crate::doctor::place::Said {
    place.doctor_of(&["--api", &pretender.start()])
}

#[test]
fn a_server_with_which_nothing_is_wrong_is_well() {
    let place = Place::new();
    let said = doctor(&place, Pretender::well());
    assert_eq!((said.code, said.findings().len()), (Some(0), 0), "{said:?}");
}

/// promise: X2
#[test]
fn another_version_is_found() {
    let said = doctor(&Place::new(), Pretender { version: "9.9.9", ..Pretender::well() });
    said.expect("version", "the server is version 9.9.9", "systemctl restart forewarn");
}

#[test]
fn clocks_that_are_apart_are_found() {
    let said =
        doctor(&Place::new(), Pretender { now: "2026-01-01T00:00:00Z".to_owned(), ..Pretender::well() });
    said.expect(
        "clocks",
        "the clocks of the server and of this computer differ by ",
        "timedatectl set-ntp true",
    );
}

#[test]
fn a_server_that_cannot_write_is_found() {
    let ready = (503, json!({ "detail": "no space left on device" }));
    let said = doctor(&Place::new(), Pretender { ready, ..Pretender::well() });
    said.expect("ready", "not ready: no space left on device", "df -h");
}

/// promise: X2
#[test]
fn a_cluster_that_has_failed_is_found() {
    let said = doctor(&Place::new(), Pretender { failure: Some("its driver panicked"), ..Pretender::well() });
    said.expect("clusters", "the cluster west has failed: its driver panicked", "systemctl restart forewarn");
    let detail = "the cluster has failed: its driver panicked\n  hint: restart the server";
    let ready = (503, json!({ "type": "/problems/cluster-failed", "detail": detail }));
    let said = doctor(&Place::new(), Pretender { ready, ..Pretender::well() });
    said.expect("ready", "the cluster has failed: its driver panicked", "restart the server");
}

/// promise: X2
#[test]
fn a_metadata_endpoint_that_does_not_answer_is_found() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let metadata = format!("http://{}", silent.local_addr().unwrap());
    let said = doctor(&Place::new(), Pretender { metadata, ..Pretender::well() });
    said.expect("metadata", "timed out after 5 seconds", "curl -H Metadata:true ");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = doctor(&Place::new(), Pretender { metadata: format!("http://{closed}"), ..Pretender::well() });
    said.expect("metadata", "cannot reach the server at ", "curl -H Metadata:true ");
}

#[test]
fn a_server_that_is_not_there_is_found() {
    let place = Place::new();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    place.doctor_of(&["--api", &format!("http://{closed}")]).expect(
        "api",
        "cannot reach the server",
        "forewarn dev",
    );
}

#[test]
fn a_key_that_is_wrong_is_found() {
    let place = Place::new();
    let server = place.start(&place.settings());
    let said = place.doctor_of(&["--api", server.api_url(), "--token", "wrong"]);
    said.expect("api", "the token is missing or invalid", "--token");
}

#[test]
fn a_socket_of_somebody_else_is_found() {
    let place = Place::new();
    let Some(nobody) = place.nobody() else { return };
    let path = place.path("api.sock");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    nobody.doctor_of(&["--api", &format!("unix:{path}")]).expect(
        "api",
        "the current user may not use the socket",
        "sudo ",
    );
}
