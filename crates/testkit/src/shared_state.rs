//! Random histories of a shared state: few names, so that they collide, and clocks that jump.

use forewarn_control::refusal::Refusal;
use forewarn_control::resource_id::GroupId;
use forewarn_control::shared::*;
use forewarn_control::{ClusterId, NewReceipt, Site, StoredResponse};
use forewarn_lifecycle::{EventKind, Name, Now, Seed, Steady, Timestamp};
use forewarn_url::Url;
use proptest::prelude::*;

/// A shared state, and everything that has happened to it.
#[derive(Clone, Debug)]
pub struct JournaledState {
    pub shared: SharedState,
    pub journal: Vec<(Now, Change)>,
    pub now: Now,
}

/// Time passes, and then something is asked for.
#[derive(Clone, Debug)]
pub struct SharedStep {
    wait_millis: u64,
    wall_step_millis: i64,
    wish: Wanted,
}

/// A command, before it is known which number is the next.
#[derive(Clone, Debug)]
enum Wanted {
    Plain(Command),
    Issue { name: Name, role: Role, scope: Scope, expires_in_millis: Option<i64> },
}

impl JournaledState {
    pub fn new() -> Self {
        Self {
            shared: SharedState::new(Seed([4; 16])),
            journal: Vec::new(),
            now: Now::at_millis(1_000_000_000),
        }
    }

    pub fn submit(&mut self, command: &Command) -> Result<Vec<Change>, Refusal> {
        let changes = self.shared.decide(self.now, command)?;
        for change in &changes {
            self.shared.apply(self.now, change);
            self.journal.push((self.now, change.clone()));
        }
        Ok(changes)
    }

    pub fn wait(&mut self, millis: u64) {
        self.now.steady = Steady::from_millis(self.now.steady.millis() + millis);
        self.step_wall(millis.cast_signed());
    }

    fn step_wall(&mut self, millis: i64) {
        self.now.wall = Timestamp::from_millis(self.now.wall.millis().saturating_add(millis));
    }

    /// The command that a happening comes to here and now.
    pub fn prepare(&mut self, happening: &SharedStep) -> Command {
        self.wait(happening.wait_millis);
        self.step_wall(happening.wall_step_millis);
        match &happening.wish {
            Wanted::Plain(command) => command.clone(),
            Wanted::Issue { name, role, scope, expires_in_millis } => Command::IssueToken {
                number: self.shared.next_token(),
                name: name.clone(),
                role: *role,
                scope: scope.clone(),
                hash: TokenHash([u8::try_from(self.shared.next_token() % 256).unwrap(); 32]),
                expires: expires_in_millis
                    .map(|millis| Timestamp::from_millis(self.now.wall.millis() + millis)),
                by: "socket".to_owned(),
            },
        }
    }
}

/// What a history comes to.
pub fn live(history: &[SharedStep]) -> JournaledState {
    let mut world = JournaledState::new();
    for happening in history {
        let command = world.prepare(happening);
        drop(world.submit(&command));
    }
    world
}

pub fn histories() -> impl Strategy<Value = Vec<SharedStep>> {
    prop::collection::vec(happenings(), 0..60)
}

pub fn happenings() -> impl Strategy<Value = SharedStep> {
    let wait_millis = prop_oneof![4 => Just(0), 4 => 0..100_000u64, 1 => 0..100_000_000u64];
    let wall_step_millis = prop_oneof![9 => Just(0), 1 => -200_000_000..200_000_000i64];
    (wait_millis, wall_step_millis, wishes()).prop_map(|(wait_millis, wall_step_millis, wish)| SharedStep {
        wait_millis,
        wall_step_millis,
        wish,
    })
}

fn wishes() -> impl Strategy<Value = Wanted> {
    let issue = (names(), roles(), scopes(), prop::option::of(-10_000..200_000i64));
    let issue = issue.prop_map(|(name, role, scope, expires_in_millis)| Wanted::Issue {
        name,
        role,
        scope,
        expires_in_millis,
    });
    prop_oneof![3 => issue, 5 => commands().prop_map(Wanted::Plain)]
}

fn commands() -> impl Strategy<Value = Command> {
    let create = (names(), any::<[u8; 16]>()).prop_map(|(name, seed)| Command::CreateCluster {
        name,
        seed: Seed(seed),
        site: Site::default(),
    });
    let rename = (clusters(), names()).prop_map(|(cluster, name)| Command::RenameCluster { cluster, name });
    let receipt = (0..3u8, 0..8u8, 0..2u8, prop::collection::vec(any::<u8>(), 0..50)).prop_map(
        |(by, key, request, answer)| {
            Command::KeepReceipt(NewReceipt {
                by: format!("token t{by}"),
                key: format!("key-{key}"),
                fingerprint: [request; 32],
                answer: StoredResponse(answer.into()),
            })
        },
    );
    prop_oneof![
        create,
        rename,
        clusters().prop_map(Command::RemoveCluster),
        (clusters(), prop::collection::vec(claims(), 0..4))
            .prop_map(|(cluster, claims)| Command::TakeClaims { cluster, claims }),
        (clusters(), prop::collection::vec(groups(), 0..4))
            .prop_map(|(cluster, groups)| Command::ReleaseClaims { cluster, groups }),
        names().prop_map(Command::RevokeToken),
        receipt,
        webhooks().prop_map(Command::Webhook),
        webhooks().prop_map(Command::Webhook),
    ]
}

