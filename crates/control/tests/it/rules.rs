//! The rules of the shared state, case by case.

#![allow(clippy::unwrap_used, reason = "a test world may be blunt")]

use forewarn_control::limits::*;
use forewarn_control::shared::*;
use forewarn_control::{ClusterId, NewReceipt, Site, StoredResponse};
use forewarn_lifecycle::{Name, Seed, Timestamp};
use forewarn_testkit::shared_state::JournaledState;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn create(text: &str) -> Command {
    Command::CreateCluster { name: name(text), seed: Seed([1; 16]), site: Site::default() }
}

fn only_clusters(clusters: &[u32]) -> Scope {
    Scope { clusters: clusters.iter().copied().map(ClusterId).collect(), ..Scope::default() }
}

fn only_tenants(tenants: &[&str]) -> Scope {
    Scope { tenants: tenants.iter().map(|tenant| name(tenant)).collect(), ..Scope::default() }
}

fn issue(world: &JournaledState, token: &str, role: Role, scope: Scope) -> Command {
    let (number, hash) = (world.shared.next_token(), TokenHash([5; 32]));
    let by = "socket".to_owned();
    Command::IssueToken { number, name: name(token), role, scope, hash, expires: None, by }
}

fn expiring(command: Command, at: Timestamp) -> Command {
    match command {
        Command::IssueToken { number, name, role, scope, hash, expires: _, by } => {
            Command::IssueToken { number, name, role, scope, hash, expires: Some(at), by }
        }
        Command::CreateCluster { .. }
        | Command::RenameCluster { .. }
        | Command::RemoveCluster(_)
        | Command::RevokeToken(_)
        | Command::KeepReceipt(_)
        | Command::Webhook(_)
        | Command::TakeClaims { .. }
        | Command::ReleaseClaims { .. } => command,
    }
}

fn receipt(by: &str, key: &str, request: u8, answer: &[u8]) -> Command {
    let (by, key) = (by.to_owned(), key.to_owned());
    Command::KeepReceipt(NewReceipt {
        by,
        key,
        fingerprint: [request; 32],
        answer: StoredResponse(answer.into()),
    })
}

fn refused(world: &mut JournaledState, command: &Command) -> String {
    let before = world.shared.clone();
    let why = world.submit(command).unwrap_err().to_string();
    assert_eq!(world.shared, before);
    why
}

/// promise: T1
#[test]
fn a_cluster_comes_gets_another_name_and_goes() {
    let mut world = JournaledState::new();
    world.submit(&create("north")).unwrap();
    assert_eq!(world.shared.cluster_named("north"), Some(ClusterId(1)));
    assert_eq!(refused(&mut world, &create("north")), "the name is taken: north");
    let rename = |to: &str| Command::RenameCluster { cluster: ClusterId(1), name: name(to) };
    world.submit(&rename("south")).unwrap();
    assert_eq!(world.submit(&rename("south")).unwrap(), []);
    assert_eq!(world.shared.cluster_named("north"), None);
    assert_eq!(world.shared.cluster_name(ClusterId(1)), Some(&name("south")));
    assert_eq!(refused(&mut world, &rename("default")), "the name is taken: default");
    world.submit(&Command::RemoveCluster(ClusterId(1))).unwrap();
    assert_eq!(refused(&mut world, &Command::RemoveCluster(ClusterId(1))), "no such cluster: number 1");
    assert_eq!(refused(&mut world, &rename("east")), "no such cluster: number 1");
    world.submit(&create("south")).unwrap();
    assert_eq!(world.shared.cluster_named("south"), Some(ClusterId(2)));
    assert_eq!(world.shared.clusters().count(), 2);
}

/// promise: T1
#[test]
fn the_default_cluster_stays_and_keeps_its_name() {
    let mut world = JournaledState::new();
    let stays = "the default cluster cannot be removed or renamed: default";
    assert_eq!(refused(&mut world, &Command::RemoveCluster(ClusterId::DEFAULT)), stays);
    let rename = |to: &str| Command::RenameCluster { cluster: ClusterId::DEFAULT, name: name(to) };
    assert_eq!(refused(&mut world, &rename("main")), stays);
    assert_eq!(world.submit(&rename("default")).unwrap(), []);
}

