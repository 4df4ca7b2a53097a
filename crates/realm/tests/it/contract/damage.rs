//! Damage: every value that is not as it was written is detected, and the error names its key.

use forewarn_realm::{ReadFrom, Realm, RealmError, RealmKey, Revision};

use crate::engines::{TestEngine, keys, put, value};
use crate::world::{World, cluster};

/// A stream with a stored state and a batch after it.
async fn small_stream(realm: &Realm, world: &mut World) {
    let mut owned = world.create(realm, "a").await;
    world.commit(&mut owned, 2, 1).await;
    let snapshot = owned.begin_snapshot(world.state.clone()).unwrap().finish(realm).await.unwrap();
    owned.publish_snapshot(snapshot, world.time()).await.unwrap();
    world.commit(&mut owned, 1, 1).await;
    world.assert_content(&realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap());
}

/// The keys of which a read of the stream depends.
async fn needed_keys(realm: &Realm) -> Vec<RealmKey> {
    let parse = |text: &String| realm.keys().parse(format!("{}{text}", realm.keys().prefix()).as_bytes());
    let all: Vec<_> = keys(realm).await.iter().map(|text| parse(text).unwrap()).collect();
    all.into_iter()
        .filter(|key| matches!(key, RealmKey::Head(_) | RealmKey::Log(_, 2) | RealmKey::Snapshot(..)))
        .collect()
}

pub async fn a_damaged_value_is_detected(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    small_stream(&realm, &mut world).await;
    let needed = needed_keys(&realm).await;
    assert_eq!(needed.len(), 3);
    for key in needed {
        let intact = value(&realm, &key).await.unwrap();
        for place in (0..intact.len()).step_by(engine.share(1, 17)) {
            let mut damaged = intact.to_vec();
            damaged[place] ^= 0x10;
            put(&realm, &key, Some(damaged.into())).await;
            match realm.read_stream(world.stream, ReadFrom::Beginning).await {
                Err(RealmError::Damaged { key: named, .. }) => assert_eq!(named, key.to_string()),
                other => panic!("{key} at {place}: {other:?}"),
            }
        }
        put(&realm, &key, Some(intact)).await;
    }
    world.assert_content(&realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap());
    // A batch in the place of another one.
    let first = value(&realm, &RealmKey::Log(world.stream, 1)).await.unwrap();
    put(&realm, &RealmKey::Log(world.stream, 2), Some(first)).await;
    let found = realm.read_stream(world.stream, ReadFrom::Beginning).await;
    assert!(matches!(found, Err(RealmError::Damaged { .. })), "{found:?}");
}

pub async fn a_missing_value_is_detected(engine: &TestEngine) {
    let mut world = World::new(cluster(0));
    let realm = engine.realm();
    small_stream(&realm, &mut world).await;
    for key in needed_keys(&realm).await {
        let intact = value(&realm, &key).await;
        put(&realm, &key, None).await;
        match realm.read_stream(world.stream, ReadFrom::Beginning).await {
            Err(RealmError::Missing { key: named, .. }) => assert_eq!(named, key.to_string()),
            Err(RealmError::NoStream(_)) => assert!(matches!(key, RealmKey::Head(_))),
            other => panic!("{key}: {other:?}"),
        }
        put(&realm, &key, intact).await;
    }
    let content = realm.read_stream(world.stream, ReadFrom::Beginning).await.unwrap();
    assert!(content.head.revision > Revision::ABSENT);
    world.assert_content(&content);
}
