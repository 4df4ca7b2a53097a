//! Connections of one token: they leave room for other tokens, and the surplus gets a response at once.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::pressure::attack::{answer, ask, connect, hold, metric, request, status};
use crate::pressure::place::Place;

/// Connections of the listener, and of one token.
const NARROW: &str = "connection = { max = 8, per_token = 4, per_address = 100 }";

/// More clients than the rejections for which a listener waits until they are read.
const SURPLUS: usize = 200;

/// Opens a stream of audit entries, and reads its first event.
fn watch(at: SocketAddr, token: &str) -> TcpStream {
    let mut stream = connect(at);
    stream.write_all(request("/v1/watch", token).as_bytes()).unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("listening") {
        let mut bytes = [0; 512];
        let count = stream.read(&mut bytes).unwrap();
        assert!(count > 0, "the stream ends: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..count]);
    }
    assert!(seen.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&seen));
    stream
}

/// Checks that a client is told that there is no room.
fn assert_busy(stream: &mut TcpStream) {
    let (head, body) = answer(stream).unwrap();
    assert_eq!(status(&head), 503, "{head}{body}");
    assert!(head.contains("\r\nretry-after: ") && head.contains("\r\nconnection: close\r\n"), "{head}");
    assert!(body.contains("/problems/busy"), "{body}");
}

/// promise: S5
#[test]
fn one_token_cannot_take_all_connections() {
    let place = Place::new();
    let server = place.start(NARROW);
    let (greedy, other) = (place.token(), (*place).token("other --role viewer"));
    let streams: Vec<_> = (0..4).map(|_| watch(server.api(), &greedy)).collect();
    let mut surplus = connect(server.api());
    surplus.write_all(request("/v1/watch", &greedy).as_bytes()).unwrap();
    assert_busy(&mut surplus);
    assert_eq!(ask(server.api(), &request("/v1/hosts", &other)), 200);
    let refused =
        || metric(server.api(), &other, "forewarn_client_connections_refused_total", "reason=\"token\"");
    assert!(refused() >= 1.0);
    drop(streams);
    forewarn_testkit::wait_until("the token has room again", || {
        (ask(server.api(), &request("/v1/hosts", &greedy)) == 200).then_some(())
    });
}

/// promise: S5
#[test]
fn an_idle_connection_of_a_token_makes_room_for_the_next_one() {
    let place = Place::new();
    let server = place.start(NARROW);
    let token = place.token();
    let mut idle = connect(server.api());
    idle.write_all(request("/v1/hosts", &token).as_bytes()).unwrap();
    assert_eq!(status(&answer(&mut idle).unwrap().0), 200);
    let _streams: Vec<_> = (0..4).map(|_| watch(server.api(), &token)).collect();
    assert_eq!(idle.read(&mut [0]).unwrap(), 0, "the idle connection was closed");
}

/// promise: S5
#[test]
fn clients_of_a_full_listener_are_told_so_and_the_socket_stays_reachable() {
    let place = Place::new();
    let server = place.start(NARROW);
    let (first, second) = (place.token(), (*place).token("second --role viewer"));
    let tokens = [&first, &second];
    let _streams: Vec<_> = (0..8).map(|number| watch(server.api(), tokens[number / 4])).collect();
    let mut surplus = hold(server.api(), SURPLUS, request("/v1/hosts", &first).as_bytes());
    surplus.iter_mut().for_each(assert_busy);
    let listed = place.run(&["host", "ls"]);
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}

/// promise: S5
#[test]
fn a_thousand_streams_and_64_clients_of_one_token_fit_by_default() {
    let place = Place::new();
    let server = place.start("");
    let token = place.token();
    crate::pressure::attack::take_descriptors();
    let _streams: Vec<_> = (0..1_000).map(|_| watch(server.api(), &token)).collect();
    let clients = (0..64).map(|_| {
        let mut client = connect(server.api());
        client.write_all(request("/v1/hosts", &token).as_bytes()).unwrap();
        assert_eq!(status(&answer(&mut client).unwrap().0), 200);
        client
    });
    let mut clients: Vec<_> = clients.collect();
    for client in &mut clients {
        client.write_all(request("/v1/hosts", &token).as_bytes()).unwrap();
        assert_eq!(status(&answer(client).unwrap().0), 200, "none of them was closed");
    }
}
