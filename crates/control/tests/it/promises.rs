//! The promises of the shared state, over random histories.

#![allow(clippy::unwrap_used, reason = "a test world may be blunt")]

use std::collections::BTreeSet;

use forewarn_control::limits::{RECEIPT_KEPT_FOR, RECEIPTS_BYTES_MAX, RECEIPTS_MAX};
use forewarn_control::shared::*;
use forewarn_control::{ClusterId, NewReceipt};
use forewarn_lifecycle::Seed;
use forewarn_testkit::shared_state::{JournaledState, happenings, histories, live};
use proptest::prelude::*;

/// Whom a token lets in: clusters of these, and those to come.
fn reached(token: &Token, world: &JournaledState) -> BTreeSet<ClusterId> {
    let to_come = ClusterId(u32::MAX);
    let all = world.shared.clusters().map(|(id, _)| id).chain([to_come]);
    all.filter(|id| token.scope.clusters.includes(id)).collect()
}

proptest! {
    /// promise: D1
    #[test]
    fn replaying_the_journal_gives_the_running_catalogue(history in histories()) {
        let world = live(&history);
        let mut replayed = SharedState::new(Seed([4; 16]));
        world.journal.iter().for_each(|(now, change)| drop(replayed.apply(*now, change)));
        prop_assert_eq!(replayed, world.shared);
    }

    /// promise: D1
    #[test]
    fn deciding_changes_nothing_and_depends_on_nothing_else(history in histories(), last in happenings()) {
        let mut world = live(&history);
        let before = world.shared.clone();
        let command = world.prepare(&last);
        let (one, two) = (before.decide(world.now, &command), world.shared.decide(world.now, &command));
        prop_assert_eq!(one, two);
        prop_assert_eq!(before, world.shared);
    }

    /// promise: D1
    #[test]
    fn rows_taken_at_any_moment_give_the_running_catalogue(history in histories()) {
        let world = live(&history);
        let mut restoring = Restoring::default();
        world.shared.clone().into_rows().try_for_each(|row| restoring.add(row)).unwrap();
        prop_assert_eq!(restoring.finish().unwrap(), world.shared);
    }

    /// promise: T1, D1
    #[test]
    fn a_number_of_a_cluster_a_token_or_a_webhook_is_never_used_again(history in histories()) {
        let world = live(&history);
        let (mut clusters, mut tokens) = (BTreeSet::from([ClusterId::DEFAULT]), BTreeSet::new());
        let mut webhooks = BTreeSet::new();
        for (_, change) in &world.journal {
            match change {
                Change::ClusterCreated { cluster, .. } => prop_assert!(clusters.insert(*cluster)),
                Change::TokenIssued(token) => prop_assert!(tokens.insert(token.number)),
                Change::Webhook(WebhookChange::Added(webhook)) => prop_assert!(webhooks.insert(webhook.number)),
                Change::ClusterRenamed { .. }
                | Change::ClusterRemoved(_)
                | Change::TokenRevoked(_)
                | Change::ReceiptKept(_)
                | Change::Clock
                | Change::Booted(_)
                | Change::Positioned(_)
                | Change::ClaimsTaken { .. }
                | Change::ClaimsReleased { .. }
                | Change::Webhook(_) => {}
            }
        }
        prop_assert!(tokens.iter().all(|number| *number < world.shared.next_token()));
    }

    /// promise: T1
    #[test]
    fn names_and_numbers_find_the_same(history in histories()) {
        let world = live(&history);
        let shared = &world.shared;
        prop_assert_eq!(shared.cluster_named("default"), Some(ClusterId::DEFAULT));
        for (id, name) in shared.clusters() {
            prop_assert_eq!(shared.cluster_named(name.as_str()), Some(id));
            prop_assert_eq!(shared.cluster_name(id), Some(name));
        }
        for token in shared.tokens() {
            prop_assert_eq!(shared.find_token(token.number), Some(token));
            prop_assert_eq!(shared.token_named(token.name.as_str()), Some(token));
        }
    }

    /// promise: C7
    #[test]
    fn every_claim_is_of_a_cluster_that_is_there_and_found_by_it(history in histories()) {
        let shared = live(&history).shared;
        let mut found: Vec<_> = shared.clusters().flat_map(|(id, _)| shared.claims_of(id)).collect();
        found.sort_by_key(|(key, _)| *key);
        prop_assert_eq!(found.iter().map(|(_, claim)| *claim).collect::<Vec<_>>(), shared.claims().collect::<Vec<_>>());
        for (key, claim) in found {
            prop_assert_eq!(key, claim.group.key());
            prop_assert_eq!(shared.claim(key), Some(claim));
        }
    }

    /// A cluster loses a group only if it releases it, or is removed; and gets one that no other has.
    #[test]
    fn no_group_passes_from_one_cluster_to_another(history in histories(), last in happenings()) {
        let mut world = live(&history);
        let before = world.shared.clone();
        let command = world.prepare(&last);
        drop(world.submit(&command));
        for claim in world.shared.claims() {
            let former = before.claim(&claim.group.key());
            prop_assert!(former.is_none_or(|former| former.cluster == claim.cluster), "{:?}", command);
        }
    }

    /// Only a token that is issued lets anybody in anywhere.
    /// promise: S2
    #[test]
    fn no_token_becomes_good_for_more_than_it_was_issued_for(history in histories(), last in happenings()) {
        let mut world = live(&history);
        let before = world.clone();
        let command = world.prepare(&last);
        drop(world.submit(&command));
        for token in before.shared.tokens() {
            if let Some(after) = world.shared.find_token(token.number) {
                prop_assert!(reached(after, &before).is_subset(&reached(token, &before)));
                prop_assert!(after.scope.clusters.is_all() == token.scope.clusters.is_all());
                prop_assert!(after.scope.clusters.is_all() || after.scope.clusters.named().next().is_some());
                prop_assert_eq!(&after.scope.tenants, &token.scope.tenants);
                prop_assert_eq!((after.role, after.hash, after.expires), (token.role, token.hash, token.expires));
            }
        }
        prop_assert!(world.shared.tokens().all(|token| token.role < Role::Admin || token.scope.tenants.is_all()));
    }

    /// promise: W2
    #[test]
    fn a_webhook_keeps_its_definition_and_its_confirmation(history in histories(), last in happenings()) {
        let mut world = live(&history);
        let before = world.shared.clone();
        let command = world.prepare(&last);
        drop(world.submit(&command));
        for webhook in before.webhooks() {
            let Some(after) = world.shared.find_webhook(webhook.number) else { continue };
            prop_assert!(webhook.handshake == Handshake::Wanted || after.handshake == webhook.handshake);
            let fixed = |webhook: &Webhook| Webhook { handshake: Handshake::Wanted, ..webhook.clone() };
            prop_assert_eq!(fixed(after), fixed(webhook));
        }
        for webhook in world.shared.webhooks() {
            prop_assert_eq!(world.shared.webhook_named(webhook.name.as_str()), Some(webhook));
            prop_assert!(webhook.authorization.is_none() || webhook.url.is_private());
        }
    }

    /// promise: C2
    #[test]
    fn receipts_are_bounded_and_found_for_a_day(history in histories()) {
        let world = live(&history);
        let (kept, bytes) = world.shared.receipts().size();
        prop_assert!(kept <= RECEIPTS_MAX && bytes <= RECEIPTS_BYTES_MAX);
        for (at, change) in &world.journal {
            let Change::ReceiptKept(NewReceipt { by, key, answer, .. }) = change else { continue };
            let found = world.shared.receipts().find(by, key, world.now.steady);
            if world.now.steady.since(at.steady) < RECEIPT_KEPT_FOR {
                prop_assert_eq!(found.map(|receipt| &receipt.answer), Some(answer));
            } else {
                prop_assert!(found.is_none_or(|receipt| receipt.at > at.steady));
            }
        }
    }
}