pub fn webhooks() -> impl Strategy<Value = WebhookCommand> {
    let urls = prop::sample::select(vec!["http://h/x", "https://h:8443/x?code=1", "http://127.0.0.1:9"]);
    let kinds =
        prop_oneof![Just(Reach::All), few(prop::sample::select(vec![EventKind::Freeze, EventKind::Preempt]))];
    let formats = prop::sample::select(WebhookFormat::ALL.to_vec());
    let add = (names(), urls, formats, scopes(), kinds, any::<bool>());
    let add = add.prop_map(|(name, url, format, scope, kinds, has_secret)| {
        let authorization = has_secret.then(|| Authorization::new("Bearer s3cret").unwrap());
        let (url, filter, by) = (Url::parse(url).unwrap(), Filter { scope, kinds }, "socket".to_owned());
        WebhookCommand::Add(Box::new(WebhookDefinition { name, url, format, filter, authorization, by }))
    });
    let confirm = (0..6u32, prop::option::of(1..100u32));
    let confirm = confirm.prop_map(|(webhook, per_minute)| WebhookCommand::Confirm { webhook, per_minute });
    let messages = (0..3u8, deliveries()).prop_map(|(west, progress)| UndeliveredMessages {
        site: Site { location: format!("west{west}"), ..Site::default() },
        progress,
    });
    let keep = (clusters(), messages)
        .prop_map(|(cluster, messages)| WebhookCommand::KeepUndelivered { cluster, messages });
    let advance = (clusters(), 0..6u32, progress()).prop_map(|(cluster, webhook, progress)| {
        WebhookCommand::AdvanceUndelivered { cluster, webhook, progress }
    });
    let end = (clusters(), 0..6u32)
        .prop_map(|(cluster, webhook)| WebhookCommand::EndUndelivered { cluster, webhook });
    let remove = names().prop_map(WebhookCommand::Remove);
    prop_oneof![3 => add, 2 => confirm, 1 => remove, 3 => keep, 2 => advance, 1 => end]
}

/// Progress of webhooks in a cluster, by number.
pub fn deliveries() -> impl Strategy<Value = Vec<(u32, Progress)>> {
    prop::collection::vec((0..6u32, progress()), 0..4)
}

fn progress() -> impl Strategy<Value = Progress> {
    let failing = (0..1_000_000i64, 0..90u64)
        .prop_map(|(millis, head)| DeliveryFailure { since: Timestamp::from_millis(millis), head });
    (0..90u64, 0..9u64, prop::option::of(failing)).prop_map(|(cursor, lost, failing)| Progress {
        cursor,
        lost,
        failing,
    })
}

pub fn claims() -> impl Strategy<Value = NewClaim> {
    (groups(), 0..3u8).prop_map(|(group, west)| NewClaim { group, location: format!("west{west}") })
}

/// Groups in any spelling.
pub fn groups() -> impl Strategy<Value = GroupId> {
    (0..6u8, any::<bool>()).prop_map(|(number, is_upper)| {
        let name = if is_upper { format!("G{number}") } else { format!("g{number}") };
        GroupId { subscription: "s".to_owned(), name }
    })
}

fn names() -> impl Strategy<Value = Name> {
    (0..6u8).prop_map(|n| Name::new(&format!("n{n}")).unwrap())
}

fn clusters() -> impl Strategy<Value = ClusterId> {
    (0..10u32).prop_map(ClusterId)
}

pub fn roles() -> impl Strategy<Value = Role> {
    prop::sample::select(Role::ALL.to_vec())
}

pub fn scopes() -> impl Strategy<Value = Scope> {
    let all_or_few = prop_oneof![Just(Reach::All), few(clusters())];
    let tenants = prop_oneof![3 => Just(Reach::All), 1 => few(names())];
    (all_or_few, tenants).prop_map(|(clusters, tenants)| Scope { clusters, tenants })
}

fn few<T: Ord + Clone + std::fmt::Debug>(items: impl Strategy<Value = T>) -> impl Strategy<Value = Reach<T>> {
    prop::collection::btree_set(items, 0..3).prop_map(Reach::Only)
}
