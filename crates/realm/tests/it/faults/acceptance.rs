//! Acceptances of a restored engine that are killed, or whose answers are lost.

use std::time::Duration;

use forewarn_realm::{FaultRates, RealmCompleteness};
use tokio::time::timeout;

use crate::contract::acceptance::{RestoredRealm, accept};
use crate::engines::TestEngine;

/// Longer than any call takes.
const FOR_EVER: Duration = Duration::from_secs(3_600);

/// promise: D4
#[tokio::test(start_paused = true)]
async fn an_acceptance_that_is_killed_at_any_moment_goes_on() {
    let mut kills = 0;
    loop {
        let engine = TestEngine::simulated();
        let restored = RestoredRealm::create(&engine.realm()).await;
        let (realm, client) = engine.faulty();
        client.cut_after(kills);
        let is_complete = timeout(FOR_EVER, accept(&realm)).await.is_ok_and(|accepted| accepted.is_ok());
        let realm = engine.realm();
        let record = realm.record().await.unwrap().unwrap();
        assert_eq!(record.completeness.is_complete(), is_complete || record.restores == 0);
        // Nothing is lost meanwhile: each stream is as it was, or replaced.
        realm.read_all().await.unwrap();
        if !is_complete {
            accept(&realm).await.unwrap();
        }
        restored.check_accepted(&realm).await;
        if is_complete {
            break;
        }
        kills += 1;
    }
    println!("killed at {kills} moments");
    assert!(kills > 10, "{kills}");
}

#[tokio::test(start_paused = true)]
async fn an_acceptance_whose_answers_are_lost_replaces_each_stream_once() {
    for seed in 0..25 {
        let engine = TestEngine::simulated();
        let restored = RestoredRealm::create(&engine.realm()).await;
        let (realm, client) = engine.faulty();
        client.meet_randomly(FaultRates { seed, transactions: 300, reads: 50, events: 0 });
        while accept(&realm).await.is_err() {
            assert_eq!(
                engine.realm().record().await.unwrap().unwrap().completeness,
                RealmCompleteness::Accepting,
                "seed {seed}"
            );
        }
        // Requests that were late find other revisions.
        client.deliver_delayed();
        restored.check_accepted(&engine.realm()).await;
    }
}
