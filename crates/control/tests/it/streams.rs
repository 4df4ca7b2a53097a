//! A control plane without a server: the shared stream and the streams of clusters, each with its state and its log.
//! It takes claims before a commit and releases them after it, and can crash between any two commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, IdempotencyKey, Reply, RequestContext, ResourceWrite,
    SharedRequest, Transaction,
};
use forewarn_control::resources::Body;
use forewarn_control::shared::SharedState;
use forewarn_control::{
    Chain, ClusterId, ClusterRemoval, ClusterState, ControlError, ControlState, Decision, Effect, Entry,
    Environment, HypervisorKind, Record, Stream, claims_needed, decide_in_cluster, decide_shared,
    missing_claims, unused_claims,
};
use forewarn_lifecycle::{Name, Now, Seed};
use serde_json::{Value, json};

pub const SEED: Seed = Seed([9; 16]);

/// All streams of a server.
pub struct Streams {
    pub shared: Arc<SharedState>,
    pub clusters: BTreeMap<ClusterId, Arc<ClusterState>>,
    /// The records of each stream.
    pub logs: BTreeMap<Stream, Vec<Record>>,
    /// The records of all streams, in the order of their commits.
    pub records: Vec<Record>,
    pub audit: BTreeMap<Stream, Chain>,
    pub now: Now,
    /// Commits until the server crashes.
    pub commits_left: usize,
}

/// The reason why a request was not carried out.
#[derive(Debug, PartialEq, Eq)]
pub enum Failed {
    Refused(ControlError),
    Crashed,
}

impl From<ControlError> for Failed {
    fn from(error: ControlError) -> Self {
        Self::Refused(error)
    }
}

impl Streams {
    pub fn new() -> Self {
        let now = Now::at_millis(1_767_225_600_000);
        Self::recovered(BTreeMap::new(), Vec::new(), BTreeMap::new(), now)
    }

    fn recovered(
        logs: BTreeMap<Stream, Vec<Record>>,
        records: Vec<Record>,
        audit: BTreeMap<Stream, Chain>,
        now: Now,
    ) -> Self {
        let mut shared = SharedState::new(SEED);
        for record in logs.get(&Stream::Shared).into_iter().flatten() {
            if let Entry::Shared(change) = &record.entry {
                shared.apply(record.now, change);
            }
        }
        let mut clusters = BTreeMap::new();
        for (id, _) in shared.clusters() {
            let mut state = shared.initial_cluster(id).unwrap();
            for record in logs.get(&Stream::Cluster(id)).into_iter().flatten() {
                if let Entry::Cluster(of, entry) = &record.entry {
                    assert_eq!(*of, id);
                    state.apply(id, record.now, entry);
                }
            }
            clusters.insert(id, Arc::new(state));
        }
        Self { shared: Arc::new(shared), clusters, logs, records, audit, now, commits_left: usize::MAX }
    }

    /// The server after a crash: every stream as its log says.
    pub fn replayed(&self) -> Self {
        Self::recovered(self.logs.clone(), self.records.clone(), self.audit.clone(), self.now)
    }

    /// Completes what a crash has interrupted: clusters that are closed are removed, and claims are put right.
    pub fn repair(&mut self) {
        for id in self.ids() {
            if let Some(closed) = self.clusters[&id].closed().cloned() {
                let (by, once, undelivered) = (closed.by, closed.once, self.cluster(id).undelivered());
                let removal = SharedRequest::RemoveClosed { cluster: id, by, once, undelivered };
                self.ask_shared(&removal).unwrap();
            } else {
                self.settle_claims(id).unwrap();
            }
        }
    }

    pub fn ids(&self) -> Vec<ClusterId> {
        self.clusters.keys().copied().collect()
    }

    pub fn cluster(&self, id: ClusterId) -> &ClusterState {
        &self.clusters[&id]
    }

