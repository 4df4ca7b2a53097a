//! Where peers are: from a list, from DNS, or by the names that the endpoint tells.
//!
//! What is looked up is kept for a while. If it cannot be looked up again, the last that was known is asked.

use std::time::{Duration, Instant};

use forewarn_agent_core::Asking;
use forewarn_client::{Client, Endpoint};
use tokio::net::lookup_host;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::addresses::{PeerAddresses, address};
use super::places::PeerPlaces;

/// Peers that are asked at most.
const PEERS_MAX: usize = 256;

/// How long what was looked up is good, and how long looking up may take.
const FRESH: Duration = Duration::from_secs(10);
const LOOK_UP_MAX: Duration = Duration::from_secs(2);

/// A peer that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Peer {
    /// What it has to be called, where that is known.
    pub(super) name: Option<String>,
    /// Host and port.
    pub(super) place: String,
}

/// Finds peers.
#[derive(Debug)]
pub(super) struct Finder {
    places: PeerPlaces,
    me: String,
    /// Who tells the names of members.
    endpoint: Endpoint,
    /// The listener has to know which addresses are those of peers.
    addresses: PeerAddresses,
    known: Mutex<Known>,
}

/// What was looked up: host and port, or names.
#[derive(Debug, Default)]
struct Known {
    at: Option<Instant>,
    list: Vec<String>,
}

impl Finder {
    pub(super) fn new(places: PeerPlaces, me: String, endpoint: Endpoint, addresses: PeerAddresses) -> Self {
        Self { places, me, endpoint, addresses, known: Mutex::default() }
    }

    pub(super) fn me(&self) -> &str {
        &self.me
    }

    /// Those who are to be asked, except this machine itself.
    pub(super) async fn find(&self, asking: &Asking) -> Vec<Peer> {
        let wanted = match asking {
            Asking::Nobody => return Vec::new(),
            Asking::These(names) => Some(names),
            Asking::Everybody => None,
        };
        let is_wanted =
            |name: &str| name != self.me && wanted.is_none_or(|names| names.iter().any(|n| n == name));
        let mut peers: Vec<_> = match &self.places {
            PeerPlaces::List(places) => {
                let wanted = places.iter().filter(|(name, _)| is_wanted(name));
                wanted.map(|(name, place)| Peer { name: Some(name.clone()), place: place.clone() }).collect()
            }
            // Who is where is known when they have answered.
            PeerPlaces::Dns(name) => {
                let places = self.look_up(resolve(name)).await;
                places.iter().filter_map(|place| address(place)).for_each(|peer| self.addresses.learn(peer));
                places.into_iter().map(|place| Peer { name: None, place }).collect()
            }
            PeerPlaces::Members { suffix, port } => {
                let names = match wanted {
                    Some(names) => names.clone(),
                    None => self.look_up(self.members()).await,
                };
                let names = names.into_iter().filter(|name| is_wanted(name));
                names.map(|name| Peer { place: format!("{name}{suffix}:{port}"), name: Some(name) }).collect()
            }
        };
        peers.sort();
        peers.dedup();
        peers.truncate(PEERS_MAX);
        peers
    }

    async fn look_up(&self, looking: impl Future<Output = Option<Vec<String>>>) -> Vec<String> {
        let mut known = self.known.lock().await;
        if known.at.is_none_or(|at| at.elapsed() > FRESH) {
            let found = timeout(LOOK_UP_MAX, looking).await.ok().flatten();
            if let Some(found) = found {
                *known = Known { at: Some(Instant::now()), list: found };
            }
        }
        known.list.clone()
    }

    async fn members(&self) -> Option<Vec<String>> {
        let members = Client::new(self.endpoint.clone()).members().await;
        members.inspect_err(|error| tracing::debug!(%error, "the members are not told")).ok()
    }
}

async fn resolve(name: &str) -> Option<Vec<String>> {
    let found = lookup_host(name).await;
    let found = found.inspect_err(|error| tracing::debug!(name, %error, "a name is not known")).ok()?;
    Some(found.take(PEERS_MAX).map(|address| address.to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nowhere() -> Endpoint {
        Endpoint::parse("http://127.0.0.1:9").unwrap()
    }

    fn these(names: &[&str]) -> Asking {
        Asking::These(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn peer(name: Option<&str>, place: &str) -> Peer {
        Peer { name: name.map(str::to_owned), place: place.to_owned() }
    }

    #[tokio::test]
    async fn from_a_list_come_those_who_are_wanted_and_never_oneself() {
        let list = [("web_0", "10.0.0.4:1"), ("web_1", "10.0.0.5:1"), ("web_2", "host:1")];
        let list = list.map(|(name, place)| (name.to_owned(), place.to_owned()));
        let finder = Finder::new(
            PeerPlaces::List(list.into()),
            "web_0".to_owned(),
            nowhere(),
            PeerAddresses::default(),
        );
        assert_eq!(finder.find(&Asking::Nobody).await, []);
        let (one, two) = (peer(Some("web_1"), "10.0.0.5:1"), peer(Some("web_2"), "host:1"));
        assert_eq!(finder.find(&these(&["web_0", "web_2", "web_9"])).await, std::slice::from_ref(&two));
        assert_eq!(finder.find(&Asking::Everybody).await, [one, two]);
    }

    #[tokio::test]
    async fn by_dns_everybody_is_asked_who_is_there() {
        let finder = Finder::new(
            PeerPlaces::Dns("127.0.0.1:9911".to_owned()),
            "web_0".to_owned(),
            nowhere(),
            PeerAddresses::default(),
        );
        assert_eq!(finder.find(&these(&["web_1"])).await, [peer(None, "127.0.0.1:9911")]);
    }

    #[tokio::test]
    async fn members_are_where_their_names_lead() {
        let places = PeerPlaces::Members { suffix: ".internal".to_owned(), port: 9911 };
        let finder = Finder::new(places, "web_0".to_owned(), nowhere(), PeerAddresses::default());
        let expected = [peer(Some("web_1"), "web_1.internal:9911")];
        assert_eq!(finder.find(&these(&["web_0", "web_1"])).await, expected);
        assert_eq!(finder.find(&Asking::Everybody).await, [], "nobody tells");
    }

    #[tokio::test]
    async fn what_was_known_is_asked_where_it_cannot_be_looked_up_again() {
        let finder = Finder::new(
            PeerPlaces::Dns(String::new()),
            "web_0".to_owned(),
            nowhere(),
            PeerAddresses::default(),
        );
        let some = vec!["10.0.0.5:1".to_owned()];
        assert_eq!(finder.look_up(async { Some(some.clone()) }).await, some);
        assert_eq!(finder.look_up(async { Some(Vec::new()) }).await, some, "it is fresh");
        finder.known.lock().await.at = None;
        assert_eq!(finder.look_up(async { None }).await, some);
        assert_eq!(finder.look_up(async { Some(Vec::new()) }).await, Vec::<String>::new());
    }
}
