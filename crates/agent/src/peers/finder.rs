//! Discovery of peers: from a list, from DNS, or from the member names of the endpoint.
//!
//! Results are cached. If a lookup fails, the last result is used.

use std::time::{Duration, Instant};

use forewarn_agent_core::PeersToPoll;
use forewarn_client::{Client, Endpoint};
use tokio::net::lookup_host;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::addresses::{PeerAddresses, ip_of};
use super::discovery::PeerDiscovery;

/// Limit of polled peers.
const PEERS_MAX: usize = 256;

/// The lifetime of a lookup, and its timeout.
const CACHE_LIFETIME: Duration = Duration::from_secs(10);
const LOOK_UP_MAX: Duration = Duration::from_secs(2);

/// A peer with a known address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Peer {
    /// The expected name, if known.
    pub(super) name: Option<String>,
    pub(super) address: String,
}

/// Finds the addresses of peers.
#[derive(Debug)]
pub(super) struct PeerFinder {
    discovery: PeerDiscovery,
    me: String,
    /// The endpoint that lists the members.
    endpoint: Endpoint,
    /// Resolved addresses are shared with the listener.
    addresses: PeerAddresses,
    cache: Mutex<LookupCache>,
}

/// The cached result of a lookup: addresses or names.
#[derive(Debug, Default)]
struct LookupCache {
    at: Option<Instant>,
    list: Vec<String>,
}

impl PeerFinder {
    pub(super) fn new(
        discovery: PeerDiscovery,
        me: String,
        endpoint: Endpoint,
        addresses: PeerAddresses,
    ) -> Self {
        Self { discovery, me, endpoint, addresses, cache: Mutex::default() }
    }

    pub(super) fn me(&self) -> &str {
        &self.me
    }

    /// The peers to poll, without this machine.
    pub(super) async fn find(&self, peers_to_poll: &PeersToPoll) -> Vec<Peer> {
        let wanted = match peers_to_poll {
            PeersToPoll::None => return Vec::new(),
            PeersToPoll::Named(names) => Some(names),
            PeersToPoll::All => None,
        };
        let is_wanted =
            |name: &str| name != self.me && wanted.is_none_or(|names| names.iter().any(|n| n == name));
        let mut peers: Vec<_> = match &self.discovery {
            PeerDiscovery::List(list) => {
                let wanted = list.iter().filter(|(name, _)| is_wanted(name));
                wanted
                    .map(|(name, address)| Peer { name: Some(name.clone()), address: address.clone() })
                    .collect()
            }
            // DNS gives no names: they are known after the first response.
            PeerDiscovery::Dns(name) => {
                let addresses = self.look_up(resolve(name)).await;
                addresses.iter().filter_map(|text| ip_of(text)).for_each(|ip| self.addresses.learn(ip));
                addresses.into_iter().map(|address| Peer { name: None, address }).collect()
            }
            PeerDiscovery::Members { suffix, port } => {
                let names = match wanted {
                    Some(names) => names.clone(),
                    None => self.look_up(self.members()).await,
                };
                let names = names.into_iter().filter(|name| is_wanted(name));
                names
                    .map(|name| Peer { address: format!("{name}{suffix}:{port}"), name: Some(name) })
                    .collect()
            }
        };
        peers.sort();
        peers.dedup();
        peers.truncate(PEERS_MAX);
        peers
    }

    async fn look_up(&self, lookup: impl Future<Output = Option<Vec<String>>>) -> Vec<String> {
        let mut cache = self.cache.lock().await;
        if cache.at.is_none_or(|at| at.elapsed() > CACHE_LIFETIME) {
            let found = timeout(LOOK_UP_MAX, lookup).await.ok().flatten();
            if let Some(found) = found {
                *cache = LookupCache { at: Some(Instant::now()), list: found };
            }
        }
        cache.list.clone()
    }

    async fn members(&self) -> Option<Vec<String>> {
        let members = Client::new(self.endpoint.clone()).members().await;
        members.inspect_err(|error| tracing::debug!(%error, "cannot read the list of members")).ok()
    }
}

async fn resolve(name: &str) -> Option<Vec<String>> {
    let found = lookup_host(name).await;
    let found =
        found.inspect_err(|error| tracing::debug!(name, %error, "cannot resolve the name of peers")).ok()?;
    Some(found.take(PEERS_MAX).map(|address| address.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreachable() -> Endpoint {
        Endpoint::parse("http://127.0.0.1:9").unwrap()
    }

    fn named(names: &[&str]) -> PeersToPoll {
        PeersToPoll::Named(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn peer(name: Option<&str>, address: &str) -> Peer {
        Peer { name: name.map(str::to_owned), address: address.to_owned() }
    }

    #[tokio::test]
    async fn from_a_list_come_those_who_are_wanted_and_never_oneself() {
        let list = [("web_0", "10.0.0.4:1"), ("web_1", "10.0.0.5:1"), ("web_2", "host:1")];
        let list = list.map(|(name, address)| (name.to_owned(), address.to_owned()));
        let finder = PeerFinder::new(
            PeerDiscovery::List(list.into()),
            "web_0".to_owned(),
            unreachable(),
            PeerAddresses::default(),
        );
        assert_eq!(finder.find(&PeersToPoll::None).await, []);
        let (one, two) = (peer(Some("web_1"), "10.0.0.5:1"), peer(Some("web_2"), "host:1"));
        assert_eq!(finder.find(&named(&["web_0", "web_2", "web_9"])).await, std::slice::from_ref(&two));
        assert_eq!(finder.find(&PeersToPoll::All).await, [one, two]);
    }

    #[tokio::test]
    async fn with_dns_all_addresses_are_polled() {
        let finder = PeerFinder::new(
            PeerDiscovery::Dns("127.0.0.1:9911".to_owned()),
            "web_0".to_owned(),
            unreachable(),
            PeerAddresses::default(),
        );
        assert_eq!(finder.find(&named(&["web_1"])).await, [peer(None, "127.0.0.1:9911")]);
    }

    #[tokio::test]
    async fn members_are_where_their_names_lead() {
        let discovery = PeerDiscovery::Members { suffix: ".internal".to_owned(), port: 9911 };
        let finder = PeerFinder::new(discovery, "web_0".to_owned(), unreachable(), PeerAddresses::default());
        let expected = [peer(Some("web_1"), "web_1.internal:9911")];
        assert_eq!(finder.find(&named(&["web_0", "web_1"])).await, expected);
        assert_eq!(finder.find(&PeersToPoll::All).await, [], "no list of members");
    }

    #[tokio::test]
    async fn what_was_known_is_asked_where_it_cannot_be_looked_up_again() {
        let finder = PeerFinder::new(
            PeerDiscovery::Dns(String::new()),
            "web_0".to_owned(),
            unreachable(),
            PeerAddresses::default(),
        );
        let some = vec!["10.0.0.5:1".to_owned()];
        assert_eq!(finder.look_up(async { Some(some.clone()) }).await, some);
        assert_eq!(finder.look_up(async { Some(Vec::new()) }).await, some, "the cache is fresh");
        finder.cache.lock().await.at = None;
        assert_eq!(finder.look_up(async { None }).await, some);
        assert_eq!(finder.look_up(async { Some(Vec::new()) }).await, Vec::<String>::new());
    }
}