/// promise: C3
#[test]
fn there_are_not_too_many_clusters_or_tokens() {
    let mut world = JournaledState::new();
    for number in 1..CLUSTERS_MAX {
        world.submit(&create(&format!("c{number}"))).unwrap();
    }
    assert_eq!(refused(&mut world, &create("more")), "too many clusters: at most 1000");
    for number in 0..TOKENS_MAX {
        let command = issue(&world, &format!("t{number}"), Role::Viewer, Scope::default());
        world.submit(&command).unwrap();
    }
    let more = issue(&world, "more", Role::Viewer, Scope::default());
    assert_eq!(refused(&mut world, &more), "too many tokens: at most 1000");
    world.submit(&Command::RevokeToken(name("t7"))).unwrap();
    world.submit(&more).unwrap();
}

/// promise: S2
#[test]
fn a_token_is_issued_once_and_forgotten_when_it_is_revoked() {
    let mut world = JournaledState::new();
    let ci = issue(&world, "ci", Role::Operator, only_tenants(&["web", "web"]));
    world.submit(&ci).unwrap();
    let token = world.shared.token_named("ci").unwrap().clone();
    assert_eq!((token.number, token.created, token.by.as_str()), (0, world.now.wall, "socket"));
    assert_eq!(refused(&mut world, &ci), "invalid token number 0: the next one is 1");
    let again = issue(&world, "ci", Role::Viewer, Scope::default());
    assert_eq!(refused(&mut world, &again), "the name is taken: ci");
    world.submit(&Command::RevokeToken(name("ci"))).unwrap();
    assert_eq!(world.shared.find_token(0), None);
    let unknown = refused(&mut world, &Command::RevokeToken(name("ci")));
    assert!(unknown.starts_with("no such token: ci\n  hint: "), "{unknown}");
    world.submit(&again).unwrap();
    assert_eq!(world.shared.token_named("ci").map(|token| token.number), Some(1));
}

/// promise: S2
#[test]
fn an_expired_token_is_listed_until_another_has_its_name() {
    let mut world = JournaledState::new();
    let at = Timestamp::from_millis(world.now.wall.millis() + 1_000);
    let ci = expiring(issue(&world, "ci", Role::Viewer, Scope::default()), at);
    world.submit(&ci).unwrap();
    world.wait(1_000);
    assert!(world.shared.token_named("ci").unwrap().is_expired(world.now.wall));
    let late = expiring(issue(&world, "late", Role::Viewer, Scope::default()), at);
    assert_eq!(refused(&mut world, &late), "expiry of token late is in the past");
    let again = issue(&world, "ci", Role::Viewer, Scope::default());
    assert_eq!(world.submit(&again).unwrap()[0], Change::TokenRevoked(0));
    assert_eq!(world.shared.tokens().map(|token| token.number).collect::<Vec<_>>(), [1]);
}