    pub fn aggregate(&self) -> ControlState {
        let clusters = self.clusters.iter().map(|(id, cluster)| (*id, Arc::clone(cluster)));
        ControlState::from_parts(Arc::clone(&self.shared), clusters)
    }

    pub fn environment<'a>(
        &self,
        stream: Stream,
        jammed: &'a BTreeSet<forewarn_lifecycle::MachineId>,
    ) -> Environment<'a> {
        let audit = self.audit.get(&stream).copied().unwrap_or_default();
        Environment { now: self.now, audit, hypervisor: HypervisorKind::Simulated, revision: 0, jammed }
    }

    /// Commits a decision of a stream, unless the server crashes.
    fn commit<S>(&mut self, stream: Stream, decision: &Decision<S>) -> Result<(), Failed> {
        let Decision { records, audit, audit_end, .. } = decision;
        assert!(records.iter().all(|record| record.stream() == stream), "{records:?}");
        assert!(audit.iter().all(|entry| entry.belongs_to() == stream), "{audit:?}");
        self.commits_left = self.commits_left.checked_sub(1).ok_or(Failed::Crashed)?;
        self.audit.insert(stream, *audit_end);
        self.logs.entry(stream).or_default().extend(records.iter().cloned());
        self.records.extend(records.iter().cloned());
        Ok(())
    }

    /// Writes a record that no request decides.
    pub fn write(&mut self, record: Record) {
        match &record.entry {
            Entry::Shared(change) => drop(Arc::make_mut(&mut self.shared).apply(record.now, change)),
            Entry::Cluster(id, entry) => {
                let state = self.clusters.get_mut(id).map(Arc::make_mut);
                state.into_iter().for_each(|state| drop(state.apply(*id, record.now, entry)));
            }
        }
        self.logs.entry(record.stream()).or_default().push(record.clone());
        self.records.push(record);
    }

    pub fn ask_shared(&mut self, request: &SharedRequest) -> Result<Reply, Failed> {
        let none = BTreeSet::new();
        let decision = decide_shared(&self.shared, &self.environment(Stream::Shared, &none), request)?;
        self.commit(Stream::Shared, &decision)?;
        self.shared = decision.state;
        for effect in &decision.effects {
            if let Effect::ClusterCreated(id) = effect {
                let initial = self.shared.initial_cluster(*id).unwrap();
                self.clusters.insert(*id, Arc::new(initial));
            } else if let Effect::ClusterGone(id) = effect {
                self.clusters.remove(id);
            }
        }
        Ok(decision.reply)
    }

    /// Takes claims, decides and commits a request to a cluster, and releases claims.
    pub fn ask_cluster(&mut self, id: ClusterId, request: &ClusterRequest) -> Result<Reply, Failed> {
        let needed = claims_needed(id, self.cluster(id), &self.shared, request);
        let needs_claims = !needed.is_empty();
        let decided = self.decide_with(id, needed, request);
        match &decided {
            Err(Failed::Crashed) => return Err(Failed::Crashed),
            Err(Failed::Refused(error)) => assert_ne!(*error, ControlError::Unclaimed, "{request:?}"),
            Ok(_) => {}
        }
        let has_changed =
            decided.as_ref().is_ok_and(|(_, effects)| effects.contains(&Effect::ClaimsChanged(id)));
        if needs_claims || has_changed {
            self.settle_claims(id)?;
        }
        assert_eq!(unused_claims(id, self.cluster(id), &self.shared), [], "{request:?}");
        decided.map(|(reply, _)| reply)
    }

    fn decide_with(
        &mut self,
        id: ClusterId,
        claims: Vec<forewarn_control::shared::NewClaim>,
        request: &ClusterRequest,
    ) -> Result<(Reply, Vec<Effect>), Failed> {
        if !claims.is_empty() {
            self.ask_shared(&SharedRequest::TakeClaims { cluster: id, claims })?;
        }
        let (stream, none) = (Stream::Cluster(id), BTreeSet::new());
        let environment = self.environment(stream, &none);
        let decision = decide_in_cluster(id, &self.clusters[&id], &self.shared, &environment, request)?;
        self.commit(stream, &decision)?;
        self.clusters.insert(id, decision.state);
        Ok((decision.reply, decision.effects))
    }

    /// Takes claims whose location has changed, and releases those that are not used.
    pub fn settle_claims(&mut self, id: ClusterId) -> Result<(), Failed> {
        let claims = missing_claims(id, self.cluster(id), &self.shared);
        if !claims.is_empty() {
            self.ask_shared(&SharedRequest::TakeClaims { cluster: id, claims })?;
        }
        let groups = unused_claims(id, self.cluster(id), &self.shared);
        if !groups.is_empty() {
            self.ask_shared(&SharedRequest::ReleaseClaims { cluster: id, groups })?;
        }
        Ok(())
    }

    pub fn administer(&mut self, change: Administration) -> Result<Reply, Failed> {
        self.ask_shared(&SharedRequest::Administer { change, context: RequestContext::default() })
    }

    pub fn create(&mut self, name: &str) -> ClusterId {
        self.administer(Administration::CreateCluster(Name::new(name).unwrap())).unwrap();
        self.shared.cluster_named(name).unwrap()
    }

    /// Removes a cluster, as a server does.
    pub fn remove(&mut self, name: &str, context: &RequestContext) -> Result<Reply, Failed> {
        let name = Name::new(name).unwrap();
        let id = match self.shared.check_removal(self.now, 0, &name, context)? {
            ClusterRemoval::Close(id) => id,
            ClusterRemoval::Repeated(outcome) => return Ok(Reply::Repeated(outcome)),
        };
        let (by, once) = (context.by.clone(), context.once.clone());
        self.ask_cluster(id, &ClusterRequest::Close { by: by.clone(), once: once.clone() })?;
        let undelivered = self.cluster(id).undelivered();
        self.ask_shared(&SharedRequest::RemoveClosed { cluster: id, by, once, undelivered })
    }

    pub fn commands(&mut self, id: ClusterId, commands: &[Value], key: Option<u8>) -> Result<Reply, Failed> {
        let commands = commands.iter().map(|one| serde_json::from_value(one.clone()).unwrap()).collect();
        let context = RequestContext { once: key.map(once), ..RequestContext::default() };
        self.ask_cluster(id, &ClusterRequest::Commands(CommandBatch { commands, context }))
    }

    pub fn change_site(&mut self, id: ClusterId, group: &str, location: &str) -> Result<Reply, Failed> {
        let change = json!({ "command": "change_site", "resource_group": group, "location": location });
        self.commands(id, &[change], None)
    }

    pub fn write_resources(&mut self, id: ClusterId, writes: Vec<ResourceWrite>) -> Result<Reply, Failed> {
        let transaction = Transaction { writes, ..Transaction::default() };
        self.ask_cluster(id, &ClusterRequest::Transaction { transaction, context: RequestContext::default() })
    }

    /// The cluster that has a group, and its location.
    pub fn claim(&self, group: &str) -> Option<(ClusterId, &str)> {
        let claim = self.shared.claim(&group_id(group).to_lowercase())?;
        Some((claim.cluster, claim.location.as_str()))
    }
}

pub fn once(key: u8) -> IdempotencyKey {
    IdempotencyKey { key: format!("k{key}"), fingerprint: [key; 32] }
}

/// The id of a group in the subscription of a new cluster.
pub fn group_id(name: &str) -> String {
    format!("/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/{name}")
}

pub fn put_group(name: &str, location: &str) -> ResourceWrite {
    put(&group_id(name), &json!({ "location": location }))
}

pub fn put(id: &str, body: &Value) -> ResourceWrite {
    let body = Body(body.to_string().into_bytes().into());
    ResourceWrite::Put { id: id.to_owned(), link: None, body, notes: Body::default() }
}
