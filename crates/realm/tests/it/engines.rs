//! Engines for tests, and clients of them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use forewarn_etcd::{EtcdClient, EtcdSettings, Url};
use forewarn_realm::{
    CallTimes, Engine, EngineOperation, EngineTransaction, EtcdEngine, KeySpan, KeyValue, Keyspace,
    ReadRequest, Realm, RealmKey, SimulatedEngine,
};

/// Time for one raw call.
const LIMIT: Duration = Duration::from_secs(10);

/// An engine with one realm in it.
#[derive(Clone, Debug)]
pub struct TestEngine {
    kind: EngineKind,
    keys: Keyspace,
}

#[derive(Clone, Debug)]
enum EngineKind {
    Simulated(SimulatedEngine),
    /// URLs of the members.
    Etcd(Vec<String>),
}

impl TestEngine {
    pub fn simulated() -> Self {
        Self { kind: EngineKind::Simulated(SimulatedEngine::new()), keys: Keyspace::new("/t/").unwrap() }
    }

    /// A realm of its own in a cluster of etcd.
    pub fn on_etcd(endpoints: Vec<String>) -> Self {
        static REALMS: AtomicU32 = AtomicU32::new(0);
        let number = REALMS.fetch_add(1, Ordering::Relaxed);
        Self { kind: EngineKind::Etcd(endpoints), keys: Keyspace::new(&format!("/t{number}/")).unwrap() }
    }

    /// How much of something that is slow on etcd is tried.
    pub fn share(&self, simulated: usize, etcd: usize) -> usize {
        match self.kind {
            EngineKind::Simulated(_) => simulated,
            EngineKind::Etcd(_) => etcd,
        }
    }

    /// Another client of the realm.
    pub fn realm(&self) -> Realm {
        Realm::new(self.engine(), self.keys.clone(), CallTimes { total: LIMIT, ..CallTimes::default() })
    }

    /// A client of the realm, and its simulated engine.
    pub fn faulty(&self) -> (Realm, SimulatedEngine) {
        let EngineKind::Simulated(engine) = &self.kind else { panic!("faults are simulated") };
        let client = engine.client();
        // Random faults come in rows.
        let times = CallTimes { total: 3 * LIMIT, ..CallTimes::default() };
        (Realm::new(Engine::Simulated(client.clone()), self.keys.clone(), times), client)
    }

    fn engine(&self) -> Engine {
        match &self.kind {
            EngineKind::Simulated(engine) => Engine::Simulated(engine.client()),
            EngineKind::Etcd(endpoints) => {
                let urls = endpoints.iter().map(|url| Url::parse(url).unwrap()).collect();
                Engine::Etcd(EtcdEngine::new(EtcdClient::new(EtcdSettings::new(urls)).unwrap()))
            }
        }
    }
}

/// The value of a key.
pub async fn value(realm: &Realm, key: &RealmKey) -> Option<Bytes> {
    let request = ReadRequest::new(KeySpan::one(realm.keys().key(key)));
    let mut page = realm.engine().read(&request, LIMIT).await.unwrap();
    page.entries.pop().map(|entry| entry.value)
}

/// Every key of the realm, as text without the prefix.
pub async fn keys(realm: &Realm) -> Vec<String> {
    let request = ReadRequest::new(realm.keys().all()).keys_only();
    let page = realm.engine().read(&request, LIMIT).await.unwrap();
    let text = |entry: KeyValue| {
        let key = realm.keys().parse(&entry.key).expect("a key of the realm");
        key.to_string()
    };
    page.entries.into_iter().map(text).collect()
}

/// The keys that begin so.
pub async fn keys_below(realm: &Realm, prefix: &str) -> Vec<String> {
    keys(realm).await.into_iter().filter(|key| key.starts_with(prefix)).collect()
}

/// Writes a value, or deletes it.
pub async fn put(realm: &Realm, key: &RealmKey, value: Option<Bytes>) {
    let bytes = realm.keys().key(key);
    let operation = match value {
        Some(value) => EngineOperation::put(bytes, value),
        None => EngineOperation::Delete(KeySpan::one(bytes)),
    };
    let transaction = EngineTransaction { then: vec![operation], ..EngineTransaction::default() };
    realm.engine().transact(&transaction, LIMIT).await.unwrap();
}
