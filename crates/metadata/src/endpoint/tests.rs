//! Identification of callers by their addresses, with several clusters.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use arc_swap::ArcSwap;
use forewarn_imds::{Document, Instance, Naming};
use forewarn_types::{ClusterId, EventId, MachineId, Name, Now, Steady, TenantId, Timestamp};
use prometheus_client::registry::Registry;

use super::*;
use crate::callers::{Directory, PublishedState};
use crate::control_plane::{ApprovalError, EnrolError, PollReportError};
use crate::published::{PollDuty, PublishedDocument};

const POLL: &[u8] =
    b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: h\r\nMetadata: true\r\n\r\n";

/// A control plane in which the clusters `west` and `east` have each a machine with the same address.
#[derive(Clone, Debug)]
struct TwoClusters(Arc<Clusters>);

#[derive(Debug)]
struct Clusters {
    directory: Directory,
    names: ArcSwap<BTreeMap<&'static str, ClusterId>>,
}

/// The tenant of every machine.
struct OneTenant;

impl PublishedState for OneTenant {
    fn tenant_of(&self, _: CallerId) -> Option<TenantId> {
        Some(TenantId(0))
    }

    fn document_of(&self, _: ClusterId, _: TenantId) -> Option<PublishedDocument> {
        let document = Document { incarnation: 1, events: Vec::new(), naming: Naming::Machines };
        Some(PublishedDocument::new(document, PollDuty::None, 0))
    }
}

/// The machine with the name `named`, which has no address.
const NAMED: MachineId = MachineId(99);

fn address() -> IpAddr {
    Ipv4Addr::new(10, 0, 0, 1).into()
}

impl TwoClusters {
    fn new() -> Self {
        let names = ArcSwap::from_pointee(BTreeMap::from([("west", ClusterId(1)), ("east", ClusterId(2))]));
        Self(Arc::new(Clusters { directory: Directory::default(), names }))
    }

    fn name(&self, names: impl IntoIterator<Item = (&'static str, ClusterId)>) {
        self.0.names.store(Arc::new(names.into_iter().collect()));
        self.0.directory.names_changed();
    }
}

impl ControlPlane for TwoClusters {
    fn now(&self) -> Now {
        Now { wall: Timestamp::from_millis(0), steady: Steady::from_millis(0) }
    }

    fn generation(&self) -> u64 {
        self.0.directory.generation()
    }

    fn caller_at(&self, cluster: ClusterId, peer: IpAddr) -> Option<Arc<Caller>> {
        let id = CallerId { cluster, machine: MachineId(cluster.0 * 10) };
        self.0.directory.caller(&OneTenant, id).filter(|_| peer == address())
    }

    fn has_addresses(&self, cluster: ClusterId) -> bool {
        self.0.names.load().values().any(|named| *named == cluster)
    }

    fn caller_named(&self, name: &str) -> Option<Arc<Caller>> {
        let id = CallerId { cluster: ClusterId::DEFAULT, machine: NAMED };
        self.0.directory.caller(&OneTenant, id).filter(|_| name == "named")
    }

    fn cluster_named(&self, name: &str) -> Option<ClusterId> {
        self.0.names.load().get(name).copied()
    }

    fn instance(&self, _: &Caller) -> Option<Instance> {
        None
    }

    fn members(&self, _: &Caller) -> Vec<Name> {
        Vec::new()
    }

    async fn enrol(&self, _: ClusterId, _: TenantId) -> Result<(), EnrolError> {
        Ok(())
    }

    async fn report_poll(&self, _: CallerId) -> Result<(), PollReportError> {
        Ok(())
    }

