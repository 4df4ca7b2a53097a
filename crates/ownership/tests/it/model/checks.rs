//! The properties of the model, the search of all states, and the omissions that it finds.

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::application::{ClientWrite, Record};
use super::server::{Driver, NoticeState, Role};
use super::world::World;
use super::{Bounds, Omission, OwnerChanges, RealmModel};

const LOST: &str = "no answered write is lost";
const TWICE: &str = "nothing is applied twice";
const EARLY: &str = "no event starts before its whole notice was readable";
const EFFECTS: &str = "an action has one effect";
const TERMS: &str = "terms grow, and the log has no gap";
const FENCED: &str = "a fenced server does nothing";

pub(super) fn properties() -> Vec<Property<RealmModel>> {
    vec![
        Property::always(LOST, |model, world: &World| !is_lost(model, world)),
        Property::always(TWICE, |_, world: &World| !is_applied_twice(world)),
        Property::always(EARLY, |_, world: &World| !world.seen.started_early),
        Property::always(EFFECTS, |_, world: &World| world.effects <= 1),
        Property::always(TERMS, |_, world: &World| {
            let broken = world.engine.broken;
            !broken.term_went_back && !broken.number_skipped
        }),
        Property::always(FENCED, |_, world: &World| !world.seen.fenced_server_acted),
        // The search reaches the interesting states.
        Property::sometimes("an event expires and has its effect", |_, world: &World| {
            world.effects == 1 && world.seen.readable_since.is_some() && !world.seen.write_answered
        }),
        Property::sometimes("a late announcement is deferred", |_, world: &World| {
            world.servers.iter().filter_map(|one| one.driver()).any(|one| one.notice == NoticeState::TooLate)
        }),
        Property::sometimes(
            "a successor has the effect of a start that it has not committed",
            |_, world: &World| world.effects == 1 && world.orders[0] && world.engine.head.term.0 > 1,
        ),
        Property::sometimes("a new owner continues after a move, if streams move", |model, world: &World| {
            let continues = |driver: &Driver| driver.writer.head().batch.0[7] == b'a';
            model.bounds.ways == OwnerChanges::Takeovers || world.servers[1].driver().is_some_and(continues)
        }),
        Property::sometimes("a former owner is fenced", |_, world: &World| {
            matches!(world.servers[0].role, Role::Fenced(_))
        }),
    ]
}

/// An answered write is in the log, once.
fn is_lost(model: &RealmModel, world: &World) -> bool {
    let is_announcement = |record: &Record| matches!(record, Record::Announced { .. });
    let is_write = |record: &Record| matches!(record, Record::Written(_));
    (world.seen.announcement_answered && is_gone(model, world, is_announcement))
        || (world.seen.write_answered && is_gone(model, world, is_write))
}

/// True if the log has no such record, and no transaction in flight can bring it there.
fn is_gone(model: &RealmModel, world: &World, wanted: fn(&Record) -> bool) -> bool {
    let waiting = world.servers.iter().filter_map(|one| one.in_flight());
    let sent = world.network.copies().iter().map(|copy| &copy.transaction);
    let may_come = waiting.chain(sent).any(|transaction| {
        transaction.payload.is_some_and(|batch| wanted(&batch.record))
            && world.engine.matches(transaction, model.compared_key())
    });
    world.engine.count(wanted) == 0 && !may_come
}

fn is_applied_twice(world: &World) -> bool {
    let counts = [
        world.engine.count(|record| matches!(record, Record::Announced { .. })),
        world.engine.count(|record| matches!(record, Record::Written(_))),
        world.engine.count(|record| matches!(record, Record::Started)),
    ];
    world.engine.applied_twice() || counts.into_iter().any(|count| count > 1)
}

/// One takeover, three ticks, two transactions on their way.
const ONE_TAKEOVER: Bounds = Bounds {
    ticks: 3,
    owner_changes: 1,
    ways: OwnerChanges::Takeovers,
    copies: 2,
    rejections: 0,
    write: ClientWrite::Note,
};
const AN_APPROVAL: Bounds = Bounds { ticks: 2, write: ClientWrite::Approval, ..ONE_TAKEOVER };
/// The first owner may take the stream back.
const TWO_TAKEOVERS: Bounds = Bounds { ticks: 2, owner_changes: 2, copies: 1, ..ONE_TAKEOVER };
const ONE_MOVE: Bounds = Bounds { ticks: 2, ways: OwnerChanges::TakeoversAndMoves, ..ONE_TAKEOVER };
const ONE_REJECTION: Bounds = Bounds { ticks: 1, rejections: 1, ..AN_APPROVAL };

/// Searches all states within the bounds. There are at least so many: otherwise the model has lost some of its steps.
fn search(bounds: Bounds, states_min: usize) {
    let checker = RealmModel { omission: None, bounds }.checker().threads(2).spawn_bfs().join();
    let states = checker.unique_state_count();
    println!("{states} unique states, depth {}: {bounds:?}", checker.max_depth());
    checker.assert_properties();
    assert!(states >= states_min, "only {states} states");
}

#[test]
fn all_states_of_one_takeover_keep_every_property() {
    search(ONE_TAKEOVER, 800_000);
}

#[test]
fn all_states_of_an_approval_keep_every_property() {
    search(AN_APPROVAL, 200_000);
}

#[test]
fn all_states_of_two_takeovers_keep_every_property() {
    search(TWO_TAKEOVERS, 350_000);
}

#[test]
fn all_states_of_a_move_keep_every_property() {
    search(ONE_MOVE, 200_000);
}

#[test]
fn all_states_with_a_rejected_transaction_keep_every_property() {
    search(ONE_REJECTION, 70_000);
}

/// Searches for a history in which an omission breaks a property.
fn assert_found(omission: Omission, bounds: Bounds, property: &'static str) {
    let model = RealmModel { omission: Some(omission), bounds };
    let wanted = HasDiscoveries::AnyOf([property].into());
    let checker = model.checker().finish_when(wanted).spawn_bfs().join();
    let path = checker.discovery(property);
    let path = path.unwrap_or_else(|| panic!("{omission:?} should break: {property}"));
    println!("{omission:?}, {} unique states: {:?}", checker.unique_state_count(), path.into_actions());
}

#[test]
fn without_notice_from_the_readable_event_an_event_starts_early() {
    assert_found(Omission::NoticeFromReadable, ONE_TAKEOVER, EARLY);
}

#[test]
fn without_the_hold_of_the_last_batch_an_event_starts_early() {
    assert_found(Omission::HoldOfLastBatch, ONE_TAKEOVER, EARLY);
}

#[test]
fn without_a_durable_hold_an_event_starts_early() {
    assert_found(Omission::DurableHold, TWO_TAKEOVERS, EARLY);
}

#[test]
fn without_the_action_log_an_action_has_two_effects() {
    assert_found(Omission::ActionLog, ONE_TAKEOVER, EFFECTS);
}

#[test]
fn without_the_anchor_of_the_clock_an_event_starts_early() {
    assert_found(Omission::ClockAnchor, ONE_TAKEOVER, EARLY);
}

#[test]
fn without_the_comparison_of_the_head_a_batch_is_applied_twice() {
    assert_found(Omission::ComparisonOfHead, ONE_TAKEOVER, TWICE);
}

#[test]
fn without_the_comparison_of_the_head_an_answered_write_is_lost() {
    assert_found(Omission::ComparisonOfHead, ONE_TAKEOVER, LOST);
}

#[test]
fn without_the_commit_before_the_answer_an_answered_write_is_lost() {
    assert_found(Omission::AnswerAfterCommit, ONE_TAKEOVER, LOST);
}
