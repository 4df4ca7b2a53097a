//! The realm key, secrets, and engines that were restored.

use forewarn_control::Stream;
use forewarn_realm::{EngineMemory, Joined, RealmCompleteness, RealmHistory, RealmRecord, RestoreEvidence};
use forewarn_types::{Moment, Name, Seed, Timestamp};

use crate::engines::TestEngine;
use crate::world::{World, cluster};

fn record(number: u8) -> RealmRecord {
    let created = Moment(Timestamp::from_millis(1_767_225_600_000));
    RealmRecord {
        identity: Seed([number; 16]),
        created,
        format: 1,
        restores: 0,
        history: None,
        clock: None,
        completeness: RealmCompleteness::Complete,
    }
}

pub async fn one_server_creates_the_realm(engine: &TestEngine) {
    let name = Name::new("signing").unwrap();
    let mut joins = tokio::task::JoinSet::new();
    for number in 1..=5 {
        let (realm, name) = (engine.realm(), name.clone());
        joins.spawn(async move {
            let joined = realm.join(record(number)).await.unwrap();
            let secret = realm.join_secret(&name, &[number; 40]).await.unwrap();
            (joined, secret)
        });
    }
    let joined = joins.join_all().await;
    let realm = engine.realm();
    let found = realm.record().await.unwrap().unwrap();
    let secret = realm.secret(&name).await.unwrap().unwrap();
    let is_created = |joined: &Joined<_>| matches!(joined, Joined::Created(_));
    assert_eq!(joined.iter().filter(|(joined, _)| is_created(joined)).count(), 1);
    assert_eq!(joined.iter().filter(|(_, secret)| matches!(secret, Joined::Created(_))).count(), 1);
    for (one, its_secret) in joined {
        assert_eq!((one.into_value(), its_secret.into_value()), (found, secret.clone()));
    }
    assert_eq!(realm.secret(&Name::new("other").unwrap()).await.unwrap(), None);
    let raised = RealmRecord { format: 2, ..found };
    assert!(realm.change_record(&found, &raised).await.unwrap());
    assert!(!realm.change_record(&found, &RealmRecord { format: 3, ..found }).await.unwrap());
    assert_eq!(realm.record().await.unwrap(), Some(raised));
}

pub async fn an_older_engine_is_detected(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    let mut owned = world.create(&realm, "a").await;
    world.commit(&mut owned, 1, 1).await;
    let (status, heads) = (realm.engine_status().await.unwrap(), realm.heads().await.unwrap());
    assert!(status.revision >= heads.revision.min(status.revision));
    let known = EngineMemory {
        cluster_id: Some(status.cluster_id),
        history: Some(RealmHistory::default()),
        archived: [(world.stream, 1), (Stream::Shared, 8)].into(),
    };
    let record = record(1);
    assert_eq!(known.check(&status, Some(&record), &heads), Ok(()));
    assert_eq!(EngineMemory::default().check(&status, Some(&record), &heads), Ok(()));
    let later = EngineMemory { archived: [(world.stream, 2)].into(), ..known.clone() };
    let (stream, archived, found) = (world.stream, 2, 1);
    assert_eq!(
        later.check(&status, Some(&record), &heads),
        Err(RestoreEvidence::OlderHead { stream, archived, found })
    );
    let other = EngineMemory { cluster_id: Some(status.cluster_id + 1), ..known };
    assert!(matches!(other.check(&status, Some(&record), &heads), Err(RestoreEvidence::OtherCluster { .. })));
    // A restore that was accepted counts before everything else, and one that is forgotten too.
    let accepted = RealmRecord { restores: 1, history: Some(Seed([1; 16])), ..record };
    assert_eq!(other.check(&status, Some(&accepted), &heads), Err(RestoreEvidence::Accepted));
    let after = EngineMemory { history: Some(accepted.history()), ..later };
    let forgotten = RestoreEvidence::OtherHistory { known: 1, found: 0 };
    assert_eq!(after.check(&status, Some(&record), &heads), Err(forgotten));
    let elsewhere = RealmRecord { history: Some(Seed([2; 16])), ..accepted };
    let other = RestoreEvidence::OtherHistory { known: 1, found: 1 };
    assert_eq!(after.check(&status, Some(&elsewhere), &heads), Err(other));
}
