//! Choices of the table, one limit after the other.

use std::time::Duration;

use super::*;
use crate::clients::counts::ClientCounts;

const LIMITS: ClientLimits = ClientLimits {
    max: 6,
    per_address: 2,
    per_token: 3,
    handshake: Duration::from_secs(1),
    idle: Duration::from_secs(1),
    idle_authenticated: Duration::from_secs(1),
    head: Duration::from_secs(1),
    body: Duration::from_secs(1),
    body_authenticated: Duration::from_secs(1),
    write: Duration::from_secs(1),
};

fn address(number: u8) -> Origin {
    Origin::V4([10, 0, 0, number].into())
}

/// Occupants in the order of their arrival: address, stage, and whether they have authenticated.
fn connections(of: &[(u8, Stage, bool)]) -> Vec<ConnectionInfo> {
    let begin = Instant::now();
    let connection =
        |(number, (origin, stage, is_authenticated)): (usize, &(u8, Stage, bool))| ConnectionInfo {
            number: number.try_into().unwrap(),
            origin: address(*origin),
            stage: *stage,
            since: begin + Duration::from_secs(number.try_into().unwrap()),
            is_authenticated: *is_authenticated,
        };
    of.iter().enumerate().map(connection).collect()
}

/// promise: S5
#[test]
fn one_address_has_so_many_connections_that_have_not_authenticated() {
    let decided = |of: &[(u8, Stage, bool)]| decide(&LIMITS, address(1), Stage::New, &connections(of));
    assert_eq!(decided(&[(1, Stage::Head, false)]), Admission::Admit);
    let two = [(1, Stage::Head, false), (1, Stage::Head, false), (2, Stage::Head, false)];
    assert_eq!(decided(&two), Admission::Replace(0, Reason::Address), "the oldest makes room");
    let idle = [(1, Stage::Head, false), (1, Stage::Idle, false)];
    assert_eq!(decided(&idle), Admission::Replace(1, Reason::Address), "an idle one before it");
    let new = [(1, Stage::Head, false), (1, Stage::New, false)];
    assert_eq!(decided(&new), Admission::Replace(0, Reason::Address), "one that just came is not idle");
    let busy = [(1, Stage::Handling, false), (1, Stage::Handling, false)];
    assert_eq!(decided(&busy), Admission::Refuse(Reason::Address), "a request under way is not cut off");
    let known = [(1, Stage::Idle, true), (1, Stage::Response, true), (1, Stage::Head, false)];
    assert_eq!(decided(&known), Admission::Admit, "those that have authenticated do not count");
}

/// promise: S5
#[test]
fn a_full_listener_drops_the_unauthenticated_of_the_greediest_address_first() {
    let decided = |of: &[(u8, Stage, bool)]| decide(&LIMITS, address(9), Stage::New, &connections(of));
    let (known, streams) = ((1, Stage::Idle, true), (1, Stage::Response, true));
    let full = [
        known,
        streams,
        (2, Stage::Head, false),
        (3, Stage::Head, false),
        (3, Stage::Body, false),
        (4, Stage::Handling, false),
    ];
    assert_eq!(decided(&full), Admission::Replace(3, Reason::Full));
    let idle = [streams, streams, known, known, streams, (4, Stage::Handling, false)];
    assert_eq!(
        decided(&idle),
        Admission::Replace(2, Reason::Full),
        "then an idle one that has authenticated"
    );
    assert_eq!(decided(&[streams; 6]), Admission::Refuse(Reason::Full));
}

/// promise: S5
#[test]
fn of_addresses_with_equally_many_connections_the_one_that_has_waited_for_longest_gives_way() {
    // The operator has the greatest address, and connected last.
    let unauthenticated: Vec<_> = (1..7).map(|origin| (origin, Stage::Head, false)).collect();
    let admission = decide(&LIMITS, address(9), Stage::New, &connections(&unauthenticated));
    assert_eq!(admission, Admission::Replace(0, Reason::Full));
}

/// promise: S5
#[test]
fn an_address_with_one_handshake_keeps_it_while_another_has_more() {
    let limits = ClientLimits { max: 10_000, per_address: 10_000, ..LIMITS };
    let mut handshakes = vec![(1, Stage::Handshake, false)];
    handshakes.extend(vec![(2, Stage::Handshake, false); HANDSHAKES_MAX - 1]);
    let admission = decide(&limits, address(3), Stage::Handshake, &connections(&handshakes));
    assert_eq!(admission, Admission::Replace(1, Reason::Handshakes));
}

/// promise: S5
#[test]
fn one_user_of_a_socket_leaves_room_for_another() {
    let of_user = |user: u32, count: usize| {
        let mut all = connections(&vec![(1, Stage::Response, true); count]);
        all.iter_mut().for_each(|one| one.origin = Origin::User(Some(user)));
        all
    };
    let decided = |user, all: &[ConnectionInfo]| decide(&LIMITS, Origin::User(Some(user)), Stage::New, all);
    assert_eq!(decided(1, &of_user(1, 3)), Admission::Refuse(Reason::User));
    assert_eq!(decided(2, &of_user(1, 3)), Admission::Admit);
}

/// promise: S5
#[test]
fn the_oldest_handshake_makes_room_for_the_newest() {
    let limits = ClientLimits { max: 10_000, per_address: 10_000, ..LIMITS };
    let all = connections(&vec![(1, Stage::Handshake, false); HANDSHAKES_MAX]);
    let decided = |stage| decide(&limits, address(2), stage, &all);
    assert_eq!(decided(Stage::Handshake), Admission::Replace(0, Reason::Handshakes));
    assert_eq!(decided(Stage::New), Admission::Admit);
}

/// promise: S5
#[tokio::test]
async fn a_connection_keeps_its_place_while_its_token_is_good() {
    let counts = ClientCounts::new(&mut prometheus_client::registry::Registry::default()).of("api");
    let (table, limits) = (Arc::new(Table::default()), ClientLimits { max: 1, ..LIMITS });
    let new = || ConnectionState::new(Stage::New, counts.open());
    let admit = |state: &Arc<ConnectionState>, is_valid: bool| {
        table.admit(&limits, address(1), state, |_| is_valid).map(|(_, dropped)| dropped)
    };
    let streaming = new();
    let place = table.admit(&limits, address(1), &streaming, |_| true).unwrap();
    streaming.authenticate(&Arc::new(Permit::unlimited("anyone")));
    streaming.enter(Stage::Response);
    assert_eq!(admit(&new(), true), Err(Reason::Full));
    assert_eq!(admit(&new(), false), Ok(vec![Reason::Full]), "its token was revoked");
    streaming.closed().await;
    drop(place);
}