    async fn approve(&self, _: &Caller, _: Vec<EventId>) -> Result<(), ApprovalError> {
        Ok(())
    }
}

fn endpoint(control: &TwoClusters) -> Arc<Endpoint<TwoClusters>> {
    let counts = EndpointCounts::new(&mut Registry::default());
    Endpoint::new(control.clone(), Settings::default(), Arc::new(counts))
}

fn of(cluster: &str) -> Identity {
    Identity::Address { cluster: Name::new(cluster).expect("a name") }
}

/// The machine that polls from the address that both clusters have.
fn caller(
    endpoint: &Endpoint<TwoClusters>,
    identity: &Identity,
    cache: &mut RequestCache<Arc<Caller>>,
) -> Result<MachineId, RequestError> {
    caller_from(address(), endpoint, identity, cache)
}

fn caller_from(
    peer: IpAddr,
    endpoint: &Endpoint<TwoClusters>,
    identity: &Identity,
    cache: &mut RequestCache<Arc<Caller>>,
) -> Result<MachineId, RequestError> {
    match endpoint.parse(POLL, identity, Some(peer), cache) {
        ParseOutcome::Request(request) => request.action.map(|(caller, _)| caller.machine),
        ParseOutcome::Partial | ParseOutcome::Malformed { .. } => panic!("a complete request"),
    }
}

/// promise: M3
#[tokio::test]
async fn a_listener_identifies_machines_of_its_cluster() {
    let endpoint = endpoint(&TwoClusters::new());
    for (cluster, machine) in [("west", 10), ("east", 20)] {
        let found = caller(&endpoint, &of(cluster), &mut RequestCache::default());
        assert_eq!(found, Ok(MachineId(machine)), "{cluster}");
    }
}

/// promise: M3
#[tokio::test]
async fn an_open_listener_goes_by_addresses_once_there_are_some_except_on_loopback() {
    let control = TwoClusters::new();
    let endpoint = endpoint(&control);
    let open = Identity::AddressOrPrefix { default: Some("named".to_owned()) };
    let from = |peer: &str, cache: &mut RequestCache<_>| {
        caller_from(peer.parse().expect("an address"), &endpoint, &open, cache)
    };
    let found = |peer: &str| from(peer, &mut RequestCache::default());
    let mut connection = RequestCache::default();
    assert_eq!(from("10.9.9.9", &mut connection), Ok(NAMED), "no machine has an address");
    assert_eq!(found("127.0.0.1"), Ok(NAMED));
    control.name([("default", ClusterId::DEFAULT)]);
    assert_eq!(
        from("10.9.9.9", &mut connection),
        Err(RequestError::UnknownCaller),
        "also when it is connected"
    );
    assert_eq!(found("10.0.0.1"), Ok(MachineId(0)));
    for peer in ["10.9.9.9", "169.254.169.254", "fe80::1", "::ffff:10.9.9.9"] {
        assert_eq!(found(peer), Err(RequestError::UnknownCaller), "{peer}");
    }
    for peer in ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"] {
        assert_eq!(found(peer), Ok(NAMED), "{peer}");
    }
}

/// promise: M3
#[tokio::test]
async fn a_caller_of_a_listener_without_its_cluster_is_unknown_and_logged_once() {
    let endpoint = endpoint(&TwoClusters::new());
    for cluster in ["north", "north", "south", "north"] {
        let found = caller(&endpoint, &of(cluster), &mut RequestCache::default());
        assert_eq!(found, Err(RequestError::UnknownCaller));
    }
    tokio::time::pause();
    let pass = |cluster| endpoint.unknown_clusters.pass(&Name::new(cluster).expect("a name"));
    assert_eq!(pass("north"), None);
    tokio::time::advance(Duration::from_mins(1)).await;
    assert_eq!(pass("north"), Some(3), "the first of four is logged");
    assert_eq!(pass("south"), Some(0), "the only one is logged");
}

/// promise: M3
#[tokio::test]
async fn a_connection_follows_the_names_of_clusters() {
    let control = TwoClusters::new();
    let (endpoint, identity, mut cache) = (endpoint(&control), of("west"), RequestCache::default());
    for _ in 0..3 {
        assert_eq!(caller(&endpoint, &identity, &mut cache), Ok(MachineId(10)));
    }
    assert!(cache.get(POLL, control.0.directory.generation()).is_some(), "the poll is cached");
    control.name([("south", ClusterId(1)), ("west", ClusterId(2))]);
    assert_eq!(caller(&endpoint, &identity, &mut cache), Ok(MachineId(20)));
    control.name([("south", ClusterId(1))]);
    assert_eq!(caller(&endpoint, &identity, &mut cache), Err(RequestError::UnknownCaller));
    control.name([("west", ClusterId(1))]);
    assert_eq!(caller(&endpoint, &identity, &mut cache), Ok(MachineId(10)));
}