/// promise: S2
#[test]
fn a_scope_is_neither_empty_nor_endless_and_names_what_is_there() {
    let mut world = JournaledState::new();
    let mut why = |role, scope| {
        let command = issue(&world, "t", role, scope);
        refused(&mut world, &command)
    };
    assert_eq!(why(Role::Viewer, only_clusters(&[0, 4])), "no such cluster: number 4");
    assert!(why(Role::Viewer, only_clusters(&[])).starts_with("token t has an empty list of clusters\n"));
    assert!(why(Role::Viewer, only_tenants(&[])).starts_with("token t has an empty list of tenants\n"));
    let many: Vec<_> = (0..=100).collect();
    assert_eq!(why(Role::Viewer, only_clusters(&many)), "too many clusters: at most 100");
    let many: Vec<_> = many.iter().map(|number| format!("t{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert_eq!(why(Role::Viewer, only_tenants(&many)), "too many tenants: at most 100");
    let admin = why(Role::Admin, only_tenants(&["web"]));
    assert!(admin.starts_with("an admin cannot be limited to tenants: t\n  hint: "), "{admin}");
    let command = issue(&world, "t", Role::Admin, only_clusters(&[0]));
    world.submit(&command).unwrap();
}

/// promise: S2
#[test]
fn a_token_goes_with_the_last_cluster_it_is_good_for() {
    let mut world = JournaledState::new();
    world.submit(&create("north")).unwrap();
    for (token, scope) in
        [("one", only_clusters(&[1])), ("two", only_clusters(&[0, 1])), ("all", Scope::default())]
    {
        let command = issue(&world, token, Role::Operator, scope);
        world.submit(&command).unwrap();
    }
    let changes = world.submit(&Command::RemoveCluster(ClusterId(1))).unwrap();
    assert_eq!(changes, [Change::TokenRevoked(0), Change::ClusterRemoved(ClusterId(1))]);
    assert_eq!(world.shared.token_named("one"), None);
    assert_eq!(world.shared.token_named("two").unwrap().scope, only_clusters(&[0]));
    assert!(world.shared.token_named("all").unwrap().scope.is_all());
}

/// Whatever was decided: a change alone must not open a door.
/// promise: S2
#[test]
fn a_cluster_that_goes_without_its_tokens_takes_them_along() {
    let mut world = JournaledState::new();
    world.submit(&create("north")).unwrap();
    let command = issue(&world, "one", Role::Operator, only_clusters(&[1]));
    world.submit(&command).unwrap();
    world.shared.apply(world.now, &Change::ClusterRemoved(ClusterId(1)));
    assert_eq!(world.shared.tokens().count(), 0);
    assert_eq!(world.shared.token_named("one"), None);
}

/// promise: C2
#[test]
fn the_same_request_again_finds_what_was_answered() {
    let mut world = JournaledState::new();
    world.submit(&receipt("token ci", "k", 1, b"first")).unwrap();
    assert_eq!(world.submit(&receipt("token ci", "k", 1, b"second")).unwrap(), []);
    let found = world.shared.receipts().find("token ci", "k", world.now.steady).unwrap();
    assert_eq!((&*found.answer.0, found.fingerprint), (&b"first"[..], [1; 32]));
    let other = refused(&mut world, &receipt("token ci", "k", 2, b""));
    assert!(other.starts_with("the idempotency key was used for another request: k\n  hint: "), "{other}");
    world.submit(&receipt("socket", "k", 2, b"other")).unwrap();
    world.wait(24 * 60 * 60 * 1_000 - 1);
    assert!(world.shared.receipts().find("token ci", "k", world.now.steady).is_some());
    world.wait(1);
    assert!(world.shared.receipts().find("token ci", "k", world.now.steady).is_none());
    assert_eq!(world.shared.receipts().size().0, 2);
    world.submit(&receipt("token ci", "k", 2, b"third")).unwrap();
    assert_eq!(world.shared.receipts().size().0, 1);
    assert_eq!(&*world.shared.receipts().find("token ci", "k", world.now.steady).unwrap().answer.0, b"third");
}

/// promise: C2
#[test]
fn what_a_receipt_is_made_of_has_limits() {
    let mut world = JournaledState::new();
    for key in ["", " ", "a b", "a\n", "ä", &"k".repeat(256)] {
        let why = refused(&mut world, &receipt("socket", key, 1, b""));
        assert_eq!(why, "an idempotency key has 1 to 255 visible ASCII characters", "{key:?}");
    }
    for by in ["", "a\u{7}", &"b".repeat(256)] {
        let why = refused(&mut world, &receipt(by, "k", 1, b""));
        assert_eq!(why, "invalid caller name: 1 to 255 bytes without control characters", "{by:?}");
    }
    let long = vec![0; ANSWER_BYTES_MAX + 1];
    let why = refused(&mut world, &receipt("socket", "k", 1, &long));
    assert_eq!(why, "the response is too long to be stored: at most 262144 bytes");
    world.submit(&receipt("socket", &"!~".repeat(127), 1, &long[1..])).unwrap();
}

/// promise: C2
#[test]
fn of_too_many_receipts_the_oldest_go() {
    let mut world = JournaledState::new();
    for number in 0..=RECEIPTS_MAX {
        world.submit(&receipt("socket", &format!("k{number}"), 1, b"done")).unwrap();
    }
    assert_eq!(world.shared.receipts().size().0, RECEIPTS_MAX);
    assert!(world.shared.receipts().find("socket", "k0", world.now.steady).is_none());
    assert!(world.shared.receipts().find("socket", "k1", world.now.steady).is_some());
}
